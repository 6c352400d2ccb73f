//! `rperf trace` without the capabilities that BPF needs.

use std::path::Path;

use rperf_testkit::{Run, Scratch, skip};

use crate::kernel::can_trace;

/// The memory of the traced command is read after its calls have begun; the values are marked as late. With `-a`, no memory is
/// read.
#[test]
fn memory_of_commands_is_read_late_without_bpf() {
    let test = "memory_of_commands_is_read_late_without_bpf";
    if !can_trace(test) {
        return;
    }
    let setpriv = "/usr/bin/setpriv";
    if !Path::new(setpriv).exists() {
        return skip(test, "needs setpriv");
    }
    let scratch = Scratch::new();
    let trace = |options: &[&str], words: &[&str]| {
        let without_bpf = [
            "--bounding-set=-sys_admin,-bpf",
            "--inh-caps=-sys_admin,-bpf",
            env!("CARGO_BIN_EXE_rperf"),
            "trace",
        ];
        let run = Run::new(setpriv).args([&without_bpf, options, words].concat());
        let run = run.within(scratch.path()).env("HOME", scratch.path());
        run.finish().expect("setpriv starts")
    };
    let sleep = ["sleep", "0.2"];
    let ran = trace(&["-e", "clock_nanosleep,execve"], &sleep);
    let note = "strings and structures are read after the calls have begun, and marked as late: ";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    let expected = "clock_nanosleep(rqtp: { .tv_sec: 0, .tv_nsec: 200000000 } (late), rmtp: 0x";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    // With -a, not even the memory of the command is read.
    let ran = trace(&["-a", "-e", "clock_nanosleep"], &sleep);
    assert!(
        ran.stderr.contains("are shown as addresses") && !ran.stderr.contains("(late)"),
        "{}",
        ran.stderr
    );
}
