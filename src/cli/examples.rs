//! Example command lines: `help examples` prints examples by task; `-h` and the manual of a command print examples of the
//! command.

mod by_command;

use super::context::ProgramName;
use super::shared::wrap::wrap;

pub(crate) use self::by_command::of;

/// The width of the page, in columns.
const WIDTH: usize = 80;
/// The indentation of a task, in columns.
const TASK_INDENT: usize = 3;

/// A task and the command lines for it.
pub(crate) struct Example {
    /// The section of the page.
    section: &'static str,
    /// The task, ending in a colon or a question mark.
    pub(crate) task: &'static str,
    /// The command lines without the program's name.
    pub(crate) lines: &'static [&'static str],
}

impl Example {
    /// Whether a line runs this command or subcommand (`stat`, `stat report`).
    pub(crate) fn uses(&self, command: &str) -> bool {
        let runs = |line: &&str| {
            let rest = line.strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.lines.iter().any(runs)
    }
}

/// All examples, in the order of `help examples`.
pub(crate) const EXAMPLES: &[Example] = &[
    Example {
        section: "Record",
        task: "Profile the whole system for ten seconds with call graphs, then show the report:",
        lines: &["record -ag -- sleep 10", "report --stdio"],
    },
    Example {
        section: "Record",
        task: "Profile one program, or a running process for ten seconds:",
        lines: &["record -g -- ./program", "record -g -p 1234 -- sleep 10"],
    },
    Example {
        section: "Record",
        task: "Sample at 99 Hz, user space only:",
        lines: &["record -F 99 -e cpu-clock:u -g -- ./program"],
    },
    Example {
        section: "Record",
        task: "Record programs built without frame pointers: copy stacks, or unwind them while recording:",
        lines: &[
            "record --call-graph dwarf -- ./program",
            "record --call-graph dwarf --unwind live -- ./program",
        ],
    },
    Example {
        section: "Record",
        task: "Record context switches, or page faults, with the code that causes them:",
        lines: &[
            "record -e context-switches -ag -- sleep 5",
            "record -e page-faults -g -- ./program",
        ],
    },
    Example {
        section: "Record",
        task: "Filter in the kernel: record only the hits of a tracepoint, or the samples of another event, that match a filter:",
        lines: &[
            "record -e sched:sched_switch --filter 'prev_pid != 0' -a -- sleep 5",
            "record -e cpu-clock --filter 'cpu == 0' -a -- sleep 5",
        ],
    },
    Example {
        section: "Record",
        task: "Find the functions that cause the events of a tracepoint:",
        lines: &[
            "record -g -e sched:sched_switch -a -- sleep 5",
            "report --stdio --no-children -s symbol",
        ],
    },
    Example {
        section: "Record",
        task: "Find out where a program waits: record off-CPU time with callchains:",
        lines: &[
            "record --off-cpu -g -- ./program",
            "report --stdio --no-children",
        ],
    },
    Example {
        section: "Record",
        task: "Flight recorder: keep the newest records in memory, write them at SIGUSR2:",
        lines: &["record -a --overwrite --switch-output=signal -- sleep 60"],
    },
    Example {
        section: "Report",
        task: "Show a flat profile by command and object, with sample counts:",
        lines: &["report --stdio -g none -n -s comm,dso"],
    },
    Example {
        section: "Report",
        task: "Show self overhead only, with callers below each function:",
        lines: &["report --stdio --no-children"],
    },
    Example {
        section: "Report",
        task: "Show one command and one time range only:",
        lines: &["report --stdio --comms program --time 10%-50%"],
    },
    Example {
        section: "Report",
        task: "Print every sample as text, with selected fields, as JSON, or as CSV:",
        lines: &[
            "script",
            "script -F comm,tid,time,event",
            "script --json",
            "script --csv",
        ],
    },
    Example {
        section: "Report",
        task: "Annotate the instructions of the hottest functions, or of one function:",
        lines: &["annotate --stdio", "annotate --stdio compute"],
    },
    Example {
        section: "Report",
        task: "Draw a flame graph of the recording, or record a command and draw it:",
        lines: &["flamegraph", "flamegraph -- ./program"],
    },
    Example {
        section: "Report",
        task: "Show, or draw, what changed between two recordings; fail if a share has grown by more than 5 percentage points:",
        lines: &[
            "diff",
            "flamegraph --diff perf.data.old",
            "diff --fail-above 5%",
        ],
    },
    Example {
        section: "Report",
        task: "Draw when samples were taken, second by second:",
        lines: &["heatmap"],
    },
    Example {
        section: "Report",
        task: "Draw the times between context switches of each thread, or count them by size:",
        lines: &[
            "record -e sched:sched_switch -a -- sleep 5",
            "heatmap --from sched:sched_switch --to sched:sched_switch",
            "histogram --from sched:sched_switch --to sched:sched_switch",
        ],
    },
    Example {
        section: "Report",
        task: "Show how long tasks waited for a CPU, which tasks ran instead, when each ran, and where tasks sleep; repeat the load:",
        lines: &[
            "sched record -- sleep 10",
            "sched latency -s max",
            "sched timehist --summary",
            "sched map --compact",
            "sched latency --antagonists",
            "sched off-cpu -o off-cpu.svg",
            "sched perfetto -o sched.pftrace",
            "sched replay -r 1",
        ],
    },
    Example {
        section: "Report",
        task: "Record statistics of the scheduler (CONFIG_SCHEDSTATS), show and compare them:",
        lines: &[
            "sched stats record -- sleep 1",
            "sched stats report",
            "sched stats diff",
        ],
    },
    Example {
        section: "Report",
        task: "Compare how long tasks waited for a CPU in two recordings:",
        lines: &[
            "sched record -o before.data -- sleep 10",
            "sched record -o after.data -- sleep 10",
            "sched diff before.data after.data",
        ],
    },
    Example {
        section: "Report",
        task: "Draw what each CPU and task did over time, and open output.svg in a web browser:",
        lines: &["timechart record -- ./program", "timechart"],
    },
    Example {
        section: "Report",
        task: "Show how long interrupts, softirqs and work items ran, how long they were pending, and each run:",
        lines: &[
            "kwork record -- sleep 10",
            "kwork report",
            "kwork latency",
            "kwork timehist",
        ],
    },
    Example {
        section: "Report",
        task: "Show who allocates kernel memory, and what was not freed:",
        lines: &[
            "kmem record --slab --page -- ./program",
            "kmem stat --caller -s bytes -l 20",
            "kmem stat --caller --live -s bytes -l 20",
            "kmem stat --page --caller -l 20",
            "kmem usage -l 20",
            "kmem leaks --suspects",
            "kmem fragmentation",
        ],
    },
    Example {
        section: "Report",
        task: "Compare the kernel memory of two runs:",
        lines: &[
            "kmem record --slab -o before.data -- ./program",
            "kmem record --slab -o after.data -- ./program",
            "kmem diff before.data after.data",
        ],
    },
    Example {
        section: "Report",
        task: "Show which callers waited for locks of the kernel, and for which locks:",
        lines: &[
            "lock record -a -- sleep 10",
            "lock contention -E 10",
            "lock contention -l -E 10",
            "lock report",
            "lock info",
        ],
    },
    Example {
        section: "Report",
        task: "Show the CPU time of tasks, without that of interrupts:",
        lines: &["kwork -k sched,irq,softirq record -- sleep 10", "kwork top"],
    },
    Example {
        section: "Report",
        task: "Show machine, command line and events of a recording, and check it for damage:",
        lines: &["report --header-only", "evlist -v", "data check"],
    },
    Example {
        section: "Report",
        task: "Print the system calls of a program, or only how many there are and how long they take:",
        lines: &["trace -- ./program", "trace -s -- ./program"],
    },
    Example {
        section: "Count",
        task: "Count cycles and instructions of a program, mean of ten runs:",
        lines: &["stat -e cycles,instructions -r 10 -- ./program"],
    },
    Example {
        section: "Count",
        task: "Count the whole system, printed every second, or per CPU:",
        lines: &["stat -a -I 1000 -- sleep 10", "stat -a -A -- sleep 5"],
    },
    Example {
        section: "Count",
        task: "Save the counts of each CPU, show them per socket later:",
        lines: &["stat record -a -A -- sleep 10", "stat report --per-socket"],
    },
    Example {
        section: "Live",
        task: "Show what runs right now, with call graphs, or as blocks of text:",
        lines: &["top -g", "top --roll"],
    },
    Example {
        section: "Live",
        task: "Show why the threads of a process wait for each other:",
        lines: &["lock deadlock -p 1234"],
    },
    Example {
        section: "Events and probes",
        task: "List events, tracepoints of a subsystem, or the fields of a tracepoint:",
        lines: &["list", "list 'sched:*'", "list -v sched:sched_switch"],
    },
    Example {
        section: "Events and probes",
        task: "Trace a function of a program with its first argument: add a probe, record, delete it:",
        lines: &[
            "probe -x /bin/bash readline '%di'",
            "record -e probe_bash:readline -a -- sleep 10",
            "probe -d probe_bash:readline",
        ],
    },
    Example {
        section: "Events and probes",
        task: "Trace a function of a library, for one recording only:",
        lines: &["record --probe 'libc.so.6:malloc size=%di' -- ./program"],
    },
    Example {
        section: "Events and probes",
        task: "Trace USDT probes: store those of a program in the cache, list and record them:",
        lines: &[
            "buildid-cache --add ./program",
            "list sdt",
            "record -e sdt_program:step -- ./program",
        ],
    },
    Example {
        section: "Events and probes",
        task: "Find the address of a kernel function:",
        lines: &["kallsyms schedule"],
    },
    Example {
        section: "Recipes",
        task: "Which code misses the caches?",
        lines: &[
            "stat -e cache-references,cache-misses -- ./program",
            "record -e cache-misses -c 1000 -g -- ./program",
        ],
    },
    Example {
        section: "Recipes",
        task: "Who allocates memory, and how much?",
        lines: &[
            "record --probe 'libc.so.6:malloc size=%di' -g -- ./program",
            "report --stdio -s size,symbol",
        ],
    },
    Example {
        section: "Recipes",
        task: "Who retransmits TCP segments?",
        lines: &[
            "record -e tcp:tcp_retransmit_skb -ag -- sleep 10",
            "script -F comm,pid,time,event,trace",
        ],
    },
    Example {
        section: "Recipes",
        task: "Who opens connections?",
        lines: &[
            "record -e syscalls:sys_enter_connect -a -- sleep 10",
            "report --stdio -s comm,pid",
        ],
    },
    Example {
        section: "Move and set up",
        task: "Read the recording on another machine, or with another tool:",
        lines: &["archive", "data convert --to-pprof profile.pb.gz"],
    },
    Example {
        section: "Move and set up",
        task: "Share a recording without names, paths and addresses of this machine:",
        lines: &["inject --redact -o shared.data"],
    },
    Example {
        section: "Move and set up",
        task: "Add the build-ids of programs to a recording that lacks them:",
        lines: &["inject -b -i perf.data -o with-ids.data"],
    },
    Example {
        section: "Move and set up",
        task: "Store a program in the build-id cache for later reports, list the cache and the build-ids of a recording:",
        lines: &[
            "buildid-cache -a ./program",
            "buildid-cache -l",
            "buildid-list",
        ],
    },
    Example {
        section: "Move and set up",
        task: "Turn off accumulated overhead in all reports:",
        lines: &["config report.children=false"],
    },
    Example {
        section: "Move and set up",
        task: "Print the completion script of a shell, and write the manual pages:",
        lines: &["completion bash", "help --man man/man1"],
    },
    Example {
        section: "Move and set up",
        task: "Compare the speed of two machines, or of one machine before and after a change:",
        lines: &[
            "bench -r 10 sched pipe -l 10000",
            "bench --precision 10 syscall basic -l 10000",
        ],
    },
    Example {
        section: "Move and set up",
        task: "Show the version and the build options:",
        lines: &["version --build-options", "check feature zstd,dwarf"],
    },
    Example {
        section: "Move and set up",
        task: "Check what can be recorded on this machine, with details for a bug report:",
        lines: &["test", "test -v"],
    },
    Example {
        section: "Move and set up",
        task: "Run a program with a known function, to try a recording:",
        lines: &["test -w noploop 0.1"],
    },
];

/// Returns the text of `help examples`.
pub(crate) fn page(program: ProgramName) -> String {
    let mut text = String::new();
    let mut last = "";
    for Example {
        section,
        task,
        lines,
    } in EXAMPLES
    {
        if *section != last {
            let lead = if last.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{lead}{}\n", section.to_uppercase()));
            last = section;
        }
        text.push_str(&format!("\n{}", wrap(task, TASK_INDENT, WIDTH)));
        for line in *lines {
            text.push_str(&format!("       {program} {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::by_command::CommandLine;
    use super::*;
    use crate::cli::argv::{self, ParsedCommand};
    use crate::cli::commands::{COMMANDS, SUBCOMMANDS, subcommand};

    /// Checks the examples by task; `every_command_has_two_to_six_lines_of_its_own` checks those by command.
    #[test]
    fn every_command_has_an_example() {
        for entry in COMMANDS.iter().chain(SUBCOMMANDS) {
            let has_example = EXAMPLES.iter().any(|example| example.uses(entry.name));
            assert!(has_example, "{}", entry.name);
        }
    }

    /// Splits a line at spaces outside of single quotes, as a shell does.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                letter => words.last_mut().expect("a word").push(letter),
            }
        }
        words
    }

    #[test]
    fn the_options_of_examples_exist() {
        let of_tasks = EXAMPLES
            .iter()
            .flat_map(|example| example.lines.iter().copied());
        let names = COMMANDS.iter().chain(SUBCOMMANDS).map(|entry| entry.name);
        let of_commands = names.flat_map(|name| of(name).iter().map(|example| example.line));
        for line in of_tasks.chain(of_commands) {
            let words = words(line);
            let entry = COMMANDS.iter().find(|entry| entry.name == words[0]);
            let mut entry = entry.expect("an example begins with a command");
            let mut name_length = 1;
            while let Some(found) = words
                .get(name_length)
                .and_then(|word| subcommand(entry, word))
            {
                (entry, name_length) = (found, name_length + 1);
            }
            let arguments = words.iter().skip(name_length);
            let arguments: Vec<OsString> = arguments.map(OsString::from).collect();
            let command = (entry.build)();
            let Ok(ParsedCommand::Run(normalised)) = argv::normalise(&command, &arguments) else {
                panic!("{line}");
            };
            let parser = command.no_binary_name(true).args_override_self(true);
            let parsed = parser.try_get_matches_from(normalised);
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn every_command_has_two_to_six_lines_of_its_own() {
        for entry in COMMANDS.iter().chain(SUBCOMMANDS) {
            let lines = of(entry.name);
            // These commands have few uses.
            let few = ["completion", "help", "version"].contains(&entry.name);
            let least = if few { 2 } else { 3 };
            assert!((least..=6).contains(&lines.len()), "{}", entry.name);
            for CommandLine { line, purpose } in lines {
                let after_name = line.strip_prefix(entry.name);
                assert!(
                    after_name.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
                    "{line}"
                );
                // In the output of `-h`, four blanks and `rperf ` precede the line: 80 columns in all.
                assert!(line.len() <= 70 && !purpose.is_empty(), "{line}");
            }
        }
    }

    #[test]
    fn commands_match_full_words() {
        let example = |lines| Example {
            section: "",
            task: "",
            lines,
        };
        assert!(example(&["stat report -A"]).uses("stat"));
        assert!(example(&["stat report -A"]).uses("stat report"));
        assert!(!example(&["statistics"]).uses("stat"));
    }
}
