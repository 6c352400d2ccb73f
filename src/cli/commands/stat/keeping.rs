//! `stat record`: counts are kept in a file, for `stat report`.

use clap::{ArgMatches, Command};
use rperf_session::Keep;
use rperf_sys::Program;
use rperf_wire::StatConfig;

use super::args;
use super::plan::Plan;
use crate::cli::commands::record::{output, request};
use crate::cli::context::Context;
use crate::cli::error::CliError;

const ABOUT: &str = "\
Counts as 'stat' does, and keeps what was counted in a file: every counter by itself, at the end or with -I after each \
interval. 'stat report' shows it, by other parts of the machine if need be. The table is printed, too.";

/// The options: those of `stat`, but that `-o` names the file that keeps the counts.
pub(in crate::cli::commands) fn command() -> Command {
    let output =
        |arg: clap::Arg| arg.help("keep the counts in this file (default: perf.data; -: a pipe)");
    args::options(Command::new("stat record").long_about(ABOUT)).mut_arg("output", output)
}

/// Stops where options make no sense for counts that are kept.
pub(super) fn check(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    if matches.contains_id("repeat") {
        let program = context.program;
        let message = format!("Cannot use -r option with {program} stat record.");
        return Err(CliError::usage(message));
    }
    Ok(())
}

/// The plan with a place where counts are kept.
pub(super) fn kept(
    mut plan: Plan,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Plan, CliError> {
    let request = &mut plan.request;
    if request.events.is_empty() {
        return Err(CliError::usage(
            "stat record: there is nothing to keep but times: give events with -e",
        ));
    }
    let stream = output::stream(matches, context, ("stat record", "stat report"))?;
    let name = output::name(matches);
    if output::takes_stdout(&name) {
        // What the workload prints would stand among the records.
        request.workload = request.workload.take().map(Program::onto_stderr);
    }
    let interval = request
        .interval
        .map_or(0, |interval| interval.every.as_millis());
    let terms = vec![
        (StatConfig::AGGREGATION, plan.grouping.by.number()),
        (
            StatConfig::INTERVAL,
            u64::try_from(interval).unwrap_or(u64::MAX),
        ),
        (StatConfig::SCALE, u64::from(!plan.grouping.unscaled)),
    ];
    request.keep = Some(Keep {
        output: name,
        naming: output::naming(matches),
        stream,
        config: StatConfig { terms },
        threads: plan.threads.clone(),
        command_line: request::command_line(context),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    Ok(plan)
}
