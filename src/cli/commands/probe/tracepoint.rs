//! Existing tracepoints, as alternatives to probes on kernel functions.

use rperf_names::nearest;
use rperf_probe::{Definition, Point};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::tracefs::MachineTracepoints;

/// Adds a hint to the error: a tracepoint with the function's name, otherwise one with a similar name, if any.
pub(super) fn hint_similar(
    error: CliError,
    definition: &Definition,
    context: &Context,
) -> CliError {
    let Point::Function { name, .. } = &definition.point else {
        return error;
    };
    let tracefs = MachineTracepoints::find(context.globals.debugfs_dir.as_deref()).tracefs;
    let mut tracepoints = Vec::new();
    for system in tracefs.systems().unwrap_or_default() {
        let names = tracefs.event_names(&system).unwrap_or_default();
        tracepoints.extend(
            names
                .into_iter()
                .map(|event| (format!("{system}:{event}"), event)),
        );
    }
    let program = context.program;
    if let Some((full_name, _)) = tracepoints.iter().find(|(_, event)| event == name) {
        return error.hint(format!(
            "{full_name} is a tracepoint; '{program} list -v {full_name}' shows its fields"
        ));
    }
    let near = nearest(name, tracepoints.iter().map(|(_, event)| event.as_str()));
    let near = near.and_then(|near| tracepoints.iter().find(|(_, event)| event == near));
    match near {
        Some((full_name, _)) => {
            error.hint(format!("a tracepoint with a similar name: {full_name}"))
        }
        None => error,
    }
}
