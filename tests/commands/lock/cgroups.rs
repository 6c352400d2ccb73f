//! Waits of cgroups in recordings: `lock contention -i FILE --lock-cgroup` and `-G`.

use std::fs;

use rperf_testkit::{Scratch, may_trace};
use serde_json::Value;

use super::owners::compile;
use super::{folder_with_waits, recording, run};
use crate::kernel::Cgroups;

/// Returns name and number of waits of each row of `lock contention --json`, sorted by name.
fn rows(scratch: &Scratch, options: &str) -> Vec<(String, u64)> {
    let words = format!("lock contention -i perf.data --json {options}");
    let outcome = run(scratch, &words);
    assert_eq!(outcome.status, 0, "{words}: {outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    let mut rows: Vec<(String, u64)> = rows
        .map(|row| {
            let waits = row["acquired"].as_u64().expect("a number");
            (row["name"].as_str().expect("a name").to_owned(), waits)
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn waits_are_summed_and_selected_by_cgroup() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::waits_in_cgroups())
        .expect("a file");
    let docker = format!("/docker/{}", "0123456789abcdef".repeat(4));
    let named_waits = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, waits)| ((*name).to_owned(), *waits))
            .collect()
    };
    let web = "/system.slice/web.service";
    let expected = named_waits(&[(&docker, 1), (web, 1), ("/user.slice", 2)]);
    assert_eq!(rows(&scratch, "-g"), expected);
    // -S selects by names of functions, and these stacks have only addresses.
    assert_eq!(rows(&scratch, "-g -Y mutex -S 0x"), named_waits(&[]));
    // Waits with one stack in two cgroups have one row.
    assert_eq!(rows(&scratch, "-Y mutex"), named_waits(&[("0x4000", 3)]));
    assert_eq!(
        rows(&scratch, "-Y mutex -G user.slice"),
        named_waits(&[("0x4000", 2)])
    );
    assert_eq!(
        rows(&scratch, &format!("-g -G {docker},{web}")),
        named_waits(&[(&docker, 1), (web, 1)])
    );
    let table = run(&scratch, "lock contention -i perf.data --lock-cgroup").stderr;
    let first = table.lines().nth(2).unwrap_or_default();
    assert_eq!(
        first,
        "         2      5.33 us      4.33 us      2.67 us   /user.slice"
    );
    let verbose = run(&scratch, "lock contention -i perf.data -g -v").stderr;
    assert_eq!(
        verbose
            .matches("\t\t\tcontainer docker:0123456789ab\n")
            .count(),
        1,
        "{verbose}"
    );
}

#[test]
fn missing_cgroups_and_excluded_options_are_refused() {
    let scratch = folder_with_waits();
    for options in ["-g", "-G user.slice"] {
        let refused = run(&scratch, &format!("lock contention -i perf.data {options}"));
        assert_eq!(refused.status, 255, "{options}: {refused:?}");
        let message = "perf.data: samples of lock:contention_begin have no cgroup\nhint: record with 'lock record --all-cgroups'";
        assert!(refused.stderr.contains(message), "{options}: {refused:?}");
    }
    scratch
        .write("perf.data", recording::waits_in_cgroups())
        .expect("a file");
    for (options, message) in [
        ("-G no/such", "-G: there is no cgroup 'no/such'"),
        (
            "-g -l",
            "--lock-cgroup excludes -t, -l and -o; -o excludes -l",
        ),
        (
            "-g -o",
            "--lock-cgroup excludes -t, -l and -o; -o excludes -l",
        ),
        ("--holders -G x", "--holders and -G exclude each other"),
    ] {
        let refused = run(&scratch, &format!("lock contention -i perf.data {options}"));
        assert_eq!(refused.status, 129, "{options}: {refused:?}");
        assert!(refused.stderr.contains(message), "{options}: {refused:?}");
    }
}

#[test]
fn programs_in_two_cgroups_have_their_own_waits() {
    const NAME: &str = "commands::lock::cgroups::programs_in_two_cgroups_have_their_own_waits";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "locks") || !compile(NAME, &scratch, "chains") {
        return;
    }
    let names = [0, 1].map(|number| format!("rperf-locks-{}-{number}", std::process::id()));
    let Some(cgroups) = Cgroups::create_below_root(NAME, &[&names[0], &names[1]]) else {
        return;
    };
    // The second cgroup is removed, since the script creates it during the recording.
    fs::remove_dir(&cgroups.0[1]).expect("an empty cgroup");
    let [first, second] = [0, 1].map(|number| cgroups.0[number].display().to_string());
    let script = format!(
        "#!/bin/sh\nmkdir {second}\n(echo 0 > {first}/cgroup.procs; exec ./locks mutex > /dev/null)\n\
        (echo 0 > {second}/cgroup.procs; exec ./chains shared > /dev/null)\n"
    );
    scratch.write("load.sh", script).expect("a file");
    let command = "lock record --user --all-cgroups -a -q -o perf.data -- sh load.sh";
    let recorded = run(&scratch, command);
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let cgroup_rows = rows(&scratch, "--lock-cgroup -Y futex");
    let waits = |number: usize| {
        let name = format!("/{}", names[number]);
        let row = cgroup_rows.iter().find(|(cgroup, _)| *cgroup == name);
        row.map(|(_, waits)| *waits).unwrap_or_default()
    };
    // The first program waits 110 times for a mutex, and once to join its thread; the second, 20 times for a mutex that two
    // processes share. On a busy machine, a thread may come too late to wait. The upper bounds are below the sum of all waits.
    assert!((105..=120).contains(&waits(0)), "{cgroup_rows:?}");
    assert!((15..=25).contains(&waits(1)), "{cgroup_rows:?}");
    let only = rows(&scratch, &format!("-G /{} -t -Y futex", names[1]));
    let sum: u64 = only.iter().map(|(_, waits)| waits).sum();
    assert_eq!(sum, waits(1), "{only:?}");
}
