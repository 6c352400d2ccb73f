//! From options to the recording they describe.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_events::{EventSpec, default_event, on_all_cores};
use rperf_session::{Request, Target, may_profile_kernel};
use rperf_sys::{Program, Sysctl, cpuid};

use super::call_graph::Chains;
use super::details::details;
use super::output::{Output, takes_stdout};
use super::{rate, ring_size, threads, timing, told, traces};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{PROC, cgroups, events, explain, target, workload};
use crate::cli::options::flag;
use crate::cli::pmus::{MachinePmus, SYSFS};
use crate::cli::tracefs::MachineTracepoints;

/// What the command line asks for; says on stderr what it decides itself.
pub(super) fn build(matches: &ArgMatches, context: &Context) -> Result<Request, CliError> {
    let sysctl = Sysctl::new(PROC);
    let chains = Chains::new(matches, context)?;
    let details = details(matches)?;
    let sampling = rate::sampling(matches, context, &sysctl)?;
    let ring_pages = ring_size::pages(matches, context)?;
    say_what_is_otherwise(matches, context);
    let target = target::target(matches, context, "recording")?;
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = MachinePmus::find(context);
    let mut events = wanted(matches, context, &target, (&pmus, &machine))?;
    if let Some(side) = details.side {
        events = events.into_iter().map(|event| side.of(event)).collect();
    }
    let cgroups = cgroups::cgroups(matches, &target, events.len())?;
    let output = Output::new(matches, context)?;
    let workload = workload(matches, context, (&events, &output))?;
    let traces = traces::traces(matches, context, &events)?;
    Ok(Request {
        target,
        traces,
        workload,
        events,
        sampling,
        call_graph: chains.mode,
        rewriting: None,
        raw_samples: flag(matches, "raw-samples") == Some(true),
        details,
        max_stack: chains.max_stack,
        ring_pages,
        output: output.name,
        naming: output.naming,
        stream: output.stream,
        command_line: command_line(context),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cache: cache(matches, context),
        build_ids: flag(matches, "no-buildid") != Some(true),
        switches: timing::switches(matches)?,
        compress: compress(matches)?,
        stamped: flag(matches, "timestamp-filename") == Some(true),
        rotation: output.rotation,
        turn_at: events::listed(matches, "switch-output-event", &pmus.catalogue(&machine))?,
        threads: output.threads,
        kernel_code: output.kernel_code,
        affinity: threads::affinity(matches)?,
        flush_from: ring_size::flush(matches)?,
        cgroups,
        real_time: real_time(matches)?,
        max_size: timing::max_size(matches)?,
        synthesized: told::synthesized(matches)?,
        maps_within: told::maps_within(matches),
        told_by: told::told_by(matches),
        tail_synthesize: flag(matches, "tail-synthesize") == Some(true),
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: machine.0,
    })
}

/// The events to be recorded: those that are named, or the usual one.
pub(in crate::cli::commands) fn wanted(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    (pmus, machine): (&MachinePmus, &MachineTracepoints),
) -> Result<Vec<EventSpec>, CliError> {
    let events = match events::events(matches, context, pmus, machine)? {
        Some(events) => events,
        None => on_all_cores(usual_event(context, target), &pmus.catalogue(machine)),
    };
    if let Some(tool) = events.iter().find(|event| event.tool.is_some()) {
        let message = format!(
            "event {} is a time that 'stat' takes: it has no samples",
            tool.name
        );
        return Err(CliError::usage(message));
    }
    if let Some(summed) = events.iter().find(|event| event.own.per_core) {
        let message = format!(
            "event {}: `percore' is for counts, which 'stat' sums up",
            summed.name
        );
        return Err(CliError::usage(message));
    }
    traces::check(&events)?;
    Ok(match flag(matches, "group") {
        Some(true) => events::grouped(events),
        _ => events,
    })
}

/// The build-id cache that is to be filled.
fn cache(matches: &ArgMatches, context: &Context) -> Option<PathBuf> {
    match flag(matches, "no-buildid-cache") {
        Some(true) => None,
        _ => context.buildid_dir(),
    }
}

/// Of `-z`: perf's levels are 1 to 22, and 0 is none.
fn compress(matches: &ArgMatches) -> Result<bool, CliError> {
    match matches
        .get_one::<String>("compression-level")
        .map(String::as_str)
    {
        None => Ok(false),
        Some("") => Ok(true),
        Some(word) => match word.parse() {
            Ok(level @ 0..=22_u8) => Ok(level > 0),
            _ => Err(CliError::usage(format!(
                "-z: '{word}' is no level: 0 to 22"
            ))),
        },
    }
}

/// Options that ask for a way of working which is another here, to the same end.
fn say_what_is_otherwise(matches: &ArgMatches, context: &Context) {
    if matches.contains_id("aio") {
        context.note("--aio: rings are emptied by ordinary writes, and nothing that waits for the disk is done between them");
    }
}

/// Of `-r`.
pub(in crate::cli::commands) fn real_time(matches: &ArgMatches) -> Result<Option<i32>, CliError> {
    let Some(priority) = matches.get_one::<u64>("realtime") else {
        return Ok(None);
    };
    let fits = i32::try_from(*priority)
        .ok()
        .filter(|priority| (1..=99).contains(priority));
    let wrong = || CliError::usage(format!("-r: {priority} is no real-time priority: 1 to 99"));
    fits.map(Some).ok_or_else(wrong)
}

/// The words of the command line, the program with its path.
pub(in crate::cli::commands) fn command_line(context: &Context) -> Vec<String> {
    let program = std::env::current_exe()
        .ok()
        .map(std::path::PathBuf::into_os_string);
    let words = program
        .into_iter()
        .chain(context.argv.iter().skip(1).cloned());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The event of a recording without `-e`.
fn usual_event(context: &Context, target: &Target) -> EventSpec {
    // Whole CPUs can't be observed in part: that is refused when the event is opened.
    let allowed = matches!(target, Target::Cpus(_)) || may_profile_kernel();
    if !allowed {
        let paranoid = Sysctl::new(PROC).perf_event_paranoid();
        context.note(explain::user_only_note(paranoid));
    }
    default_event(allowed, &cpuid(Path::new(SYSFS)).unwrap_or_default())
}

/// The program to run.
fn workload(
    matches: &ArgMatches,
    context: &Context,
    (events, output): (&[EventSpec], &Output),
) -> Result<Option<Program>, CliError> {
    let missing =
        |(word, cause): (String, _)| explain::workload(&events::names(events), &word, &cause);
    let program = workload::find(matches, context).map_err(missing)?;
    Ok(match takes_stdout(&output.name) {
        // What it prints would stand among the records.
        true => program.map(Program::onto_stderr),
        false => program,
    })
}
