//! User input, lines of `kprobe_events` and `uprobe_events`, and probe caches: any text is accepted or refused, and positions of
//! faults in events and filters are inside it.

#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rperf_events::{
    CallGraph, Catalogue, EventFilter, EventSources, RecordDetails, RecordOptions, SampleFilter,
    Sampling, SamplingTarget, Tracepoints, branch_filter, parse, record_events,
};
use rperf_names::{is_pattern, matches_pattern};
use rperf_probe::{
    ExistingEvent, LineRange, NameFilter, ProbeEvent, cached_entries, heading, put_entry,
};
use rperf_symbol::BuildId;
use rperf_tracepoint::Format;

/// A machine with one tracepoint, one kernel symbol, and the same terms and event for each PMU.
#[derive(Debug)]
struct TestMachine;

impl EventSources for TestMachine {
    fn format(&self, _pmu: &str, term: &str) -> Option<String> {
        match term {
            "event" => Some("config:0-7,32-35".to_owned()),
            "umask" => Some("config:8-15".to_owned()),
            "offcore" => Some("config1:0-63".to_owned()),
            "flag" => Some("config2:5".to_owned()),
            _ => None,
        }
    }

    fn event(&self, _pmu: &str, name: &str) -> Option<String> {
        (name == "cache-misses").then(|| "event=0x2e,umask=0x41".to_owned())
    }

    fn formats(&self, _pmu: &str) -> Vec<String> {
        ["event", "flag", "offcore", "umask"]
            .map(str::to_owned)
            .into()
    }

    fn events(&self, _pmu: &str) -> Vec<String> {
        vec!["cache-misses".to_owned()]
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        (name == "jiffies").then_some(0xffff_ffff_8260_7980)
    }
}

impl Tracepoints for TestMachine {
    fn folder(&self) -> &Path {
        Path::new("/sys/kernel/tracing/events")
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        Ok(vec!["sched".to_owned()])
    }

    fn names(&self, _system: &str) -> io::Result<Vec<String>> {
        Ok(vec!["sched_switch".to_owned()])
    }

    fn id(&self, _system: &str, name: &str) -> io::Result<u64> {
        match name {
            "sched_switch" => Ok(314),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

const FORMAT: &str = "name: sched_switch\nID: 314\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:dev_t dev;\toffset:28;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%s\", REC->prev_comm\n";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    events(&text);
    filters(&text);
    probes(&text);
    let _id = BuildId::from_hex(&text);
});

fn events(text: &str) {
    let catalogue = Catalogue {
        pmus: vec![("cpu".to_owned(), 4), ("uncore_imc_0".to_owned(), 20)],
        preferred_pmu: None,
        machine: &TestMachine,
        tracepoints: &TestMachine,
    };
    for catalogue in [catalogue, Catalogue::default()] {
        match parse(text, &catalogue) {
            Ok(specs) => {
                let options = RecordOptions {
                    target: SamplingTarget::Cpus,
                    sampling: Sampling::Frequency(4000),
                    call_graph: CallGraph::FramePointers,
                    raw_samples: false,
                    details: RecordDetails::default(),
                };
                let _attrs = record_events(&specs, &options);
            }
            Err(error) => {
                for fault in &error.faults {
                    assert!(text.get(fault.position.clone()).is_some(), "{fault:?}");
                }
                let _message = error.to_string();
            }
        }
    }
    let _branches = branch_filter(text).map_err(|error| error.to_string());
}

fn filters(text: &str) {
    const LONG_SIZE: usize = 8;
    let format = Format::parse(FORMAT, LONG_SIZE).expect("a valid format");
    if let Err(error) = EventFilter::parse(text, "sched:sched_switch", &format) {
        assert!(text.get(error.position.clone()).is_some(), "{error:?}");
        let _message = error.to_string();
    }
    let _conditions = SampleFilter::parse(text).map_err(|error| error.to_string());
    if let Some((pattern, name)) = text.split_once('\n')
        && is_pattern(pattern)
    {
        let _matches = matches_pattern(pattern, name);
    }
}

fn probes(text: &str) {
    if let Ok(definition) = rperf_probe::parse(text) {
        // The first line of its entry in a probe cache.
        let _written = heading(&definition, "group");
    }
    let _range = LineRange::parse(text).map_err(|fault| fault.to_string());
    if let Ok(filter) = NameFilter::parse(text) {
        let _matches = filter.matches("main");
    }
    // The lines of `kprobe_events` or `uprobe_events`, and those of the entries of a probe cache.
    for line in text.lines() {
        let _removal = ExistingEvent::parse(line).map(|event| event.removal());
        let _line = ProbeEvent::parse(line).map(|event| event.to_string());
    }
    // The text as a whole probe cache file.
    let mut entries = cached_entries(text);
    if let Some(last) = entries.pop() {
        let _covered = last.is_covered("*:a*");
        put_entry(&mut entries, last);
    }
}
