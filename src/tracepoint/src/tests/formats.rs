//! Lookup of the format of an event.

use std::sync::Arc;
use std::thread;

use rperf_wire::{Attr, Endian, EventType};

use crate::{Abi, Error, EventFormat, Formats, TracingDataBuilder};

const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->prev_pid\n";
const WAKEUP: &str = "name: sched_wakeup\nID: 374\nformat:\n";
const BROKEN: &str = "name: broken\nID: 9\nformat:\n\tfield:int;\toffset:0;\tsize:4;\n";

fn attr_of(config: u64) -> Attr {
    Attr {
        kind: EventType::TRACEPOINT,
        config,
        ..Attr::default()
    }
}

fn section(endian: Endian, events: &[(&str, &str)], printk: &str) -> Vec<u8> {
    let (long_size, page_size) = (4, 4096);
    let mut builder = TracingDataBuilder::new(endian, long_size, page_size);
    builder.printk_formats(printk.as_bytes());
    for (system, text) in events {
        builder.event(system, text.as_bytes());
    }
    builder.encode()
}

fn formats(events: &[(&str, &str)]) -> Formats {
    let bytes = section(Endian::Big, events, "0x10 : \"ten\"\n");
    Formats::of_recording(&bytes, Endian::Big).expect("own section")
}

#[test]
fn lookup_returns_the_format_or_why_there_is_none() {
    // The last has no id: it is ignored, so nothing below finds it.
    let formats = formats(&[("sched", SWITCH), ("x", BROKEN), ("none", "no description")]);
    let switch = formats.of_event(&attr_of(372)).expect("described");
    assert_eq!(switch.name(), "sched:sched_switch");
    let abi = Abi {
        endian: Endian::Big,
        long_size: 4,
    };
    assert_eq!((switch.abi, switch.format.fields.len()), (abi, 1));
    assert!(switch.print_fmt().warning().is_none());
    let error = |attr: &Attr| formats.of_event(attr).expect_err("none").clone();
    assert_eq!(error(&Attr::default()), Error::NotATracepoint);
    assert_eq!(error(&attr_of(1)), Error::Undescribed);
    assert!(matches!(error(&attr_of(9)), Error::Field { line: 4, .. }));
    assert_eq!(formats.printk().get(0x10), Some("ten"));
}

#[test]
fn a_name_is_known_even_if_the_fields_are_malformed() {
    let formats = formats(&[("sched", SWITCH), ("x", BROKEN)]);
    assert_eq!(formats.name(372).as_deref(), Some("sched:sched_switch"));
    assert_eq!(formats.name(9).as_deref(), Some("x:broken"));
    assert_eq!(formats.name(1), None);
}

#[test]
fn formats_are_parsed_once_for_all_threads() {
    let formats = formats(&[("sched", SWITCH)]);
    let look_up = || Arc::clone(formats.of_event(&attr_of(372)).expect("described"));
    let tracepoints = thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(look_up));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert!(
        tracepoints
            .iter()
            .all(|tracepoint| Arc::ptr_eq(tracepoint, &tracepoints[0]))
    );
}

#[test]
fn sections_are_merged() {
    let mut formats = formats(&[("sched", SWITCH), ("sched", WAKEUP)]);
    let tracepoint_of = |formats: &Formats, id| {
        let tracepoint = formats.of_event(&attr_of(id));
        Arc::clone(tracepoint.expect("described"))
    };
    let (switch, wakeup) = (tracepoint_of(&formats, 372), tracepoint_of(&formats, 374));
    // A format that changed replaces the earlier one of its id; the same format again keeps what is already parsed.
    let no_printk = "";
    let changed = SWITCH.replace("prev_pid", "pid");
    let changed_events = [("sched", changed.as_str()), ("sched", WAKEUP)];
    let changed_section = section(Endian::Big, &changed_events, no_printk);
    formats
        .add(&changed_section, Endian::Big)
        .expect("own section");
    assert!(!Arc::ptr_eq(&switch, &tracepoint_of(&formats, 372)));
    assert_eq!(tracepoint_of(&formats, 372).format.fields[0].name, "pid");
    assert!(Arc::ptr_eq(&wakeup, &tracepoint_of(&formats, 374)));
    let other_section = section(Endian::Big, &[("x", BROKEN)], no_printk);
    formats
        .add(&other_section, Endian::Big)
        .expect("own section");
    assert!(Arc::ptr_eq(&wakeup, &tracepoint_of(&formats, 374)));
    assert_eq!(formats.name(9).as_deref(), Some("x:broken"));
    // A section that cannot be parsed changes nothing.
    let truncated = other_section.get(..20).expect("a start");
    assert!(matches!(
        formats.add(truncated, Endian::Big),
        Err(Error::Section { .. })
    ));
    assert_eq!(formats.name(374).as_deref(), Some("sched:sched_wakeup"));
}

#[test]
fn a_single_format_is_inserted() {
    let mut formats = Formats::default();
    let event = EventFormat {
        system: "sched",
        text: SWITCH.as_bytes(),
    };
    formats.insert(&event, Abi::NATIVE);
    let switch = formats.of_event(&attr_of(372)).expect("described");
    assert_eq!(switch.abi, Abi::NATIVE);
}
