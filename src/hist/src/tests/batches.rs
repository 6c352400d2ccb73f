//! Whole recordings, whose stacks are resolved (named) after each sample, or all at the end.

use std::num::NonZeroUsize;
use std::path::Path;

use rperf_perfdata::PerfData;
use rperf_replay::Replay;
use rperf_resolve::Resolver;
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::SampleType;

use crate::{
    Direction, GraphForm, GraphOptions, Histogram, HistogramOptions, NamingContext, NoPayloads,
    RecordingInfo, parse_fields,
};

/// The histogram of each event of a recording. A worker resolves the stacks that it has collected when they take more than
/// `max_bytes` bytes.
fn histograms(data: &PerfData<'_>, options: &HistogramOptions, max_bytes: usize) -> Vec<Histogram> {
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
    let every_sample = None;
    let samples = replay.fold(threads, || naming.sample_fold(every_sample));
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
        let at_the_end = histograms(&data, &options, usize::MAX);
        let at_once = histograms(&data, &options, 0);
        for (one, other) in at_the_end.iter().zip(&at_once) {
            // `all` is the total of the event.
            assert_eq!((one.all, &one.rows), (other.all, &other.rows), "{name}");
            compared += one.rows.len();
        }
    }
    // Otherwise the histograms are almost empty, and their equality means nothing.
    assert!(compared > 50, "{compared} rows");
}
