use super::*;
use rperf_count::{
    AggregationRules, Aggregator, CountedEvent, CounterCounts, CounterReading, Spread,
};
use rperf_wire::{Attr, EventType};

/// The table of this number of runs. Of the last two events, `nodes` is not supported, and `branches` was not counted.
fn table(runs: u32) -> CountTable {
    let event = |name: &str, kind, config| {
        let attr = Attr {
            kind,
            config,
            ..Attr::default()
        };
        CountedEvent::new(name, &attr)
    };
    let mut events = vec![
        event("task-clock", EventType::SOFTWARE, 1),
        event("cycles", EventType::HARDWARE, 0),
        event("stalled-cycles-backend", EventType::HARDWARE, 8),
        event("instructions", EventType::HARDWARE, 1),
        event("nodes", EventType::HW_CACHE, 6),
        event("branches", EventType::HARDWARE, 4),
    ];
    events[4].supported = false;
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    for run in 0..u64::from(runs) {
        let reading = |value, running| {
            let counts = CounterCounts {
                value,
                enabled: 2_000_000,
                running,
            };
            vec![CounterReading {
                cpu: None,
                thread: Some(7),
                counts,
            }]
        };
        let full_time = 2_000_000;
        let readings = [
            reading(1_234_567 + 1000 * run, full_time),
            reading(2_000_000, full_time / 2),
            reading(400_000, full_time / 2),
            reading(3_000_000, full_time),
            reading(0, 0),
            reading(0, 0),
        ];
        aggregator.add(Duration::from_millis(2), &readings);
    }
    aggregator.table()
}

fn written(table: &CountTable, format: StatFormat<'_>, prefix: StatPrefix) -> String {
    let style = StatStyle {
        format,
        by: Aggregation::Global,
        threads: &BTreeMap::new(),
        prefix,
    };
    let mut out = Vec::new();
    write_table(&mut out, table, &style).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[test]
fn text_has_columns_units_metrics_and_missing_counts() {
    let text = written(
        &table(2),
        StatFormat::Text { thousands: "," },
        StatPrefix::None,
    );
    let expected = "              1.24 msec task-clock                       #    0.618 CPUs utilized            ( +-  0.04% )
         4,000,000      cycles                           #    3.239 GHz                      (50.00%)
           800,000      stalled-cycles-backend           #   20.00% backend cycles idle      (50.00%)
         3,000,000      instructions                     #    0.75  insn per cycle
                                                  #    0.27  stalled cycles per insn
   <not supported>      nodes
     <not counted>      branches";
    assert_eq!(text, expected);
}

#[test]
fn csv_has_a_row_for_each_metric() {
    let text = written(
        &table(1),
        StatFormat::Csv { separator: ";" },
        StatPrefix::Summary,
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "         summary;1.23;msec;task-clock;2000000;100.00;0.617;CPUs utilized",
            "         summary;4000000;;cycles;1000000;50.00;3.240;GHz",
            "         summary;800000;;stalled-cycles-backend;1000000;50.00;20.00;backend cycles idle",
            "         summary;3000000;;instructions;2000000;100.00;0.75;insn per cycle",
            "         summary;;;;;;0.27;stalled cycles per insn",
            // As in perf, the percentage of an event that has not run at all is 100.
            "         summary;<not supported>;;nodes;0;100.00;;",
            "         summary;<not counted>;;branches;0;100.00;;",
        ]
    );
    let with_deviation = written(
        &table(2),
        StatFormat::Csv { separator: "," },
        StatPrefix::None,
    );
    assert!(
        with_deviation.starts_with("1.24,msec,task-clock,0.04%,2000000,"),
        "{with_deviation}"
    );
}

#[test]
fn json_rows_without_metrics_have_empty_metric_fields() {
    let time = StatPrefix::Time(Duration::from_micros(1_500_001));
    let text = written(&table(1), StatFormat::Json, time);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "{\"interval\" : 1.500001000, \"counter-value\" : \"1.234567\", \"unit\" : \"msec\", \"event\" : \"task-clock\", \
         \"event-runtime\" : 2000000, \"pcnt-running\" : 100.00, \"metric-value\" : 0.617283, \"metric-unit\" : \"CPUs utilized\"}"
    );
    assert_eq!(
        lines[4],
        "{\"interval\" : 1.500001000, \"metric-value\" : 0.266667, \"metric-unit\" : \"stalled cycles per insn\"}"
    );
    assert!(
        lines[5].ends_with(
            "\"pcnt-running\" : 100.00, \"metric-value\" : 0.000000, \"metric-unit\" : \"\"}"
        ),
        "{}",
        lines[5]
    );
}

#[test]
fn each_run_has_a_line_with_a_bar() {
    let runs = [10, 20, 0].map(Duration::from_millis);
    let mut elapsed = Spread::default();
    runs.iter()
        .for_each(|run| elapsed.add(run.as_secs_f64() * 1e9));
    let times = Times {
        elapsed,
        cpu_times: None,
    };
    let footer = Footer {
        times,
        below_rows: true,
        listed_runs: Some(&runs),
    };
    let mut out = Vec::new();
    write_footer(&mut out, &footer).unwrap();
    let expected = "
           # Table of individual measurements:
           0.01000 (+0.00000) #
           0.02000 (+0.01000) ###########
           0.00000 (-0.01000) #

           # Final result:
           0.01000 +- 0.00577 seconds time elapsed  ( +- 57.74% )

";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
