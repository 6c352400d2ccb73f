//! `rperf record --off-cpu`: how long tasks waited, and where.

use rperf_testkit::{Outcome, Scratch, real_perf, skip};

use crate::kernel::{perf_in, rperf_in};

/// Nanoseconds that the workload sleeps.
const SLEEP: u64 = 120_000_000;

fn rperf(scratch: &Scratch, words: &[&str]) -> Outcome {
    let done = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(done.status, 0, "{words:?}: {}", done.stderr);
    done
}

/// Records a child that sleeps, and its parent, who waits for it.
fn record(scratch: &Scratch, options: &[&str]) -> String {
    let words = ["record", "--off-cpu", "-e", "cpu-clock", "-o", "perf.data"];
    let work = ["--", "sh", "-c", "sleep 0.12; :"];
    rperf(scratch, &[&words, options, &work].concat()).stderr
}

/// Command, nanoseconds and kernel functions of the samples of the time off CPUs.
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

/// Whether a child slept for its whole time and its parent waited, as a recording with these options tells.
fn tells(options: &[&str]) -> Result<(), String> {
    let scratch = Scratch::new();
    let said = record(&scratch, options);
    let fields = ["script", "--no-inline", "-F", "comm,period,event,ip,sym"];
    let script = rperf(&scratch, &fields).stdout;
    let written = script.matches("offcpu-time:").count() + script.matches("cpu-clock:").count();
    assert!(said.contains(&format!("({written} samples)")), "{said}");
    let dump = rperf(&scratch, &["script", "-D"]).stdout;
    assert!(!dump.contains("PERF_RECORD_SWITCH"), "{dump}");
    let samples = off_cpu(&script);
    let is_of = |comm: &str, least: u64, function: &str| {
        samples
            .iter()
            .any(|(of, period, stack)| of == comm && *period >= least && stack.contains(function))
    };
    match is_of("sleep", SLEEP, "nanosleep") && is_of("sh", 1, "wait") {
        true => Ok(()),
        false => Err(script),
    }
}

#[test]
fn waiting_tasks_are_sampled_with_the_time_that_they_waited() {
    for options in [&["-g"][..], &["--call-graph", "dwarf", "--unwind", "live"]] {
        // Who sets his alarm and is pushed off his CPU sleeps for less than it says.
        let mut scripts = Vec::new();
        let told = (0..6).any(|_| {
            tells(options)
                .map_err(|script| scripts.push(script))
                .is_ok()
        });
        assert!(told, "{options:?}: {scripts:#?}");
    }
}

#[test]
fn readers_take_the_event_for_one_of_theirs() {
    let Some(perf) = real_perf() else {
        return skip(
            "readers_take_the_event_for_one_of_theirs",
            "there is no perf",
        );
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
fn short_waits_are_one_sample_for_each_place() {
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
    // The shell waits for each of them in one place, unless it is done before that.
    let (all, summed) = (count("0"), count("3600000"));
    assert!(all > 2 * summed, "{all} {summed}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let scratch = Scratch::new();
    let words = ["record", "--off-cpu-thresh", "5", "true"];
    let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let line = "--off-cpu-thresh is for --off-cpu alone\n";
    assert_eq!((refused.status, refused.stderr.as_str()), (129, line));
    for other in ["--overwrite", "--per-thread", "--tail-synthesize", "-n"] {
        let words = ["record", "--off-cpu", other, "true"];
        let refused = rperf_in(&scratch, &words).finish().expect("rperf starts");
        assert_eq!(refused.status, 129, "{other}");
        assert!(refused.stderr.contains("--off-cpu does not go with"));
    }
}
