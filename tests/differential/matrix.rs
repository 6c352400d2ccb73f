//! Many command lines of `script` and `report`, run by both tools: each on one of the recordings made in guests
//! (tests/fixtures) and on one published by other projects, and every third on a recording made by the test.

use std::path::{Path, PathBuf};

use rperf_testkit::{Outcome, skip, skip_for_lack_of};

use super::recordings::{Recording, Target};
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike, compare_texts, difference, settled};
use crate::corpus::corpus_folder;
use crate::tidy::root;

const SCRIPT: &[&[&str]] = &[
    &["--ns"],
    &["--reltime"],
    &["--deltatime", "--ns"],
    &["-G"],
    &["-L"],
    &["--max-stack", "1"],
    &["--max-stack", "3", "--no-inline"],
    &["--no-demangle"],
    &["--show-kernel-path"],
    &["--header"],
    &["--header-only", "-I"],
    &["-C", "0-1", "--max-stack", "2"],
    &["--comms", "sh,load,echo,swapper"],
    &["--dsos", "[kernel.kallsyms]"],
    &["--dsos", "libc.so.6,load,libc-2.15.so"],
    &["--pid", "1,2,116"],
    &["--tid", "0"],
    &["-S", "main,do_syscall_64"],
    &["-S", "0xffffffff81000000", "--addr-range", "8388608"],
    &["--stop-bt", "do_syscall_64,main"],
    &["--time", "0%-50%"],
    &["--time", "30%/2,30%/1"],
    &["--time", "10%/2,10%/5,10%/10"],
    &["--reltime", "--time", "0,0.01"],
    &["--show-task-events"],
    &["--show-mmap-events"],
    &["--show-task-events", "--show-mmap-events", "--ns"],
    &["--show-switch-events"],
    &["--show-namespace-events", "--show-cgroup-events"],
    &["--show-lost-events"],
    &["--show-bpf-events", "--show-text-poke-events"],
    &["--show-round-events", "-F", "comm,time,event"],
    &["-F", "comm,tid,pid,time,event"],
    &["-F", "pid"],
    &["-F", "+pid,-comm"],
    &["-F", "-time"],
    &["-F", "-ip"],
    &["-F", "comm,cpu,time"],
    &["-F", "ip"],
    &["-F", "ip,sym,symoff,dso"],
    &["-F", "event,ip,sym", "--max-stack", "4"],
    &["-F", "comm,ip,dso", "-G"],
    &["-F", "event,trace"],
    &["-F", "trace:comm,trace", "-F", "sw:comm,ip"],
    &["-F", "trace:time,event,trace"],
    &["-F", "hw:comm,ip,sym", "-F", "sw:comm"],
    &["-F", "raw:comm"],
    &["-F", "period,event"],
    &["-F", "+addr"],
    &["-F", "addr,sym"],
    &["-F", "+weight,+data_src"],
    &["-F", "ip,weight,ins_lat"],
    &["-F", "+phys_addr"],
    &["-F", "ip,data_page_size,code_page_size"],
    &["-F", "brstack"],
    &["-F", "ip,brstacksym"],
    &["-F", "+iregs"],
    &["-F", "ip,uregs"],
    &["-F", "+misc"],
    &["-F", "comm,tod,event"],
    &["-F", "+bpf-output"],
    &["-F", "+flags,+callindent"],
    &["-F", "+synth,+ipc"],
    &["-F", "+machine_pid,+vcpu"],
    &["-F", "+metric"],
    &["-F", "+insn,+insnlen"],
    &["-F", "nosuch"],
    &["-F", "+comm,time"],
    &["-d"],
    &["-D"],
    &["-D", "--show-mmap-events", "-F", "comm,event"],
    &["--switch-on", "nosuch"],
    &["--reltime", "--deltatime"],
    &["--time", "9,8"],
];

const REPORT: &[&[&str]] = &[
    &["--no-children"],
    &["--no-children", "-n", "--show-total-period", "-g", "none"],
    &["-g", "callee"],
    &["-g", "caller,1", "--no-children"],
    &["-g", "fractal,2"],
    &["-g", "flat,0", "--no-children"],
    &["-g", "folded,0,count"],
    &["-g", "none", "-s", "comm"],
    &["-g", "none", "-s", "dso"],
    &["-g", "none", "-s", "sym", "--no-children"],
    &["-g", "none", "-s", "pid"],
    &["-g", "none", "-s", "cpu,socket", "--no-children"],
    &["-g", "none", "-s", "comm,dso,sym,parent"],
    &[
        "-g",
        "none",
        "-s",
        "time",
        "--time-quantum",
        "1ms",
        "--no-children",
    ],
    &["-g", "none", "-s", "time", "--ns", "--no-children"],
    &["-g", "none", "-s", "cgroup_id,cgroup"],
    &["-g", "none", "-s", "transaction,weight,local_weight"],
    &["-g", "none", "-s", "code_page_size"],
    &["-g", "none", "-F", "overhead,sample,period,comm"],
    &["-g", "none", "-F", "+period"],
    &["-g", "none", "-F", "sym,overhead_sys,overhead_us"],
    &["-g", "none", "-F", "comm,trace"],
    &["-s", "trace"],
    &["-s", "trace", "--raw-trace"],
    &["-s", "trace_fields"],
    &["-s", "nosuch"],
    &["--hierarchy", "-g", "none"],
    &["--hierarchy", "-s", "comm,sym", "--percent-limit", "10"],
    &["--group", "-g", "none"],
    &["--no-group", "-g", "none"],
    &["--group-sort-idx", "0", "-g", "none"],
    &["--show-cpu-utilization", "-g", "none"],
    &["-b"],
    &["-b", "-s", "symbol_from,symbol_to", "-n"],
    &["--no-branch-stack", "-g", "none"],
    &["--mem-mode", "-g", "none"],
    &["--mem-mode", "-s", "mem,snoop", "-n"],
    &["--comms", "sh,load,echo", "-g", "none"],
    &["--dsos", "[kernel.kallsyms]", "--no-children", "-g", "none"],
    &["-S", "main", "-g", "none"],
    &["--pid", "1", "-g", "none"],
    &["-C", "0", "-g", "none"],
    &[
        "--percentage",
        "relative",
        "--comms",
        "swapper",
        "-g",
        "none",
    ],
    &["--percent-limit", "3", "-g", "none"],
    &["--time", "0%-50%", "-g", "none"],
    &["--max-stack", "2", "--no-children"],
    &["-w", "10,20,30", "-g", "none"],
    &["-q", "-g", "none"],
    &["-U", "-g", "none"],
    &["-p", "sys", "-s", "parent,sym", "-g", "none"],
    &["--ignore-callees", "entry", "--no-children"],
    &["-G"],
    &["--no-demangle", "-g", "none"],
    &["--stats"],
    &["--tasks"],
    &["--mmaps"],
    &["--header", "-g", "none"],
    &["--header-only", "-I"],
    &["-D"],
    &["--skip-empty", "-g", "none"],
];

/// Small recordings of each kind, below tests/fixtures.
const FIXTURES: &[&str] = &[
    "x86_64/branches.data",
    "x86_64/cycles.data",
    "aarch64/kprobe.data",
    "x86_64/group.data",
    "x86_64/kprobe.data",
    "x86_64/leader.data",
    "x86_64/memory.data",
    "aarch64/cycles.data",
    "x86_64/pages.data",
    "x86_64/precise.data",
    "x86_64/registers.data",
    "aarch64/registers.data",
    "x86_64/stores.data",
    "x86_64/switches.data",
    "x86_64/counted.data",
    "x86_64/zstd.data",
    "x86_64/branches-flags.data",
];

/// Small recordings by several releases of perf and by simpleperf, below the folder of other projects' recordings.
const CORPUS: &[&str] = &[
    "perf_data_converter/files/perf.data.group_desc-4.14",
    "platform_system_extras/files/perf_with_two_event_types.data",
    "perf_data_converter/files/perf.data.lost_samples-4.4",
    "platform_system_extras/files/perf_with_symbols.data",
    "perf_data_converter/files/perf.data.singleprocess-3.8",
    "platform_system_extras/files/perf_with_multiple_pids_and_tids.data",
    "platform_system_extras/files/perf_with_add_counter.data",
];

/// Exceptions: command, a part of a file's path, a word of the line (empty for all), and the reason.
const EXCEPT: &[(&str, &str, &str, &str)] = &[
    (
        "report",
        "branches.data",
        "-s",
        "perf counts only one of the branches that share a row",
    ),
    (
        "report",
        "branches-flags.data",
        "-s",
        "perf counts only one of the branches that share a row, or crashes",
    ),
    (
        "report",
        "branches-flags.data",
        "-D",
        "perf ends with the number of branches, and calls them samples",
    ),
    (
        "report",
        "add_counter.data",
        "",
        "perf truncates names of threads in rows that have the same weight",
    ),
    (
        "report",
        "pids_and_tids.data",
        "",
        "perf truncates names of threads in rows that have the same weight",
    ),
    (
        "script",
        "platform_system_extras/",
        "-C",
        "perf refuses recordings of simpleperf, which lack the number of processors",
    ),
];

/// Recordings that the test makes, one with each tool: the first for `script`, the second for `report`, in the order of
/// [`COMMANDS`]. Every third line of a command is run on its recording.
const NEW_RECORDINGS: [(Tool, Recording); 2] = [
    (
        Tool::Rperf,
        Recording {
            name: "clock and switches",
            options: &[
                "-e",
                "cpu-clock,context-switches,page-faults",
                "-d",
                "--sample-cpu",
                "-F",
                "999",
            ],
            target: SHELL,
        },
    ),
    (
        Tool::Perf,
        Recording {
            name: "clock with callchains",
            options: &["-g", "-F", "2999"],
            target: SHELL,
        },
    ),
];

const SHELL: Target = Target::Command(&[
    "sh",
    "-c",
    "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; ls / > /dev/null; sleep 0.002",
]);

/// The compared command lines of one command.
struct Command {
    /// The words that every line begins with.
    start: &'static [&'static str],
    /// The further options of each line.
    lines: &'static [&'static [&'static str]],
}

const COMMANDS: [Command; 2] = [
    Command {
        start: &["script"],
        lines: SCRIPT,
    },
    Command {
        start: &["report", "--stdio"],
        lines: REPORT,
    },
];

impl Command {
    fn is_report(&self) -> bool {
        self.start[0] == "report"
    }

    /// Runs each line on one of `files`, which are used in turn; returns the differences.
    fn over_files(&self, tools: &Tools, files: &[PathBuf]) -> Vec<String> {
        let pairs = self.lines.iter().zip(files.iter().cycle());
        let mismatches = pairs.filter_map(|(words, file)| {
            let excepted = EXCEPT.iter().any(|(command, part, word, _)| {
                self.start[0] == *command
                    && file.to_string_lossy().contains(part)
                    && (word.is_empty() || words.contains(word))
            });
            match excepted {
                true => None,
                false => self.compare(tools, file, words),
            }
        });
        mismatches.collect()
    }

    /// Returns the difference between both tools; none if both refuse the command line.
    fn compare(&self, tools: &Tools, file: &Path, words: &[&str]) -> Option<String> {
        let file = file.to_str()?;
        let line = [self.start, words, &["-f", "-i", file]].concat();
        let [perf, rperf] = tools.outcomes(&line, b"");
        let mismatch = match (is_refused(&perf), rperf.status != 0) {
            (true, true) => return None,
            // `compare_texts` ignores the intended differences of reports; with `-D`, `report` prints a dump instead.
            (false, false) if self.is_report() && !words.contains(&"-D") => {
                compare_texts(&perf.stdout, &renamed(&rperf))
            }
            (false, false) => difference(&perf.stdout, &renamed(&rperf)),
            _ => Some(format!(
                "  perf: {} {}\n  rperf: {} {}",
                perf.status, perf.stderr, rperf.status, rperf.stderr
            )),
        };
        Some(format!("{}\n{}", line.join(" "), mismatch?))
    }
}

/// Whether perf refused the command line: its `report` exits with 0 even after an error.
fn is_refused(perf: &Outcome) -> bool {
    perf.status != 0 || perf.stderr.contains("Error:")
}

/// rperf's text with perf's name in hints: each tool prints its own name.
fn renamed(rperf: &Outcome) -> String {
    rperf.stdout.replace("'rperf ", "'perf ")
}

fn compare_over(name: &str, files: &[PathBuf]) {
    let Some(tools) = Tools::find() else {
        return skip(name, "there is no perf");
    };
    let mismatches = COMMANDS
        .iter()
        .flat_map(|command| command.over_files(&tools, files));
    assert_alike(&mismatches.collect::<Vec<_>>());
}

#[test]
fn lines_match_perf_over_recordings_of_guests() {
    let folder = root().join("tests/fixtures");
    let files: Vec<PathBuf> = FIXTURES.iter().map(|name| folder.join(name)).collect();
    compare_over("lines_match_perf_over_recordings_of_guests", &files);
}

#[test]
fn lines_match_perf_over_other_projects_recordings() {
    const NAME: &str = "lines_match_perf_over_other_projects_recordings";
    let folder = corpus_folder();
    let files: Vec<PathBuf> = CORPUS.iter().map(|name| folder.join(name)).collect();
    if files.iter().any(|file| !file.exists()) {
        return skip_for_lack_of(NAME, "other projects' recordings");
    }
    compare_over(NAME, &files);
}

#[test]
fn lines_match_perf_over_new_recordings() {
    const NAME: &str = "lines_match_perf_over_new_recordings";
    let Some(tools) = Tools::find() else {
        return skip(NAME, "there is no perf");
    };
    let mut mismatches = Vec::new();
    for (command, (recorder, recording)) in COMMANDS.iter().zip(&NEW_RECORDINGS) {
        // Repeats the recording a few times if there are differences.
        mismatches.extend(settled(|| {
            let Some(file) = recording.make(&tools, &Workloads::none(), *recorder) else {
                return Vec::new();
            };
            let lines = command.lines.iter().step_by(3);
            lines
                .filter_map(|words| command.compare(&tools, Path::new(&file), words))
                .collect()
        }));
    }
    assert_alike(&mismatches);
}
