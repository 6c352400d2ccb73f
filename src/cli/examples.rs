//! Ready one-liners: `help examples` prints all of them, a manual page those of its command.

use super::context::Program;

/// A task and the command lines that do it.
pub(crate) struct Example {
    /// The task, as a question or a phrase that ends in a colon or a question mark.
    pub(crate) task: &'static str,
    /// The command lines, each without the name of the program.
    pub(crate) lines: &'static [&'static str],
}

impl Example {
    /// Whether a line runs this command or part of a command (`stat`, `stat report`).
    pub(crate) fn uses(&self, command: &str) -> bool {
        let runs = |line: &&str| {
            let rest = line.strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.lines.iter().any(runs)
    }
}

/// All of them, in the order of `help examples`.
pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        task: "Where does the whole machine spend its time? Ten seconds, with call graphs, then the report:",
        lines: &["record -ag -- sleep 10", "report --stdio"],
    },
    Example {
        task: "The same for one program, or for one that already runs:",
        lines: &["record -g ./program", "record -g -p 1234 sleep 10"],
    },
    Example {
        task: "At 99 samples a second, in user space only:",
        lines: &["record -F 99 -e cpu-clock:u -g ./program"],
    },
    Example {
        task: "Who causes context switches, who causes page faults?",
        lines: &[
            "record -e context-switches -ag -- sleep 5",
            "record -e page-faults -g ./program",
        ],
    },
    Example {
        task: "Flat, by program and library, with sample counts:",
        lines: &["report --stdio -g none -n -s comm,dso"],
    },
    Example {
        task: "Callers below callees, without what the callees cost:",
        lines: &["report --stdio --no-children"],
    },
    Example {
        task: "Every sample as text; then only a few columns of it:",
        lines: &["script", "script -F comm,tid,time,event"],
    },
    Example {
        task: "What machine was this file recorded on, and how? Which events does it hold, and is it whole?",
        lines: &["report --header-only", "evlist -v", "data check"],
    },
    Example {
        task: "Which instructions of a function are hot?",
        lines: &["annotate --stdio main"],
    },
    Example {
        task: "A flame graph of the recording, or of a command that runs now:",
        lines: &["flamegraph", "flamegraph -- ./program"],
    },
    Example {
        task: "When were samples taken, second by second?",
        lines: &["heatmap"],
    },
    Example {
        task: "What runs right now, with call graphs:",
        lines: &["top -g"],
    },
    Example {
        task: "How many instructions does a program execute? Ten runs, then the whole machine every second:",
        lines: &[
            "stat -e cycles,instructions -r 10 ./program",
            "stat -a -I 1000",
        ],
    },
    Example {
        task: "Keep the counts of each CPU, and show them by socket later:",
        lines: &["stat record -a -A -- sleep 10", "stat report --per-socket"],
    },
    Example {
        task: "Which events are there?",
        lines: &["list", "list 'sched:*'"],
    },
    Example {
        task: "An event at a function of a program, with its first argument, recorded and removed:",
        lines: &[
            "probe -x /bin/bash readline '%di'",
            "record -e probe_bash:readline -a -- sleep 10",
            "probe -d probe_bash:readline",
        ],
    },
    Example {
        task: "Where is a function of the running kernel?",
        lines: &["kallsyms schedule"],
    },
    Example {
        task: "Read the recording on another machine, or with another tool:",
        lines: &["archive", "data convert --to-pprof profile.pb.gz"],
    },
    Example {
        task: "Keep a program for reports to come, and list what is kept:",
        lines: &[
            "buildid-cache -a ./program",
            "buildid-cache -l",
            "buildid-list",
        ],
    },
    Example {
        task: "Report without the cost of callees from now on:",
        lines: &["config report.children=false"],
    },
    Example {
        task: "Complete command lines in this shell, and write manual pages:",
        lines: &["completion bash", "help --man man/man1"],
    },
    Example {
        task: "Which version is this, and what is built in?",
        lines: &["version --build-options"],
    },
];

/// The page of `help examples`.
pub(crate) fn page(program: Program) -> String {
    let mut text = "EXAMPLES\n".to_owned();
    for Example { task, lines } in EXAMPLES {
        text.push_str(&format!("\n{task}\n"));
        for line in *lines {
            text.push_str(&format!("       {program} {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::cli::argv::{self, Request};
    use crate::cli::commands::{COMMANDS, PARTS, part};

    #[test]
    fn every_command_has_an_example() {
        for entry in COMMANDS.iter().chain(PARTS) {
            let found = EXAMPLES.iter().any(|example| example.uses(entry.name));
            assert!(found, "{}", entry.name);
        }
    }

    #[test]
    fn the_options_of_examples_exist() {
        for line in EXAMPLES.iter().flat_map(|example| example.lines) {
            let words: Vec<&str> = line.split(' ').collect();
            let entry = COMMANDS.iter().find(|entry| entry.name == words[0]);
            let entry = entry.expect("an example begins with a command");
            let part = words.get(1).and_then(|word| part(entry, word));
            let rest = words.iter().skip(if part.is_some() { 2 } else { 1 });
            let rest: Vec<OsString> = rest.map(OsString::from).collect();
            let command = (part.unwrap_or(entry).build)();
            let Ok(Request::Run(words)) = argv::normalise(&command, &rest) else {
                panic!("{line}");
            };
            let parser = command.no_binary_name(true).args_override_self(true);
            let parsed = parser.try_get_matches_from(words);
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn a_command_is_a_whole_word() {
        let example = |lines| Example { task: "", lines };
        assert!(example(&["stat report -A"]).uses("stat"));
        assert!(example(&["stat report -A"]).uses("stat report"));
        assert!(!example(&["statistics"]).uses("stat"));
    }
}
