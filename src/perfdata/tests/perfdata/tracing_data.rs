//! Tracepoint formats written by perf are parsed and rewritten byte for byte.

use rperf_perfdata::PerfData;
use rperf_perfdata::feature::FeatureId;
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_tracepoint::{TracingData, TracingDataBuilder};

#[test]
fn perf_section_is_written_again_byte_for_byte() {
    let test = "perf_section_is_written_again_byte_for_byte";
    let Some(perf) = real_perf() else {
        return skip(test, "no perf");
    };
    let scratch = Scratch::new();
    let path = scratch.path().join("perf.data");
    let events = "sched:sched_switch,raw_syscalls:*,irq:softirq_entry";
    let words = ["record", "-q", "-e", events, "-o"];
    let run = Run::new(&perf).args(words).args([path.as_os_str()]);
    // perf fills its build-id cache in HOME.
    let run = run.args(["--", "true"]).env("HOME", scratch.path());
    let run = run.finish().expect("perf record");
    if run.status != 0 {
        return skip(test, "perf cannot record tracepoints here");
    }
    let file = std::fs::read(&path).expect("recording");
    let file = PerfData::parse(&file).expect("perf's file");
    let section = file.features().raw(FeatureId::TRACING_DATA);
    let data = TracingData::parse(section.expect("a section")).expect("perf's section");
    // `raw_syscalls:*` matches two tracepoints.
    assert_eq!(data.events.len(), 4);
    let formats = file.features().formats().expect("perf's section");
    for event in file.events() {
        let tracepoint = formats.of_event(&event.attr).expect("described");
        let name = formats.name(event.attr.config);
        assert_eq!(name.as_ref(), Some(&event.name));
        assert_eq!(event.name, tracepoint.name());
    }
    let mut builder = TracingDataBuilder::new(data.endian, data.long_size, data.page_size);
    builder
        .headers(data.header_page, data.header_event)
        .printk_formats(data.printk_formats)
        .saved_cmdlines(data.saved_cmdlines);
    for event in &data.events {
        builder.event(event.system, event.text);
    }
    assert!(section == Some(&builder.encode()), "the sections differ");
}
