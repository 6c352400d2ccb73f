//! `stat record`: stores counts in a file, for `stat report`.

use clap::{ArgMatches, Command};
use rperf_session::CountOutput;
use rperf_sys::Program;
use rperf_wire::StatConfig;

use super::args;
use super::plan::StatPlan;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::recording_output;
use crate::cli::shared::sampling::command_line;

const ABOUT: &str = "\
Counts like 'stat', prints the counts, and also writes every counter reading to a file, at the end or with -I after each \
interval. 'stat report' shows the readings, on request with another aggregation.";

/// The options: those of `stat`, but `-o` is the file for the counts.
pub(in crate::cli::commands) fn command() -> Command {
    let output =
        |arg: clap::Arg| arg.help("output file, - for the standard output (default: perf.data)");
    args::options(Command::new("stat record").long_about(ABOUT))
        .mut_arg("output", output)
        .mut_arg("append", |arg| {
            arg.help("refused: counts cannot be appended to a recording")
        })
}

/// Refuses `-r` and `--append`, which do not apply to stored counts.
pub(super) fn check(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    if matches.contains_id("repeat") {
        let program = context.program;
        let message = format!("Cannot use -r option with {program} stat record.");
        return Err(CliError::usage(message));
    }
    if flag(matches, "append") == Some(true) {
        return Err(CliError::usage(
            "--append: counts cannot be appended to a recording",
        ));
    }
    Ok(())
}

/// The plan with an output for the counts.
pub(super) fn with_output(
    mut plan: StatPlan,
    matches: &ArgMatches,
    context: &Context,
) -> Result<StatPlan, CliError> {
    let request = &mut plan.request;
    if request.events.is_empty() {
        return Err(CliError::usage(
            "stat record: no events to record: give events with -e",
        ));
    }
    if request.events.iter().any(|event| event.spec.bpf) {
        return Err(CliError::usage(
            "stat record: counts of BPF programs (--bpf-counters, --bpf-prog, `:b') cannot be recorded",
        ));
    }
    let stream = recording_output::stream(matches, context, "stat record", "stat report")?;
    let output = recording_output::output_path(matches);
    if recording_output::is_stdout(&output) {
        // The workload's output would be mixed with the records.
        request.workload = request.workload.take().map(Program::stdout_to_stderr);
    }
    let interval = request
        .interval
        .map_or(0, |interval| interval.every.as_millis());
    let terms = vec![
        (StatConfig::AGGREGATION, plan.aggregation.by.number()),
        (
            StatConfig::INTERVAL,
            u64::try_from(interval).unwrap_or(u64::MAX),
        ),
        (StatConfig::SCALE, u64::from(!plan.aggregation.unscaled)),
    ];
    request.record_to = Some(CountOutput {
        output,
        // Whether the path was given, or is the default.
        naming: recording_output::path_origin(matches),
        stream,
        config: StatConfig { terms },
        threads: plan.threads.clone(),
        command_line: command_line(context),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    Ok(plan)
}
