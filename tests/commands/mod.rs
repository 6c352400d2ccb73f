//! The commands as a user runs them: the binary, its output and its exit status.

mod annotate;
mod annotate_browser;
mod archive;
mod arm64_callchains;
mod bench;
mod browser;
mod buildid_cache;
mod buildid_list;
mod cli;
mod cli_config;
mod cli_input;
mod cli_options;
mod cli_perf;
mod completion;
mod config;
mod convert;
mod convert_ctf;
mod convert_import;
mod convert_otlp;
mod convert_script_text;
mod convert_tables;
mod convert_tools;
mod damage;
mod data;
mod debuginfod;
mod diff;
mod diff_counts;
mod diff_cycles;
mod documentation;
mod dump;
mod event_tables;
mod evlist;
mod examples;
mod flamegraph;
mod folded_parser;
mod folded_stacks;
mod generated_files;
mod heatmap;
mod hints;
mod histogram;
mod hostile_files;
mod inject;
mod inject_redaction;
mod inject_sharing;
mod install;
mod jit;
mod jobs;
mod kallsyms;
mod kallsyms_copy;
mod kmem;
mod ksymbols;
mod kwork;
mod list;
pub(crate) mod lock;
mod man_pages;
mod missing_names;
mod non_utf8_names;
mod off_cpu_programs;
mod out_of_memory;
mod perf_suite;
mod perfetto_trace;
mod performance_gate;
mod record;
mod record_bpf;
mod record_control;
mod record_events;
mod record_faults;
mod record_filter;
mod record_groups;
mod record_off_cpu;
mod record_options;
mod record_order;
mod record_pipe;
mod record_signals;
mod record_switch_output;
mod record_targets;
mod record_threads;
mod record_unprivileged;
mod record_variants;
mod recording;
mod report;
mod report_data;
mod sched;
pub(crate) mod script;
mod settings;
mod stat;
mod stat_bpf;
mod stat_control;
mod stat_hist;
mod stat_metrics;
mod stat_record;
mod symbols;
mod terminal_escapes;
mod test_diagnosis;
mod test_workloads;
mod timechart;
pub(crate) mod tmux;
mod top;
mod top_screen;
mod trace;
mod trace_late;
mod trace_lines;
mod trace_stacks;
mod trace_types;
mod tracepoints;
mod truncated_while_read;

use rperf_testkit::{Outcome, Run};

/// Words that help texts and manual pages must not have, because there are standard terms or plain technical words for them.
pub(crate) const PRIVATE_WORDS: &[&str] = &[
    "told",
    "tell",
    "tells",
    "stands",
    "nobody",
    "lent",
    "said",
    "says",
    "beside",
    "whom",
    "whose",
    "meanwhile",
    "anyway",
    "alone",
    "behind",
    "orders",
    "rings",
    "emptied",
];

/// Prepares a run of the binary in a hermetic environment with these arguments.
pub(crate) fn rperf(words: &[&str]) -> Run {
    Run::new(env!("CARGO_BIN_EXE_rperf")).args(words)
}

/// Returns the messages without the notes on functions without names, and their hints, which depend on the machine.
pub(crate) fn without_notes(messages: &str) -> String {
    let notes = [
        "functions without names: ",
        "kernel functions without names: ",
        "hint: install the packages with their debug symbols",
        "hint: record with kernel.kptr_restrict at 0",
    ];
    let is_note = |line: &&str| notes.iter().any(|note| line.starts_with(note));
    messages
        .split_inclusive('\n')
        .filter(|line| !is_note(line))
        .collect()
}

/// Runs rperf with these arguments and returns the outcome.
#[track_caller]
pub(crate) fn outcome(words: &[&str]) -> Outcome {
    rperf(words).finish().expect("the binary starts")
}

/// Checks exit status and stderr together; stdout must be empty.
#[track_caller]
pub(crate) fn assert_refused(words: &[&str], status: i32, stderr: &str) {
    let expected = Outcome {
        status,
        stdout: String::new(),
        stderr: stderr.to_owned(),
    };
    assert_eq!(outcome(words), expected, "{words:?}");
}

/// Returns all commands, and the subcommands that have a manual page of their own.
pub(crate) fn commands() -> Vec<String> {
    let listed = outcome(&["--list-cmds"]).stdout;
    let subcommands = [
        "kmem diff",
        "kmem fragmentation",
        "kmem leaks",
        "kmem stat",
        "kmem usage",
        "lock contention",
        "lock deadlock",
        "lock info",
        "lock report",
        "kwork latency",
        "kwork report",
        "kwork timehist",
        "kwork top",
        "sched diff",
        "sched latency",
        "sched map",
        "sched off-cpu",
        "sched perfetto",
        "sched replay",
        "sched stats",
        "sched stats diff",
        "sched stats record",
        "sched stats report",
        "sched timehist",
        "stat record",
        "stat report",
        "timechart record",
    ];
    let names = listed.split_whitespace().chain(subcommands);
    names.map(str::to_owned).collect()
}

/// Returns the options that `-h` of a command lists, such as `-a` and `--all-cpus`.
pub(crate) fn visible_options(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split(' ').chain(["-h"]).collect();
    let listed = outcome(&words).stderr;
    let lines = listed.lines().filter_map(|line| {
        // Long options without a short one are indented by 8 columns (cut to 4 here), other options by 4, descriptions by more.
        let option = line.strip_prefix("        --").map_or(line, |_| &line[4..]);
        let option = option.strip_prefix("    ")?;
        option.starts_with('-').then_some(option)
    });
    // `-a, --all` splits into `-a`, an empty word and `--all`.
    let words = lines.flat_map(|line| line.split([' ', ',', '[']).take(3));
    let options = words.filter(|word| word.starts_with('-'));
    // `-h` lists this alias, but completion and the manual do not.
    let visible = options.filter(|option| *option != "--showcpuutilization");
    let visible: Vec<String> = visible.map(str::to_owned).collect();
    assert!(!visible.is_empty(), "{command} -h lists options: {listed}");
    visible
}
