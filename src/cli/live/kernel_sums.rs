//! Observations (open events and their rings, whose records are passed to the caller) for commands whose BPF programs sum up
//! events in the kernel.

use std::time::Duration;

use clap::ArgMatches;
use rperf_events::{EventSpec, Sampling};
use rperf_session::{
    KernelRoots, Observation, ObserveOptions, RecordRequest, SynthesisOptions, SynthesizedRecords,
    Target,
};
use rperf_sys::WaitStatus;

use super::{PROC, explain, workload};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::pmus::machine_pmus;
use crate::cli::tracefs::MachineTracepoints;

/// The maximum time of a wait for records.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Returns the request for an observation that starts the workload of the command line, if any, and synthesizes the records of
/// `kinds`. Its only event writes no samples.
///
/// # Errors
///
/// Status 255: the program of the workload cannot be found.
pub(crate) fn request(
    target: Target,
    kinds: SynthesizedRecords,
    matches: &ArgMatches,
    context: &Context,
) -> Result<RecordRequest, CliError> {
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    let program = workload::find(matches, context).map_err(|(word, cause)| {
        let cause = explain::exec_reason(&cause);
        CliError::message(255, format!("{word}: {cause}"))
    })?;
    let events = vec![EventSpec::side_band_only()];
    let observe = ObserveOptions {
        workload: program,
        // Has no effect on an event without samples.
        sampling: Sampling::Period(1),
        ..ObserveOptions::new(target, events)
    };
    let roots = KernelRoots {
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: machine.tracefs,
    };
    Ok(RecordRequest {
        synthesis: SynthesisOptions {
            kinds,
            ..SynthesisOptions::default()
        },
        ..RecordRequest::observing(observe, roots)
    })
}

/// Waits until the workload or the observed tasks end, or until a signal, after which the workload keeps running. `round` is
/// called at least every [`MAX_WAIT`], and a last time after the end; it should drain the rings. Returns the exit status.
///
/// # Errors
///
/// Those of `round`, and of waiting.
pub(crate) fn watch(
    observation: &mut Observation,
    has_workload: bool,
    round: &mut dyn FnMut(&mut Observation) -> Result<(), CliError>,
) -> Result<ExitStatus, CliError> {
    let signal = loop {
        let no_input = None;
        let woken = observation.wait(MAX_WAIT, no_input)?;
        round(observation)?;
        match (woken.signal, woken.ended) {
            (Some(signal), _) => break Some(signal),
            (None, true) => break None,
            (None, false) => {}
        }
    };
    if signal.is_some() && has_workload {
        observation.detach_workload();
    }
    // How the workload ended; `woken.ended` above is also true if the observed tasks have exited.
    let ended = match signal {
        // The argument is `true` to wait until the workload exits.
        None => observation.workload_status(has_workload)?,
        Some(_) => None,
    };
    Ok(status(signal, ended))
}

fn status(signal: Option<i32>, ended: Option<WaitStatus>) -> ExitStatus {
    match (signal, ended) {
        // ^C is the ordinary way to end.
        (Some(libc::SIGINT), _) => ExitStatus::Ok,
        (Some(signal), _) | (_, Some(WaitStatus::Signaled(signal))) => ExitStatus::Signal(signal),
        (_, Some(WaitStatus::Exited(0)) | None) => ExitStatus::Ok,
        (_, Some(WaitStatus::Exited(status))) => ExitStatus::Child(status),
    }
}
