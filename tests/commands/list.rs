//! `list` compared with perf, and what only rperf prints.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rperf_testkit::{Outcome, Run, Scratch, golden, may_trace, skip};

use super::record_events::sysfs;
use super::rperf;
use crate::kernel::rperf_in;
use crate::tools::{Tool, Tools};

/// Arguments compared even without tracefs: kinds, and words in the names of events other than tracepoints. With tracefs, the
/// words may also match tracepoints. Some list nothing on some machines.
const NON_TRACEPOINTS: &[&[&str]] = &[
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

/// Arguments compared only with tracefs: all may select tracepoints, and the plain words also other events.
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
    const NAME: &str = "commands::list::kinds_and_patterns_are_listed_alike";
    let Some(tools) = Tools::find_for(NAME) else {
        return;
    };
    for words in NON_TRACEPOINTS {
        tools.assert_same(&[&["list"], *words].concat());
    }
    if !may_trace(NAME) {
        return;
    }
    for words in TRACEPOINTS {
        tools.assert_same(&[&["list"], *words].concat());
    }
    // Metrics, which follow the events, are those of each tool's tables: they are not compared.
    let [perf, ours] = [Tool::Perf, Tool::Rperf].map(|tool| tools.outcome(tool, &["list"]).stdout);
    let [perf, ours] = [&perf, &ours].map(|text| text.split("\nMetric").next().unwrap_or(text));
    assert_eq!(golden::difference(perf.trim_end(), ours.trim_end()), None);
    assert!(ours.contains("  rNNN "), "{ours}");
}

#[test]
fn events_of_pmus_are_listed_alike() {
    let Some(tools) = Tools::find_for("commands::list::events_of_pmus_are_listed_alike") else {
        return;
    };
    // A made-up sysfs, with PMUs that this machine need not have.
    let sysfs = sysfs(tools.path());
    for words in [
        &["pmu"][..],
        &["mem-"],
        &["imc"],
        &["reads"],
        &["tx-*"],
        &["--raw-dump", "pmu"],
    ] {
        let [perf, ours] = [Tool::Perf, Tool::Rperf].map(|tool| {
            let run = tools.run(tool, &[&["list"], words].concat());
            // A processor without event tables.
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
fn unknown_events_are_reported() {
    let none = list(&["nosuch_event"]);
    assert_eq!((none.status, none.stdout.as_str()), (1, ""));
    assert_eq!(
        none.stderr,
        "no event matches 'nosuch_event'; 'list' without arguments shows all events\n"
    );
}

#[test]
fn json_and_raw_dump_exclude_each_other() {
    let refused = list(&["--json", "--raw-dump"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (129, ""));
    let message = "--json and --raw-dump exclude each other";
    assert!(refused.stderr.starts_with(message), "{}", refused.stderr);
}

#[test]
fn without_tracefs_other_events_are_listed() {
    let scratch = Scratch::new();
    let folder = scratch.path().display().to_string();
    let run = rperf(&["--debugfs-dir", &folder, "list", "sw", "tracepoint"]);
    let untraced = run.finish().expect("rperf starts");
    assert_eq!(untraced.status, 0, "{}", untraced.stderr);
    assert!(untraced.stdout.contains("page-faults OR faults"));
    assert!(untraced.stderr.starts_with("tracepoints are not listed"));
}

#[test]
fn a_pattern_with_capital_letters_finds_lower_case_names() {
    let found = list(&["CPU-Clock"]).stdout;
    let row = format!("  {:<50} [Software event]\n", "cpu-clock");
    assert_eq!(found, row);
}

/// Makes the scratch folder look like a tracefs with one tracepoint; returns the folder's path.
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
fn a_hint_says_how_to_mount_tracefs() {
    let scratch = Scratch::new();
    let folder = scratch.path().display().to_string();
    let words = ["--debugfs-dir", &folder, "list", "cook:*"];
    let outcome = rperf(&words).finish().expect("rperf starts");
    let hint = format!("hint: mount tracefs: 'mount -t tracefs nodev {folder}'\n");
    assert!(outcome.stderr.contains(&hint), "{}", outcome.stderr);
}

#[test]
fn fields_of_a_tracepoint_are_listed_with_types() {
    let scratch = Scratch::new();
    let folder = tracefs(&scratch);
    let output = |words: &[&str]| {
        let words = [&["--debugfs-dir", &folder, "list"], words].concat();
        let outcome = rperf(&words).finish().expect("rperf starts");
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };
    let row = format!("  {:<50} [Tracepoint event]\n", "cook:cook_meal");
    assert_eq!(output(&["cook"]), row);
    let row_and_number = format!("{row}       type 2, config 77\n");
    assert_eq!(output(&["--details", "cook:*"]), row_and_number);
    assert_eq!(output(&["--details", "--no-desc", "cook:*"]), row);
    let fields = [
        ("char dish[8]", "8 bytes, text"),
        ("int minutes", "4 bytes, signed"),
        ("__data_loc char guest[]", "variable size, text"),
    ];
    let fields =
        fields.map(|(declared, size_and_kind)| format!("       {declared:<40} {size_and_kind}\n"));
    let after = "       print fmt: \"%s %d\", REC->dish, REC->minutes\n       \
                  filter: --filter 'minutes > 1 && dish == \"calc\"'\n";
    let all = format!("{row_and_number}{}{after}", fields.concat());
    assert_eq!(output(&["-v", "cook:cook_meal"]), all);
}

/// Checks the fields of a real tracepoint, and that the kernel accepts the filter.
#[test]
fn the_listed_filter_is_accepted() {
    const NAME: &str = "commands::list::the_listed_filter_is_accepted";
    if !may_trace(NAME) {
        return;
    }
    let output = list(&["-v", "sched:sched_switch"]).stdout;
    assert!(output.contains("       char prev_comm[16] "), "{output}");
    let filter = output.lines().find_map(|line| {
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

/// The metrics of generic events have perf 7.2's names and groups, and are listed for a processor without event tables.
#[test]
fn metrics_of_generic_events_need_no_tables() {
    let listed = |words: &[&str]| {
        let run = rperf(&[&["list"], words].concat()).env("PERF_CPUID", "None-0-0");
        run.finish().expect("rperf starts")
    };
    let metrics = listed(&["--raw-dump", "metrics"]).stdout;
    let names: Vec<&str> = metrics.split_whitespace().collect();
    for name in [
        "CPUs_utilized",
        "cs_per_second",
        "migrations_per_second",
        "page_faults_per_second",
        "insn_per_cycle",
        "cycles_frequency",
        "branch_frequency",
        "branch_miss_rate",
        "frontend_cycles_idle",
        "backend_cycles_idle",
        "stalled_cycles_per_instruction",
        "l1d_miss_rate",
        "llc_miss_rate",
        "l1i_miss_rate",
        "dtlb_miss_rate",
        "itlb_miss_rate",
        "l1_prefetch_miss_rate",
    ] {
        assert!(names.contains(&name), "{name}: {metrics}");
    }
    let groups = listed(&["--raw-dump", "metricgroups"]).stdout;
    assert!(
        groups.contains("Default Default2 Default3 Default4 "),
        "{groups}"
    );
    // A metric in one of these groups is listed after the group's name.
    let one = listed(&["--raw-dump", "llc_miss_rate"]).stdout;
    assert_eq!(one, "Default2 llc_miss_rate ");
    let text = listed(&["CPUs_utilized"]).stdout;
    assert!(
        text.contains("\nDefault:\n  CPUs_utilized\n       ["),
        "{text}"
    );
}

/// A word such as `race` or `rcafe`, without decimal digits, is a raw code only if no name matches it.
#[test]
fn words_that_may_be_raw_codes_are_looked_up_as_names_first() {
    let code = list(&["rcafe"]).stdout;
    assert!(code.starts_with("  rcafe "), "{code}");
    if !may_trace("commands::list::words_that_may_be_raw_codes_are_looked_up_as_names_first") {
        return;
    }
    // The names of some tracepoints contain "race".
    let race = list(&["race"]).stdout;
    assert!(!race.contains("Raw hardware event"), "{race}");
    let read = list(&["read"]).stdout;
    assert!(read.contains("[Tracepoint event]"), "{read}");
    assert!(!read.contains("Raw hardware event"), "{read}");
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
    // Any machine has more than 15: software events, tool events such as `duration_time`, and syntaxes such as `rNNN`.
    assert!(values.as_array().is_some_and(|all| all.len() > 15));
    let scratch = Scratch::new();
    let run = rperf(&["list", "-j", "-o", "events.json", "page-faults"]);
    let written = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!((written.status, written.stdout.as_str()), (0, ""));
    let text = fs::read_to_string(scratch.path().join("events.json")).expect("written");
    assert_eq!(text, found);
}

#[test]
fn event_syntaxes_have_examples() {
    let output = list(&["rNNN", "mem:"]).stdout;
    for part in [
        "[Raw hardware event descriptor]\n       -e r01d2: ",
        "[Hardware breakpoint]\n       -e mem:0x1000/8:w: ",
    ] {
        assert!(output.contains(part), "{output}");
    }
}

/// Returns what `list` prints with the tracefs in `folder`; it must end within 60 seconds.
fn list_in(folder: &str, words: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_rperf");
    let line = [&["60", program, "--debugfs-dir", folder, "list"], words].concat();
    let outcome = Run::new("timeout").args(line).finish();
    let outcome = outcome.expect("timeout starts");
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

/// The listed names are those of the folders of events. Nothing is cached between runs, and no file of an event is opened: in the
/// added events the files are FIFOs, so that opening one would block.
#[test]
fn the_current_tracepoints_are_listed() {
    let scratch = Scratch::new();
    let folder = tracefs(&scratch);
    let add_event = |name: &str| {
        let event = scratch.path().join("events/cook").join(name);
        fs::create_dir_all(&event).expect("created");
        for file in ["id", "format"] {
            let made = Run::new("mkfifo").args([event.join(file)]).finish();
            assert_eq!(made.expect("mkfifo starts").status, 0);
        }
    };
    let row = |name: &str| format!("  {:<50} [Tracepoint event]\n", format!("cook:{name}"));
    add_event("cook_soup");
    let meal = row("cook_meal");
    assert_eq!(
        list_in(&folder, &["tracepoint"]),
        meal.clone() + &row("cook_soup")
    );
    // As if a module were loaded, with an event whose name is longer than its column.
    let long = "cook_breakfast_for_all_who_stay_in_this_house_tonight";
    add_event(long);
    let all = format!(
        "  cook:{long} [Tracepoint event]\n{meal}{}",
        row("cook_soup")
    );
    assert_eq!(list_in(&folder, &["cook:*"]), all);
    fs::remove_dir_all(scratch.path().join("events/cook/cook_meal")).expect("removed");
    assert!(!list_in(&folder, &["tracepoint"]).contains("cook_meal"));
}

/// The systems of the listed events are compared with tracefs, the events are not.
#[test]
fn pipes_get_one_event_per_line() {
    if !may_trace("commands::list::pipes_get_one_event_per_line") {
        return;
    }
    // Events of this machine may come and go between the listing and the reading of tracefs.
    let mut difference = String::new();
    for _ in 0..5 {
        let (listed, there) = (listed_systems(), existing_systems());
        assert!(!listed.is_empty(), "some tracepoints always exist");
        if listed == there {
            return;
        }
        difference = format!("{listed:?}\n{there:?}");
    }
    panic!("{difference}");
}

/// Whether a system is not a group of probes, which other tests add and remove during this test.
fn is_permanent(name: &str) -> bool {
    !name.starts_with("rperf") && !name.contains("probe")
}

/// Returns the systems of the tracepoints that `list` prints; each line must be one event.
fn listed_systems() -> BTreeSet<String> {
    let text = list(&["tracepoint"]).stdout;
    let system = |line: &str| {
        let name = line.strip_prefix("  ").and_then(|line| {
            let name = line.strip_suffix(" [Tracepoint event]")?.trim_end();
            (!name.contains(char::is_whitespace)).then_some(name)
        });
        let name = name.unwrap_or_else(|| panic!("{line}"));
        name.split_once(':').map(|(system, _)| system.to_owned())
    };
    let systems = text.lines().filter_map(system);
    systems.filter(|name| is_permanent(name)).collect()
}

/// Returns the systems in tracefs with at least one event.
fn existing_systems() -> BTreeSet<String> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    };
    let systems = folders(Path::new("/sys/kernel/tracing/events")).into_iter();
    let systems = systems.filter(|path| {
        let mut events = folders(path).into_iter();
        events.any(|event| event.join("id").exists())
    });
    let names = systems.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.filter(|name| is_permanent(name)).collect()
}

#[test]
fn a_terminal_gets_a_title() {
    let program = env!("CARGO_BIN_EXE_rperf");
    let line = format!("{program} list dummy");
    let run = Run::new("script").args(["-qec", &line, "/dev/null"]);
    // A PAGER of only `cat` would mean no pager, and without a pager there is no title.
    let Ok(shown) = run.env("PAGER", "cat -u").finish() else {
        return skip(
            "commands::list::a_terminal_gets_a_title",
            "there is no script(1)",
        );
    };
    let row = format!("  {:<50} [Software event]", "dummy");
    let title = "List of pre-defined events (to be used in -e or -M):";
    let lines: Vec<&str> = shown.stdout.lines().map(str::trim_end).collect();
    let expected = ["", title, "", row.as_str()];
    assert!(lines.ends_with(&expected), "{shown:?}");
}

#[test]
fn the_definition_of_a_name_is_listed() {
    let faults = list(&["-v", "page-faults"]).stdout;
    for part in [
        "  page-faults OR faults ",
        "\n       type 1, config 0x2\n",
        "\n       modifiers ukhG",
        "; can be opened by this user",
    ] {
        assert!(faults.contains(part), "{faults}");
    }
    let cycles = list(&["-v", "cycles"]);
    // stdout has a row if the event can be counted; otherwise stderr has a message with the same numbers.
    let output = cycles.stdout + &cycles.stderr;
    assert!(output.contains("type 0, config 0x0"), "{output}");
    if !may_trace("commands::list::the_definition_of_a_name_is_listed") {
        return;
    }
    let call = list(&["-v", "syscalls:sys_enter_openat"]).stdout;
    let number = format!("\n       system call {}\n", libc::SYS_openat);
    assert!(call.contains(&number), "{call}");
    for declared in [
        "int __syscall_nr ",
        "const char * filename ",
        "umode_t mode ",
    ] {
        assert!(call.contains(&format!("\n       {declared}")), "{call}");
    }
}
