use std::collections::BTreeMap;
use std::time::Duration;

use rperf_count::{AggregationRules, Aggregator, CounterCounts, CounterReading, CpuLocation};
use rperf_wire::{Attr, EventType};

use super::*;
use crate::stat::StatPrefix;

/// Cycles, instructions, branches and branch misses on two cores; misses are not counted on the second.
fn table() -> CountTable {
    let event = |name: &str, config| {
        let attr = Attr {
            kind: EventType::HARDWARE,
            config,
            ..Attr::default()
        };
        CountedEvent::new(name, &attr)
    };
    let events = vec![
        event("cycles", 0),
        event("instructions", 1),
        event("branches", 4),
        event("branch-misses", 5),
    ];
    let location = |core| CpuLocation {
        socket: 0,
        die: 0,
        core,
        ..CpuLocation::default()
    };
    let rules = AggregationRules {
        by: Aggregation::Core,
        topology: [(0, location(0)), (1, location(1))].into_iter().collect(),
        unscaled: false,
    };
    let reading = |cpu, value, running| CounterReading {
        cpu: Some(cpu),
        thread: None,
        counts: CounterCounts {
            value,
            enabled: 10,
            running,
        },
    };
    let on_both = |first, second| vec![reading(0, first, 10), reading(1, second, 10)];
    let misses = vec![reading(0, 5, 10), reading(1, 0, 0)];
    let readings = [
        on_both(1000, 500),
        on_both(2000, 250),
        on_both(100, 100),
        misses,
    ];
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(Duration::from_millis(1), &readings);
    aggregator.table()
}

/// Writes the metrics of [`table`] and returns the lines. Text and CSV begin with a header, unless its columns are those of the
/// previous header, `header_columns`. A new header replaces `header_columns` by its own columns.
fn written(
    format: StatFormat<'_>,
    prefix: StatPrefix,
    header_columns: &mut Vec<String>,
) -> Vec<String> {
    let style = StatStyle {
        format,
        by: Aggregation::Core,
        threads: &BTreeMap::new(),
        prefix,
    };
    let mut out = Vec::new();
    write_metrics(&mut out, &table(), &style, header_columns).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_core_has_a_line_and_each_metric_a_column() {
    let mut header_columns = Vec::new();
    let text = StatFormat::Text { thousands: "," };
    let lines = written(text, StatPrefix::None, &mut header_columns);
    let name = "branch-misses of all branches";
    assert_eq!(header_columns, ["insn per cycle", name]);
    // The core, the number of its CPUs and a blank have 21 characters, a metric has at least 20. The second metric's name has 29.
    assert_eq!(
        lines,
        [
            format!("{:21}{:>20} {name} ", "", "insn per cycle"),
            format!("S0-D0-C0           1 {:>20} {:>29} ", "2.00", "5.00%"),
            format!("S0-D0-C1           1 {:>20} {:29} ", "0.50", ""),
        ]
    );
    assert_eq!(
        written(text, StatPrefix::None, &mut header_columns),
        lines[1..],
        "named once"
    );
}

#[test]
fn times_precede_cores() {
    let time = StatPrefix::Time(Duration::from_millis(1500));
    let lines = written(StatFormat::Text { thousands: "" }, time, &mut Vec::new());
    assert!(
        lines[0].starts_with("#           time                      "),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("     1.500000000 S0-D0-C0           1  "),
        "{lines:?}"
    );
}

#[test]
fn csv_and_json_have_the_same_metrics() {
    let csv = written(
        StatFormat::Csv { separator: "," },
        StatPrefix::None,
        &mut Vec::new(),
    );
    assert_eq!(
        csv,
        [
            "core,cpus,insn per cycle,branch-misses of all branches,",
            "S0-D0-C0,1,2.00,5.00,",
            "S0-D0-C1,1,0.50,,",
        ]
    );
    let time = StatPrefix::Time(Duration::from_millis(1500));
    let json = written(StatFormat::Json, time, &mut Vec::new());
    assert_eq!(
        json,
        [
            r#"{"interval" : 1.500000000, "core" : "S0-D0-C0", "aggregate-number" : 1, "insn per cycle" : "2.00", "branch-misses of all branches" : "5.00"}"#,
            r#"{"interval" : 1.500000000, "core" : "S0-D0-C1", "aggregate-number" : 1, "insn per cycle" : "0.50"}"#,
        ]
    );
}
