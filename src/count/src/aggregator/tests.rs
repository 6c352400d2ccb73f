use super::*;
use crate::{CounterCounts, CpuLocation};
use rperf_wire::{Attr, AttrFlags, EventType};

fn event(name: &str, kind: EventType, config: u64) -> CountedEvent {
    CountedEvent::new(name, &attr(kind, config))
}

fn attr(kind: EventType, config: u64) -> Attr {
    Attr {
        kind,
        config,
        ..Attr::default()
    }
}

/// Six of the default events of `stat`.
fn default_events() -> Vec<CountedEvent> {
    let hardware = |name, config| event(name, EventType::HARDWARE, config);
    vec![
        event("task-clock", EventType::SOFTWARE, 1),
        event("page-faults", EventType::SOFTWARE, 2),
        hardware("cycles", 0),
        hardware("instructions", 1),
        hardware("branches", 4),
        hardware("branch-misses", 5),
    ]
}

/// A reading of a counter that ran all the time.
fn reading(cpu: u32, value: u64) -> CounterReading {
    multiplexed(cpu, value, 1000, 1000)
}

fn multiplexed(cpu: u32, value: u64, enabled: u64, running: u64) -> CounterReading {
    CounterReading {
        cpu: Some(cpu),
        thread: None,
        counts: CounterCounts {
            value,
            enabled,
            running,
        },
    }
}

/// The metrics of all rows, each as its value and unit.
fn metric_texts(table: &CountTable) -> Vec<String> {
    let metrics = table.rows.iter().flat_map(|row| &row.metrics);
    let text = |metric: &crate::MetricValue| match metric.format {
        crate::NumberFormat::Rate => format!("{:.3} {}", metric.value, metric.unit),
        crate::NumberFormat::Ratio => format!("{:.2} {}", metric.value, metric.unit),
        crate::NumberFormat::Percent => format!("{:.2}% {}", metric.value, metric.unit),
        // `FinePercent`: the tests have no metrics of other formats.
        _ => format!("{:.3} % {}", metric.value, metric.unit),
    };
    metrics.map(text).collect()
}

fn values(table: &CountTable) -> Vec<Option<f64>> {
    let value = |row: &CountRow| match row.state {
        CountState::Counted(value) => Some(value.value),
        _ => None,
    };
    table.rows.iter().map(value).collect()
}

#[test]
fn metrics_match_a_run_of_perf() {
    let counts = [360_454, 233, 1_320_405, 949_382, 194_152, 9_559];
    let readings = counts.map(|count| vec![reading(0, count)]);
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(default_events(), &rules);
    aggregator.add(Duration::from_nanos(512_108), &readings);
    assert_eq!(
        metric_texts(&aggregator.table()),
        [
            "0.704 CPUs utilized",
            "646.407 K/sec",
            "3.663 GHz",
            "0.72 insn per cycle",
            "538.632 M/sec",
            "4.92% of all branches"
        ]
    );
}

#[test]
fn caches_and_stalls_have_their_own_bases() {
    let hardware = |name, config| event(name, EventType::HARDWARE, config);
    let cache = |name, config| event(name, EventType::HW_CACHE, config);
    let events = vec![
        hardware("cycles", 0),
        hardware("stalled-cycles-frontend", 7),
        hardware("stalled-cycles-backend", 8),
        hardware("instructions", 1),
        hardware("cache-references", 2),
        hardware("cache-misses", 3),
        cache("L1-dcache-loads", 0),
        cache("L1-dcache-load-misses", 0x1_0000),
        cache("LLC-load-misses", 0x1_0002),
        cache("dTLB-loads", 3),
        cache("dTLB-load-misses", 0x1_0003),
    ];
    let counts = [1000, 250, 400, 500, 80, 20, 40, 2, 7, 10, 12];
    let readings = counts.map(|count| vec![reading(0, count)]);
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(Duration::from_secs(1), &readings);
    assert_eq!(
        metric_texts(&aggregator.table()),
        [
            "25.00% frontend cycles idle",
            "40.00% backend cycles idle",
            "0.50 insn per cycle",
            "0.80 stalled cycles per insn",
            "25.000 % of all cache refs",
            "5.00% of all L1-dcache accesses",
            "120.00% of all dTLB cache accesses",
        ],
        "no clock, so no rates; no base for LLC-load-misses; a share above 100 % is kept"
    );
}

/// Two sockets of two cores with distinct ratios: 1, 2, 3 and 4.
#[test]
fn a_unit_divides_its_own_counts() {
    let cpus = (0..4_u32).map(|cpu| {
        let socket = i32::from(cpu >= 2);
        let core = (cpu % 2).cast_signed();
        let location = CpuLocation {
            socket,
            die: 0,
            core,
            node: socket,
            ..CpuLocation::default()
        };
        (cpu, location)
    });
    let topology: Topology = cpus.collect();
    let readings = [
        (0..4)
            .map(|cpu| reading(cpu, 100 * u64::from(cpu + 1)))
            .collect::<Vec<_>>(),
        (0..4)
            .map(|cpu| reading(cpu, 100 * u64::from(cpu + 1) * u64::from(cpu + 1)))
            .collect(),
    ];
    let aggregate = |by| {
        let rules = AggregationRules {
            by,
            topology: topology.clone(),
            unscaled: false,
        };
        let hardware = |name, config| event(name, EventType::HARDWARE, config);
        let mut aggregator = Aggregator::new(
            vec![hardware("cycles", 0), hardware("instructions", 1)],
            &rules,
        );
        aggregator.add(Duration::from_secs(1), &readings);
        let table = aggregator.table();
        let units: Vec<(AggregationUnit, usize)> = table
            .rows
            .iter()
            .map(|row| (row.unit, row.merged_counters))
            .collect();
        (metric_texts(&table), units)
    };
    let (metrics, units) = aggregate(Aggregation::Cpu);
    let ratios = ["1.00", "2.00", "3.00", "4.00"].map(|ratio| format!("{ratio} insn per cycle"));
    assert_eq!(metrics, ratios);
    assert_eq!(
        units[..2],
        [(AggregationUnit::Cpu(0), 1), (AggregationUnit::Cpu(1), 1)],
        "by event, then by CPU"
    );
    assert_eq!(aggregate(Aggregation::Core).0, ratios);
    let (metrics, units) = aggregate(Aggregation::Socket);
    assert_eq!(metrics, ["1.67 insn per cycle", "3.57 insn per cycle"]);
    assert_eq!(
        units[..2],
        [
            (AggregationUnit::Socket(0), 2),
            (AggregationUnit::Socket(0), 2)
        ],
        "by unit, then by event"
    );
    assert_eq!(aggregate(Aggregation::Node).0, metrics);
    assert_eq!(aggregate(Aggregation::Global).0, ["3.00 insn per cycle"]);
}

#[test]
fn privilege_levels_and_cgroups_are_not_mixed() {
    let at_level = |name: &str, config, flags| {
        CountedEvent::new(
            name,
            &Attr {
                flags,
                ..attr(EventType::HARDWARE, config)
            },
        )
    };
    let user = AttrFlags::EXCLUDE_KERNEL;
    let in_cgroup = |cgroup: &str, event: CountedEvent| CountedEvent {
        cgroup: Some(cgroup.to_owned()),
        ..event
    };
    let events = vec![
        at_level("cycles:u", 0, user),
        at_level("instructions", 1, AttrFlags::default()),
        at_level("instructions:u", 1, user),
        in_cgroup("a", at_level("cycles", 0, AttrFlags::default())),
        in_cgroup("b", at_level("instructions", 1, AttrFlags::default())),
        in_cgroup("a", at_level("instructions", 1, AttrFlags::default())),
    ];
    // 30 / 10 in user space, and 60 / 40 in cgroup a. The other instructions have no cycles of the same level and cgroup.
    let readings = [10, 20, 30, 40, 50, 60].map(|count| vec![reading(0, count)]);
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(Duration::from_secs(1), &readings);
    assert_eq!(
        metric_texts(&aggregator.table()),
        ["3.00 insn per cycle", "1.50 insn per cycle"]
    );
}

#[test]
fn rates_use_the_clock_of_the_same_cgroup() {
    let in_cgroup = |cgroup: &str, event: CountedEvent| CountedEvent {
        cgroup: Some(cgroup.to_owned()),
        ..event
    };
    let clock = event("task-clock", EventType::SOFTWARE, 1);
    let cycles = event("cycles", EventType::HARDWARE, 0);
    let events = vec![
        in_cgroup("a", clock.clone()),
        in_cgroup("b", cycles.clone()),
        in_cgroup("b", clock),
        in_cgroup("c", cycles),
    ];
    // In b, 300 cycles in 200 ns; c has no clock. The clocks are 100 and 200 ns of a second: 0.000 CPUs.
    let readings = [100, 300, 200, 400].map(|count| vec![reading(0, count)]);
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(Duration::from_secs(1), &readings);
    assert_eq!(
        metric_texts(&aggregator.table()),
        ["0.000 CPUs utilized", "1.500 GHz", "0.000 CPUs utilized"]
    );
}

#[test]
fn events_that_did_not_run_have_no_count_and_no_metric() {
    let mut events = default_events();
    events[5].supported = false;
    // The clock is 0, so the rates of page faults and branches have no value; without cycles, instructions have no metric either.
    let mut readings = [0, 5, 10, 20, 30, 40].map(|count| vec![reading(0, count)]);
    readings[2] = vec![multiplexed(0, 0, 1000, 0)];
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(Duration::from_secs(1), &readings);
    let table = aggregator.table();
    assert_eq!(
        values(&table),
        [Some(0.0), Some(5.0), None, Some(20.0), Some(30.0), None]
    );
    assert_eq!(table.rows[2].state, CountState::NotCounted);
    assert_eq!(table.rows[5].state, CountState::NotSupported);
    assert_eq!(
        metric_texts(&table),
        ["0.000 CPUs utilized"],
        "a quotient by 0 is no metric"
    );
}

#[test]
fn multiplexed_counters_are_scaled_separately() {
    let hardware = |name, config| event(name, EventType::HARDWARE, config);
    let readings = vec![
        multiplexed(0, 50, 100, 50),
        multiplexed(1, 10, 100, 100),
        multiplexed(2, 0, 100, 0),
    ];
    let aggregate = |unscaled| {
        let rules = AggregationRules {
            unscaled,
            ..AggregationRules::default()
        };
        let mut aggregator = Aggregator::new(vec![hardware("cycles", 0)], &rules);
        aggregator.add(Duration::from_secs(1), std::slice::from_ref(&readings));
        let table = aggregator.table();
        let CountState::Counted(value) = table.rows[0].state else {
            panic!("{table:?}")
        };
        (value.value, value.percent_running())
    };
    // 100 and 10 in 200 ns; the third counter never ran, so its 100 ns are extrapolated from the
    // others.
    let [scaled, unscaled] = [false, true].map(aggregate);
    assert_eq!(scaled, (165.0, 50.0));
    assert_eq!(unscaled.0, 60.0);
}

#[test]
fn runs_give_means_with_their_standard_error() {
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(default_events()[..2].to_vec(), &rules);
    for (millis, count) in [(10, 4), (20, 6), (30, 8)] {
        let readings = [
            vec![reading(0, millis * 1_000_000)],
            vec![reading(0, count)],
        ];
        aggregator.add(Duration::from_millis(millis), &readings);
    }
    let table = aggregator.table();
    // The clock's value is in milliseconds, `elapsed` below in nanoseconds.
    assert_eq!(
        (table.runs, values(&table)),
        (3, vec![Some(20.0), Some(6.0)])
    );
    let CountState::Counted(faults) = table.rows[1].state else {
        panic!("{table:?}")
    };
    // The standard error of the mean in percent of the mean: the standard deviation is 2 in 3 runs, and the mean is 6.
    let expected = 100.0 * 2.0 / 3.0_f64.sqrt() / 6.0;
    assert!((faults.error_percent - expected).abs() < 1e-9, "{faults:?}");
    assert_eq!(metric_texts(&table)[0], "1.000 CPUs utilized");
    assert_eq!(aggregator.elapsed().mean(), 20e6);
}

#[test]
fn boxes_of_one_pmu_are_one_row() {
    let mut events = vec![
        event("imc/reads/", EventType(20), 4),
        event("imc/reads/", EventType(21), 4),
    ];
    events[0].unit = "MiB".to_owned();
    events[0].scale = 0.5;
    events[1].merged_into = Some(0);
    let rules = AggregationRules::default();
    let mut aggregator = Aggregator::new(events, &rules);
    aggregator.add(
        Duration::from_secs(1),
        &[vec![reading(0, 6)], vec![reading(0, 8)]],
    );
    let table = aggregator.table();
    assert_eq!(values(&table), [Some(7.0)]);
}

/// Two cores of two threads each: one event per CPU, the other per core.
#[test]
fn events_per_core_have_rows_of_cores_among_rows_of_cpus() {
    let location = |core| CpuLocation {
        core,
        ..CpuLocation::default()
    };
    let rules = AggregationRules {
        by: Aggregation::Cpu,
        topology: (0..4).zip([0, 1, 0, 1].map(location)).collect(),
        ..AggregationRules::default()
    };
    let mut events = vec![
        event("cs", EventType::SOFTWARE, 3),
        event("cycles", EventType::HARDWARE, 0),
    ];
    events[1].per_core = true;
    let mut aggregator = Aggregator::new(events, &rules);
    let readings: Vec<CounterReading> = (0..4).map(|cpu| reading(cpu, 1 << cpu)).collect();
    aggregator.add(Duration::from_secs(1), &[readings.clone(), readings]);
    let table = aggregator.table();
    let rows = table.rows.iter().map(|row| (row.event, row.unit));
    let core = |core| AggregationUnit::Core {
        socket: location(core).socket,
        die: location(core).die,
        core,
    };
    let cpus = (0..4).map(|cpu| (0, AggregationUnit::Cpu(cpu)));
    let expected: Vec<(usize, AggregationUnit)> =
        cpus.chain([(1, core(0)), (1, core(1))]).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected);
    let counts = [1.0, 2.0, 4.0, 8.0, 5.0, 10.0].map(Some);
    assert_eq!(values(&table), counts);
}
