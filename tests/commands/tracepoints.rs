//! Tracepoints on the command line: misspelled names, filters, missing tracefs; and recordings with damaged formats.

use std::fs;

use rperf_testkit::{Outcome, Run, Scratch, may_trace, skip};

use crate::kernel::rperf_in;

/// A scratch directory; `None`, with a printed reason, if this user cannot read tracefs.
fn scratch(test: &str) -> Option<Scratch> {
    may_trace(test).then(Scratch::new)
}

/// Records `true` into `data` with these options.
fn record(scratch: &Scratch, words: &[&str]) -> Outcome {
    let words = [&["record", "-o", "data"], words, &["true"]].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

/// Asserts that `record` refuses these options and writes no file.
#[track_caller]
fn assert_refused(scratch: &Scratch, words: &[&str], status: i32, stderr: &str) {
    let refused = record(scratch, words);
    assert_eq!(refused.stderr, stderr, "{words:?}");
    assert_eq!(refused.status, status, "{words:?}");
    assert!(!scratch.path().join("data").exists(), "{words:?}");
}

#[test]
fn one_run_reports_all_mistaken_tracepoints() {
    let Some(scratch) = scratch("one_run_reports_all_mistaken_tracepoints") else {
        return;
    };
    let words = [
        "-e",
        "sched:sched_swich,cs,schd:sched_switch",
        "-e",
        "sched_switch",
    ];
    let stderr = "\
event syntax error: 'sched:sched_swich,cs,schd:sched_switch'
                     \\___ unknown tracepoint `sched:sched_swich', did you mean `sched:sched_switch'?
event syntax error: '..d_swich,cs,schd:sched_switch'
                                  \\___ unknown tracepoint `schd:sched_switch', did you mean `sched:sched_switch'?
event syntax error: 'sched_switch'
                     \\___ a tracepoint needs its system: `sched:sched_switch'
";
    assert_refused(&scratch, &words, 129, stderr);
}

#[test]
fn a_mistaken_filter_is_explained_and_no_file_is_written() {
    let Some(scratch) = scratch("a_mistaken_filter_is_explained_and_no_file_is_written") else {
        return;
    };
    let refused = |filter: &str, explanation: &str| {
        let words = ["-e", "sched:sched_switch", "--filter", filter];
        let stderr = format!(
            "failed to set filter \"{filter}\" on event sched:sched_switch\nfilter error: '{filter}'\n{explanation}\n"
        );
        assert_refused(&scratch, &words, 255, &stderr);
    };
    refused(
        "prev_pid => 1",
        "                        \\___ `=>' is not an operator, did you mean `>='?",
    );
    refused(
        "nosuchfield > 1",
        "               \\___ sched:sched_switch has no field `nosuchfield'\nhint: its fields are prev_comm, prev_pid, \
prev_prio, prev_state, next_comm, next_pid, next_prio",
    );
}

#[test]
fn filters_before_their_event_or_with_unknown_fields_are_refused() {
    let Some(scratch) = scratch("filters_before_their_event_or_with_unknown_fields_are_refused")
    else {
        return;
    };
    let filter = ["--filter", "prev_pid > 1"];
    assert_refused(
        &scratch,
        &[&filter[..], &["-e", "sched:sched_switch"]].concat(),
        129,
        "--filter option should follow a -e tracepoint or HW tracer option\n",
    );
    // The filter applies to both events; that of `cs`, which is no tracepoint, has other fields.
    assert_refused(
        &scratch,
        &[&["-e", "sched:sched_switch,cs"], &filter[..]].concat(),
        255,
        "failed to set filter \"prev_pid > 1\" on event cs\nunknown field 'prev_pid'\nhint: choose from ip, id, tid, pid, cpu, \
         time, addr, period, txn, weight, weight1, weight2, weight3, ins_lat, p_stage_cyc, retire_lat, phys_addr, code_pgsz, \
         code_page_size, data_pgsz, data_page_size, \
         uid, gid, mem_op, mem_lvl, mem_snoop, mem_remote, mem_lock, mem_dtlb, mem_blk, mem_hops\n",
    );
}

#[test]
fn the_kernel_refuses_a_filter_that_rperf_accepts() {
    let Some(scratch) = scratch("the_kernel_refuses_a_filter_that_rperf_accepts") else {
        return;
    };
    assert_refused(
        &scratch,
        &[
            "-e",
            "sched:sched_switch",
            "--filter",
            "prev_comm.nosuch == 1",
        ],
        255,
        "failed to set filter \"prev_comm.nosuch == 1\" on event sched:sched_switch with 22 (Invalid argument)\n",
    );
}

#[test]
fn filters_are_combined_and_exclude_samples() {
    let Some(scratch) = scratch("filters_are_combined_and_exclude_samples") else {
        return;
    };
    // Records with these filters, and returns the outcome of `script` for the recording.
    let printed_with = |filters: &[&str]| {
        let words = [&["-q", "-e", "sched:sched_process_exec"], filters].concat();
        let recorded = record(&scratch, &words);
        assert_eq!((recorded.status, &*recorded.stderr), (0, ""), "{words:?}");
        let words = ["script", "-i", "data", "-F", "trace"];
        rperf_in(&scratch, &words).finish().expect("rperf starts")
    };
    let all = printed_with(&[]).stdout;
    assert!(
        all.contains("filename=") && all.contains("/true pid="),
        "{all}"
    );
    assert_eq!(
        printed_with(&["--filter", "pid > 0", "--exclude-perf"])
            .stdout
            .lines()
            .count(),
        1
    );
    let (every, no_sample) = ("pid > 0", "filename ~ \"*/false\"");
    for [first, second] in [[every, no_sample], [no_sample, every]] {
        let none = printed_with(&["--filter", first, "--filter", second]);
        assert_eq!((none.status, &*none.stdout), (0, ""), "{first}, {second}");
    }
}

#[test]
fn missing_tracefs_has_a_hint() {
    let Some(scratch) = scratch("missing_tracefs_has_a_hint") else {
        return;
    };
    // In a new mount namespace, tracefs is unmounted wherever it is. So is debugfs, in which the kernel mounts tracefs
    // automatically. The `$0` of the script is rperf.
    let words = ["-m", "sh", "-c"];
    let script = "awk '$3 ~ /^(tracefs|debugfs)$/ { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount -l &&
        echo unmounted && exec \"$0\" record -e sched:sched_switch true";
    let run = Run::new("unshare")
        .args(words)
        .args([script, env!("CARGO_BIN_EXE_rperf")]);
    let Ok(outcome) = run.within(scratch.path()).finish() else {
        return skip("missing_tracefs_has_a_hint", "there is no unshare");
    };
    if !outcome.stdout.starts_with("unmounted\n") {
        return skip("missing_tracefs_has_a_hint", &outcome.stderr);
    }
    let folder = "/sys/kernel/tracing/events";
    let message = format!(
        "can't access trace events: there is no {folder}\nhint: mount tracefs: 'sudo mount -t tracefs"
    );
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    assert_eq!(outcome.status, 129, "{}", outcome.stderr);
}

#[test]
fn damaged_tracing_data_are_reported_with_a_workaround() {
    let Some(scratch) = scratch("damaged_tracing_data_are_reported_with_a_workaround") else {
        return;
    };
    let recorded = record(&scratch, &["-q", "-e", "sched:sched_process_exec"]);
    assert_eq!((recorded.status, &*recorded.stderr), (0, ""));
    let complete = fs::read(scratch.path().join("data")).expect("the file is there");
    let outcome_with = |find: &[u8], instead: &[u8], words: &[&str]| {
        let place = complete.windows(find.len()).position(|bytes| bytes == find);
        let place = place.expect("it is in the file");
        let mut bytes = complete.clone();
        bytes[place..place + instead.len()].copy_from_slice(instead);
        fs::write(scratch.path().join("damaged"), bytes).expect("it can be written");
        let words = [words, &["-i", "damaged"]].concat();
        rperf_in(&scratch, &words).finish().expect("rperf starts")
    };
    for words in [&["script"][..], &["report", "--stdio"]] {
        let bad_magic = outcome_with(b"\x17\x08Dtracing", b"xxxx", words);
        assert_eq!(
            (bad_magic.status, &*bad_magic.stdout),
            (255, ""),
            "{words:?}"
        );
        let message = "damaged: the tracing data section has an unknown magic number\nhint: ";
        assert!(
            bad_magic.stderr.starts_with(message),
            "{}",
            bad_magic.stderr
        );
        let no_id = outcome_with(b"\nID: ", b"\nXX: ", words);
        assert_eq!(no_id.status, 0, "{words:?}");
        let message = "no format of sched:sched_process_exec";
        assert!(no_id.stderr.contains(message), "{}", no_id.stderr);
    }
    let words = ["script", "-F", "-trace"];
    let worked_around = outcome_with(b"\x17\x08Dtracing", b"xxxx", &words);
    assert_eq!((worked_around.status, &*worked_around.stderr), (0, ""));
    assert!(
        worked_around
            .stdout
            .ends_with("sched:sched_process_exec: \n"),
        "{}",
        worked_around.stdout
    );
}
