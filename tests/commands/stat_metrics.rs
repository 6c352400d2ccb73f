//! `stat -M`, `--topdown` and `--metric-only`: metrics of a fake processor, and those of software events.

use std::fs;

use rperf_testkit::{Outcome, Scratch};

use crate::kernel::rperf_in;

/// Metrics of a fake processor, using events that every machine counts.
const METRICS: &str = r#"[
    {"MetricName": "minor_share", "MetricExpr": "minor\\-faults / page\\-faults", "MetricGroup": "Mine;TopdownL1"},
    {"MetricName": "percent", "MetricExpr": "minor\\-faults / page\\-faults", "MetricGroup": "Mine", "ScaleUnit": "100%"},
    {"MetricName": "long", "MetricExpr": "duration_time > 0.01", "MetricGroup": "TopdownL2"}
]"#;

/// A folder with the tables of the fake processor.
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
    // Lines of minor-faults with the first metric, of the second metric alone, and of page-faults.
    let [minor, percent, faults] = lines[..] else {
        panic!("both metrics share two events: {}", outcome.stderr)
    };
    assert!(minor.ends_with(",100.00,1.00,minor_share"), "{minor}");
    assert!(percent.ends_with(",100.0,%  percent"), "{percent}");
    assert!(faults.contains(",,page-faults,"), "{faults}");
    let words = ["-x,", "--metric-no-threshold", "-M", "minor_share", "true"];
    assert!(stat(&words).stderr.contains(",100.00,1.00,minor_share"));
    let long = stat(&["-j", "-M", "long", "sleep", "0.02"]);
    assert!(
        long.stderr.contains("\"metric-value\" : 1.000000"),
        "{}",
        long.stderr
    );
    let grouped = stat(&["-vv", "-M", "minor_share", "true"]);
    assert!(grouped.stderr.contains("|GROUP"), "{}", grouped.stderr);
    let ungrouped = stat(&["-vv", "--metric-no-group", "-M", "minor_share", "true"]);
    assert!(!ungrouped.stderr.contains("GROUP"), "{}", ungrouped.stderr);
    // 234: perf returns -EINVAL. The message suggests the most similar name.
    let unknown = stat(&["-M", "minor_shore", "echo", "ran"]);
    assert_eq!((unknown.status, unknown.stdout.as_str()), (234, ""));
    assert!(unknown.stderr.contains("minor_share"), "{}", unknown.stderr);
}

/// Metrics of perf 7.2 that need neither tables nor hardware counters. The tolerance of the rates is for the rounding of the
/// printed numbers: rates have one decimal, the task-clock in ms has two. The workload has one thread, so it uses
/// about one CPU at most.
#[test]
fn metrics_of_software_events_need_neither_tables_nor_hardware() {
    let scratch = Scratch::new();
    let stat = |words: &[&str]| {
        let run = rperf_in(&scratch, &[&["stat", "-x,"], words].concat());
        let outcome = run.env("RPERF_EVENTS", "/nonexistent").finish();
        let outcome = outcome.expect("rperf starts");
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stderr
    };
    let metric_value = |text: &str, metric: &str| {
        let line = text.lines().find(|line| line.ends_with(metric));
        let line = line.unwrap_or_else(|| panic!("{metric}: {text}"));
        let value = line.rsplit(',').nth(1).expect("a value");
        value.parse::<f64>().expect("a number")
    };
    let count = |text: &str, event: &str| {
        let line = text.lines().find(|line| line.contains(event));
        let line = line.unwrap_or_else(|| panic!("{event}: {text}"));
        let count = line.split(',').next().expect("a count");
        count.parse::<f64>().expect("a number")
    };
    let busy = [
        "sh",
        "-c",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
    ];
    for (metric, unit, event) in [
        ("cs_per_second", "cs/sec", ",context-switches,"),
        ("page_faults_per_second", "faults/sec", ",page-faults,"),
        (
            "migrations_per_second",
            "migrations/sec",
            ",cpu-migrations,",
        ),
    ] {
        let text = stat(&[&["-M", metric], &busy[..]].concat());
        let rate = metric_value(&text, &format!("{unit}  {metric}"));
        let expected = count(&text, event) / count(&text, ",task-clock,") * 1e3;
        assert!(
            (rate - expected).abs() <= expected * 0.01 + 0.1,
            "{rate} for {expected}: {text}"
        );
    }
    let of_workload = stat(&[&["-M", "CPUs_utilized"], &busy[..]].concat());
    let used = metric_value(&of_workload, "CPUs  CPUs_utilized");
    assert!(used > 0.0 && used < 1.5, "{of_workload}");
    // With -a the metric uses cpu-clock instead of task-clock.
    let of_system = stat(&["-a", "-M", "CPUs_utilized", "sleep", "0.1"]);
    assert!(of_system.contains(",cpu-clock,"), "{of_system}");
    // Each cgroup of the list, here twice the root, has its own values.
    let (cgroups, metric) = (["-a", "--for-each-cgroup", "/,/"], "cs_per_second");
    let text = stat(&[&cgroups[..], &["-M", metric, "sleep", "0.1"]].concat());
    let rates = text.lines().filter(|line| line.ends_with(metric));
    assert_eq!(rates.count(), 2, "{text}");
    // The default groups can be counted, too: the closure checks the status.
    for group in ["Default", "Default2", "Default3", "Default4"] {
        stat(&["-a", "-M", group, "sleep", "0.01"]);
    }
}

#[test]
fn metric_only_prints_columns() {
    let processor = Processor::new();
    let csv = processor.stat(&["-x,", "--metric-only", "-M", "Mine", "true"]);
    assert_eq!(csv.stderr, "minor_share,%  percent,\n1.00,100.0,\n");
    let of_one_run = processor.stat(&["-r", "1", "-x,", "--metric-only", "-M", "Mine", "true"]);
    assert_eq!(of_one_run.stderr, csv.stderr);
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
    let titles = intervals
        .stderr
        .lines()
        .filter(|line| line.starts_with('#'));
    assert!(titles.count() >= 1, "{}", intervals.stderr);
}

#[test]
fn topdown_prints_the_metrics_of_its_level() {
    let processor = Processor::new();
    let first = processor.stat(&["-x,", "--topdown", "true"]);
    assert_eq!(first.stderr, "minor_share,\n1.00,\n");
    let second = processor.stat(&["-x,", "--topdown", "--td-level", "2", "sleep", "0.02"]);
    assert_eq!(second.stderr, "long,\n1.00,\n");
    let rows = processor.stat(&["-x,", "--topdown", "--no-metric-only", "true"]);
    assert!(rows.stderr.contains(",,page-faults,"), "{}", rows.stderr);
    for (words, status, message) in [
        (
            &["--topdown", "--td-level", "3", "true"][..],
            255,
            "The max level is 2.",
        ),
        (
            &["--td-level", "1", "true"][..],
            129,
            "--td-level needs --topdown",
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
            refused.stderr.contains(message),
            "{words:?}: {}",
            refused.stderr
        );
    }
}
