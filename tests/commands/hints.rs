//! What a report says at its end on a terminal.

use rperf_testkit::{Bytes, Outcome, Run, Scratch, skip};

use super::handmade::{Attr, ID, file, record};

/// `PERF_RECORD_MISC_KERNEL` and `_USER`.
const KERNEL: u16 = 1;
const USER: u16 = 2;
/// `PERF_CONTEXT_KERNEL` and `_USER`.
const KERNEL_CHAIN: u64 = (-128_i64).cast_unsigned();
const USER_CHAIN: u64 = (-512_i64).cast_unsigned();

fn sample(mode: u16, chain: &[u64]) -> Vec<u8> {
    let body = Bytes::new().u64(ID).u64(chain[1]).u32(7).u32(7).u64(20);
    let body = chain
        .iter()
        .fold(body.u64(chain.len() as u64), |body, word| body.u64(*word));
    record(9, mode, body)
}

/// A program that no file is at hand for, mapped at 0x1000.
fn mapping() -> Vec<u8> {
    let body = Bytes::new().u32(7).u32(7).u64(0x1000).u64(0x1000).u64(0);
    let body = body.raw("/nonexistent/app").raw([0; 8]);
    record(1, USER, body.u32(7).u32(7).u64(10).u64(ID))
}

fn recording(samples: &[Vec<u8>]) -> Vec<u8> {
    let attr = Attr {
        // PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | IDENTIFIER
        sample_type: 1 | 2 | 4 | 32 | 1 << 16,
        ..Attr::default()
    };
    file(&attr, "x86_64", &[&[mapping()], samples].concat().concat())
}

/// What `report` says on a terminal.
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
fn what_would_spoil_a_report_stands_below_it_on_a_terminal_alone() {
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
        let test = "commands::hints::what_would_spoil_a_report_stands_below_it_on_a_terminal_alone";
        return skip(test, "there is no script(1)");
    };
    let expected = [
        "# hint: 100% of the user stacks end before the start of their thread, most of them in app: for what is built without \
         frame pointers record with --call-graph dwarf",
        "# hint: 66% of the samples fell on code without a name, most of it in app: install its debug symbols, or ask servers \
         for them with --debuginfod",
        "# hint: 33% of the samples fell on code of the kernel without a name: set kernel.kptr_restrict to 0 while recording, \
         or name the kernel's image with -k",
    ];
    assert_eq!(hints(&outcome), expected, "{outcome:?}");
    for options in ["--no-hints", "-q"] {
        let outcome = on_terminal(&scratch, options).expect("script(1) is there");
        assert!(hints(&outcome).is_empty(), "{options}: {outcome:?}");
        assert!(outcome.stdout.contains("app"), "{options}: {outcome:?}");
    }
    let outcome = super::rperf(&["report"])
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert!(
        hints(&outcome).is_empty() && outcome.stdout.contains("app"),
        "{outcome:?}"
    );
    // Only the samples that are shown count.
    let chosen = on_terminal(&scratch, "--pid 1").expect("script(1) is there");
    assert!(hints(&chosen).is_empty(), "{chosen:?}");
}
