//! Builds a recording request from the options.

use std::path::Path;

use clap::ArgMatches;
use rperf_events::EventSpec;
use rperf_session::{KernelRoots, ObserveOptions, RecordRequest, RingOptions};
use rperf_sys::{Program, Sysctl};

use super::details::details;
use super::{output, threads, timing};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{PROC, cgroups, events, explain, target, workload};
use crate::cli::options::flag;
use crate::cli::pmus::machine_pmus;
use crate::cli::shared::recording_output::is_stdout;
use crate::cli::shared::sampling::{
    CallchainOptions, events_to_record, real_time, ring_size, sampling, synthesis, traces,
};
use crate::cli::tracefs::MachineTracepoints;

/// Builds the request; notes about the options are printed on stderr.
pub(super) fn build(matches: &ArgMatches, context: &Context) -> Result<RecordRequest, CliError> {
    let sysctl = Sysctl::new(PROC);
    let chains = CallchainOptions::new(matches, context, "record.call-graph")?;
    let details = details(matches, context)?;
    let sampling = sampling(matches, context, &sysctl)?;
    let ring_pages = ring_size::pages(matches, context)?;
    note_options_without_effect(matches, context);
    let target = target::target(matches, context, "recording")?;
    let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    let mut events = events_to_record(matches, context, &target, &pmus, &tracepoints)?;
    // --all-user or --all-kernel.
    if let Some(level) = details.scope.level {
        events = events
            .into_iter()
            .map(|event| level.restrict_event(event))
            .collect();
    }
    let cgroups = cgroups::cgroups(matches, &target, events.len())?;
    let mut output = output::options(matches, context)?;
    let catalogue = pmus.catalogue(&tracepoints);
    output.switch_events = events::listed(matches, "switch-output-event", &catalogue)?;
    let workload = workload(matches, context, &events, &output.path)?;
    // Hardware traces, such as those of Intel PT.
    let traces = traces::traces(matches, context, &events)?;
    let observe = ObserveOptions {
        workload,
        cgroups,
        sampling,
        call_graph: chains.mode,
        max_stack: chains.max_stack,
        raw_samples: flag(matches, "raw-samples") == Some(true),
        details,
        traces,
        // The times at which events are enabled and disabled (`-D`), not context switches or output switches.
        switches: timing::timed_switches(matches)?,
        duration: timing::duration(matches)?,
        ..ObserveOptions::new(target, events)
    };
    let rings = RingOptions {
        pages: ring_pages,
        min_flush_bytes: ring_size::flush(matches)?,
        // `stream` is set if the records are written to stdout or a FIFO.
        threads: threads::threads(matches, output.stream.is_some())?,
        affinity: threads::affinity(matches)?,
        real_time: real_time(matches)?,
    };
    Ok(RecordRequest {
        observe,
        rings,
        synthesis: synthesis::options(matches, context)?,
        output,
        roots: KernelRoots {
            proc: PROC.into(),
            sysfs: pmus.sysfs.root().to_owned(),
            tracefs: tracepoints.tracefs,
        },
    })
}

/// Reports options that are accepted but have no effect, because rperf does not need them.
fn note_options_without_effect(matches: &ArgMatches, context: &Context) {
    if matches.contains_id("aio") {
        context.note("--aio has no effect: records are written with write(2) into the page cache, which does not wait for the disk");
    }
}

/// Returns the workload. Its stdout is redirected to stderr if the records are written to stdout.
fn workload(
    matches: &ArgMatches,
    context: &Context,
    events: &[EventSpec],
    output: &Path,
) -> Result<Option<Program>, CliError> {
    let missing = |(word, cause): (String, _)| {
        explain::workload_failed(&events::names(events), &word, &cause)
    };
    let program = workload::find(matches, context).map_err(missing)?;
    Ok(match is_stdout(output) {
        true => program.map(Program::stdout_to_stderr),
        false => program,
    })
}
