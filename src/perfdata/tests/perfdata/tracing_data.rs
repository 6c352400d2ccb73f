//! The descriptions of tracepoints: what perf wrote is read, and written again byte for byte.

use rperf_perfdata::PerfData;
use rperf_perfdata::feature::FeatureId;
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_tracepoint::TracingDataBuilder;

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
    let run = run.args(["--", "true"]).env("HOME", scratch.path());
    let run = run.finish().expect("perf record");
    if run.status != 0 {
        return skip(test, "perf cannot record tracepoints here");
    }
    let file = std::fs::read(&path).expect("recording");
    let file = PerfData::parse(&file).expect("perf's file");
    let data = file.features().tracing_data().expect("section");
    let data = data.expect("a section");
    assert_eq!(data.events.len(), 4);
    for event in file.events() {
        let by_id = data.by_id(event.attr.config).expect("described");
        let name = by_id.name().expect("named");
        assert_eq!(event.name, format!("{}:{name}", by_id.system));
        assert_eq!(data.by_name(by_id.system, name), Some(by_id));
    }
    let mut builder = TracingDataBuilder::new(data.endian, data.long_size, data.page_size);
    builder
        .headers(data.header_page, data.header_event)
        .printk_formats(data.printk_formats)
        .saved_cmdlines(data.saved_cmdlines);
    for event in &data.events {
        builder.event(event.system, event.text);
    }
    let raw = file.features().raw(FeatureId::TRACING_DATA);
    assert!(raw == Some(&builder.encode()), "the sections differ");
}
