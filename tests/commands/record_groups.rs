//! Leader-sampled groups (`{a,b}:S`), read back: each recorded sample is shown as one sample for each member whose count has
//! grown since the previous recorded sample, with that growth (the delta) as its period, as in perf.

use rperf_testkit::{Run, Scratch, real_perf, skip};

use crate::kernel::{BUSY, is_root, rperf_in};

/// The command with which both tools read a recording.
const SCRIPT: [&str; 3] = ["script", "-F", "comm,tid,time,event,period,ip"];

/// Events, and whether the recording is system-wide.
const RECORDINGS: [(&str, bool); 3] = [
    ("{cpu-clock,cs,page-faults}:S", false),
    ("cpu-clock:S", false),
    ("{cpu-clock:u,page-faults:u}:S,task-clock:u", true),
];

#[test]
fn group_members_have_samples_of_their_deltas() {
    let test = "commands::record_groups::group_members_have_samples_of_their_deltas";
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let scratch = Scratch::new();
    for (events, is_system_wide) in RECORDINGS {
        if is_system_wide && !is_root() {
            skip(test, "system-wide recording needs root");
            continue;
        }
        // `-`: the recording is written to stdout in pipe mode, and read from stdin. With a file, stdout is empty.
        for output in ["perf.data", "-"] {
            let target: &[&str] = if is_system_wide { &["-a"] } else { &[] };
            let options = ["-q", "-N", "-o", output, "-e", events];
            let words = [&["record"], target, &options, &["sh", "-c", BUSY]].concat();
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rperf"));
            let home = scratch.path();
            command.args(&words).current_dir(home).env("HOME", home);
            let recorded = command.output().expect("rperf starts");
            assert!(recorded.status.success(), "{words:?}");
            let script = [&SCRIPT[..], &["-i", output]].concat();
            let theirs = Run::new(&perf).args(&script).within(home);
            let theirs = theirs.stdin(recorded.stdout.clone()).finish();
            let theirs = theirs.expect("perf starts").stdout;
            let ours = rperf_in(&scratch, &script).stdin(recorded.stdout);
            let ours = ours.finish().expect("rperf starts").stdout;
            // `BUSY` causes far more samples: the limit only ensures that there is something to compare.
            assert!(theirs.lines().count() > 20, "{words:?} {theirs}");
            assert_eq!(ours, theirs, "{words:?}");
        }
    }
}
