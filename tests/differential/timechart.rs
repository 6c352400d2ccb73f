//! `timechart`: the same names of events, and the same line `Written …`, as perf 6.1.

use std::process::Stdio;

use super::{Tool, Tools, assert_alike};
use crate::kernel::can_trace;

/// Options of `timechart record`.
const RECORDED: &[&[&str]] = &[&[], &["-T"], &["-P"], &["-I"], &["-g"], &["-P", "-I"]];

/// The option of `timechart record` with which perf made a recording (empty if none), and the options of the `timechart` command
/// that reads it.
const DRAWN: &[(&str, &[&str])] = &[
    ("", &[]),
    ("", &["-p", "sh"]),
    ("", &["-n", "3", "-w", "800"]),
    ("", &["-T", "--highlight", "1000"]),
    ("", &["-P"]),
    ("-I", &["--io-skip-eagain", "--io-min-time", "1us"]),
];

/// The events of a recording and their attributes, as perf's `evlist -v` prints them.
fn listed_events(tools: &Tools, file: &str) -> String {
    let listed = tools.outcome(Tool::Perf, &["evlist", "-v", "-i", file]);
    let lines = listed
        .stdout
        .lines()
        .filter(|line| line.contains(": type: "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn timecharts_have_the_same_events_and_text() {
    const NAME: &str = "timecharts_have_the_same_events_and_text";
    if !can_trace(NAME) {
        return;
    }
    let Some(tools) = Tools::find_for(NAME) else {
        return;
    };
    let mut differences = Vec::new();
    for options in RECORDED {
        let mut events_of_tools = Vec::new();
        for tool in [Tool::Perf, Tool::Rperf] {
            let name = format!("{tool:?}{}.data", options.concat());
            let mut command = std::process::Command::new(tools.program(tool));
            // Standard output is not a pipe: perf would write the recording to it.
            let done = command
                .args(
                    [
                        &["timechart", "record"],
                        *options,
                        &["--", "sh", "-c", "sleep 0.05; true"],
                    ]
                    .concat(),
                )
                .current_dir(tools.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .expect("the tool starts");
            assert!(done.success(), "{tool:?} {options:?}");
            let path = tools.path().join("perf.data");
            std::fs::rename(path, tools.path().join(&name)).expect("a recording");
            events_of_tools.push(listed_events(&tools, &name));
        }
        // The names of tracepoints, `system:name`, without modifiers. The side-band event, `dummy:HG`, is not compared.
        let event_names = |text: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(": type"));
            let names =
                lines.map(|(name, _)| name.split(':').take(2).collect::<Vec<_>>().join(":"));
            names
                .filter(|name| !name.starts_with("dummy"))
                .collect::<Vec<_>>()
        };
        let [theirs, ours] = [0, 1].map(|tool| event_names(&events_of_tools[tool]));
        if theirs.is_empty() || theirs != ours {
            differences.push(format!(
                "{options:?}:\n{}\n{}",
                events_of_tools[0], events_of_tools[1]
            ));
        }
    }
    for (record_option, options) in DRAWN {
        let file = format!("Perf{record_option}.data");
        let words = [&["timechart", "-i", &file, "-o", "a.svg"], *options].concat();
        let [perf, rperf] = tools.outcomes(&words, b"");
        let line = |text: &str| {
            text.lines()
                .find(|line| line.starts_with("Written"))
                .map(str::to_owned)
        };
        if line(&perf.stderr).is_none() || line(&perf.stderr) != line(&rperf.stderr) {
            differences.push(format!("{words:?}: {} and {}", perf.stderr, rperf.stderr));
        }
    }
    assert_alike(&differences);
}
