//! `stat -M`, `--topdown` and `--metric-only`, on a processor with made-up metrics.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::rperf_in;

/// Metrics of a made-up processor, over events that every machine counts.
const METRICS: &str = r#"[
    {"MetricName": "minor_share", "MetricExpr": "minor\\-faults / page\\-faults", "MetricGroup": "Mine;TopdownL1"},
    {"MetricName": "percent", "MetricExpr": "minor\\-faults / page\\-faults", "MetricGroup": "Mine", "ScaleUnit": "100%"},
    {"MetricName": "long", "MetricExpr": "duration_time > 0.01", "MetricGroup": "TopdownL2"}
]"#;

/// A folder with tables of that processor.
struct Processor(Scratch);

impl Processor {
    fn new() -> Self {
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join("x")).expect("created");
        let map = "Family-model,Version,Filename,EventType\nTest-1-.*,v1,x,core\n";
        fs::write(scratch.path().join("mapfile.csv"), map).expect("written");
        fs::write(scratch.path().join("x/metrics.json"), METRICS).expect("written");
        Self(scratch)
    }

    fn stat(&self, words: &[&str]) -> Outcome {
        let words = [&["stat"], words].concat();
        let run = rperf_in(&self.0, &words).env("PERF_CPUID", "Test-1-2-3");
        let run = run.env("RPERF_EVENTS", self.0.path());
        run.finish().expect("rperf starts")
    }
}

#[test]
fn metrics_are_computed_from_their_events() {
    let processor = Processor::new();
    let stat = |words: &[&str]| processor.stat(words);
    let outcome = stat(&["-x,", "-M", "Mine", "true"]);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [minor, more, faults] = lines[..] else {
        panic!("both metrics share two events: {}", outcome.stderr)
    };
    assert!(minor.ends_with(",100.00,1.00,minor_share"), "{minor}");
    assert!(more.ends_with(",100.0,%  percent"), "{more}");
    assert!(faults.contains(",,page-faults,"), "{faults}");
    let words = ["-x,", "--metric-no-threshold", "-M", "minor_share", "true"];
    assert!(stat(&words).stderr.contains(",100.00,1.00,minor_share"));
    let long = stat(&["-j", "-M", "long", "sleep", "0.02"]);
    assert!(
        long.stderr.contains("\"metric-value\" : 1.000000"),
        "{}",
        long.stderr
    );
    let apart = stat(&["-vv", "--metric-no-group", "-M", "minor_share", "true"]);
    assert!(!apart.stderr.contains("GROUP"), "{}", apart.stderr);
    let unknown = stat(&["-M", "minor_shore", "echo", "ran"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (234, ""));
    assert!(unknown.stderr.contains("minor_share"), "{}", unknown.stderr);
}

#[test]
fn metrics_alone_are_columns() {
    let processor = Processor::new();
    let csv = processor.stat(&["-x,", "--metric-only", "-M", "Mine", "true"]);
    assert_eq!(csv.stderr, "minor_share,%  percent,\n1.00,100.0,\n");
    let json = processor.stat(&["-j", "--metric-only", "-M", "Mine", "true"]);
    let object = r#"{"minor_share" : "1.00", "%  percent" : "100.0"}"#;
    assert_eq!(json.stderr.trim_end(), object);
    let text = processor.stat(&[
        "--metric-only",
        "-M",
        "minor_share",
        "-e",
        "cs,task-clock",
        "true",
    ]);
    let columns = format!("\n\n{:>20} \n{:>20} \n\n", "minor_share", "1.00");
    assert!(text.stderr.contains(&columns), "{}", text.stderr);
    let words = ["-I", "20", "--metric-only", "-M", "minor_share"];
    let workload = ["sh", "-c", "for i in 1 2 3 4 5; do true; sleep 0.02; done"];
    let intervals = processor.stat(&[&words[..], &workload].concat());
    let heads = intervals
        .stderr
        .lines()
        .filter(|line| line.starts_with('#'));
    assert!(heads.count() >= 1, "{}", intervals.stderr);
}

#[test]
fn the_top_down_method_is_a_group_of_metrics() {
    let processor = Processor::new();
    let first = processor.stat(&["-x,", "--topdown", "true"]);
    assert_eq!(first.stderr, "minor_share,\n1.00,\n");
    let second = processor.stat(&["-x,", "--topdown", "--td-level", "2", "sleep", "0.02"]);
    assert_eq!(second.stderr, "long,\n1.00,\n");
    let rows = processor.stat(&["-x,", "--topdown", "--no-metric-only", "true"]);
    assert!(rows.stderr.contains(",,page-faults,"), "{}", rows.stderr);
    for (words, status, said) in [
        (
            &["--topdown", "--td-level", "3", "true"][..],
            255,
            "The max level is 2.",
        ),
        (
            &["--td-level", "1", "true"][..],
            129,
            "--td-level is the level of --topdown",
        ),
        (
            &["--metric-only", "-r", "2", "true"][..],
            129,
            "not supported with -r",
        ),
    ] {
        let refused = processor.stat(words);
        assert_eq!(refused.status, status, "{words:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(said),
            "{words:?}: {}",
            refused.stderr
        );
    }
}
