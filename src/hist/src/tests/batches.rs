//! Whole recordings: stacks resolved (named) after each sample or all at the end, and the latencies of branches.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use rperf_perfdata::PerfData;
use rperf_replay::{Order, Replay, Sample, World};
use rperf_resolve::{Frame, Resolver};
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::SampleType;

use crate::{
    CountedItems, Direction, GraphForm, GraphOptions, Histogram, HistogramOptions, NamingContext,
    NoPayloads, Parallelism, RecordingInfo, SampleTreatment, SelectSamples, parse_fields,
};

/// Accepts all samples.
const EVERY_SAMPLE: Option<&dyn SelectSamples> = None;

/// The histogram of each event of a recording, of the samples that `select` accepts. A worker resolves the stacks that it has
/// collected when they take more than `max_bytes` bytes.
fn histograms(
    data: &PerfData<'_>,
    options: &HistogramOptions,
    select: Option<&dyn SelectSamples>,
    max_bytes: usize,
) -> Vec<Histogram> {
    let replay = Replay::open(data).expect("a valid recording");
    // No object files: functions are unknown.
    let files = MemoryFiles::default();
    let build_id_cache = None;
    let resolver = Resolver::new(replay.world(), &files, SearchPaths::new(build_id_cache));
    let events = data.events();
    let has_chains = events
        .iter()
        .map(|event| event.attr.sample_type.contains(SampleType::CALLCHAIN));
    let source = RecordingInfo {
        endian: data.endian(),
        callchains: has_chains.collect(),
        inlines: events.iter().map(|_| false).collect(),
        groups: (0..events.len()).map(|event| vec![event]).collect(),
        sockets: Vec::new(),
        payloads: &NoPayloads,
    };
    let threads = NonZeroUsize::new(2).expect("not zero");
    let mut naming = NamingContext::new(options, &source, &resolver, threads);
    naming.max_bytes = max_bytes;
    let samples = replay.fold(threads, || naming.sample_fold(select));
    let folded = samples.finish(threads);
    naming.histograms(folded)
}

#[test]
fn rows_do_not_depend_on_when_stacks_are_named() {
    let columns = parse_fields("overhead_children,overhead,comm,dso,symbol").expect("known words");
    let options = HistogramOptions {
        order_by: columns.clone(),
        columns,
        children: true,
        direction: Direction::Caller,
        graph: Some(GraphOptions {
            form: GraphForm::Graph,
            min_percent: 0.5,
            by_address: false,
            by_line: false,
            annotates_branches: false,
        }),
        max_stack: 127,
        ..HistogramOptions::default()
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/x86_64");
    let mut compared = 0;
    for name in ["cycles.data", "dwarf.data", "group.data", "branches.data"] {
        let bytes = std::fs::read(fixtures.join(name)).expect("a fixture");
        let data = PerfData::parse(&bytes).expect("a valid file");
        let at_the_end = histograms(&data, &options, EVERY_SAMPLE, usize::MAX);
        let after_each_sample = histograms(&data, &options, EVERY_SAMPLE, 0);
        for (one, other) in at_the_end.iter().zip(&after_each_sample) {
            // `all` is the total of the event.
            assert_eq!((one.all, &one.rows), (other.all, &other.rows), "{name}");
            compared += one.rows.len();
        }
    }
    // Otherwise the histograms are almost empty, and their equality means nothing.
    assert!(compared > 50, "{compared} rows");
}

/// Filters all samples: they count only for the total.
struct AllFiltered;

impl SelectSamples for AllFiltered {
    fn sample(&self, _world: &World, _sample: &Sample<'_>) -> SampleTreatment {
        SampleTreatment::Filtered
    }

    fn frame(&self, _resolver: &Resolver<'_>, _frame: &Frame) -> SampleTreatment {
        SampleTreatment::Filtered
    }
}

/// A branch counts 1, but its latency is that of its sample: the period divided by the number of running threads.
#[test]
fn branches_have_the_latency_of_their_sample() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/x86_64");
    let bytes = std::fs::read(fixtures.join("branches.data")).expect("a fixture");
    let data = PerfData::parse(&bytes).expect("a valid file");
    let columns = parse_fields("overhead,latency,symbol_to").expect("known words");
    let sums = |threads, select| {
        let options = HistogramOptions {
            order_by: columns.clone(),
            columns: columns.clone(),
            counted: CountedItems::Branches,
            parallelism: Some(Arc::new(Parallelism::new(vec![(
                Order::default(),
                threads,
            )]))),
            ..HistogramOptions::default()
        };
        let histograms = histograms(&data, &options, select, usize::MAX);
        let first = histograms.into_iter().next().expect("an event");
        let latency_of_rows: u64 = first.rows.iter().map(|row| row.weights.latency).sum();
        (latency_of_rows, first.all)
    };
    let (alone, all) = sums(1, EVERY_SAMPLE);
    // `samples` is the number of branches; the latency of each is the period of its sample, not 1.
    assert!(alone > all.samples);
    let (in_parallel, all) = sums(2, EVERY_SAMPLE);
    // Half of `alone`, but rounded down for each branch.
    assert!(in_parallel <= alone / 2 && in_parallel + all.samples >= alone / 2);
    assert_eq!(sums(2, Some(&AllFiltered)), (0, all));
}
