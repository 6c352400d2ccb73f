//! `list` beside perf, and what it tells beyond that.

use std::fs;

use rperf_testkit::{Outcome, Scratch, golden, may_trace};

use super::beside::{Beside, Tool};
use super::record_events::sysfs;
use super::rperf;
use crate::kernel::rperf_in;

/// Command lines that any machine answers, some of them with nothing.
const LINES: &[&[&str]] = &[
    &["sw"],
    &["software"],
    &["--no-desc", "sw"],
    &["hw"],
    &["cache"],
    &["pmu"],
    &["sdt"],
    &["dummy"],
    &["clock"],
    &["msr"],
    &["cs"],
    &["--raw-dump", "sw"],
];

/// Those that tracefs answers.
const TRACEPOINTS: &[&[&str]] = &[
    &["tracepoint"],
    &["sched:*"],
    &["sched:sched_switch"],
    &["sch*:*wak*"],
    &["*:sched_switch"],
    &["[st]c[hp]*:*"],
    &["tim?r:*"],
    &["syscalls:sys_enter_*"],
    &["sched_wak"],
    &["mem"],
    &["cpu"],
    &["faults"],
    &["context"],
    &["hw", "sw", "sched:sched_wak*"],
    &["--raw-dump", "sched:*"],
];

#[test]
fn kinds_and_patterns_are_listed_alike() {
    const NAME: &str = "kinds_and_patterns_are_listed_alike";
    let Some(beside) = Beside::find(NAME) else {
        return;
    };
    for words in LINES {
        beside.assert_same(&[&["list"], *words].concat());
    }
    if !may_trace(NAME) {
        return;
    }
    for words in TRACEPOINTS {
        beside.assert_same(&[&["list"], *words].concat());
    }
    // Behind all events perf lists the metrics of its own tables.
    let [perf, ours] = [Tool::Perf, Tool::Rperf].map(|tool| beside.outcome(tool, &["list"]).stdout);
    let events = perf.split("\n\nMetric").next().unwrap_or(&perf);
    assert_eq!(golden::difference(events.trim_end(), ours.trim_end()), None);
    assert!(ours.contains("  rNNN "), "{ours}");
}

#[test]
fn events_of_pmus_are_listed_alike() {
    let Some(beside) = Beside::find("events_of_pmus_are_listed_alike") else {
        return;
    };
    let sysfs = sysfs(beside.path());
    for words in [
        &["pmu"][..],
        &["mem-"],
        &["imc"],
        &["reads"],
        &["tx-*"],
        &["--raw-dump", "pmu"],
    ] {
        let [perf, ours] = [Tool::Perf, Tool::Rperf].map(|tool| {
            let run = beside.run(tool, &[&["list"], words].concat());
            // A processor without tables of events.
            let run = run.env("SYSFS_PATH", &sysfs).env("PERF_CPUID", "None-0-0");
            run.finish().expect("both start").stdout
        });
        assert!(!ours.is_empty(), "{words:?}");
        assert_eq!(golden::difference(&perf, &ours), None, "{words:?}");
    }
}

fn list(words: &[&str]) -> Outcome {
    let run = rperf(&[&["list"], words].concat());
    run.finish().expect("rperf starts")
}

#[test]
fn what_is_not_there_is_said() {
    let none = list(&["nosuch_event"]);
    assert_eq!((none.status, none.stdout.as_str()), (1, ""));
    assert_eq!(
        none.stderr,
        "no event is called 'nosuch_event', or like it\n"
    );
    let metrics = list(&["metric"]);
    assert_eq!((metrics.status, metrics.stdout.as_str()), (0, ""));
    assert!(metrics.stderr.contains("no metrics"), "{}", metrics.stderr);
    let scratch = Scratch::new();
    let folder = scratch.path().display().to_string();
    let run = rperf(&["--debugfs-dir", &folder, "list", "sw", "tracepoint"]);
    let untraced = run.finish().expect("rperf starts");
    assert_eq!(untraced.status, 0, "{}", untraced.stderr);
    assert!(untraced.stdout.contains("page-faults OR faults"));
    assert!(untraced.stderr.contains("tracepoints are left out"));
    assert_eq!(list(&["--json", "--raw-dump"]).status, 129);
}

#[test]
fn capital_letters_matter_where_something_has_them() {
    let found = list(&["CPU-Clock"]).stdout;
    let row = format!("  {:<50} [Software event]\n", "cpu-clock");
    assert_eq!(found, row);
}

/// A tracefs with one tracepoint.
fn tracefs(scratch: &Scratch) -> String {
    let event = scratch.path().join("events/cook/cook_meal");
    fs::create_dir_all(&event).expect("created");
    fs::write(event.join("id"), "77\n").expect("written");
    let format = "name: cook_meal\nID: 77\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char dish[8];\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int minutes;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] guest;\toffset:20;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%s %d\", REC->dish, REC->minutes\n";
    fs::write(event.join("format"), format).expect("written");
    scratch.path().display().to_string()
}

#[test]
fn fields_of_a_tracepoint_are_told_with_their_types() {
    let scratch = Scratch::new();
    let folder = tracefs(&scratch);
    let told = |words: &[&str]| {
        let words = [&["--debugfs-dir", &folder, "list"], words].concat();
        let outcome = rperf(&words).finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };
    let row = format!("  {:<50} [Tracepoint event]\n", "cook:cook_meal");
    assert_eq!(told(&["cook"]), row);
    let number = format!("{row}       type 2, config 77\n");
    assert_eq!(told(&["--details", "cook:*"]), number);
    assert_eq!(told(&["--details", "--no-desc", "cook:*"]), row);
    let fields = [
        ("char dish[8]", "8 bytes, text"),
        ("int minutes", "4 bytes, signed"),
        ("__data_loc char guest[]", "any size, text"),
    ];
    let fields = fields.map(|(declared, room)| format!("       {declared:<40} {room}\n"));
    let behind = "       print fmt: \"%s %d\", REC->dish, REC->minutes\n       \
                  filter: --filter 'minutes > 1 && dish == \"calc\"'\n";
    let all = format!("{number}{}{behind}", fields.concat());
    assert_eq!(told(&["-v", "cook:cook_meal"]), all);
}

/// The fields that a real kernel has, and that it takes the filter.
#[test]
fn the_filter_that_is_shown_is_taken() {
    const NAME: &str = "list::the_filter_that_is_shown_is_taken";
    if !may_trace(NAME) {
        return;
    }
    let told = list(&["-v", "sched:sched_switch"]).stdout;
    assert!(told.contains("       char prev_comm[16] "), "{told}");
    let filter = told.lines().find_map(|line| {
        let quoted = line.trim_start().strip_prefix("filter: --filter '")?;
        quoted.strip_suffix('\'')
    });
    let filter = filter.expect("a filter");
    let scratch = Scratch::new();
    let words = ["record", "-e", "sched:sched_switch", "--filter", filter];
    let run = rperf_in(&scratch, &[&words[..], &["true"]].concat());
    let recorded = run.finish().expect("rperf starts");
    assert_eq!(recorded.status, 0, "{filter}: {}", recorded.stderr);
}

#[test]
fn events_as_json() {
    let found = list(&["-j", "page-faults"]).stdout;
    let object = "{\n\t\"EventName\": \"page-faults\",\n\t\"EventAlias\": \"faults\",\n\
                  \t\"EventType\": \"Software event\",\n\t\"Encoding\": \"type=1,config=0x2\"\n}";
    assert_eq!(found, format!("[\n{object}\n]\n"));
    assert_eq!(list(&["--json", "nosuch_event"]).stdout, "[\n]\n");
    let values: serde_json::Value =
        serde_json::from_str(&list(&["-j", "-v"]).stdout).expect("all events are JSON");
    assert!(values.as_array().is_some_and(|all| all.len() > 15));
    let scratch = Scratch::new();
    let run = rperf(&["list", "-j", "-o", "events.json", "page-faults"]);
    let written = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!((written.status, written.stdout.as_str()), (0, ""));
    let text = fs::read_to_string(scratch.path().join("events.json")).expect("written");
    assert_eq!(text, found);
}

#[test]
fn forms_come_with_examples() {
    let told = list(&["rNNN", "mem:"]).stdout;
    for part in [
        "[Raw hardware event descriptor]\n       -e r01d2: ",
        "[Hardware breakpoint]\n       -e mem:0x1000/8:w: ",
    ] {
        assert!(told.contains(part), "{told}");
    }
}
