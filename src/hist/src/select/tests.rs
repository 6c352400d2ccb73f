//! The filter, as used by reports and by script, compared with a simple oracle.

use proptest::prelude::*;
use rperf_replay::{EventIndex, Order, WorldBuilder};
use rperf_resolve::{AddressContext, TimeIntervals};
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::{Comm, Encoder, Endian, Misc, RawRecord, Record, RecordKind};

use super::*;

/// The fields of a sample that filters use; `None` if not recorded.
#[derive(Debug, Clone)]
struct FilteredFields {
    time: Option<u64>,
    cpu: Option<u32>,
    pid: u32,
    tid: u32,
}

#[derive(Debug, Clone)]
struct FilterOptions {
    /// From and to, in seconds, inclusive.
    time: Option<(u64, u64)>,
    cpus: Option<Vec<u32>>,
    pids: Option<Vec<u32>>,
    tids: Option<Vec<u32>>,
    comms: Option<Vec<String>>,
}

const SECOND: u64 = 1_000_000_000;

fn fields() -> impl Strategy<Value = FilteredFields> {
    let time = prop::option::of(0..6_u64);
    (time, prop::option::of(0..3_u32), 1..4_u32, 1..4_u32).prop_map(|(time, cpu, pid, tid)| {
        FilteredFields {
            time: time.map(|time| time * SECOND),
            cpu,
            pid,
            tid,
        }
    })
}

fn options() -> impl Strategy<Value = FilterOptions> {
    let list = || prop::option::of(prop::collection::vec(0..4_u32, 1..3));
    let comms = prop::option::of(prop::collection::vec("t[0-3]", 1..3));
    let time = prop::option::of((1..6_u64).prop_flat_map(|start| (Just(start), start..7)));
    (time, list(), list(), list(), comms).prop_map(|(time, cpus, pids, tids, comms)| {
        FilterOptions {
            time,
            cpus,
            pids,
            tids,
            comms,
        }
    })
}

/// Reference implementation of [`SampleCriteria`]. The thread with id N is named tN. A sample that time or CPU exclude is
/// ignored; one that only its task excludes is filtered: it still counts for the total.
fn expected(fields: &FilteredFields, options: &FilterOptions) -> SampleTreatment {
    if let Some((start, end)) = options.time {
        // A sample without a time counts as later than all others, so it is after the interval.
        let Some(time) = fields.time else {
            return SampleTreatment::Ignored;
        };
        // As in perf, a recorded time of 0 passes every interval.
        if time != 0 && (time < start * SECOND || time > end * SECOND) {
            return SampleTreatment::Ignored;
        }
    }
    // A sample without a CPU passes the filter for CPUs.
    if let (Some(cpus), Some(cpu)) = (&options.cpus, fields.cpu)
        && !cpus.contains(&cpu)
    {
        return SampleTreatment::Ignored;
    }
    if options
        .pids
        .as_ref()
        .is_some_and(|pids| !pids.contains(&fields.pid))
    {
        return SampleTreatment::Filtered;
    }
    if options
        .tids
        .as_ref()
        .is_some_and(|tids| !tids.contains(&fields.tid))
    {
        return SampleTreatment::Filtered;
    }
    let name = format!("t{}", fields.tid);
    match options
        .comms
        .as_ref()
        .is_some_and(|comms| !comms.contains(&name))
    {
        true => SampleTreatment::Filtered,
        false => SampleTreatment::Counted,
    }
}

/// The World (the processes at a time): each of the processes 1 to 3 has the threads 1 to 3, named as in [`expected`].
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
            builder.push(first, &raw).expect("a valid record");
        }
    }
    builder.finish()
}

fn filter(options: &FilterOptions) -> SampleCriteria {
    let time = options.time.map(|(start, end)| {
        let text = format!("{start},{end}");
        let (boundaries, relative) = (None, false);
        TimeIntervals::parse(&text, boundaries, relative).expect("an interval")
    });
    SampleCriteria {
        intervals: time,
        cpus: options.cpus.clone(),
        pids: options.pids.clone(),
        tids: options.tids.clone(),
        comms: options.comms.clone(),
        ..SampleCriteria::default()
    }
}

fn sample(fields: &FilteredFields) -> Sample<'static> {
    Sample {
        wire: rperf_wire::SampleRecord {
            time: fields.time,
            ..rperf_wire::SampleRecord::default()
        },
        event: EventIndex(0),
        order: Order::MAX,
        misc: Misc(0),
        pid: fields.pid,
        tid: fields.tid,
        cpu: fields.cpu.unwrap_or(u32::MAX),
        period: 1,
        body: &[],
    }
}

proptest! {
    #[test]
    fn reports_and_script_select_the_same_samples(fields in fields(), options in options()) {
        let (world, files) = (world(), MemoryFiles::default());
        let build_id_cache = None;
        let resolver = Resolver::new(&world, &files, SearchPaths::new(build_id_cache));
        let (filter, sample) = (filter(&options), sample(&fields));
        // Reports use `sample`, script uses `accepts`.
        let treatment = filter.sample(&world, &sample);
        prop_assert_eq!(treatment, expected(&fields, &options));
        prop_assert_eq!(filter.accepts(&sample, &resolver), treatment == SampleTreatment::Counted);
        let frame = resolver.locate(AddressContext::of(&sample), sample.cpu_mode(), 0);
        // None of the options filters locations.
        prop_assert_eq!(filter.frame(&resolver, &frame), SampleTreatment::Counted);
        prop_assert_eq!(filter.clone().non_empty().is_none(), {
            let FilterOptions { time, cpus, pids, tids, comms } = &options;
            time.is_none() && cpus.is_none() && pids.is_none() && tids.is_none() && comms.is_none()
        });
    }
}
