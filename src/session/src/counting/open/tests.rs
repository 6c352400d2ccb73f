//! Counting with a fake kernel.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use rperf_count::{
    Aggregation, AggregationRules, Aggregator, CountState, CountTable, CountedEvent, CpuLocation,
    Topology,
};
use rperf_events::{Catalogue, parse};
use rperf_wire::{EventType, ReadFormat};

use super::*;

/// CPUs of the fake machine: two sockets of two cores.
const CPUS: u32 = 4;
/// Hardware counters per CPU.
const SLOTS: usize = 4;

/// A kernel with a PMU of [`SLOTS`] counters. The count of cycles is 1000 on CPU 0 and for a task, 2000 on CPU 1, and so on. The
/// count of an event with `config` N is N + 1 times the count of cycles.
#[derive(Debug, Default)]
struct FakeKernel {
    /// Whether counting in the kernel is forbidden.
    user_only: bool,
    lacks_exclude_guest: bool,
    lacks_config1: bool,
    /// Whether it refuses a tracepoint as a member of a group.
    refuses_members: bool,
    /// Number of open hardware events per CPU; more than [`SLOTS`] are multiplexed.
    opened: Cell<usize>,
}

/// A counter, with its group members.
#[derive(Debug)]
struct FakeCounter {
    cpu: i32,
    config: u64,
    /// The configs of the members of the group that it leads.
    members: RefCell<Vec<u64>>,
}

impl CounterKernel for FakeKernel {
    type Counter = FakeCounter;

    fn open(
        &self,
        attr: &Attr,
        target: CounterTarget<'_>,
        leader: Option<&FakeCounter>,
    ) -> io::Result<FakeCounter> {
        let refused = |number| Err(io::Error::from_raw_os_error(number));
        let counter = FakeCounter {
            cpu: target.observed.cpu,
            config: attr.config,
            members: Vec::new().into(),
        };
        if attr.kind == EventType::TRACEPOINT {
            match leader {
                Some(_) if self.refuses_members => return refused(libc::EINVAL),
                Some(leader) => leader.members.borrow_mut().push(attr.config),
                None => {}
            }
            return Ok(counter);
        }
        if attr.kind != EventType::HARDWARE {
            return refused(libc::ENOENT);
        }
        if self.user_only && !attr.flags.contains(AttrFlags::EXCLUDE_KERNEL) {
            return refused(libc::EACCES);
        }
        if self.lacks_exclude_guest && attr.flags.contains(AttrFlags::EXCLUDE_GUEST) {
            return refused(libc::EINVAL);
        }
        if self.lacks_config1 && attr.config1 != 0 {
            return refused(libc::EINVAL);
        }
        if let Some(leader) = leader {
            let mut members = leader.members.borrow_mut();
            if members.len() + 1 == SLOTS {
                return refused(libc::EINVAL);
            }
            members.push(attr.config);
        }
        // `opened` includes an event on all CPUs once, for CPU 0. The counter of a task has CPU -1.
        if target.observed.cpu <= 0 {
            self.opened.set(self.opened.get() + 1);
        }
        Ok(counter)
    }

    fn read(&self, counter: &FakeCounter, format: ReadFormat) -> io::Result<Vec<CounterValue>> {
        let members = counter.members.borrow();
        assert!(
            members.is_empty() || format.contains(ReadFormat::GROUP),
            "a group is read at once"
        );
        let configs = std::iter::once(counter.config).chain(members.iter().copied());
        let multiplex_factor = self.opened.get().div_ceil(SLOTS).max(1) as u64;
        let cycles = 1000 * u64::from(counter.cpu.max(0).cast_unsigned() + 1);
        let reading = |config: u64| CounterValue {
            value: cycles * (config + 1) / multiplex_factor,
            enabled: Some(12_000),
            running: Some(12_000 / multiplex_factor),
            ..CounterValue::default()
        };
        Ok(configs.map(reading).collect())
    }

    fn number(&self, _counter: &FakeCounter) -> i32 {
        // A descriptor, for messages only.
        3
    }
}

/// The notices that the tests need.
#[derive(Debug, Default)]
struct ReportedNotices(Vec<String>);

impl SessionObserver for ReportedNotices {
    fn on_event(&mut self, notice: SessionNotice<'_>) {
        match notice {
            SessionNotice::NotSupported {
                event,
                grouped,
                refused,
            } => {
                self.0.push(format!("{event} grouped={grouped}"));
                let part = refused.map(|part| format!("refused {part}"));
                self.0.extend(part);
            }
            SessionNotice::GroupBroken { leader } => self.0.push(format!("broken {leader}")),
            SessionNotice::UserOnly { event, .. } => self.0.push(format!("user {event}")),
            SessionNotice::LeftOut { field } => self.0.push(format!("without {field}")),
            _ => {}
        }
    }
}

/// Values of `on_cpus`.
const ON_CPUS: bool = true;
const FOR_TASK: bool = false;

/// Opens `events` and reads them.
fn open_and_read(kernel: FakeKernel, events: &str, on_cpus: bool) -> (EventReadings, Vec<String>) {
    let specs = parse(events, &Catalogue::default()).unwrap();
    let (opened, reported) = opened(kernel, specs, on_cpus);
    (opened.read(), reported)
}

/// Opens events on all CPUs, or for a task.
fn opened(
    kernel: FakeKernel,
    specs: Vec<EventSpec>,
    on_cpus: bool,
) -> (OpenCounters<FakeKernel>, Vec<String>) {
    let events: Vec<CountEvent> = specs
        .into_iter()
        .map(|spec| CountEvent {
            spec,
            cgroup: None,
            cpus: None,
        })
        .collect();
    let cpu_tasks = CpuTasks {
        cpus: match on_cpus {
            true => (0..CPUS.cast_signed()).collect(),
            false => vec![-1],
        },
        tasks: vec![if on_cpus { -1 } else { 7 }],
        side_band_cpus: Vec::new(),
    };
    let opening = OpenParameters {
        cpu_tasks: &cpu_tasks,
        cgroups: &BTreeMap::new(),
        sysctl: &Sysctl::new("/nowhere"),
        inherit: true,
        on_exec: false,
        on_cpus,
        counts_programs: false,
        all_cpus: &(0..CPUS).collect(),
        // Tracepoints of CPUs may be opened in bundles: groups that are enabled and read at once.
        bundles: true,
    };
    let mut reported = ReportedNotices::default();
    let opened = OpenCounters::open(kernel, &events, &opening, &mut reported).unwrap();
    (opened, reported.0)
}

/// BPF programs sum up the counts of an event with `:b`, from counters on all CPUs.
#[test]
fn summed_events_of_a_task_are_open_on_all_cpus_once() {
    let mut specs = parse("cycles:b,cycles,instructions:b", &Catalogue::default()).unwrap();
    // The same event twice, as if it were requested for two cgroups.
    specs.insert(1, specs[0].clone());
    let (opened, _) = opened(FakeKernel::default(), specs, FOR_TASK);
    let places = opened.events.iter().map(|event| {
        let cpus = event.counters.iter().map(|counter| counter.cpu);
        (event.summed_from, cpus.collect::<Vec<_>>())
    });
    let all: Vec<Option<u32>> = (0..CPUS).map(Some).collect();
    let expected = [
        (Some(0), all.clone()),
        // Uses the counters of the equal event before it.
        (Some(0), Vec::new()),
        (None, vec![None]),
        (Some(3), all),
    ];
    assert_eq!(places.collect::<Vec<_>>(), expected);
    let inherited = opened.events.iter();
    let inherited = inherited.map(|event| event.attr.flags.contains(AttrFlags::INHERIT));
    assert_eq!(inherited.collect::<Vec<_>>(), [false, false, true, false]);
}

#[test]
fn events_of_whole_cpus_need_no_bpf_programs() {
    let specs = parse("cycles:b", &Catalogue::default()).unwrap();
    let (opened, _) = opened(FakeKernel::default(), specs, ON_CPUS);
    assert_eq!(opened.events[0].summed_from, None);
}

fn table(readings: &EventReadings, by: Aggregation) -> CountTable {
    let located = |cpu: u32| {
        let location = CpuLocation {
            socket: i32::from(cpu >= 2),
            die: 0,
            core: (cpu % 2).cast_signed(),
            ..CpuLocation::default()
        };
        (cpu, location)
    };
    let grouping = AggregationRules {
        by,
        topology: (0..CPUS).map(located).collect::<Topology>(),
        unscaled: false,
    };
    let events = readings.events.iter().zip(&readings.supported);
    let events = events.map(|(spec, supported)| CountedEvent {
        supported: *supported,
        ..CountedEvent::new(&spec.name, &spec.attr)
    });
    let mut aggregator = Aggregator::new(events.collect(), &grouping);
    aggregator.add(Duration::from_secs(1), &readings.cells);
    aggregator.table()
}

fn values(table: &CountTable) -> Vec<f64> {
    let value = |row: &rperf_count::CountRow| match row.state {
        CountState::Counted(value) => value.value,
        _ => f64::NAN,
    };
    table.rows.iter().map(value).collect()
}

fn metrics(table: &CountTable) -> Vec<String> {
    let metrics = table.rows.iter().flat_map(|row| &row.metrics);
    metrics
        .map(|metric| format!("{:.2} {}", metric.value, metric.unit))
        .collect()
}

#[test]
fn metrics_of_each_unit_are_of_its_own_counts() {
    for events in ["cycles,instructions", "{cycles,instructions}"] {
        let (readings, reported) = open_and_read(FakeKernel::default(), events, ON_CPUS);
        assert_eq!(reported, [""; 0]);
        for (by, units) in [
            (Aggregation::Global, 1),
            (Aggregation::Cpu, 4),
            (Aggregation::Core, 4),
            (Aggregation::Socket, 2),
        ] {
            let table = table(&readings, by);
            assert_eq!(
                metrics(&table),
                vec!["2.00 insn per cycle"; units],
                "{events} {by:?}"
            );
        }
        let sockets = table(&readings, Aggregation::Socket);
        assert_eq!(values(&sockets), [3000.0, 6000.0, 7000.0, 14_000.0]);
    }
}

#[test]
fn multiplexed_events_are_scaled() {
    let events = "cycles,instructions,branches,branch-misses,cache-references,bus-cycles";
    let (readings, _) = open_and_read(FakeKernel::default(), events, FOR_TASK);
    let table = table(&readings, Aggregation::Global);
    assert_eq!(
        values(&table),
        [1000.0, 2000.0, 5000.0, 6000.0, 3000.0, 7000.0]
    );
    let CountState::Counted(value) = table.rows[0].state else {
        panic!("{table:?}")
    };
    assert_eq!(value.percent_running(), 50.0);
}

#[test]
fn the_refused_part_of_a_counter_is_reported() {
    let kernel = FakeKernel {
        lacks_config1: true,
        ..FakeKernel::default()
    };
    let (readings, reported) = open_and_read(kernel, "cycles/config1=7/,instructions", FOR_TASK);
    assert_eq!(
        reported,
        [
            // This flag is left out first, as kernels that refuse it report the same error.
            "without exclude_guest",
            "cycles/config1=7/ grouped=false",
            "refused config1 0x7"
        ]
    );
    assert_eq!(readings.supported, [false, true]);
}

#[test]
fn unsupported_events_are_marked_and_the_rest_counted() {
    let (readings, reported) = open_and_read(
        FakeKernel::default(),
        "{LLC-loads,cycles,instructions}",
        ON_CPUS,
    );
    assert_eq!(reported, ["LLC-loads grouped=false"]);
    let table = table(&readings, Aggregation::Global);
    assert_eq!(table.rows[0].state, CountState::NotSupported);
    assert_eq!(values(&table)[1..], [10_000.0, 20_000.0]);
    assert_eq!(
        metrics(&table),
        ["2.00 insn per cycle"],
        "the first supported event leads"
    );
}

const FIVE_EVENTS: &str = "{cycles,instructions,branches,branch-misses,bus-cycles}";

#[test]
fn a_group_that_never_fits_loses_its_last_members() {
    let (readings, reported) = open_and_read(FakeKernel::default(), FIVE_EVENTS, FOR_TASK);
    assert_eq!(reported, ["bus-cycles grouped=true"]);
    assert_eq!(readings.supported, [true, true, true, true, false]);
    let counts = values(&table(&readings, Aggregation::Global));
    assert_eq!(counts[..4], [1000.0, 2000.0, 5000.0, 6000.0]);
}

#[test]
fn a_weak_group_is_broken_up() {
    let (readings, reported) =
        open_and_read(FakeKernel::default(), &format!("{FIVE_EVENTS}:W"), FOR_TASK);
    assert_eq!(reported, ["broken cycles"]);
    assert_eq!(readings.supported, [true; 5]);
}

#[test]
fn unprivileged_users_count_user_space() {
    let kernel = FakeKernel {
        user_only: true,
        ..FakeKernel::default()
    };
    let (readings, reported) = open_and_read(kernel, "cycles,instructions:u", FOR_TASK);
    assert_eq!(reported, ["user cycles:u"]);
    let names: Vec<&str> = readings
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["cycles:u", "instructions:u"]);
}

#[test]
fn old_kernels_get_older_attrs() {
    for (events, number) in [("cycles", 1), ("{cycles,instructions}", 2)] {
        let kernel = FakeKernel {
            lacks_exclude_guest: true,
            ..FakeKernel::default()
        };
        let (readings, reported) = open_and_read(kernel, events, FOR_TASK);
        assert_eq!(reported, vec!["without exclude_guest"; number]);
        assert_eq!(readings.supported, vec![true; number]);
    }
}

/// Returns cycles, and `number` tracepoints with the configs 0, 1, and so on.
fn with_tracepoints(number: u64) -> Vec<EventSpec> {
    let mut specs = parse("cycles", &Catalogue::default()).unwrap();
    let cycles = specs[0].clone();
    specs.extend((0..number).map(|config| {
        let mut spec = cycles.clone();
        (spec.attr.kind, spec.attr.config) = (EventType::TRACEPOINT, config);
        spec
    }));
    specs
}

#[test]
fn many_tracepoints_are_enabled_and_read_as_groups_on_cpus_only() {
    let refuses = true;
    // The expected ioctls per CPU or for the task: one for cycles, and one for each bundle or single tracepoint. Bundles are used
    // for 16 tracepoints or more on CPUs, and have at most 256.
    for (number, on_cpus, refuses_members, ioctls) in [
        (600, ON_CPUS, !refuses, 1 + 3),
        (16, ON_CPUS, !refuses, 1 + 1),
        (15, ON_CPUS, !refuses, 1 + 15),
        (600, FOR_TASK, !refuses, 1 + 600),
        (16, ON_CPUS, refuses, 1 + 16),
    ] {
        let kernel = FakeKernel {
            refuses_members,
            ..FakeKernel::default()
        };
        let (opened, reported) = opened(kernel, with_tracepoints(number), on_cpus);
        assert_eq!(reported, [""; 0]);
        let counters = if on_cpus { CPUS as usize } else { 1 };
        let ioctl_count = Cell::new(0);
        let count = |_: &FakeCounter| {
            ioctl_count.set(ioctl_count.get() + 1);
            Ok(())
        };
        opened.for_each_leader("enable", count).unwrap();
        assert_eq!(ioctl_count.get(), ioctls * counters, "{number} {on_cpus}");
        let readings = opened.read();
        assert!(readings.supported.iter().all(|supported| *supported));
        // The last CPU counts 1000 cycles times the number of CPUs; a task counts 1000.
        let last = |cells: &Vec<CounterReading>| cells.last().map(|cell| cell.counts.value);
        let values: Vec<Option<u64>> = readings.cells.iter().skip(1).map(last).collect();
        let expected = (0..number).map(|config| Some(1000 * counters as u64 * (config + 1)));
        assert_eq!(values, expected.collect::<Vec<_>>());
    }
}
