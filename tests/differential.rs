//! The same command line under the perf of Linux and under rperf, over recordings of both tools.
//!
//! Text is compared line by line. What differs on purpose stands in docs/compatibility.md and is normalised here, nowhere else.

mod compare;
mod fixtures;
mod recordings;
mod report;
mod tracepoints;
mod workloads;

use std::path::PathBuf;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

pub(crate) use self::compare::difference;
use self::recordings::{RECORDINGS, Recording, Target};
pub(crate) use self::report::compare_texts;
use self::workloads::Workloads;

/// The two tools, with a build-id cache of their own.
pub(crate) struct Tools {
    perf: PathBuf,
    scratch: Scratch,
}

impl Tools {
    fn find() -> Option<Self> {
        Some(Self {
            perf: real_perf()?,
            scratch: Scratch::new(),
        })
    }

    /// The program of that name, to be run in the scratch directory, which is also its home.
    fn run(&self, tool: Tool, words: &[&str]) -> Run {
        let run = match tool {
            Tool::Perf => Run::new(&self.perf),
            Tool::Rperf => Run::new(env!("CARGO_BIN_EXE_rperf")),
        };
        let home = self.scratch.path();
        run.args(words).within(home).env("HOME", home)
    }

    fn outcome(&self, tool: Tool, words: &[&str]) -> Outcome {
        self.run(tool, words)
            .finish()
            .unwrap_or_else(|error| panic!("{tool:?} {words:?} does not start: {error}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Perf,
    Rperf,
}

/// What `script` is asked for, over every recording.
const SCRIPT: &[&[&str]] = &[&[], &["-F", "comm,pid,tid,time,event,ip,sym,dso"]];

/// What is asked for over one small recording with callchains and one without.
const FIELDS: &[&[&str]] = &[
    &["-F", "comm"],
    &["-F", "pid"],
    &["-F", "event,ip"],
    &["-F", "time,period"],
    &["-F", "ip,sym,symoff"],
    &["-F", "sym"],
    &["-F", "-dso"],
    &["-F", "-ip"],
    &["-F", "-symoff,-period"],
    &["-F", "+pid"],
    &["-F", "-comm,-tid"],
    &["-F", "sw:comm,ip,dso"],
    &["-F", "sw:-time"],
    &["-F", "sw:comm", "-F", "hw:time"],
    &["--fields", "tid", "--fields", "comm,time"],
    &["--ns"],
    &["--reltime"],
    &["--deltatime", "--ns", "-F", "comm,time,ip"],
    &["-G"],
    &["--max-stack", "2"],
    &["--max-stack", "0"],
    &["--stop-bt", "do_syscall_64,main"],
    &["--show-kernel-path"],
    &["--no-inline"],
    &["--comms", "frames,perf-exec"],
    &["--dsos", "[kernel.kallsyms]"],
    &["-S", "leaf,clear_page_erms,ffffffff81000000"],
    &["--time", "10%/2"],
    &["--time", "0%-10%,40%-50%"],
    &["--reltime", "--time", "0.01,0.02 0.05,0.06"],
];

/// What both tools refuse, with the same status.
const REFUSED: &[(&[&str], &str)] = &[
    (&["-F", "nosuch"], "Invalid field requested."),
    (
        &["-F", "+time,comm"],
        "Cannot mix +-field with overridden fields",
    ),
    (
        &["-F", "nosuch:comm"],
        "Invalid event type in field string.",
    ),
    (
        &["-F", ""],
        "Cannot set fields to 'none' for all event types.",
    ),
    (
        &["-F", "sw:trace"],
        "'trace' not valid for software events.",
    ),
    (
        &["-F", "hw:"],
        "hardware events do not exist. Remove corresponding -F option to proceed.",
    ),
    (
        &["-F", "comm,addr"],
        "event do not have ADDR attribute set. Cannot print 'addr' field.",
    ),
    (
        &["-F", "comm,cpu"],
        "event do not have CPU attribute set. Cannot print 'cpu' field.",
    ),
    (
        &["-F", "-sym"],
        "Display of offsets requested but symbol is notselected.",
    ),
    (
        &["-C", "0"],
        "File does not contain CPU events. Remove -C option to proceed.",
    ),
    (
        &["--reltime", "--deltatime"],
        "reltime and deltatime - the two don't get along well.",
    ),
    (&["--time", "5,4"], "Invalid time string"),
];

#[test]
fn script_prints_the_same_lines() {
    let Some(tools) = Tools::find() else {
        return skip("script_prints_the_same_lines", "there is no perf");
    };
    let workloads = Workloads::build(tools.scratch.path());
    let mut differences = Vec::new();
    for recording in RECORDINGS {
        for recorder in [Tool::Perf, Tool::Rperf] {
            let Some(file) = recording.make(&tools, &workloads, recorder) else {
                continue;
            };
            for words in SCRIPT {
                differences.extend(compare_script(&tools, &file, words));
            }
            if recorder == Tool::Perf && recording.name.starts_with("frames, ") {
                for words in FIELDS {
                    differences.extend(compare_script(&tools, &file, words));
                }
            }
        }
    }
    workloads.clean_up();
    assert!(
        differences.is_empty(),
        "{} command lines print something else:\n\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn script_refuses_with_the_same_words() {
    let Some(tools) = Tools::find() else {
        return skip("script_refuses_with_the_same_words", "there is no perf");
    };
    let recording = Recording {
        name: "a shell",
        options: &["-e", "cpu-clock:u", "-c", "50000"],
        target: Target::Command(&[
            "sh",
            "-c",
            "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done",
        ]),
    };
    let workloads = Workloads::none();
    let Some(file) = recording.make(&tools, &workloads, Tool::Perf) else {
        return skip("script_refuses_with_the_same_words", "perf records nothing");
    };
    for (words, message) in REFUSED {
        let line = [&["script", "-i", &file], *words].concat();
        let outcomes = [Tool::Perf, Tool::Rperf].map(|tool| tools.outcome(tool, &line));
        for outcome in &outcomes {
            assert!(outcome.stderr.contains(message), "{line:?}: {outcome:?}");
        }
        assert_eq!(outcomes[0].status, outcomes[1].status, "{line:?}");
        assert_eq!(outcomes[1].stdout, "", "{line:?}");
    }
}

/// `script` over one file by both tools: what differs, with its command line.
fn compare_script(tools: &Tools, file: &str, words: &[&str]) -> Option<String> {
    let line = [&["script", "-i", file], words].concat();
    let perf = tools.outcome(Tool::Perf, &line);
    let rperf = tools.outcome(Tool::Rperf, &line);
    let shown = line.join(" ");
    assert_eq!(perf.status, 0, "perf {shown}: {}", perf.stderr);
    if rperf.status != 0 {
        return Some(format!(
            "{shown}\n  status {}: {}",
            rperf.status, rperf.stderr
        ));
    }
    assert!(
        !perf.stdout.is_empty(),
        "{shown} prints nothing: the recording is empty"
    );
    let found = difference(&perf.stdout, &rperf.stdout)?;
    Some(format!("{shown}\n{found}"))
}
