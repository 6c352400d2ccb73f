//! The commands as a user runs them: the binary, its streams and its exit status.

mod annotate;
mod annotate_browser;
mod announced;
mod archive;
mod beside;
mod browser;
mod buildid_cache;
mod buildid_list;
mod cli;
mod cli_config;
mod cli_input;
mod cli_options;
mod cli_perf;
mod collapse;
mod completion;
mod config;
mod convert;
mod cut_while_read;
mod data;
mod debuginfod;
mod dump;
mod escaped;
mod event_tables;
mod evlist;
mod flamegraph;
mod folded;
mod handmade;
mod heatmap;
mod hints;
mod hostile_files;
mod install;
mod jit;
mod jobs;
mod kallsyms;
mod leaf;
mod list;
mod man_pages;
mod names_of_bytes;
mod out_of_memory;
mod record;
mod record_events;
mod record_faults;
mod record_filter;
mod record_groups;
mod record_off_cpu;
mod record_options;
mod record_order;
mod record_pipe;
mod record_signals;
mod record_steered;
mod record_stranger;
mod record_targets;
mod record_threads;
mod record_turns;
mod record_variants;
mod recording;
mod report;
mod script;
mod stat;
mod stat_control;
mod stat_kept;
mod stat_metrics;
mod symbols;
mod tmux;
mod top;
mod top_screen;
mod tracepoints;

use rperf_testkit::{Outcome, Run};

/// The binary in a hermetic environment, with these words after its name.
pub(crate) fn rperf(words: &[&str]) -> Run {
    Run::new(env!("CARGO_BIN_EXE_rperf")).args(words)
}

/// What `words` leave.
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

/// Every command and part of one.
pub(crate) fn commands() -> Vec<String> {
    let listed = outcome(&["--list-cmds"]).stdout;
    let parts = ["stat record", "stat report"];
    let names = listed.split_whitespace().chain(parts);
    names.map(str::to_owned).collect()
}

/// The options that `-h` lists: `-a`, `--all-cpus`.
pub(crate) fn visible_options(command: &str) -> Vec<String> {
    let words: Vec<&str> = command.split(' ').chain(["-h"]).collect();
    let listed = outcome(&words).stderr;
    let lines = listed.lines().filter_map(|line| {
        let option = line.strip_prefix("    ")?.trim_start();
        option.starts_with('-').then_some(option)
    });
    let words = lines.flat_map(|line| line.split([' ', ',', '[']).take(3));
    let options = words.filter(|word| word.starts_with('-'));
    // A spelling of perf's that neither completion nor the manual offers.
    let shown = options.filter(|option| *option != "--showcpuutilization");
    let shown: Vec<String> = shown.map(str::to_owned).collect();
    assert!(!shown.is_empty(), "{command} -h lists options: {listed}");
    shown
}
