//! `rperf record --off-cpu`: how long tasks waited, and where.

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use crate::kernel::{perf_in, rperf_in};

/// Nanoseconds for which the workload sleeps.
const SLEEP: u64 = 120_000_000;

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    let done = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(done.status, 0, "{words:?}: {}", done.stderr);
    done
}

/// Records a sleeping child and its parent, which waits for the child; returns the messages.
fn record(scratch: &Scratch, options: &[&str]) -> String {
    let words = ["record", "--off-cpu", "-e", "cpu-clock", "-o", "perf.data"];
    let work = ["--", "sh", "-c", "sleep 0.12; :"];
    rperf(scratch, &[&words, options, &work].concat()).stderr
}

/// Command, nanoseconds and stack of the off-CPU samples.
fn off_cpu(script: &str) -> Vec<(String, u64, String)> {
    let mut samples = Vec::new();
    for paragraph in script.split("\n\n") {
        let mut lines = paragraph.lines();
        let head = lines.next().unwrap_or_default();
        let words: Vec<&str> = head.split_whitespace().collect();
        if let [comm, period, "offcpu-time:"] = words[..] {
            let period = period.parse().expect("a period");
            samples.push((comm.to_owned(), period, lines.collect()));
        }
    }
    samples
}

/// Checks that in a recording with these options the child sleeps for the full time and its parent waits. The error is the output
/// of `script`.
fn check_waits(options: &[&str]) -> Result<(), String> {
    let scratch = Scratch::new();
    let message = record(&scratch, options);
    let fields = ["script", "--no-inline", "-F", "comm,period,event,ip,sym"];
    let script = rperf(&scratch, &fields).stdout;
    let written = script.matches("offcpu-time:").count() + script.matches("cpu-clock:").count();
    assert!(
        message.contains(&format!("({written} samples)")),
        "{message}"
    );
    // Even if rperf records switches, it writes only samples of waits to the file.
    let dump = rperf(&scratch, &["script", "-D"]).stdout;
    assert!(!dump.contains("PERF_RECORD_SWITCH"), "{dump}");
    let samples = off_cpu(&script);
    let has_wait = |comm: &str, least: u64, function: &str| {
        samples.iter().any(|(name, period, stack)| {
            name == comm && *period >= least && stack.contains(function)
        })
    };
    let any_time = 1;
    match has_wait("sleep", SLEEP, "nanosleep") && has_wait("sh", any_time, "wait") {
        true => Ok(()),
        false => Err(script),
    }
}

#[test]
fn waiting_tasks_are_sampled_with_the_time_that_they_waited() {
    for options in [&["-g"][..], &["--call-graph", "dwarf", "--unwind", "live"]] {
        // A task that is preempted between setting its timer and sleeping sleeps for less than the full time. One of several
        // attempts must succeed.
        let mut scripts = Vec::new();
        let is_reported = (0..6).any(|_| {
            check_waits(options)
                .map_err(|script| scripts.push(script))
                .is_ok()
        });
        assert!(is_reported, "{options:?}: {scripts:#?}");
    }
}

#[test]
fn perf_reads_the_off_cpu_event() {
    let Some(perf) = real_perf() else {
        return skip("perf_reads_the_off_cpu_event", "there is no perf");
    };
    let scratch = Scratch::new();
    record(&scratch, &["-g"]);
    for words in [
        &["script", "--no-inline"][..],
        &["evlist"],
        &[
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "-s",
            "comm",
        ],
    ] {
        let theirs = perf_in(&perf, &scratch, words);
        let ours = rperf(&scratch, words);
        assert!(ours.stdout.contains("offcpu-time"), "{}", ours.stdout);
        let lines = |text: &str| {
            let lines = text.lines().map(str::trim_end);
            let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&theirs.stdout), lines(&ours.stdout), "{words:?}");
    }
    let graph = rperf(&scratch, &["flamegraph", "-e", "offcpu-time", "-o", "-"]).stdout;
    assert!(graph.contains("nanosleep"), "{graph}");
}

#[test]
fn waits_below_the_threshold_are_summed_up_by_place() {
    let count = |threshold: &str| {
        let scratch = Scratch::new();
        let words = ["record", "--off-cpu", "--off-cpu-thresh", threshold, "-e"];
        let work = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); /bin/true; done";
        let more = ["cpu-clock", "-g", "-o", "perf.data", "--", "sh", "-c", work];
        rperf(&scratch, &[&words[..], &more].concat());
        let script = rperf(&scratch, &["script", "-F", "comm,period,event"]).stdout;
        let waits = script.lines().filter(|line| line.contains("offcpu-time:"));
        waits
            .filter(|line| line.trim_start().starts_with("sh "))
            .count()
    };
    // The shell waits for all children at one place. It does not wait for a child that has already exited, so `all` may be
    // below 50. The threshold is in milliseconds: with an hour, all waits are summed up.
    let (all, summed) = (count("0"), count("3600000"));
    assert!(all > 2 * summed, "{all} {summed}");
}

#[test]
fn long_waits_have_the_time_at_which_they_end() {
    let scratch = Scratch::new();
    let words = [
        "record",
        "--off-cpu",
        "--off-cpu-thresh",
        "50",
        "-e",
        "cpu-clock",
    ];
    // The second sleep ends 0.3 s after the first.
    let work = ["-o", "perf.data", "--", "sh", "-c", "sleep 0.2; sleep 0.3"];
    rperf(&scratch, &[&words[..], &work].concat());
    let fields = ["script", "-F", "comm,time,period,event", "--ns"];
    let script = rperf(&scratch, &fields).stdout;
    let ends = script.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["sleep", time, period, "offcpu-time:"] = words[..] else {
            return None;
        };
        let period: f64 = period.parse().ok()?;
        let time: f64 = time.trim_end_matches(':').parse().ok()?;
        (period >= 0.19e9).then_some(time)
    });
    let ends: Vec<f64> = ends.collect();
    assert_eq!(ends.len(), 2, "{script}");
    assert!((0.3..0.5).contains(&(ends[1] - ends[0])), "{script}");
}

#[test]
fn without_bpf_programs_switches_are_recorded_and_give_the_same_sums() {
    let test = "without_bpf_programs_switches_are_recorded_and_give_the_same_sums";
    let scratch = Scratch::new();
    let slept = |script: &str| -> u64 {
        let lines = script.lines().filter(|line| line.contains("offcpu-time:"));
        let lines = lines.filter(|line| line.trim_start().starts_with("sleep "));
        lines
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum()
    };
    // In a PID namespace, process ids differ from those that BPF programs see, so rperf does not use BPF programs.
    let words = [
        "-pf",
        "--mount-proc",
        env!("CARGO_BIN_EXE_rperf"),
        "record",
        "--off-cpu",
    ];
    let work = ["-e", "cpu-clock", "-o", "perf.data", "--", "sleep", "0.2"];
    let run = rperf_testkit::Run::new("unshare").args([&words[..], &work].concat());
    let Ok(inside) = run
        .within(scratch.path())
        .env("HOME", scratch.path())
        .finish()
    else {
        return skip(test, "needs unshare");
    };
    if inside.stderr.starts_with("unshare:") {
        return skip(test, "needs root");
    }
    let note = "--off-cpu records each context switch, since the kernel cannot sum up waits: ";
    assert!(inside.stderr.contains(note), "{}", inside.stderr);
    let fields = ["script", "-F", "comm,period,event"];
    let switched = slept(&rperf(&scratch, &fields).stdout);
    let done = rperf(&scratch, &[&["record", "--off-cpu"][..], &work].concat());
    assert!(!done.stderr.contains(note), "{}", done.stderr);
    let summed = slept(&rperf(&scratch, &fields).stdout);
    for time in [switched, summed] {
        assert!(
            (200_000_000..300_000_000).contains(&time),
            "{switched} {summed}"
        );
    }
}

#[test]
fn conflicting_options_are_refused() {
    let scratch = Scratch::new();
    let words = ["record", "--off-cpu-thresh", "5", "true"];
    let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let line = "--off-cpu-thresh needs --off-cpu\n";
    assert_eq!((refused.status, refused.stderr.as_str()), (129, line));
    for other in ["--overwrite", "--per-thread", "--tail-synthesize", "-n"] {
        let words = ["record", "--off-cpu", other, "true"];
        let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(refused.status, 129, "{other}");
        assert!(refused.stderr.contains("--off-cpu cannot be combined with"));
    }
}

#[test]
fn flame_graphs_draw_waits_by_their_time() {
    let scratch = Scratch::new();
    record(&scratch, &["-F", "4000", "-g"]);
    let drawn = rperf(&scratch, &["flamegraph", "--folded"]);
    let is_reported = drawn
        .stderr
        .contains(" samples of offcpu-time; not used: cpu-clock (");
    assert!(is_reported, "{}", drawn.stderr);
    let nanoseconds = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
    let sleep = drawn
        .stdout
        .lines()
        .filter(|line| line.starts_with("sleep;"));
    assert!(
        sleep.filter_map(nanoseconds).sum::<u64>() >= SLEEP,
        "{}",
        drawn.stdout
    );
    let svg = rperf(&scratch, &["flamegraph", "-o", "-"]).stdout;
    assert!(svg.contains("Flame Graph: offcpu-time"), "{svg}");
    let samples = rperf(&scratch, &["flamegraph", "--folded", "--weight", "samples"]);
    assert_ne!(samples.stdout, drawn.stdout);
}
