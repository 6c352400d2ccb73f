//! `rperf test`: the tests of this machine and of the program, their selection and their output.

use std::collections::BTreeMap;
use std::fs;

use rperf_testkit::{Outcome, Run, Scratch, skip};

use crate::kernel::{UnprivilegedUser, rperf_in};

/// Runs rperf with the words of `line`, separated by blanks.
fn rperf(scratch: &Scratch, line: &str) -> Outcome {
    let words: Vec<&str> = line.split_whitespace().collect();
    let run = rperf_in(scratch, &words);
    run.finish().expect("rperf starts")
}

#[test]
fn nothing_fails_on_this_machine() {
    let scratch = Scratch::new();
    let outcome = rperf(&scratch, "test -jresults.xml");
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    let listed = rperf(&scratch, "test list").stdout;
    assert_eq!(outcome.stdout.lines().count(), listed.lines().count());
    for (line, name) in outcome.stdout.lines().zip(listed.lines()) {
        let result = line.strip_prefix(name).expect("a line for each test");
        let result = result.trim_start().strip_prefix(": ").expect("a result");
        let is_skip = result.starts_with("Skip (") && result.ends_with(')');
        assert!(result == "Ok" || is_skip, "{line}");
    }
    // These tests need nothing, so they succeed on every machine.
    for name in ["Kernel and processor", "Symbols of this program"] {
        let mut lines = outcome.stdout.lines();
        assert!(lines.any(|line| line.contains(name) && line.ends_with(": Ok")));
    }
    let xml = fs::read_to_string(scratch.path().join("results.xml")).expect("the results");
    let cases = xml.matches("<testcase ").count();
    assert_eq!(cases, listed.lines().count(), "{xml}");
}

/// The result of each test in the output, by name.
fn results(output: &str) -> BTreeMap<&str, &str> {
    let lines = output.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter_map(|(_, rest)| rest.split_once(" : "));
    named
        .map(|(name, result)| (name.trim_end(), result))
        .collect()
}

#[test]
fn tests_of_tracefs_are_skipped_in_a_container_without_it() {
    const NAME: &str = "test_diagnosis::tests_of_tracefs_are_skipped_in_a_container_without_it";
    // In a new mount namespace, all mounts of tracefs and debugfs are unmounted; tracefs twice, because the kernel may mount it
    // in debugfs meanwhile. In the second run, empty folders are mounted over the usual places, as container engines do.
    const UNMOUNT: &str = "for kind in tracefs debugfs tracefs; do
            awk -v kind=$kind '$3 == kind { print $2 }' /proc/mounts | xargs -r -n 1 umount -l
        done; ";
    const MOUNT_EMPTY: &str = "for name in tracing debug; do
            mount -t tmpfs none /sys/kernel/$name || exit 1
        done; ";
    for empty in ["", MOUNT_EMPTY] {
        let script = format!("{UNMOUNT}{empty}exec \"$0\" test tracepoint probe report 1");
        check_without_tracefs(NAME, &script);
    }
}

/// Runs the shell script, which unmounts tracefs and executes rperf (`$0`), in a new mount namespace, and checks the results.
fn check_without_tracefs(name: &str, script: &str) {
    let scratch = Scratch::new();
    let words = ["-m", "--propagation", "private", "sh", "-c", script];
    let run = Run::new("unshare").args(words);
    let run = run.args([env!("CARGO_BIN_EXE_rperf")]);
    let Ok(outcome) = run.within(scratch.path()).finish() else {
        return skip(name, "there is no unshare");
    };
    let results = results(&outcome.stdout);
    if results.is_empty() {
        return skip(name, &outcome.stderr);
    }
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(results["Record and report"], "Ok");
    let mount = "Skip (not mounted: mount -t tracefs nodev /sys/kernel/tracing)";
    assert_eq!(results["Tracepoints (tracefs)"], mount);
    assert_eq!(results["Record a tracepoint"], mount);
    let uprobes = results["Probes in programs (uprobes)"];
    assert!(
        uprobes.starts_with("Skip (tracefs is not mounted"),
        "{uprobes}"
    );
    // The result of uprobes says whether `--probe`, which uses the uprobe PMU and not tracefs, works nevertheless.
    if uprobes.contains("only --probe") {
        assert_eq!(results["Record a probe on this program"], "Ok");
    }
}

#[test]
fn missing_permissions_are_named_for_an_unprivileged_user() {
    const NAME: &str = "test_diagnosis::missing_permissions_are_named_for_an_unprivileged_user";
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    if paranoid.ok().as_deref() != Some("2\n") {
        return skip(NAME, "needs perf_event_paranoid 2");
    }
    let scratch = Scratch::new();
    let Some(user) = UnprivilegedUser::new(NAME, &scratch) else {
        return;
    };
    let words = "./rperf test events tracepoints BPF probe report off symbols";
    let words: Vec<&str> = words.split(' ').collect();
    let outcome = user.run(&words);
    assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
    let results = results(&outcome.stdout);
    for (name, result) in [
        ("Events of own processes, user space", "Ok"),
        (
            "Events of own processes, kernel",
            "Skip (perf_event_paranoid is 2: needs 1 or less, or CAP_PERFMON)",
        ),
        (
            "Events of other users' processes",
            "Skip (needs CAP_PERFMON or CAP_SYS_PTRACE)",
        ),
        (
            "Events of the whole system",
            "Skip (perf_event_paranoid is 2: needs 0 or less, or CAP_PERFMON)",
        ),
        ("Record a probe on this program", "Skip (needs CAP_PERFMON)"),
        (
            "Record time off the CPU",
            "Skip (perf_event_paranoid is 2: needs 1 or less, or CAP_PERFMON)",
        ),
        ("Record and report", "Ok"),
        ("Symbols of this program", "Ok"),
    ] {
        assert_eq!(results[name], result, "{name}");
    }
    let hidden = results["Symbols of the kernel"];
    assert!(hidden.starts_with("Skip (addresses are hidden"), "{hidden}");
    for name in ["Tracepoints (tracefs)", "BPF"] {
        assert!(results[name].starts_with("Skip ("), "{}", outcome.stdout);
    }
}

/// A Python program that runs another program with a seccomp filter (seccomp(2)), with which perf_event_open(2) fails. Arguments:
/// number of the call, errno, program and its words.
const FILTERED: &str = "
import ctypes, os, struct, sys
call, errno = map(int, sys.argv[1:3])
load, equal, end = 0x20, 0x15, 0x06
fail, allow = 0x50000, 0x7fff0000
set_no_new_privs, set_seccomp, filter_mode = 38, 22, 2
rules = [(load, 0, 0, 0), (equal, 0, 1, call), (end, 0, 0, fail | errno), (end, 0, 0, allow)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
class Filter(ctypes.Structure):
    _fields_ = [('count', ctypes.c_ushort), ('rules', ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(set_no_new_privs, 1, 0, 0, 0) == 0
assert libc.prctl(set_seccomp, filter_mode, ctypes.byref(Filter(len(rules), ctypes.addressof(code)))) == 0
os.execv(sys.argv[3], sys.argv[3:])
";

#[test]
fn a_container_that_forbids_events_is_named_as_the_reason() {
    const NAME: &str = "test_diagnosis::a_container_that_forbids_events_is_named_as_the_reason";
    let call = match std::env::consts::ARCH {
        "x86_64" => "298",
        "aarch64" => "241",
        _ => return skip(NAME, "the number of perf_event_open(2) is not known"),
    };
    let forbidden = "Skip (a seccomp filter forbids perf_event_open(2): start the container with --cap-add PERFMON or \
                     --security-opt seccomp=unconfined)";
    let unavailable = "Skip (perf_event_open(2) is not available: the kernel lacks CONFIG_PERF_EVENTS, or a seccomp filter \
                   blocks the call)";
    for (errno, reason) in [(libc::EPERM, forbidden), (libc::ENOSYS, unavailable)] {
        let scratch = Scratch::new();
        let errno = errno.to_string();
        let words = ["-c", FILTERED, call, &errno, env!("CARGO_BIN_EXE_rperf")];
        let run = Run::new("python3")
            .args(words)
            .args(["test", "event", "break", "record", "stat"]);
        let Ok(outcome) = run.within(scratch.path()).finish() else {
            return skip(NAME, "there is no python3");
        };
        assert_eq!(outcome.status, 0, "{}{}", outcome.stdout, outcome.stderr);
        let results = results(&outcome.stdout);
        assert!(!results.is_empty(), "{}", outcome.stdout);
        for (name, result) in results {
            assert_eq!(result, reason, "{name}");
        }
    }
}

#[test]
fn tests_are_selected_by_number_and_name() {
    let scratch = Scratch::new();
    let names = rperf(&scratch, "test list SYMBOLS").stdout;
    assert_eq!(
        names,
        " 16: Symbols of the kernel\n 17: Symbols of this program\n"
    );
    let results = rperf(&scratch, "test -S -s 1 -r 2 1 util").stdout;
    let skipped = "  1: Kernel and processor                : Skip (user override)\n";
    let ok = " 18: Utility programs                    : Ok\n";
    assert_eq!(results, [skipped, skipped, ok, ok].concat());
}

/// perf's test scripts search for the symbols in this output.
#[test]
fn symbols_are_listed_for_scripts() {
    let scratch = Scratch::new();
    let listed = rperf(&scratch, "test -vv -F Symbols");
    assert_eq!(listed.status, 0);
    for name in [
        "noploop",
        "test_loop",
        "brstack_bench",
        "workload_datasym_buf1",
    ] {
        let mut lines = listed.stdout.lines();
        let end = format!(" g {name}");
        assert!(lines.any(|line| line.ends_with(&end)), "{name}");
    }
    let (before, after) = listed
        .stdout
        .split_once("--- start ---\n")
        .expect("details");
    assert!(
        before.starts_with(" 16: Symbols of the kernel "),
        "{before}"
    );
    assert!(after.contains("---- end ----\n 16: "), "details end");
}

#[test]
fn a_failure_shows_details_and_decides_the_status() {
    let scratch = Scratch::new();
    let run = rperf_in(&scratch, &["test", "19", "1"]);
    let run = run.env("TMPDIR", scratch.path().join("nosuch"));
    let outcome = run.finish().expect("rperf starts");
    assert_eq!(outcome.status, 1, "{}", outcome.stdout);
    let failed = " 19: Record and report                   : FAILED! (";
    assert!(outcome.stdout.contains(failed), "{}", outcome.stdout);
    assert!(
        outcome
            .stdout
            .contains("nosuch: no temporary folder: No such file"),
        "{}",
        outcome.stdout
    );
    // A failure may be due to a busy machine, so the workload runs once more, longer.
    let again = "No such file or directory; once more, for 2 seconds\n";
    assert!(outcome.stdout.contains(again), "{}", outcome.stdout);
    // The hint adds tests 1 and 2, which describe the machine.
    let hint = "1 of 2 tests failed\nhint: report the output of 'rperf test -v 1 2 19'\n";
    assert_eq!(outcome.stderr, hint);
}

#[test]
fn the_list_lacks_skipped_tests() {
    let scratch = Scratch::new();
    let listed = rperf(&scratch, "test list --skip 2 1 2 3");
    let numbers = listed.stdout.lines().map(|line| &line[..4]);
    assert_eq!(numbers.collect::<Vec<_>>(), ["  1:", "  3:"], "{listed:?}");
    assert_eq!(rperf(&scratch, "test list --skip 0").status, 129);
}

#[test]
fn unknown_tests_and_conflicts_are_refused() {
    let scratch = Scratch::new();
    for (line, message) in [
        (
            "test 99",
            "'99' is neither the number of a test nor a part of its name\ntests:\n  1: Kernel",
        ),
        (
            "test list nosuch",
            "'nosuch' is neither the number of a test nor a part of its name\ntests:\n",
        ),
        (
            "test -s 1,x",
            "--skip: 'x' is not the number of a test\nhint: give numbers from 1 to ",
        ),
        (
            "test -S -w noploop",
            "--sequential and -w cannot be combined\n",
        ),
        (
            "test --record-ctl fifo:x",
            "--record-ctl needs a workload: -w\n",
        ),
    ] {
        let outcome = rperf(&scratch, line);
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (129, ""),
            "{line}"
        );
        assert!(
            outcome.stderr.starts_with(message),
            "{line}: {}",
            outcome.stderr
        );
    }
}
