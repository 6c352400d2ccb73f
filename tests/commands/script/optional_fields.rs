//! Samples with data that only some processors record (memory accesses, branches, registers), and output of BPF
//! programs.

use rperf_testkit::{Bytes, FileAttr, PerfFile, real_perf, skip};

use super::{assert_perf, assert_script, script};

/// Types of events.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_TYPE_RAW: u32 = 4;
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;
/// `PERF_RECORD_MISC_HYPERVISOR` and `PERF_RECORD_MISC_EXACT_IP`.
const HYPERVISOR: u16 = 3;
const EXACT_IP: u16 = 1 << 14;
/// IP, TID, TIME, ADDR, CPU, PERIOD.
const PLAIN: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8;
const RAW: u64 = 1 << 10;
/// [`PLAIN`] and branches, user registers, data source, interrupt registers, physical address, both page sizes, weight struct.
const RICH: u64 =
    PLAIN | 1 << 11 | 1 << 12 | 1 << 15 | 1 << 18 | 1 << 19 | 1 << 22 | 1 << 23 | 1 << 24;
/// AX, SP, IP, R15.
const USER_REGISTERS: [u32; 4] = [0, 7, 8, 23];
/// FLAGS, and XMM0 in two words.
const INTERRUPT_REGISTERS: [u32; 3] = [9, 32, 33];

fn mask(registers: &[u32]) -> u64 {
    registers.iter().fold(0, |mask, number| mask | 1 << number)
}

/// A recording of one event, under construction.
struct EventFile {
    kind: u32,
    config: u64,
    sample_type: u64,
    file: PerfFile,
}

impl EventFile {
    fn new(kind: u32, config: u64, sample_type: u64) -> Self {
        let mut recording = Self {
            kind,
            config,
            sample_type,
            file: PerfFile::new(),
        };
        let trailer = Bytes::new().u32(10).u32(10).u64(0).u64(0);
        let comm = Bytes::new().u32(10).u32(10).text("prog", 8);
        recording.push(PerfFile::COMM, 0, comm.raw(trailer.done()));
        recording
    }

    fn push(&mut self, record_type: u32, misc: u16, body: Bytes) {
        let mut body = body.done();
        body.resize(body.len().next_multiple_of(8), 0);
        self.file.record(record_type, misc, body);
    }

    /// Returns the file, with the architecture as its only feature.
    fn finish(mut self) -> Vec<u8> {
        let attr = FileAttr {
            kind: self.kind,
            config: self.config,
            period: 4000,
            sample_type: self.sample_type,
            flags: FileAttr::SAMPLE_ID_ALL,
            // Any branches.
            branches: 1 << 3,
            regs_user: mask(&USER_REGISTERS),
            regs_intr: mask(&INTERRUPT_REGISTERS),
            ..FileAttr::default()
        };
        self.file.event(&attr, &[]).machine("x86_64").finish()
    }
}

/// The fields of a sample up to the period: those of [`PLAIN`].
fn plain(time: u64, addr: u64) -> Bytes {
    let body = Bytes::new().u64(0x0040_0010).u32(10).u32(10).u64(time);
    body.u64(addr).u64(1).u64(4000)
}

/// Adds the ABI of registers and, unless it is 0 (no registers), their values.
fn registers(body: Bytes, abi: u64, numbers: &[u32]) -> Bytes {
    let body = body.u64(abi);
    match abi {
        0 => body,
        _ => numbers
            .iter()
            .fold(body, |body, number| body.u64(0x1111 * u64::from(*number))),
    }
}

/// Samples whose data source has a single bit set, is a load with each level number, or is a remote access with each number of
/// hops; then a sample without a data source and one with a usual data source. The other values of a sample vary with its
/// position.
fn memory_and_branches() -> Vec<u8> {
    /// `type` in the lower four bits, `new_type` from bit 6.
    const BRANCH_TYPES: [u64; 6] = [0, 1, 6, 9, 14, 15 | 2 << 6];
    const PAGE_SIZES: [u64; 6] = [0, 4096, 2 << 20, 1 << 30, 1, 3000];
    // The event of Intel's processors that samples memory loads.
    let mut file = EventFile::new(PERF_TYPE_RAW, 0x01cd, RICH);
    // All bits of `union perf_mem_data_src` below `mem_hops`.
    let bits = (0..43).map(|bit| 1 << bit);
    // `mem_lvl_num`, and the operation LOAD.
    let level_numbers = (1..16).map(|number| number << 33 | 2);
    // `mem_hops`, `mem_remote`, and level number 1.
    let hops = (1..6).map(|hops| hops << 43 | 1 << 37 | 1 << 33);
    let sources: Vec<u64> = bits.chain(level_numbers).chain(hops).collect();
    for (at, source) in sources.iter().chain(&[0, 0x6810_0142]).enumerate() {
        let at = at as u64;
        let branches = at % 3;
        let mut body = plain(1_000_000_000 + at, 0x7000 * (at % 2)).u64(branches);
        for branch in 0..branches {
            let flags = ((at + branch) % 16) | (at << 4) | (BRANCH_TYPES[(at % 6) as usize] << 20);
            body = body.u64(0x0040_0000 + at).u64(0x0050_0000).u64(flags);
        }
        body = registers(body, at % 3, &USER_REGISTERS);
        body = body.u64((at << 32) | (7 * at)).u64(*source);
        body = registers(body, at % 2 * 2, &INTERRUPT_REGISTERS);
        body = body.u64(0x1000 * at).u64(PAGE_SIZES[(at % 6) as usize]);
        body = body.u64(PAGE_SIZES[(at / 6 % 6) as usize]);
        let misc = [
            PerfFile::KERNEL,
            PerfFile::USER,
            HYPERVISOR,
            PerfFile::USER | EXACT_IP,
        ][(at % 4) as usize];
        file.push(PerfFile::SAMPLE, misc, body);
    }
    file.finish()
}

fn bpf_output() -> Vec<u8> {
    let mut file = EventFile::new(PERF_TYPE_SOFTWARE, BPF_OUTPUT, PLAIN | RAW);
    for raw in [
        &b""[..],
        b"\x01\x02\x03 ",
        b"twelve bytes",
        b"a text\0\0\0\0\0\0",
        b"two\0texts\0\0\0",
    ] {
        let body = plain(1_000_000_000, 0).u32(raw.len() as u32).raw(raw);
        file.push(PerfFile::SAMPLE, PerfFile::USER, body);
    }
    file.finish()
}

/// Options, and the golden file of the output, for [`memory_and_branches`].
const MEMORY: &[(&[&str], &str)] = &[
    (&[], "memory.txt"),
    (&["-F", "misc,flags,iregs,uregs"], "registers.txt"),
    (&["-F", "comm,ip,sym,dso,brstack"], "branches.txt"),
    (&["-F", "ip,sym,brstacksym"], "branch-symbols.txt"),
    (
        &[
            "-F",
            "weight,ins_lat,phys_addr,data_page_size,code_page_size",
        ],
        "numbers.txt",
    ),
];
/// The same for [`bpf_output`].
const BPF: &[(&[&str], &str)] = &[
    (&[], "bpf-output.txt"),
    (&["-F", "sw:-bpf-output"], "bpf.txt"),
];

#[test]
fn optional_fields_match_the_golden_files() {
    for (bytes, cases) in [(memory_and_branches(), MEMORY), (bpf_output(), BPF)] {
        for (words, name) in cases {
            assert_script(&bytes, words, name);
        }
    }
}

/// The golden files equal perf's output, if perf is available.
#[test]
fn golden_files_of_optional_fields_equal_perfs_output() {
    let Some(perf) = real_perf() else {
        let test = "golden_files_of_optional_fields_equal_perfs_output";
        return skip(test, "there is no perf");
    };
    for (bytes, cases) in [(memory_and_branches(), MEMORY), (bpf_output(), BPF)] {
        assert_perf(&perf, &bytes, cases);
    }
}

#[test]
fn values_that_were_not_recorded_are_refused() {
    for field in [
        "iregs",
        "uregs",
        "data_src",
        "weight",
        "ins_lat",
        "retire_lat",
        "cgroup",
        "phys_addr",
        "code_page_size",
    ] {
        let outcome = script(&bpf_output(), &["-F", field]);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (255, ""),
            "{field}"
        );
        let message = format!("Cannot print '{field}' field.");
        assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    }
    let outcome = script(&bpf_output(), &["-F", "comm,tod"]);
    assert_eq!(outcome.status, 255);
    assert!(
        outcome.stderr.starts_with("Can't provide 'tod' time"),
        "{}",
        outcome.stderr
    );
}
