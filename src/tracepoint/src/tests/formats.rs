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

fn tracepoint(config: u64) -> Attr {
    Attr {
        kind: EventType::TRACEPOINT,
        config,
        ..Attr::default()
    }
}

fn section(endian: Endian, events: &[(&str, &str)], printk: &str) -> Vec<u8> {
    let mut builder = TracingDataBuilder::new(endian, 4, 4096);
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
fn an_event_finds_its_description_or_why_there_is_none() {
    let formats = formats(&[("sched", SWITCH), ("x", BROKEN), ("none", "no description")]);
    let switch = formats.of_event(&tracepoint(372)).expect("described");
    assert_eq!(switch.name(), "sched:sched_switch");
    let abi = Abi {
        endian: Endian::Big,
        long_size: 4,
    };
    assert_eq!((switch.abi, switch.format.fields.len()), (abi, 1));
    assert!(switch.print_fmt().warning().is_none());
    let error = |attr: &Attr| formats.of_event(attr).expect_err("none").clone();
    assert_eq!(error(&Attr::default()), Error::NotATracepoint);
    assert_eq!(error(&tracepoint(1)), Error::Undescribed);
    assert!(matches!(
        error(&tracepoint(9)),
        Error::Field { line: 4, .. }
    ));
    assert_eq!(formats.printk().get(0x10), Some("ten"));
}

#[test]
fn a_name_is_known_without_a_field() {
    let formats = formats(&[("sched", SWITCH), ("x", BROKEN)]);
    assert_eq!(formats.name(372).as_deref(), Some("sched:sched_switch"));
    assert_eq!(formats.name(9).as_deref(), Some("x:broken"));
    assert_eq!(formats.name(1), None);
}

#[test]
fn formats_are_parsed_once_for_all_threads() {
    let formats = formats(&[("sched", SWITCH)]);
    let ask = || Arc::clone(formats.of_event(&tracepoint(372)).expect("described"));
    let descriptions = thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(ask));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    assert!(
        descriptions
            .iter()
            .all(|one| Arc::ptr_eq(one, &descriptions[0]))
    );
}

#[test]
fn sections_are_merged() {
    let mut formats = formats(&[("sched", SWITCH), ("sched", WAKEUP)]);
    let known = |formats: &Formats, id| {
        let tracepoint = formats.of_event(&tracepoint(id));
        Arc::clone(tracepoint.expect("described"))
    };
    let (switch, wakeup) = (known(&formats, 372), known(&formats, 374));
    let anew = SWITCH.replace("prev_pid", "pid");
    let more = section(Endian::Big, &[("sched", &anew), ("sched", WAKEUP)], "");
    formats.add(&more, Endian::Big).expect("own section");
    assert!(!Arc::ptr_eq(&switch, &known(&formats, 372)));
    assert_eq!(known(&formats, 372).format.fields[0].name, "pid");
    assert!(Arc::ptr_eq(&wakeup, &known(&formats, 374)));
    let other = section(Endian::Big, &[("x", BROKEN)], "");
    formats.add(&other, Endian::Big).expect("own section");
    assert!(Arc::ptr_eq(&wakeup, &known(&formats, 374)));
    assert_eq!(formats.name(9).as_deref(), Some("x:broken"));
    let truncated = other.get(..20).expect("a start");
    assert!(matches!(
        formats.add(truncated, Endian::Big),
        Err(Error::Section { .. })
    ));
    assert_eq!(formats.name(374).as_deref(), Some("sched:sched_wakeup"));
}

#[test]
fn formats_are_added_one_by_one() {
    let mut formats = Formats::default();
    let event = EventFormat {
        system: "sched",
        text: SWITCH.as_bytes(),
    };
    formats.insert(&event, Abi::NATIVE);
    let found = formats.of_event(&tracepoint(372)).expect("described");
    assert_eq!(found.abi, Abi::NATIVE);
}
