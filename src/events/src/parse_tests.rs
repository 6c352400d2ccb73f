use rperf_wire::{AttrFlags, EventType};

use super::*;
use crate::{EventSources, GroupPosition, Tracepoints};
use std::io;
use std::path::Path;

/// Three systems in a fixed order. An event's id is its index in its system; events of `ftrace` have no id.
#[derive(Debug)]
pub(crate) struct FakeTracefs;

/// System, and the names of its events.
const TRACEPOINTS: [(&str, &[&str]); 3] = [
    ("syscalls", &["sys_enter_openat", "sys_exit_openat"]),
    (
        "sched",
        &["sched_switch", "sched_process_exec", "sched_process_fork"],
    ),
    ("ftrace", &["function"]),
];

impl Tracepoints for FakeTracefs {
    fn folder(&self) -> &Path {
        Path::new("/tracing/events")
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        let systems = TRACEPOINTS.iter().map(|(system, _)| *system);
        // `gone` is listed but has no folder, as if it were removed in between.
        let systems = systems.chain(["gone"]).map(str::to_owned);
        Ok(systems.collect())
    }

    fn names(&self, system: &str) -> io::Result<Vec<String>> {
        let found = TRACEPOINTS.iter().find(|(name, _)| *name == system);
        let (_, names) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn id(&self, system: &str, name: &str) -> io::Result<u64> {
        let index = self.names(system)?.iter().position(|known| known == name);
        match index {
            Some(index) if system != "ftrace" => Ok(index as u64),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// PMUs with a few terms and events, and one kernel symbol.
#[derive(Debug)]
struct FakePmus;

/// PMU, term, and the bits of the term.
const FORMATS: [(&str, &str, &str); 8] = [
    ("msr", "event", "config:0-63"),
    ("uncore_imc_0", "event", "config:0-7"),
    ("uncore_imc_1", "event", "config:0-7"),
    ("big", "event", "config:0-7"),
    ("big", "umask", "config:8-15"),
    ("big", "inv", "config:23"),
    ("big", "ldlat", "config1:0-15"),
    ("big", "wide", "config2:0-7,32-35"),
];
/// PMU, event, and the terms of the event.
const PMU_EVENTS: [(&str, &str, &str); 3] = [
    ("msr", "tsc", "event=0x00"),
    ("big", "mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
    ("big", "often", "event=0xc0,period=2000003"),
];

fn definition(table: &[(&str, &str, &str)], pmu: &str, name: &str) -> Option<String> {
    let row = table.iter().find(|row| (row.0, row.1) == (pmu, name));
    row.map(|row| row.2.to_owned())
}

fn names(table: &[(&str, &str, &str)], pmu: &str) -> Vec<String> {
    let rows = table.iter().filter(|row| row.0 == pmu);
    rows.map(|row| row.1.to_owned()).collect()
}

impl EventSources for FakePmus {
    fn format(&self, pmu: &str, term: &str) -> Option<String> {
        definition(&FORMATS, pmu, term)
    }

    fn event(&self, pmu: &str, name: &str) -> Option<String> {
        definition(&PMU_EVENTS, pmu, name)
    }

    fn formats(&self, pmu: &str) -> Vec<String> {
        names(&FORMATS, pmu)
    }

    fn events(&self, pmu: &str) -> Vec<String> {
        names(&PMU_EVENTS, pmu)
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        (name == "jiffies").then_some(0xffff_ffff_8200_0000)
    }
}

/// A tracefs that only root may read.
#[derive(Debug)]
struct UnreadableTracefs;

impl Tracepoints for UnreadableTracefs {
    fn folder(&self) -> &Path {
        Path::new("/tracing/events")
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn names(&self, _: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn id(&self, _: &str, _: &str) -> io::Result<u64> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

pub(crate) fn catalogue(tracepoints: &dyn Tracepoints) -> Catalogue<'_> {
    Catalogue {
        pmus: vec![
            ("msr".to_owned(), 9),
            ("uncore_imc_1".to_owned(), 21),
            ("uncore_imc_0".to_owned(), 20),
            ("big".to_owned(), 4),
        ],
        preferred_pmu: None,
        machine: &FakePmus,
        tracepoints,
    }
}

fn one(text: &str) -> EventSpec {
    let mut events = parse(text, &Catalogue::default()).unwrap();
    assert_eq!(events.len(), 1);
    events.remove(0)
}

pub(super) fn reasons(text: &str) -> Vec<String> {
    let error = parse(text, &catalogue(&FakeTracefs)).unwrap_err();
    error.faults.into_iter().map(|fault| fault.reason).collect()
}

#[test]
fn names_and_aliases_give_the_kernels_numbers() {
    for (name, kind, config) in [
        ("cycles", EventType::HARDWARE, 0),
        ("cpu-cycles", EventType::HARDWARE, 0),
        ("instructions", EventType::HARDWARE, 1),
        ("branches", EventType::HARDWARE, 4),
        ("branch-instructions", EventType::HARDWARE, 4),
        ("idle-cycles-backend", EventType::HARDWARE, 8),
        ("ref-cycles", EventType::HARDWARE, 9),
        ("cpu-clock", EventType::SOFTWARE, 0),
        ("faults", EventType::SOFTWARE, 2),
        ("cs", EventType::SOFTWARE, 3),
        ("migrations", EventType::SOFTWARE, 4),
        ("bpf-output", EventType::SOFTWARE, 10),
        ("cgroup-switches", EventType::SOFTWARE, 11),
    ] {
        let event = one(name);
        assert_eq!(
            (event.attr.kind, event.attr.config),
            (kind, config),
            "{name}"
        );
        assert_eq!(event.name, name);
    }
}

#[test]
fn lists_keep_order_duplicates_and_positions() {
    let events = parse("cs:u,cycles,cs:u", &Catalogue::default()).unwrap();
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["cs:u", "cycles", "cs:u"]);
    assert_eq!(
        events.last().map(|event| event.position.clone()),
        Some(12..16)
    );
}

#[test]
fn modifiers_set_bits() {
    let user = one("cs:u").attr.flags;
    assert!(
        user.contains(AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST)
    );
    assert!(!user.contains(AttrFlags::EXCLUDE_USER));
    assert_eq!(
        one("cs:uk").attr.flags,
        AttrFlags::EXCLUDE_HV | AttrFlags::EXCLUDE_GUEST
    );
    assert_eq!(one("cs:HG").attr.flags, AttrFlags::default());
    assert_eq!(
        one("cs:DIe").attr.flags,
        AttrFlags::PINNED | AttrFlags::EXCLUDE_IDLE | AttrFlags::EXCLUSIVE
    );
    assert_eq!(one("cs:pup").attr.precise_ip(), 2);
    assert!(one("cs:P").precise_max && one("cs:S").sample_read && one("cs:W").weak);
    assert!(one("cs:b").bpf && !one("cs:u").bpf);
    let group = parse("{cs,faults:u}:b", &Catalogue::default()).unwrap();
    assert!(group.iter().all(|event| event.bpf));
}

#[test]
fn invalid_modifiers_have_their_position() {
    let error = parse("cs,page-faults:uzk", &Catalogue::default()).unwrap_err();
    assert_eq!(error.faults[0].position, 16..18);
    assert!(error.faults[0].reason.starts_with("unknown modifier `z'"));
    for text in ["cs:uu", "cs:pppp", "cs:PP", "cs:uku"] {
        assert!(reasons(text)[0].starts_with("bad modifier"), "{text}");
    }
    assert!(reasons("cs:")[0].starts_with("expected modifiers"));
}

#[test]
fn unknown_names_have_advice() {
    assert_eq!(
        reasons("page-fualts"),
        ["unknown event `page-fualts', did you mean `page-faults'?"]
    );
    assert_eq!(
        reasons("CYCLES"),
        ["unknown event `CYCLES', did you mean `cycles'?"]
    );
    assert_eq!(reasons("xyzzyxyzzy"), ["unknown event `xyzzyxyzzy'"]);
    assert_eq!(
        reasons("sched_switch"),
        ["a tracepoint needs its system: `sched:sched_switch'"]
    );
    // The catalogue has no PMU `cpu`: on x86, that is a machine without hardware events. Its other PMUs do not matter.
    assert_eq!(
        reasons("cpu/event=1/"),
        ["cannot find PMU `cpu': this machine has no hardware PMU, try cpu-clock"]
    );
    assert_eq!(
        reasons("mrs/tsc/"),
        ["cannot find PMU `mrs': did you mean `msr'?"]
    );
}

#[test]
fn all_faults_are_found_at_once() {
    // Two unknown names, and no name after each of the last two commas.
    assert_eq!(reasons("nosuch1,cs,nosuch2,,").len(), 4);
    assert_eq!(reasons(""), ["expected the name of an event"]);
}

#[test]
fn times_are_tool_events() {
    let events = parse("duration_time,cs,system_time", &Catalogue::default()).unwrap();
    let tools: Vec<Option<Tool>> = events.iter().map(|event| event.tool).collect();
    assert_eq!(tools, [Some(Tool::Duration), None, Some(Tool::System)]);
}

/// perf 7.2 writes these names.
#[test]
fn software_events_and_times_can_be_given_with_a_pmu() {
    let text = "software/cs/u,software/faults,period=5,name=x/,tool/duration_time/";
    let events = parse(text, &Catalogue::default()).unwrap();
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["software/cs/u", "x", "tool/duration_time/"]);
    let plain = parse("cs:u,faults", &Catalogue::default()).unwrap();
    assert_eq!(events[0].attr, plain[0].attr);
    assert_eq!(events[1].attr.config, plain[1].attr.config);
    assert_eq!(events[2].tool, Some(Tool::Duration));
    assert_eq!(
        Tool::of_recorded("tool/user_time/", &events[2].attr),
        Some(Tool::User)
    );
    assert_eq!(
        reasons("tool/num_cpus/,tool/user_time,name=x/,tool/user_time/u,tool/user_time=3/"),
        [
            "unknown event `num_cpus' of `tool'",
            "times take no terms: `name'",
            "times take no modifiers",
            "times take no value: `user_time'"
        ]
    );
}

#[test]
fn misplaced_braces_and_modifiers_are_refused() {
    assert_eq!(
        reasons("cycles:{k,u}"),
        ["modifiers take no braces, write `cycles:k,cycles:u'"]
    );
    assert_eq!(reasons("{cs,page-faults"), ["unbalanced brace"]);
    assert!(reasons("duration_time:u")[0].contains("duration_time"));
}

#[test]
fn groups_have_a_leader_and_modifiers_for_all() {
    let events = parse(
        "cs,g{cs:u,page-faults}:Sk,{faults},cs",
        &catalogue(&FakeTracefs),
    )
    .unwrap();
    let groups: Vec<&GroupPosition> = events.iter().map(|event| &event.group).collect();
    let leader = |name: &str| GroupPosition::Leader {
        name: name.to_owned(),
    };
    assert_eq!(
        groups,
        [
            &GroupPosition::None,
            &leader("g"),
            &GroupPosition::Member,
            &leader(""),
            &GroupPosition::None
        ]
    );
    let flags_of = |event: &EventSpec| {
        let flags = event.attr.flags;
        let has = |flag| flags.contains(flag);
        (
            has(AttrFlags::EXCLUDE_USER),
            has(AttrFlags::EXCLUDE_KERNEL),
            event.sample_read,
        )
    };
    // Its own `u` and the group's `k`: both are counted.
    assert_eq!(flags_of(&events[1]), (false, false, true));
    assert_eq!(flags_of(&events[2]), (true, false, true));
    assert_eq!(
        (events[2].name.as_str(), events[2].position.clone()),
        ("page-faults", 10..21)
    );
}

#[test]
fn errors_in_groups_have_their_position() {
    for (text, start, reason) in [
        ("cs,{cs,nosuch}", 7, "unknown event `nosuch'"),
        ("{cs,page-faults", 0, "unbalanced brace"),
        ("cs,}cs{", 3, "unbalanced brace"),
        ("{cs,{cs}}", 0, "groups hold events, no other groups"),
        ("{cs}x", 4, "expected a colon with modifiers, or a comma"),
        ("{cs}:z", 5, "unknown modifier `z'"),
        ("{}", 1, "expected the name of an event"),
        (
            "a.b{cs}",
            0,
            "a group's name must consist of letters, digits, `_' and `-'",
        ),
    ] {
        let error = parse(text, &catalogue(&FakeTracefs)).unwrap_err();
        let fault = &error.faults[0];
        assert_eq!(fault.position.start, start, "{text}");
        assert!(fault.reason.starts_with(reason), "{text}: {fault:?}");
    }
    assert_eq!(reasons("{nosuch1,cs,nosuch2},nosuch3").len(), 3);
}

#[test]
fn tracepoints_have_their_id_and_keep_their_modifiers() {
    let events = parse("cs,sched:sched_process_exec:u", &catalogue(&FakeTracefs)).unwrap();
    let exec = &events[1];
    assert_eq!(exec.name, "sched:sched_process_exec:u");
    assert_eq!(
        (exec.attr.kind, exec.attr.config),
        (EventType::TRACEPOINT, 1)
    );
    assert!(exec.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL));
    assert_eq!(exec.position, 3..29);
    let name = exec.tracepoint.as_ref().unwrap();
    assert_eq!(
        (&*name.system, &*name.name),
        ("sched", "sched_process_exec")
    );
}

#[test]
fn patterns_give_an_event_for_each_match_in_the_order_of_tracefs() {
    let names = |text| {
        let events = parse(text, &catalogue(&FakeTracefs)).unwrap();
        let names: Vec<String> = events.into_iter().map(|event| event.name).collect();
        names.join(" ")
    };
    assert_eq!(
        names("sched:sched_process_[ef]*"),
        "sched:sched_process_exec sched:sched_process_fork"
    );
    assert_eq!(names("s*:*exit*"), "syscalls:sys_exit_openat");
    assert_eq!(names("s*:sched_switch:k"), "sched:sched_switch:k");
    // perf's mark of SDT probes.
    assert_eq!(names("%sched:sched_switch"), "sched:sched_switch");
    assert_eq!(
        names("*:*").split(' ').count(),
        5,
        "ftrace's own events have no id"
    );
}

#[test]
fn unknown_tracepoints_have_advice() {
    for (text, advice) in [
        ("sched:sched_swich", ", did you mean `sched:sched_switch'?"),
        ("schd:sched_switch", ", did you mean `sched:sched_switch'?"),
        ("nosuch:whatever_else", ""),
        (
            "sdt_demo:tick",
            ": 'buildid-cache --add PROGRAM' adds the SDT markers of a program",
        ),
        ("sched:nosuch*", ": no tracepoint matches the pattern"),
        ("sched:", ", `sched:*' selects all tracepoints of a system"),
    ] {
        assert_eq!(
            reasons(text),
            [format!("unknown tracepoint `{text}'{advice}")]
        );
    }
    assert!(reasons("sched:sched_switch:z")[0].starts_with("unknown modifier `z'"));
    assert_eq!(reasons("sched:a,cs,syscalls:b").len(), 2);
}

#[test]
fn an_unreadable_tracefs_gives_a_hint() {
    for text in ["sched:sched_switch", "sched:*", "*:x"] {
        let error = parse(text, &catalogue(&UnreadableTracefs)).unwrap_err();
        let fault = &error.faults[0];
        let reason = "can't access trace events: no permission to read /tracing/events";
        assert_eq!(fault.reason, reason);
        assert!(
            fault
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains("mode=755 /tracing'"))
        );
    }
    // The default catalogue has no tracefs.
    let error = parse("sched:sched_switch", &Catalogue::default()).unwrap_err();
    assert!(
        error.faults[0]
            .reason
            .ends_with("there is no /sys/kernel/tracing/events")
    );
    assert!(
        error.faults[0]
            .hint
            .as_ref()
            .is_some_and(|hint| hint.contains("mount -t tracefs"))
    );
}
