//! `sched diff`: the waits of two recordings.

use rperf_testkit::Scratch;

use super::recording::SchedFile;
use super::run;
use crate::commands::outcome;

/// A recording in which task 8 waits while task 7 runs on its CPU. `waits` are the lengths of its waits, in microseconds.
fn recording(waits: &[u64]) -> Vec<u8> {
    let mut file = SchedFile::new();
    file.comm(7, "seven");
    file.comm(8, "eight");
    // In nanoseconds. Each task is in state 1 when it is switched out: it sleeps.
    let mut time = 1_000_000;
    file.switch(time, (8, 1), 7);
    for wait in waits {
        time += 1_000_000;
        file.waking(time, 7, 8);
        file.switch(time + wait * 1_000, (7, 1), 8);
        file.switch(time + wait * 1_000 + 1, (8, 1), 7);
    }
    file.finish()
}

/// The rows of `task` in the object that `sched diff --json` prints: the mean, p50 and p99.
fn rows(scratch: &Scratch, task: &str) -> Vec<serde_json::Value> {
    let printed = run(scratch, &["sched", "diff", "--json"]);
    assert_eq!(printed.status, 0, "{printed:?}");
    let json: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
    assert_eq!(json["version"], 1);
    let rows = json["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["comm"] == task).cloned().collect()
}

/// Mean and half the width of its 95 % confidence interval, with the quantile of Student's t for 4 degrees of freedom.
fn mean_and_margin(waits: [u64; 5]) -> (f64, f64) {
    let mean = waits.iter().sum::<u64>() as f64 / 5.0;
    let squares: f64 = waits.iter().map(|wait| (*wait as f64 - mean).powi(2)).sum();
    (mean, 2.776 * (squares / 4.0 / 5.0).sqrt())
}

#[test]
fn longer_waits_are_significant() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let (before, after) = ([100, 104, 98, 102, 96], [200, 204, 198, 202, 206]);
    scratch.write("perf.data.old", recording(&before))?;
    scratch.write("perf.data", recording(&after))?;
    let rows = rows(&scratch, "eight");
    let numbers: Vec<_> = rows.iter().map(|row| &row["number"]).collect();
    assert_eq!(numbers, ["mean", "p50", "p99"]);
    let mean = &rows[0];
    assert_eq!(mean["baseline_waits"], 5);
    assert_eq!(mean["significant"], true);
    for (file, waits) in [("baseline", before), ("new", after)] {
        let (expected, margin) = mean_and_margin(waits);
        let [value, low, high] = ["ns", "low_ns", "high_ns"]
            .map(|key| mean[file][key].as_f64().expect("a number") / 1e3);
        // rperf computes the variance from a histogram, as if each wait were in the middle of its bucket. The interval may
        // therefore differ by 2 % or 2 us.
        let is_near = |one: f64, other: f64| (one - other).abs() < 0.02 * other;
        assert!(is_near(value, expected), "{mean}");
        assert!(
            is_near(high - low, 2.0 * margin) || (high - low - 2.0 * margin).abs() < 2.0,
            "{mean}"
        );
    }
    let text = run(&scratch, &["sched", "diff", "perf.data.old", "perf.data"]).stdout;
    let line = text
        .lines()
        .find(|line| line.contains("eight  mean"))
        .expect("a row");
    // `*` marks a significant difference. The mean rises by 102 us, from 100 us to 202 us; printed in milliseconds.
    assert!(line.ends_with('*') && line.contains("+0.102"), "{text}");
    Ok(())
}

#[test]
fn noise_is_not_significant() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data.old", recording(&[100, 300, 200, 120, 280]))?;
    scratch.write("perf.data", recording(&[110, 290, 220, 130, 270]))?;
    let noise_rows = rows(&scratch, "eight");
    let significant: Vec<_> = noise_rows
        .iter()
        .map(|row| row["significant"].as_bool())
        .collect();
    // Five waits are too few for intervals of percentiles.
    assert_eq!(significant, [Some(false), None, None]);
    let text = run(&scratch, &["sched", "diff"]).stdout;
    let line = text
        .lines()
        .find(|line| line.contains("eight  mean"))
        .expect("a row");
    // `=` marks a difference that is not significant.
    assert!(line.ends_with('='), "{text}");
    // A single wait has no spread.
    scratch.write("perf.data", recording(&[110]))?;
    for row in rows(&scratch, "eight") {
        assert!(row["significant"].is_null(), "{row}");
        assert!(row["new"]["low_ns"].is_null(), "{row}");
    }
    Ok(())
}

#[test]
fn medians_have_intervals() -> std::io::Result<()> {
    /// The index of the median's row.
    const P50: usize = 1;
    let scratch = Scratch::new();
    let waits = |from: u64| (from..from + 20).collect::<Vec<_>>();
    scratch.write("perf.data.old", recording(&waits(100)))?;
    scratch.write("perf.data", recording(&waits(120)))?;
    let disjoint = rows(&scratch, "eight").remove(P50);
    // The rank of the lower bound is 10 - 1.96 * sqrt(5), rounded down: 5. That of the upper one is 10 + 1.96 * sqrt(5), rounded
    // up, plus 1: 16.
    for (key, expected) in [("low_ns", 104_000.0), ("high_ns", 115_000.0)] {
        let bound = disjoint["baseline"][key].as_f64().expect("a number");
        // The bounds come from a histogram with 64 buckets per power of two.
        assert!((bound - expected).abs() < expected / 64.0, "{disjoint}");
    }
    assert_eq!(disjoint["significant"], true, "{disjoint}");
    scratch.write("perf.data", recording(&waits(105)))?;
    let overlapping = rows(&scratch, "eight").remove(P50);
    assert_eq!(overlapping["significant"], false, "{overlapping}");
    Ok(())
}

#[test]
fn too_many_or_missing_files_are_refused() {
    let refused = outcome(&["sched", "diff", "a", "b", "c"]);
    assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
    assert!(
        refused.stderr.contains("give two recordings"),
        "{refused:?}"
    );
    let missing = outcome(&["sched", "diff", "none.old", "none"]);
    assert!(
        missing.status != 0 && missing.stderr.contains("none.old"),
        "{missing:?}"
    );
}
