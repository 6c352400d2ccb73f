//! Codes, caches, breakpoints, PMUs and terms. The PMUs, their terms and events, and the kernel symbol `jiffies` are those of
//! `catalogue` in `parse_tests.rs`.

use rperf_wire::{AttrFlags, EventType};

use super::tests::{FakeTracefs, catalogue, reasons};
use crate::{CallGraph, EventSettings, EventSpec, SamplingRate, StackSize, parse};

fn all(text: &str) -> Vec<EventSpec> {
    parse(text, &catalogue(&FakeTracefs)).unwrap_or_else(|error| panic!("{error}"))
}

fn one(text: &str) -> EventSpec {
    let mut events = all(text);
    assert_eq!(events.len(), 1, "{text}");
    events.remove(0)
}

fn settings(text: &str) -> EventSettings {
    one(text).settings
}

#[test]
fn raw_codes_caches_and_numbers_give_type_and_config() {
    for (text, kind, config) in [
        ("r003c", EventType::RAW, 0x3c),
        ("r1a8:u", EventType::RAW, 0x1a8),
        ("L1-dcache-load-misses", EventType::HW_CACHE, 0x1_0000),
        ("1:3", EventType::SOFTWARE, 3),
        ("1:0x3:u", EventType::SOFTWARE, 3),
    ] {
        let event = one(text);
        assert_eq!(
            (event.attr.kind, event.attr.config),
            (kind, config),
            "{text}"
        );
        assert_eq!(event.name, text);
        let is_user_only = event.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL);
        assert_eq!(is_user_only, text.ends_with(":u"));
    }
    assert_eq!(
        reasons("r11111111111111111"),
        ["a raw code has at most 16 digits: `r11111111111111111'"]
    );
    assert_eq!(
        reasons("iTLB-stores"),
        ["unknown cache event `iTLB-stores': this cache has iTLB-loads, iTLB-load-misses"]
    );
    assert_eq!(
        reasons("L1-dcache-load-mises"),
        ["unknown event `L1-dcache-load-mises', did you mean `L1-dcache-load-misses'?"]
    );
}

#[test]
fn breakpoints_watch_an_address() {
    for (text, access, length) in [
        ("mem:0x1000", 3, 4),
        ("mem:4096/2", 3, 2),
        ("mem:0x1000/8:rw:u", 3, 8),
        ("mem:0x1000:w", 2, 4),
        ("mem:0x1000:x", 4, 8),
        ("mem:0x1000:u", 3, 4),
    ] {
        let attr = one(text).attr;
        let parts = (
            attr.kind,
            attr.config1,
            attr.bp_type,
            attr.config2,
            attr.sample_period,
        );
        assert_eq!(
            parts,
            (EventType::BREAKPOINT, 0x1000, access, length, 1),
            "{text}"
        );
        assert_eq!(
            attr.flags.contains(AttrFlags::EXCLUDE_KERNEL),
            text.ends_with(":u")
        );
    }
    assert_eq!(one("mem:jiffies:w").attr.config1, 0xffff_ffff_8200_0000);
    // The slash before a length does not begin terms: the commas after it separate events.
    assert_eq!(all("mem:0x1000/4:w,cs,{mem:0x2000/1,cs}").len(), 4);
    assert_eq!(all("{mem:0x2000/1,cs},cs,{cs,mem:0x2000/1}:u,cs").len(), 6);
    for (text, start) in [
        ("mem:nosuch", 4),
        ("mem:0x1000/3", 11),
        ("mem:0x1000:rz", 12),
        ("mem:0x1000::u", 11),
        ("mem:0x1000:w:z", 13),
        ("mem:0x1000:ww", 12),
    ] {
        let error = parse(text, &catalogue(&FakeTracefs)).unwrap_err();
        assert_eq!(error.faults[0].position.start, start, "{error}");
    }
}

#[test]
fn terms_of_a_pmu_set_its_bits() {
    for (text, config, config1, config2) in [
        ("big/event=0xa8,umask=0x1,inv,name=X/", 0x80_01a8, 0, 0),
        ("big/r1a8/", 0x1a8, 0, 0),
        ("big/config=0x1a8,config1=5,config2=6/", 0x1a8, 5, 6),
        ("big//", 0, 0, 0),
        ("big/mem-loads/pp", 0x1cd, 3, 0),
        ("big/mem-loads,ldlat=30/pp", 0x1cd, 30, 0),
        ("big/wide=0xfff/", 0, 0, 0xf_0000_00ff),
        ("mem-loads:pp", 0x1cd, 3, 0),
        ("mem-loads/ldlat=9/:pp", 0x1cd, 9, 0),
    ] {
        let event = one(text);
        let attr = &event.attr;
        assert_eq!(attr.kind, EventType(4), "{text}");
        assert_eq!(
            (attr.config, attr.config1, attr.config2),
            (config, config1, config2),
            "{text}"
        );
        assert_eq!(attr.precise_ip(), if text.ends_with("pp") { 2 } else { 0 });
        assert_eq!(event.name, if text.contains("name=X") { "X" } else { text });
    }
    assert_eq!(one("big/often/").attr.sample_period, 2_000_003);
    assert_eq!(one("msr/tsc/").attr.kind, EventType(9));
}

#[test]
fn a_name_or_pattern_without_a_number_selects_several_pmus() {
    let types = |text| {
        all(text)
            .iter()
            .map(|event| event.attr.kind.0)
            .collect::<Vec<_>>()
    };
    for several in ["uncore_imc/event=1/", "imc/event=1/", "*imc*/event=1/"] {
        // In the order of the catalogue.
        assert_eq!(types(several), [21, 20], "{several}");
    }
    assert_eq!(types("uncore_imc_0/event=1/"), [20]);
    // If a name matches several PMUs, only the preferred one (`--cputype`) is selected; if it matches one, that one is selected.
    let restricted = crate::Catalogue {
        preferred_pmu: Some("uncore_imc_1".to_owned()),
        ..catalogue(&FakeTracefs)
    };
    for (text, kind) in [
        ("imc/event=1/", 21),
        ("uncore_imc_0/event=1/", 20),
        ("msr/tsc/", 9),
    ] {
        let events = parse(text, &restricted).unwrap();
        let selected: Vec<u32> = events.iter().map(|event| event.attr.kind.0).collect();
        assert_eq!(selected, [kind], "{text}");
    }
}

#[test]
fn faults_of_terms_have_a_position_and_a_reason() {
    for (text, start, reason) in [
        (
            "cs,big/event=0x1ff/",
            13,
            "value too big for format, maximum is 255",
        ),
        (
            "big/evnt=1/",
            4,
            "unknown term 'evnt' for pmu 'big', did you mean `event'?",
        ),
        (
            "big/mem-lods/",
            4,
            "unknown term 'mem-lods' for pmu 'big', did you mean `mem-loads'?",
        ),
        ("big/event=x/", 10, "`event' needs a number: event=0x10"),
        (
            "big/@driver=1/",
            4,
            "terms for drivers are not available yet: `@driver'",
        ),
        ("cs/event=3/", 3, "unknown term `event'"),
        (
            "cs/perod=3/",
            3,
            "unknown term `perod', did you mean `period'?",
        ),
        ("cs/config=3/", 3, "unknown term `config'"),
        ("cs/period=0/", 10, "`period' must be above 0"),
        (
            "cs/max-stack=70000/",
            13,
            "`max-stack' takes at most 65535 frames",
        ),
        (
            "cs/call-graph=x/",
            14,
            "`call-graph' takes fp, dwarf, lbr or no",
        ),
        ("cs/time=2/", 8, "`time' takes 0 or 1"),
        ("cs/name=/", 8, "`name' needs a name: name=mine"),
        (
            "cs/metric-id=x/",
            13,
            "`metric-id' is not available here: the events of metrics are given by -M",
        ),
        ("cs/period=3", 2, "unbalanced slash"),
        ("cs/period=3/z", 12, "unknown modifier `z'"),
        ("cycles:u/period=5/", 6, "modifiers come after the terms"),
        (
            "sched:sched_switch:u/max-stack=3/",
            18,
            "modifiers come after the terms",
        ),
        (
            "file.c/map:channel.event=evt/",
            0,
            "`file.c': BPF programs are not supported as events",
        ),
        (
            "nosuch/event=1/",
            0,
            "cannot find PMU `nosuch': missing kernel support?",
        ),
    ] {
        let error = parse(text, &catalogue(&FakeTracefs)).unwrap_err();
        assert_eq!(error.faults.len(), 1);
        let fault = &error.faults[0];
        assert_eq!(fault.position.start, start, "{error}");
        assert!(fault.reason.starts_with(reason), "{text}: {fault:?}");
    }
}

#[test]
fn settings_of_terms_are_parsed() {
    assert_eq!(
        settings("cs/period=5/u").rate,
        Some(SamplingRate::Period(5))
    );
    assert_eq!(
        settings("cs/period=5,freq=9/").rate,
        Some(SamplingRate::Frequency(9)),
        "the last term applies"
    );
    assert_eq!(settings("r1/no-inherit/").inherit, Some(false));
    assert_eq!(settings("cs/inherit=0/").inherit, Some(false));
    assert_eq!(settings("cs/time=0/").time, Some(false));
    assert_eq!(settings("cs/no-overwrite,overwrite=0/"), settings("cs//"));
    for text in ["cs/overwrite/", "cs/no-overwrite=0/"] {
        let error = parse(text, &catalogue(&FakeTracefs)).unwrap_err();
        assert!(error.to_string().contains("use --overwrite"), "{error}");
    }
    assert!(settings("r1/percore/").per_core && !settings("r1/percore=0/").per_core);
    assert_eq!(
        settings("sched:sched_switch/max-stack=3/").max_stack,
        Some(3)
    );
    let dwarf = |bytes| {
        Some(CallGraph::Dwarf {
            stack_size: StackSize::new(bytes).unwrap(),
            // Data addresses are recorded, too.
            with_data: true,
        })
    };
    assert_eq!(settings("cs/call-graph=dwarf/").call_graph, dwarf(8192));
    assert_eq!(
        settings("cs/stack-size=1024,call-graph=dwarf/").call_graph,
        dwarf(1024)
    );
    assert_eq!(
        settings("cs/call-graph=dwarf,stack-size=1024/").call_graph,
        dwarf(1024)
    );
    assert_eq!(
        settings("cs/call-graph=no/").call_graph,
        Some(CallGraph::None)
    );
    let name = |text| one(text).name;
    assert_eq!(name("cs/name=mine,period=5/u"), "mine");
    assert_eq!(
        name("sched:sched_switch/max-stack=3/u"),
        "sched:sched_switch/max-stack=3/u"
    );
    assert!(one("sched:sched_switch/max-stack=3/u").tracepoint.is_some());
}

#[test]
fn settings_of_terms_override_general_ones() {
    let frame_pointers = CallGraph::FramePointers;
    // `max-stack` requests callchains even if the command does not.
    assert_eq!(
        settings("cs/max-stack=3/").effective_call_graph(CallGraph::None),
        frame_pointers
    );
    assert_eq!(
        settings("cs/call-graph=no/").effective_call_graph(frame_pointers),
        CallGraph::None
    );
    assert_eq!(
        settings("cs").effective_call_graph(frame_pointers),
        frame_pointers
    );
}
