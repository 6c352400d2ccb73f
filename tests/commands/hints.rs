//! The hints of `report`: at the end on a terminal, and about lost records.

use rperf_testkit::{Bytes, Outcome, PerfFile, Run, Scratch, skip};

use super::generated_files::{Attr, ID, file, record};
use super::rperf;

/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// `PERF_RECORD_MISC_KERNEL` and `_USER`.
const KERNEL: u16 = 1;
const USER: u16 = 2;
/// `PERF_CONTEXT_KERNEL` and `_USER`.
const KERNEL_CHAIN: u64 = (-128_i64).cast_unsigned();
const USER_CHAIN: u64 = (-512_i64).cast_unsigned();

/// A sample of this cpumode with the callchain `chain`: a context, the address of the sample, and callers.
fn sample(mode: u16, chain: &[u64]) -> Vec<u8> {
    let body = Bytes::new().u64(ID).u64(chain[1]).u32(7).u32(7).u64(20);
    let body = chain
        .iter()
        .fold(body.u64(chain.len() as u64), |body, word| body.u64(*word));
    record(PerfFile::SAMPLE, mode, body)
}

/// A mapping at 0x1000 of a program whose file is missing.
fn mapping() -> Vec<u8> {
    let body = Bytes::new().u32(7).u32(7).u64(0x1000).u64(0x1000).u64(0);
    let body = body.raw("/nonexistent/app").raw([0; 8]);
    record(PerfFile::MMAP, USER, body.u32(7).u32(7).u64(10).u64(ID))
}

/// A recording of the mapping and of these records.
fn recording(records: &[Vec<u8>]) -> Vec<u8> {
    let attr = Attr {
        // PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | IDENTIFIER
        sample_type: 1 | 2 | 4 | 32 | 1 << 16,
        ..Attr::default()
    };
    file(&attr, "x86_64", &[&[mapping()], records].concat().concat())
}

/// The output of `report` on a terminal; `None` if script(1) does not start.
fn on_terminal(scratch: &Scratch, options: &str) -> Option<Outcome> {
    let program = env!("CARGO_BIN_EXE_rperf");
    let line = format!("{program} --no-pager report {options}");
    let run = Run::new("script").args(["-qec", &line, "/dev/null"]);
    run.within(scratch.path())
        .env("SHELL", "/bin/sh")
        .finish()
        .ok()
}

fn hints(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stdout.lines().map(str::trim_end);
    lines.filter(|line| line.starts_with("# hint: ")).collect()
}

#[test]
fn hints_follow_a_report_on_terminals_only() {
    let scratch = Scratch::new();
    let samples = [
        sample(USER, &[USER_CHAIN, 0x1004, 0x99]),
        sample(USER, &[USER_CHAIN, 0x1008, 0x99]),
        sample(KERNEL, &[KERNEL_CHAIN, 0xffff_ffff_8100_0004]),
    ];
    scratch
        .write("perf.data", recording(&samples))
        .expect("a file");
    let Some(outcome) = on_terminal(&scratch, "") else {
        let test = "commands::hints::hints_follow_a_report_on_terminals_only";
        return skip(test, "there is no script(1)");
    };
    let expected = [
        "# hint: 100% of the user callchains are truncated, most of them in app: record with --call-graph dwarf if code has no frame pointers",
        "# hint: 66% of the samples have no symbol, most of them in app: install its debug symbols, or download them with --debuginfod",
        "# hint: 33% of the samples are kernel code without symbols: set kernel.kptr_restrict to 0 while recording, or name the kernel image \
with -k",
    ];
    assert_eq!(hints(&outcome), expected, "{outcome:?}");
    for options in ["--no-hints", "-q"] {
        let outcome = on_terminal(&scratch, options).expect("script(1) is there");
        assert!(hints(&outcome).is_empty(), "{options}: {outcome:?}");
        assert!(outcome.stdout.contains("app"), "{options}: {outcome:?}");
    }
    let outcome = rperf(&["report"])
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert!(
        hints(&outcome).is_empty() && outcome.stdout.contains("app"),
        "{outcome:?}"
    );
    // Hints are about the samples that the report shows: none here.
    let chosen = on_terminal(&scratch, "--pid 1").expect("script(1) is there");
    assert!(hints(&chosen).is_empty(), "{chosen:?}");
}

/// `leaf` has no frame, so frame pointers skip `middle`.
const FRAMELESS: &str = r#"
__attribute__((noinline, optimize("omit-frame-pointer"))) long leaf(long count) {
    for (long i = 0; i < count; i++) __asm__ volatile("");
    return count;
}
__attribute__((noinline)) long middle(void) { return leaf(300000000) + 1; }
void begin(void) {
    long status = middle() & 0;
    __asm__ volatile("syscall" : : "a"(60), "D"(status));
    __builtin_unreachable();
}
__asm__(".globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\ncall begin\nhlt\n.size _start, . - _start\n");
"#;

#[test]
fn callers_missed_by_frame_pointers_are_reported() {
    let test = "commands::hints::callers_missed_by_frame_pointers_are_reported";
    if cfg!(not(target_arch = "x86_64")) {
        return skip(test, "the program is for x86-64");
    }
    let scratch = Scratch::new();
    scratch
        .write("frameless.c", FRAMELESS)
        .expect("a source file");
    let words = ["-O1", "-fno-omit-frame-pointer", "-nostdlib", "-static"];
    let built = Run::new("cc")
        .args(words)
        .args(["-o", "frameless", "frameless.c"])
        .within(scratch.path())
        .finish();
    let built = built.expect("a compiler");
    if built.status != 0 {
        // Compilers other than GCC may not know the attribute `optimize`.
        return skip(test, &built.stderr);
    }
    let words = ["record", "-N", "-g", "-e", "cpu-clock:u", "-o", "perf.data"];
    let recorded = rperf(&[&words[..], &["./frameless"]].concat())
        .within(scratch.path())
        .finish();
    assert_eq!(recorded.expect("rperf starts").status, 0);
    let script = rperf(&["script", "-F", "ip,sym"])
        .within(scratch.path())
        .finish();
    let script = script.expect("rperf starts").stdout;
    assert!(
        script.contains(" leaf\n") && script.contains(" _start\n"),
        "{script}"
    );
    assert!(!script.contains("middle"), "{script}");
    let Some(outcome) = on_terminal(&scratch, "") else {
        return skip(test, "there is no script(1)");
    };
    let [hint] = hints(&outcome)[..] else {
        panic!("{outcome:?}")
    };
    let message = "% of the user callchains may lack the caller of a leaf function, most of them in frameless: record with --call-graph dwarf \
for all callers";
    assert!(hint.ends_with(message), "{hint}");
}

/// The hint names not only `-F`, but also `-c` and `--filter`: tracepoints and other events with a fixed period have no
/// frequency.
#[test]
fn lost_records_have_a_hint() {
    let scratch = Scratch::new();
    let lost = Bytes::new().u64(ID).u64(3);
    let lost = record(LOST, 0, lost.u32(7).u32(7).u64(15).u64(ID));
    let data = recording(&[lost, sample(USER, &[USER_CHAIN, 0x1010])]);
    scratch.write("perf.data", data).expect("a recording");
    let report = rperf(&["report", "--stdio"]).within(scratch.path());
    let stderr = report.finish().expect("a run").stderr;
    let hint = "hint: 3 records were lost while recording: use larger ring buffers (-m), or record fewer samples (-F, -c, --filter)\n";
    assert!(stderr.contains(hint), "{stderr}");
}
