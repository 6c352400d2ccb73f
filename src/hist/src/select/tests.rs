//! The one filter, as reports and as lines of script ask it, against a slow and obvious oracle.

use proptest::prelude::*;
use rperf_replay::{EventIndex, Order, WorldBuilder};
use rperf_resolve::{Intervals, Place};
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::{Comm, Encoder, Endian, Misc, RawRecord, Record, RecordKind};

use super::*;

/// A sample, as far as filters look at it; `None` for what wasn't recorded.
#[derive(Debug, Clone)]
struct Taken {
    time: Option<u64>,
    cpu: Option<u32>,
    pid: u32,
    tid: u32,
}

/// What is asked for.
#[derive(Debug, Clone)]
struct Asked {
    /// From and to, in seconds, both included.
    time: Option<(u64, u64)>,
    cpus: Option<Vec<u32>>,
    pids: Option<Vec<u32>>,
    tids: Option<Vec<u32>>,
    comms: Option<Vec<String>>,
}

const SECOND: u64 = 1_000_000_000;

fn taken() -> impl Strategy<Value = Taken> {
    let time = prop::option::of(0..6_u64);
    (time, prop::option::of(0..3_u32), 1..4_u32, 1..4_u32).prop_map(|(time, cpu, pid, tid)| Taken {
        time: time.map(|time| time * SECOND),
        cpu,
        pid,
        tid,
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    let list = || prop::option::of(prop::collection::vec(0..4_u32, 1..3));
    let comms = prop::option::of(prop::collection::vec("t[0-3]", 1..3));
    let time = prop::option::of((1..6_u64).prop_flat_map(|start| (Just(start), start..7)));
    (time, list(), list(), list(), comms).prop_map(|(time, cpus, pids, tids, comms)| Asked {
        time,
        cpus,
        pids,
        tids,
        comms,
    })
}

/// Sentence by sentence what the documentation of [`Filter`] says. Thread N is called tN.
fn expected(taken: &Taken, asked: &Asked) -> Choice {
    if let Some((start, end)) = asked.time {
        // Without a time: after all others.
        let Some(time) = taken.time else {
            return Choice::Ignored;
        };
        // As in perf, a time of 0 is no time, and passes.
        if time != 0 && (time < start * SECOND || time > end * SECOND) {
            return Choice::Ignored;
        }
    }
    // A sample without a CPU passes.
    if let (Some(cpus), Some(cpu)) = (&asked.cpus, taken.cpu)
        && !cpus.contains(&cpu)
    {
        return Choice::Ignored;
    }
    if asked
        .pids
        .as_ref()
        .is_some_and(|pids| !pids.contains(&taken.pid))
    {
        return Choice::Filtered;
    }
    if asked
        .tids
        .as_ref()
        .is_some_and(|tids| !tids.contains(&taken.tid))
    {
        return Choice::Filtered;
    }
    let name = format!("t{}", taken.tid);
    match asked
        .comms
        .as_ref()
        .is_some_and(|comms| !comms.contains(&name))
    {
        true => Choice::Filtered,
        false => Choice::Counted,
    }
}

fn world() -> World {
    let mut builder = WorldBuilder::new(Endian::NATIVE);
    for pid in 1..4 {
        for tid in 1..4 {
            let name = format!("t{tid}");
            let comm = name.as_bytes();
            let mut body = Vec::new();
            let mut encoder = Encoder::new(&mut body, Endian::NATIVE);
            Record::Comm(Comm { pid, tid, comm }).encode_body(&mut encoder);
            let raw = RawRecord {
                kind: RecordKind::COMM,
                misc: Misc(0),
                body: &body,
            };
            let first = Order {
                time: 0,
                position: 0,
            };
            builder.push(first, &raw).expect("a sound record");
        }
    }
    builder.finish()
}

fn filter(asked: &Asked) -> Filter {
    let time = asked.time.map(|(start, end)| {
        let text = format!("{start},{end}");
        Intervals::parse(&text, None, false).expect("an interval")
    });
    Filter {
        intervals: time,
        cpus: asked.cpus.clone(),
        pids: asked.pids.clone(),
        tids: asked.tids.clone(),
        comms: asked.comms.clone(),
        ..Filter::default()
    }
}

fn sample(taken: &Taken) -> Sample<'static> {
    Sample {
        wire: rperf_wire::Sample {
            time: taken.time,
            ..rperf_wire::Sample::default()
        },
        event: EventIndex(0),
        order: Order::MAX,
        misc: Misc(0),
        pid: taken.pid,
        tid: taken.tid,
        cpu: taken.cpu.unwrap_or(u32::MAX),
        period: 1,
        body: &[],
    }
}

proptest! {
    #[test]
    fn reports_and_lines_take_the_same_samples(taken in taken(), asked in asked()) {
        let (world, files) = (world(), MemoryFiles::default());
        let resolver = Resolver::new(&world, &files, SearchPaths::new(None));
        let (filter, sample) = (filter(&asked), sample(&taken));
        let choice = filter.sample(&world, &sample);
        prop_assert_eq!(choice, expected(&taken, &asked));
        prop_assert_eq!(filter.accepts(&sample, &resolver), choice == Choice::Counted);
        let frame = resolver.locate(Place::of(&sample), sample.cpu_mode(), 0);
        // Places are not asked about.
        prop_assert_eq!(filter.place(&resolver, &frame), Choice::Counted);
        prop_assert_eq!(filter.clone().non_empty().is_none(), {
            let Asked { time, cpus, pids, tids, comms } = &asked;
            time.is_none() && cpus.is_none() && pids.is_none() && tids.is_none() && comms.is_none()
        });
    }
}
