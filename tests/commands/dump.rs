//! `script -D`: the raw dump of recordings and of generated records, most of them compared with perf.

use std::fs;

use rperf_testkit::{Bytes, PerfFile, Scratch, assert_golden};

use super::generated_files::{Attr, ID, file, record};
use super::rperf;
use crate::tidy::root;
use crate::tools::{BOTH, Tool, Tools};

const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CPU: u64 = 1 << 7;
const IDENTIFIER: u64 = 1 << 16;
/// The common fields of the samples below.
const BASE: u64 = IP | TID | TIME;

#[test]
fn dumps_of_recordings_match_perf() {
    let Some(tools) = Tools::find_for("dumps_of_recordings_match_perf") else {
        return;
    };
    let shell = ["sh", "-c", "ls / > /dev/null; sleep 0.01"];
    // perf takes long to record, so it makes only two of these recordings.
    for (name, recorders, options) in [
        ("chains", &BOTH[..], &["-g", "-F", "4000"][..]),
        // Context switches: all their samples are in the kernel. In other programs of the system, rperf would find symbols
        // of some objects that perf cannot read.
        (
            "system",
            &[Tool::Rperf],
            &["-a", "-e", "cs", "--switch-events"],
        ),
        (
            "namespaces",
            &[Tool::Perf],
            &["--namespaces", "-e", "task-clock,page-faults", "-c", "9"],
        ),
        (
            "weights",
            &[Tool::Rperf],
            &["-d", "-e", "page-faults", "-c", "1"],
        ),
    ] {
        for recorder in recorders {
            let Some(file) = tools.record(*recorder, name, &[options, &shell].concat()) else {
                continue;
            };
            let text = tools.assert_same(&["script", "-D", "-i", &file]);
            assert!(text.contains("PERF_RECORD_SAMPLE"), "{file} has samples");
            tools.assert_same(&["report", "-D", "-i", &file]);
        }
    }
}

#[test]
fn dump_of_a_stream_matches_perf() {
    let Some(tools) = Tools::find_for("dump_of_a_stream_matches_perf") else {
        return;
    };
    let shell = "perf record -q -o - -e cpu-clock,page-faults -g ls / > stream";
    let recorded = rperf_testkit::Run::new("sh").args(["-c", shell]);
    let recorded = recorded.within(tools.path()).finish().expect("sh starts");
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let stored = tools.assert_same(&["script", "-D", "-i", "stream"]);
    let bytes = fs::read(tools.path().join("stream")).expect("perf wrote a stream");
    let piped = tools
        .run(Tool::Rperf, &["script", "-D", "-i", "-"])
        .stdin(bytes);
    assert_eq!(piped.finish().expect("rperf starts").stdout, stored);
}

/// Compares the dump of a file with the golden file of that name, and with perf's dump if perf is available.
fn assert_dump(name: &str, bytes: &[u8]) {
    let golden = root().join("tests/golden/dump").join(format!("{name}.txt"));
    assert_golden(&golden, &dumped(name, bytes));
}

/// Returns the dump of a file, compared with perf's if perf is available.
fn dumped(name: &str, bytes: &[u8]) -> String {
    let scratch = Scratch::new();
    scratch.write("perf.data", bytes).expect("a file");
    let run = rperf(&["script", "-D"]).within(scratch.path());
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{name}: {outcome:?}");
    if let Some(tools) = Tools::find_for(&format!("commands::dump: {name}")) {
        fs::write(tools.path().join("perf.data"), bytes).expect("a file");
        tools.assert_same(&["script", "-D"]);
        tools.assert_same(&["report", "-D"]);
    }
    outcome.stdout
}

/// Records of the kernel, ten nanoseconds apart. Those that are not samples have a trailer.
struct KernelRecords {
    records: Vec<u8>,
    time: u64,
}

impl KernelRecords {
    /// Adds a record that is not a sample.
    fn put(&mut self, kind: u32, misc: u16, body: Bytes) {
        self.time += 10;
        let body = body.u32(7).u32(8).u64(self.time).u32(1).u32(0).u64(ID);
        self.records.extend(record(kind, misc, body));
    }
}

#[test]
fn records_of_the_kernel_are_dumped() {
    // Bits of `misc` whose meaning depends on the type of the record.
    const MMAP_DATA: u16 = 1 << 13;
    const EXEC: u16 = 1 << 13;
    const OUT: u16 = 1 << 13;
    const PREEMPTED: u16 = 3 << 13;
    const BUILD_ID: u16 = 1 << 14;
    let mut kernel = KernelRecords {
        records: Vec::new(),
        time: 1000,
    };
    let mapping = || Bytes::new().u32(7).u32(8).u64(0x1000).u64(0x2000);
    // MMAP and MMAP2.
    kernel.put(1, PerfFile::USER, mapping().u64(0).text("/a/b", 8));
    kernel.put(
        1,
        PerfFile::USER | MMAP_DATA,
        mapping().u64(0x3000).text("/a/b", 8),
    );
    let inode = mapping().u64(0).u32(8).u32(1).u64(77).u64(5).u32(7).u32(1);
    kernel.put(10, PerfFile::USER, inode.text("/a/b", 8));
    let id = mapping()
        .u64(0)
        .raw([16, 0, 0, 0])
        .raw([0xab; 20])
        .u32(1)
        .u32(2);
    kernel.put(10, PerfFile::USER | BUILD_ID, id.text("/a/c", 8));
    // COMM, FORK and EXIT.
    kernel.put(3, 0, Bytes::new().u32(7).u32(8).text("name", 8));
    kernel.put(3, EXEC, Bytes::new().u32(7).u32(8).text("name", 8));
    let task = || Bytes::new().u32(9).u32(7).u32(9).u32(8).u64(1020);
    kernel.put(7, 0, task());
    kernel.put(4, 0, task());
    // LOST, LOST_SAMPLES, THROTTLE, UNTHROTTLE, READ, AUX and ITRACE_START.
    kernel.put(2, 0, Bytes::new().u64(ID).u64(3));
    kernel.put(13, 0, Bytes::new().u64(9));
    kernel.put(5, 0, Bytes::new().u64(1020).u64(ID).u64(66));
    kernel.put(6, 0, Bytes::new().u64(1020).u64(ID).u64(66));
    kernel.put(8, 0, Bytes::new().u32(7).u32(8).u64(123));
    kernel.put(11, 0, Bytes::new().u64(0x1000).u64(0x20).u64(3));
    kernel.put(12, 0, Bytes::new().u32(7).u32(8));
    // SWITCH and SWITCH_CPU_WIDE.
    for misc in [0, OUT, PREEMPTED] {
        kernel.put(14, misc, Bytes::new());
        kernel.put(15, misc, Bytes::new().u32(u32::MAX).u32(5));
    }
    let namespaces = |count: u64| {
        let head = Bytes::new().u32(7).u32(8).u64(count);
        (0..count).fold(head, |body, number| body.u64(number).u64(0x1000 * number))
    };
    // NAMESPACES.
    for count in [7, 3] {
        kernel.put(16, 0, namespaces(count));
    }
    let symbol = |flags| {
        Bytes::new()
            .u64(0xffff_ffff_c000_0000)
            .u32(64)
            .u16(1)
            .u16(flags)
    };
    // KSYMBOL, BPF_EVENT, CGROUP, TEXT_POKE and AUX_OUTPUT_HW_ID.
    kernel.put(17, 0, symbol(0).text("bpf_prog", 8));
    kernel.put(17, 0, symbol(1).text("bpf_prog", 8));
    kernel.put(18, 0, Bytes::new().u16(1).u16(0).u32(33).raw([7; 8]));
    kernel.put(19, 0, Bytes::new().u64(99).text("/cg/x", 8));
    let poke = Bytes::new().u64(0xffff_ffff_8100_0000).u16(3).u16(20);
    kernel.put(20, 0, poke.raw([0x90; 23]).raw([0; 5]));
    kernel.put(21, 0, Bytes::new().u64(0x77));
    // How an address is shown in each of these cpumodes: 0 (unknown), 1 (kernel), 2 (user), 3 (hypervisor) and 5 (guest user).
    // 4 (guest kernel), which is shown like 5, is left out.
    for (mode, ip) in [
        (PerfFile::USER, 0x1004),
        (1, 0x1004),
        (PerfFile::USER, 0x9999),
        (3, 0x9999),
        (0, 0x9999),
        (5, 0x9999),
    ] {
        kernel.time += 10;
        let sample = Bytes::new().u64(ID).u64(ip).u32(7).u32(8);
        kernel
            .records
            .extend(record(9, mode, sample.u64(kernel.time).u32(1).u32(0)));
    }
    let sample_type = BASE | CPU | IDENTIFIER;
    let attr = Attr {
        sample_type,
        ..Attr::default()
    };
    assert_dump("kernel", &file(&attr, "x86_64", &kernel.records));
}

#[test]
fn records_of_the_recorder_are_dumped() {
    let update = |kind| Bytes::new().u64(kind).u64(ID);
    let error = |format| {
        Bytes::new()
            .u32(1)
            .u32(5)
            .u32(3)
            .u32(7)
            .u32(8)
            .u32(format)
            .u64(0x1234)
    };
    let mut message = b"a message".to_vec();
    message.resize(64, 0);
    let conversion = || Bytes::new().u64(3).u64(4).u64(5);
    let records = [
        // BUILD_ID, FINISHED_ROUND and ID_INDEX.
        (
            67,
            Bytes::new()
                .u32(u32::MAX)
                .raw([0xcd; 20])
                .raw([20, 0, 0, 0])
                .text("/x/y", 64),
        ),
        (68, Bytes::new()),
        (69, Bytes::new().u64(1).u64(ID).u64(0).u64(u64::MAX).u64(7)),
        // AUXTRACE_ERROR: in format 0, and in format 1, which has a time.
        (72, error(0).raw(&message)),
        (72, error(1).u64(1_999_999_999).raw(&message)),
        // THREAD_MAP.
        (
            73,
            Bytes::new().u64(2).u64(7).raw([0; 16]).u64(8).raw([0; 16]),
        ),
        (73, Bytes::new().u64(0)),
        // CPU_MAP: a list of CPUs, a list with -1 (any CPU), a mask, and a range.
        (
            74,
            Bytes::new().u16(0).u16(3).u16(0).u16(1).u16(5).raw([0; 6]),
        ),
        (74, Bytes::new().u16(0).u16(1).u16(u16::MAX).u16(0)),
        (
            74,
            Bytes::new()
                .u16(1)
                .u16(1)
                .u16(8)
                .u32(0)
                .u64(0b10_1101)
                .raw([0; 6]),
        ),
        (74, Bytes::new().u16(2).u16(0).u16(2).u16(6)),
        // STAT_CONFIG.
        (
            75,
            [3, 0, 1, 1, 0, 2, 1]
                .iter()
                .fold(Bytes::new(), |bytes, word| bytes.u64(*word)),
        ),
        // EVENT_UPDATE: the unit, the scale, the CPUs, and an unknown type.
        (78, update(0).text("msec", 8)),
        (78, update(1).u64(2.5_f64.to_bits())),
        (78, update(3).u16(0).u16(2).u16(0).u16(1)),
        (78, update(9).u64(0)),
        // TIME_CONV without and with the fields of newer recorders, and FINISHED_INIT.
        (79, conversion()),
        (79, conversion().u64(6).u64(7).raw([1, 0, 0, 0, 0, 0, 0, 0])),
        (82, Bytes::new()),
    ];
    let mut bytes: Vec<u8> = Vec::new();
    for (kind, body) in records {
        bytes.extend(record(kind, 0, body));
    }
    let sample_type = BASE | IDENTIFIER;
    let attr = Attr {
        sample_type,
        ..Attr::default()
    };
    assert_dump("user", &file(&attr, "x86_64", &bytes));
}

/// A name for messages and for the golden file, the attr of a sample, its architecture, and its fields after [`BASE`].
type SampleCase = (&'static str, Attr, &'static str, Bytes);

/// The attr with only this bit of `sample_type`; [`BASE`] is added later.
fn with_field(bit: u32) -> Attr {
    let sample_type = 1 << bit;
    Attr {
        sample_type,
        ..Attr::default()
    }
}

fn words(words: impl IntoIterator<Item = u64>) -> Bytes {
    words.into_iter().fold(Bytes::new(), Bytes::u64)
}

/// Samples with callchains, branches and registers.
fn stacks() -> [SampleCase; 5] {
    /// `PERF_CONTEXT_USER`.
    const USER: u64 = (-512_i64).cast_unsigned();
    let chain = words([12, USER].into_iter().chain(0x1000..0x100b));
    // `type` from bit 20 on, `cycles` from bit 4 on, and the four flags below.
    let flags = |number: u64| (number & 15) << 20 | number << 4 | number & 15;
    let branch = |number: u64| [0x100 * number, 0x200, flags(number)];
    let branches = || words([17].into_iter().chain((0..17).flat_map(branch)));
    let calls = Attr {
        // PERF_SAMPLE_BRANCH_CALL_STACK; the other 11, of `sample_type`, is PERF_SAMPLE_BRANCH_STACK.
        branches: 1 << 11,
        ..with_field(11)
    };
    let registers = |bit, mask: u64, count: u64| {
        let attr = Attr {
            regs_user: mask,
            regs_intr: mask,
            ..with_field(bit)
        };
        // PERF_SAMPLE_REGS_ABI_64, and the values.
        (attr, words([2].into_iter().chain(100..100 + count)))
    };
    // Bit 12 is PERF_SAMPLE_REGS_USER, bit 18 PERF_SAMPLE_REGS_INTR: only one of the two masks of the attr matters.
    let (attr, fields) = registers(12, 0xff_ffff, 24);
    let (attr_arm64, fields_arm64) = registers(18, 0x1_ffff_ffff, 33);
    [
        ("chain", with_field(5), "x86_64", chain),
        ("branches", with_field(11), "x86_64", branches()),
        ("calls", calls, "x86_64", branches()),
        ("registers", attr, "x86_64", fields),
        ("registers of arm64", attr_arm64, "aarch64", fields_arm64),
    ]
}

#[test]
fn fields_of_samples_are_dumped() {
    let others = [
        ("address", 3, words([0xdead])),
        ("weight", 14, words([0x1_2345_6789])),
        ("weights", 24, words([0x0003_0002_0000_0001])),
        ("source", 15, words([0x6810_0142])),
        ("transaction", 17, words([0xabc])),
        ("physical address", 19, words([0x1234_5000])),
        ("page", 22, words([4096])),
        ("page of code", 23, words([0])),
        ("stack", 13, words([16, 1, 2, 9])),
    ];
    let others = others.map(|(name, bit, fields)| (name, with_field(bit), "x86_64", fields));
    let mut text = String::new();
    for (name, attr, machine, fields) in stacks().into_iter().chain(others) {
        let sample_type = attr.sample_type | BASE;
        let attr = Attr {
            sample_type,
            ..attr
        };
        let body = Bytes::new().u64(0x1004).u32(7).u32(8).u64(2000);
        let sample = record(9, 2, body.raw(fields.done()));
        text += &format!(
            "== {name}\n{}",
            dumped(name, &file(&attr, machine, &sample))
        );
    }
    assert_golden(&root().join("tests/golden/dump/samples.txt"), &text);
}

#[test]
fn recordings_that_perf_refuses_are_dumped() {
    let scratch = Scratch::new();
    let attr = Attr {
        sample_type: BASE | IDENTIFIER,
        ..Attr::default()
    };
    let counters: Vec<u8> = (1..=6_u32).flat_map(u32::to_le_bytes).collect();
    // The texts below name the types of these records, in the same order.
    let records = [
        record(22, 0, words([0x77, 1, 0x1000, 0, 0, ID])),
        record(70, 0, Bytes::new().u32(4).u32(0).raw([0; 16])),
        record(200, 0, words([3])),
        record(32770, 0, words([2, 5, 0x1000]).text("/a/b.so", 8)),
        record(32771, 0, words([0x1010, 0x20, 5]).text("f", 8)),
        record(32774, 0, words([1, 0, ID])),
        record(32775, 0, words([8 << 32 | 7, 2, 99, 1, 0x1010, 0x7000])),
        record(32776, 0, words([99, 3, 1, 0x1010, 0x7000, 0x8000])),
        // SCHEDSTAT_CPU (85) and SCHEDSTAT_DOMAIN (86): the time; a word with the CPU in the low 32 bits, the version in the
        // next 16 and, in a DOMAIN, the number of the domain in the highest 16; then counters.
        record(
            85,
            0,
            words([5, 17 << 32 | 2]).raw(&counters).raw([0; 3 * 8]),
        ),
        record(85, 0, words([5, 14 << 32 | 2])),
        record(
            86,
            0,
            words([5, (1 << 16 | 15) << 32 | 2])
                .raw(&counters)
                .raw([0; 160]),
        ),
        record(20, 0, words([0x1000])),
        record(9, 2, words([ID, 0x1004])),
    ];
    let complete = file(&attr, "x86_64", &records.concat());
    let dump = |bytes: &[u8]| {
        scratch.write("perf.data", bytes).expect("a file");
        let run = rperf(&["script", "-D"]).within(scratch.path());
        run.finish().expect("rperf starts")
    };
    let text = dump(&complete).stdout;
    for part in [
        "PERF_RECORD_CALLCHAIN_DEFERRED(IP, 0x0): 0/0: 0x77\n... FP chain: nr:1\n.....  0: 0000000000001000\n",
        "PERF_RECORD_AUXTRACE_INFO type: 4\n",
        "PERF_RECORD_UNKNOWN\n",
        "PERF_RECORD_SIMPLEPERF_DSO id: 5  type: 2  min_vaddr: 0x1000: /a/b.so\n",
        "PERF_RECORD_SIMPLEPERF_SYMBOL dso: 5  addr: 0x1010  len: 0x20: f\n",
        "PERF_RECORD_SIMPLEPERF_EVENT_ID nr: 1\n ... attr: 0  id: ",
        "PERF_RECORD_SIMPLEPERF_CALLCHAIN 7/8: time: 99  type: 2  nr: 1\n.....  0: 0000000000001010 sp 0000000000007000\n",
        "PERF_RECORD_SIMPLEPERF_UNWINDING_RESULT time: 99  took: 3  error: 1 at 0x1010  stack: 0x7000-0x8000\n",
        "PERF_RECORD_SCHEDSTAT_CPU\ncpu2 1 2 3 4 5 6 0 0 0 : unhandled!\n",
        "PERF_RECORD_SCHEDSTAT_CPU\ncpu2 Unsupported /proc/schedstat version 14.\n: unhandled!\n",
        "PERF_RECORD_SCHEDSTAT_DOMAIN\ndomain1 1 2 3 4 5 6 0 0 0 ",
        "PERF_RECORD_TEXT_POKE cannot be decoded: ",
        "PERF_RECORD_SAMPLE cannot be decoded: ",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // If a recording is truncated after the file header of 104 bytes (to save time, only at each 13th length), the command ends
    // with a message.
    for length in (104..complete.len()).step_by(13) {
        let outcome = dump(&complete[..length]);
        assert!(
            matches!(outcome.status, 0 | 1 | 255),
            "{length}: {outcome:?}"
        );
        assert!(!outcome.stderr.is_empty(), "{length}: {outcome:?}");
    }
}
