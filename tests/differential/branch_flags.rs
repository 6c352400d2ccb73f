//! Kinds of branches (`flags`) in an `intel_bts` trace of a program built for the test.

use std::io::Cursor;

use rperf_perfdata::{EventDesc, FeatureId, PerfData, Writer};
use rperf_testkit::golden::difference;
use rperf_testkit::{Bytes, Run, skip};
use rperf_wire::{Endian, Misc, RawRecord, RecordKind, SampleType};

use super::script_database::ROWS;
use super::{Tool, Tools};
use crate::tidy::root;

/// One instruction at each multiple of 16 bytes; that at 0xf0 is invalid.
const PROGRAM: &str = "
.globl _start
_start:
call next
.org 0x10; next: ret
.org 0x20; jne next
.org 0x30; jmp next
.org 0x40; syscall
.org 0x50; int $0x80
.org 0x60; iretq
.org 0x70; nop
.org 0x80; sysretq
.org 0x90; loop .
.org 0xa0; jmp *%rax
.org 0xb0; call *%rax
.org 0xc0; vmlaunch
.org 0xd0; int3
.org 0xe0; repz ret
.org 0xf0; .byte 0x06, 0x06
.org 0x100; nop
";
/// Where the program is mapped.
const TEXT: u64 = 0x40_1000;
/// A kernel address.
const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// The pid and tid of the traced process.
const TASK: u32 = 7;

/// The branches of the trace: source and target.
fn branches() -> Vec<[u64; 2]> {
    let inside = (0..16).map(|number| [TEXT + number * 16, TEXT]);
    let to_kernel = [0x40, 0x50, 0x70, 0x00].map(|offset| [TEXT + offset, KERNEL]);
    let others = [
        [0, TEXT],
        [TEXT, 0],
        [0, 0],
        [0x99_0000, TEXT],
        [KERNEL, TEXT],
        // perf omits the last branch of an AUXTRACE record.
        [TEXT, TEXT],
    ];
    inside.chain(to_kernel).chain(others).collect()
}

fn record(kind: RecordKind, misc: u16, body: &[u8], endian: Endian, to: &mut Vec<u8>) {
    let misc = Misc(misc);
    RawRecord { kind, misc, body }.encode(endian, to);
}

/// A recording of the program with a trace of [`branches`]. Its events and AUXTRACE_INFO are those of a fixture.
fn recording(program: &str) -> Vec<u8> {
    let template = std::fs::read(root().join("tests/fixtures/x86_64/bts.data"));
    let template = template.expect("a fixture");
    let data = PerfData::parse(&template).expect("a recording");
    let endian = data.endian();
    let events: Vec<EventDesc> = data.events().to_vec();
    let mut records = Vec::new();
    let mut template_records = data.records().filter_map(Result::ok);
    let info = template_records.find(|record| record.raw.kind == RecordKind::AUXTRACE_INFO);
    info.expect("a trace").raw.encode(endian, &mut records);
    // `struct sample_id` of a record.
    let sample_id = {
        let sample_type = events[0].attr.sample_type;
        let fields = [
            (SampleType::TID, u64::from(TASK) << 32 | u64::from(TASK)),
            (SampleType::TIME, 1),
            (SampleType::ID, events[0].ids[0]),
            (SampleType::STREAM_ID, events[0].ids[0]),
            (SampleType::CPU, 0),
            (SampleType::IDENTIFIER, events[0].ids[0]),
        ];
        let recorded = fields
            .into_iter()
            .filter(|(field, _)| sample_type.contains(*field));
        recorded
            .fold(Bytes::new(), |bytes, (_, value)| bytes.u64(value))
            .done()
    };
    let comm = Bytes::new().u32(TASK).u32(TASK).text("kinds", 8).done();
    record(
        RecordKind::COMM,
        0,
        &[comm, sample_id.clone()].concat(),
        endian,
        &mut records,
    );
    // The body of MMAP2: pid, tid, start, length, offset; device, inode and its generation; protection (read and execute), flags
    // (private) and path.
    let mapped = Bytes::new()
        .u32(TASK)
        .u32(TASK)
        .u64(TEXT)
        .u64(0x1000)
        .u64(0x1000);
    let mapped = mapped
        .u64(0)
        .u64(0)
        .u64(0)
        .u32(5)
        .u32(2)
        .text(program, 8)
        .done();
    record(
        RecordKind::MMAP2,
        Misc::USER.0,
        &[mapped, sample_id].concat(),
        endian,
        &mut records,
    );
    // Entries: source, target and flags.
    let trace = branches()
        .into_iter()
        .fold(Bytes::new(), |bytes, [from, to]| {
            bytes.u64(from).u64(to).u64(0)
        });
    let trace = trace.done();
    // The body of AUXTRACE: size, offset, reference, index, tid, CPU, reserved.
    let part = Bytes::new()
        .u64(trace.len() as u64)
        .u64(0)
        .u64(0)
        .u32(0)
        .u32(TASK);
    let part = part.u32(u32::MAX).u32(0).done();
    record(RecordKind::AUXTRACE, 0, &part, endian, &mut records);
    records.extend(trace);
    let output = Cursor::new(Vec::new());
    let mut writer = Writer::with_endian(output, &events, endian).expect("memory");
    writer.write_data(&records).expect("memory");
    // `None`: the records are new. The template's sections on compression, directory format and AUX traces are omitted.
    let template_data_offset = None;
    let mut features = data.features_for(template_data_offset);
    // An empty index tells perf that there is a trace.
    features.opaque(FeatureId::AUXTRACE, &[0; 8]);
    let (_, file) = writer.finish(&features).expect("memory");
    file.into_inner()
}

/// A script that prints for each sample: the address, all values (one is `flags`), the command, the symbol and the object.
const FLAGS: &str = "
def process_event(values):
    sample = values['sample']
    print('%x' % sample['ip'], sorted(sample.items()), values['comm'], values.get('symbol'), values.get('dso'))
";

#[test]
fn branches_have_the_same_kinds() {
    let test = "differential::branch_flags::branches_have_the_same_kinds";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let compiler = Run::new("cc").args(["--version"]).finish();
    if !cfg!(target_arch = "x86_64") || compiler.is_err() {
        return skip(test, "there is no compiler for x86-64");
    }
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(tools.path().join(name), bytes).expect("a file can be written");
    };
    write("kinds.s", PROGRAM.as_bytes());
    let options = [
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
        "-Wl,-Ttext=0x401000",
    ];
    let built = Run::new("cc")
        .args(options)
        .args(["-o", "kinds", "kinds.s"]);
    let built = built.within(tools.path()).finish().expect("a compiler");
    assert_eq!(built.status, 0, "{}", built.stderr);
    let program = tools.path().join("kinds");
    write("kinds.data", &recording(&program.to_string_lossy()));
    write("flags.py", FLAGS.as_bytes());
    // A script that prints the rows of a database export.
    write("rows.py", ROWS.as_bytes());
    for words in [
        &["-F", "+addr,+flags"][..],
        &["-F", "+flags"],
        &["-s", "flags.py"],
        &["-s", "rows.py"],
    ] {
        let common = ["script", "-f", "-i", "kinds.data", "--itrace=b"];
        let line = [&common[..], words].concat();
        let [perf, rperf] = [Tool::Perf, Tool::Rperf].map(|tool| tools.outcome(tool, &line));
        assert_eq!(
            (perf.status, rperf.status),
            (0, 0),
            "{words:?}: {}",
            perf.stderr + &rperf.stderr
        );
        // Most of the 26 branches.
        assert!(perf.stdout.lines().count() > 20, "{perf:?}");
        // perf omits the last branch, so rperf's line of it is removed: the last line, or with `rows.py` the one before `end`.
        let mut lines: Vec<&str> = rperf.stdout.lines().collect();
        let is_branch = |line: &&str| *line != "end";
        let last = lines
            .iter()
            .rposition(is_branch)
            .expect("there are branches");
        lines.remove(last);
        let ours = lines.join("\n") + "\n";
        assert_eq!(difference(&perf.stdout, &ours), None, "{words:?}");
    }
}
