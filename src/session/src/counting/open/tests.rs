//! Counting over a kernel whose counters say what a test wants.

use std::cell::Cell as Shared;
use std::time::Duration;

use rperf_count::{Aggregation, CpuPlace, Event, Grouping, Sheet, State, Table, Topology};
use rperf_events::{Catalogue, parse};
use rperf_wire::{EventType, ReadFormat};

use super::*;

/// CPUs of the made-up machine: two sockets of two cores.
const CPUS: u32 = 4;
/// Counters of each.
const SLOTS: usize = 4;

/// A kernel with a PMU of [`SLOTS`] counters: cycles are 1000, 2000, … by CPU, every other event of hardware has as many
/// for each cycle as its number says.
#[derive(Debug, Default)]
struct Fake {
    /// Whether the kernel may be counted in.
    user_only: bool,
    /// Whether it is older than `exclude_guest`.
    old: bool,
    /// Whether its PMU has nothing that `config1` would choose.
    plain: bool,
    /// Whether it opens tracepoints in no group.
    alone: bool,
    /// Events that share the counters: beyond [`SLOTS`] each has its turn.
    opened: Shared<usize>,
}

/// A counter, with those in its group.
#[derive(Debug)]
struct FakeCounter {
    cpu: i32,
    config: u64,
    members: std::cell::RefCell<Vec<u64>>,
}

impl Kernel for Fake {
    type Counter = FakeCounter;

    fn open(
        &self,
        attr: &Attr,
        place: Where<'_>,
        group: Option<&FakeCounter>,
    ) -> io::Result<FakeCounter> {
        let refused = |number| Err(io::Error::from_raw_os_error(number));
        let counter = FakeCounter {
            cpu: place.observed.cpu,
            config: attr.config,
            members: Vec::new().into(),
        };
        if attr.kind == EventType::TRACEPOINT {
            match group {
                Some(_) if self.alone => return refused(libc::EINVAL),
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
        if self.old && attr.flags.contains(AttrFlags::EXCLUDE_GUEST) {
            return refused(libc::EINVAL);
        }
        if self.plain && attr.config1 != 0 {
            return refused(libc::EINVAL);
        }
        if let Some(leader) = group {
            let mut members = leader.members.borrow_mut();
            if members.len() + 1 == SLOTS {
                return refused(libc::EINVAL);
            }
            members.push(attr.config);
        }
        if place.observed.cpu <= 0 {
            self.opened.set(self.opened.get() + 1);
        }
        Ok(counter)
    }

    fn read(&self, counter: &FakeCounter, format: ReadFormat) -> io::Result<Vec<Reading>> {
        let members = counter.members.borrow();
        assert!(
            members.is_empty() || format.contains(ReadFormat::GROUP),
            "a group is read at once"
        );
        let configs = std::iter::once(counter.config).chain(members.iter().copied());
        let turns = self.opened.get().div_ceil(SLOTS).max(1) as u64;
        let cycles = 1000 * u64::from(counter.cpu.max(0).cast_unsigned() + 1);
        let reading = |config: u64| Reading {
            value: cycles * (config + 1) / turns,
            enabled: Some(12_000),
            running: Some(12_000 / turns),
            ..Reading::default()
        };
        Ok(configs.map(reading).collect())
    }

    fn number(&self, _counter: &FakeCounter) -> i32 {
        3
    }
}

/// What was told, as far as tests ask.
#[derive(Debug, Default)]
struct Heard(Vec<String>);

impl Watch for Heard {
    fn tell(&mut self, happened: Happened<'_>) {
        match happened {
            Happened::NotSupported {
                event,
                grouped,
                refused,
            } => {
                self.0.push(format!("{event} grouped={grouped}"));
                let part = refused.map(|part| format!("refused {part}"));
                self.0.extend(part);
            }
            Happened::GroupBroken { leader } => self.0.push(format!("broken {leader}")),
            Happened::UserOnly { event, .. } => self.0.push(format!("user {event}")),
            Happened::LeftOut { field } => self.0.push(format!("without {field}")),
            _ => {}
        }
    }
}

/// Opens `events` and reads them.
fn counted(kernel: Fake, events: &str, on_cpus: bool) -> (Readings, Vec<String>) {
    let specs = parse(events, &Catalogue::default()).unwrap();
    let (opened, heard) = opened(kernel, specs, on_cpus);
    (opened.read(), heard)
}

/// Opens events on all CPUs, or for a task.
fn opened(kernel: Fake, specs: Vec<EventSpec>, on_cpus: bool) -> (Opened<Fake>, Vec<String>) {
    let wanted: Vec<CountEvent> = specs
        .into_iter()
        .map(|spec| CountEvent {
            spec,
            cgroup: None,
            cpus: None,
        })
        .collect();
    let places = Places {
        cpus: match on_cpus {
            true => (0..CPUS.cast_signed()).collect(),
            false => vec![-1],
        },
        tasks: vec![if on_cpus { -1 } else { 7 }],
    };
    let opening = Opening {
        places: &places,
        cgroups: &BTreeMap::new(),
        sysctl: &Sysctl::new("/nowhere"),
        inherit: true,
        on_exec: false,
        on_cpus,
        bundles: true,
    };
    let mut heard = Heard::default();
    let opened = Opened::open(kernel, &wanted, &opening, &mut heard).unwrap();
    (opened, heard.0)
}

fn table(readings: &Readings, by: Aggregation) -> Table {
    let place = |cpu: u32| {
        let place = CpuPlace {
            socket: i32::from(cpu >= 2),
            die: 0,
            core: (cpu % 2).cast_signed(),
            ..CpuPlace::default()
        };
        (cpu, place)
    };
    let grouping = Grouping {
        by,
        topology: (0..CPUS).map(place).collect::<Topology>(),
        unscaled: false,
    };
    let opened = readings.events.iter().zip(&readings.supported);
    let events = opened.map(|(spec, supported)| Event {
        supported: *supported,
        ..Event::new(&spec.name, &spec.attr)
    });
    let mut sheet = Sheet::new(events.collect(), &grouping);
    sheet.add(Duration::from_secs(1), &readings.cells);
    sheet.table()
}

fn values(table: &Table) -> Vec<f64> {
    let value = |row: &rperf_count::Row| match row.state {
        State::Counted(value) => value.value,
        _ => f64::NAN,
    };
    table.rows.iter().map(value).collect()
}

fn metrics(table: &Table) -> Vec<String> {
    let metrics = table.rows.iter().flat_map(|row| &row.metrics);
    metrics
        .map(|metric| format!("{:.2} {}", metric.value, metric.unit))
        .collect()
}

#[test]
fn every_aggregation_divides_a_units_own_counts() {
    for events in ["cycles,instructions", "{cycles,instructions}"] {
        let (readings, heard) = counted(Fake::default(), events, true);
        assert_eq!(heard, [""; 0]);
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
fn events_that_take_turns_are_scaled() {
    let events = "cycles,instructions,branches,branch-misses,cache-references,bus-cycles";
    let (readings, _) = counted(Fake::default(), events, false);
    let table = table(&readings, Aggregation::Global);
    assert_eq!(
        values(&table),
        [1000.0, 2000.0, 5000.0, 6000.0, 3000.0, 7000.0]
    );
    let State::Counted(value) = table.rows[0].state else {
        panic!("{table:?}")
    };
    assert_eq!(value.percent_running(), 50.0);
}

#[test]
fn the_part_that_a_counter_is_refused_for_is_told() {
    let kernel = Fake {
        plain: true,
        ..Fake::default()
    };
    let (readings, heard) = counted(kernel, "cycles/config1=7/,instructions", false);
    assert_eq!(
        heard,
        [
            "without exclude_guest",
            "cycles/config1=7/ grouped=false",
            "refused config1 0x7"
        ]
    );
    assert_eq!(readings.supported, [false, true]);
}

#[test]
fn what_the_machine_lacks_is_marked_and_the_rest_counted() {
    let (readings, heard) = counted(Fake::default(), "{LLC-loads,cycles,instructions}", true);
    assert_eq!(heard, ["LLC-loads grouped=false"]);
    let table = table(&readings, Aggregation::Global);
    assert_eq!(table.rows[0].state, State::NotSupported);
    assert_eq!(values(&table)[1..], [10_000.0, 20_000.0]);
    assert_eq!(
        metrics(&table),
        ["2.00 insn per cycle"],
        "the first that there is leads"
    );
}

const FIVE: &str = "{cycles,instructions,branches,branch-misses,bus-cycles}";

#[test]
fn a_group_that_never_fits_loses_what_is_too_much() {
    let (readings, heard) = counted(Fake::default(), FIVE, false);
    assert_eq!(heard, ["bus-cycles grouped=true"]);
    assert_eq!(readings.supported, [true, true, true, true, false]);
    let shown = values(&table(&readings, Aggregation::Global));
    assert_eq!(shown[..4], [1000.0, 2000.0, 5000.0, 6000.0]);
}

#[test]
fn a_weak_group_is_broken_up() {
    let (readings, heard) = counted(Fake::default(), &format!("{FIVE}:W"), false);
    assert_eq!(heard, ["broken cycles"]);
    assert_eq!(readings.supported, [true; 5]);
}

#[test]
fn who_may_not_see_the_kernel_counts_user_space() {
    let kernel = Fake {
        user_only: true,
        ..Fake::default()
    };
    let (readings, heard) = counted(kernel, "cycles,instructions:u", false);
    assert_eq!(heard, ["user cycles:u"]);
    let names: Vec<&str> = readings
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["cycles:u", "instructions:u"]);
}

#[test]
fn an_old_kernel_is_asked_for_less() {
    let kernel = Fake {
        old: true,
        ..Fake::default()
    };
    let (readings, heard) = counted(kernel, "cycles", false);
    assert_eq!(heard, ["without exclude_guest"]);
    assert_eq!(readings.supported, [true]);
}

/// Cycles, and tracepoints with the numbers from 0 on.
fn with_tracepoints(number: u64) -> Vec<EventSpec> {
    let mut specs = parse("cycles", &Catalogue::default()).unwrap();
    let clock = specs[0].clone();
    specs.extend((0..number).map(|config| {
        let mut spec = clock.clone();
        (spec.attr.kind, spec.attr.config) = (EventType::TRACEPOINT, config);
        spec
    }));
    specs
}

#[test]
fn many_tracepoints_of_whole_cpus_are_switched_and_read_together() {
    for (number, on_cpus, alone, requests) in [
        (600, true, false, 1 + 3),
        (16, true, false, 1 + 1),
        (15, true, false, 1 + 15),
        (600, false, false, 1 + 600),
        (16, true, true, 1 + 16),
    ] {
        let kernel = Fake {
            alone,
            ..Fake::default()
        };
        let (opened, heard) = opened(kernel, with_tracepoints(number), on_cpus);
        assert_eq!(heard, [""; 0]);
        let places = if on_cpus { CPUS as usize } else { 1 };
        let asked = Shared::new(0);
        let count = |_: &FakeCounter| {
            asked.set(asked.get() + 1);
            Ok(())
        };
        opened.each("enable", count).unwrap();
        assert_eq!(asked.get(), requests * places, "{number} {on_cpus}");
        let readings = opened.read();
        assert!(readings.supported.iter().all(|supported| *supported));
        let last = |cells: &Vec<Cell>| cells.last().map(|cell| cell.counts.value);
        let values: Vec<Option<u64>> = readings.cells.iter().skip(1).map(last).collect();
        let expected = (0..number).map(|config| Some(1000 * places as u64 * (config + 1)));
        assert_eq!(values, expected.collect::<Vec<_>>());
    }
}
