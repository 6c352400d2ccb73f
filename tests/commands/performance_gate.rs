//! The performance gate of `tests/bench`.

use std::path::Path;

use rperf_testkit::{Run, Scratch, skip, write_program};

use crate::kernel::rperf_in;

const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/gate.py");

/// Writes a script that runs rperf after wasting some tenths of a second of CPU time; returns its path.
fn slowed(scratch: &Scratch, rperf: &Path) -> String {
    let script = format!(
        "#!/bin/sh\ni=0; while [ $i -lt 200000 ]; do i=$((i+1)); done\nexec {} \"$@\"\n",
        rperf.display()
    );
    let path = scratch.path().join("slowed");
    write_program(&path, &script);
    path.display().to_string()
}

#[test]
fn a_slowed_binary_fails() {
    let test = "commands::performance_gate::a_slowed_binary_fails";
    if !Path::new("/usr/bin/python3").exists() {
        return skip(test, "there is no python3");
    }
    let scratch = Scratch::new();
    // The gate selects its rows by file names: it does not matter that dwarf.data has callchains by frame pointers.
    // The program runs long enough for samples on any machine: reports on an empty recording fail.
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let words = "record -g -o dwarf.data -e cpu-clock:u sh -c";
    let words: Vec<&str> = words.split(' ').chain([busy]).collect();
    let recorded = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let rperf = env!("CARGO_BIN_EXE_rperf");
    let slowed = slowed(&scratch, Path::new(rperf));
    let gate = |old: &str, new: &str| {
        let run = Run::new("python3").args([GATE, "--time", old, new]);
        run.within(scratch.path()).finish().expect("python3 starts")
    };
    // Two rows of the gate read dwarf.data; the others are skipped, since their files do not exist.
    let slower = gate(rperf, &slowed);
    assert_eq!(slower.status, 1, "{}{}", slower.stdout, slower.stderr);
    assert_eq!(
        slower.stdout.matches(" slower ").count(),
        2,
        "{}",
        slower.stdout
    );
    let faster = gate(&slowed, rperf);
    assert_eq!(faster.status, 0, "{}{}", faster.stdout, faster.stderr);
    assert_eq!(
        faster.stdout.matches(" ok ").count(),
        2,
        "{}",
        faster.stdout
    );
    let broken = gate(rperf, "/bin/false");
    assert_eq!(broken.status, 2, "{}", broken.stderr);
}
