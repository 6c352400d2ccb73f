//! Tracepoints that the kernel has anyway, for those who look for a function.

use rperf_events::nearest;
use rperf_probe::{Definition, Point};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::tracefs::MachineTracepoints;

/// The same error, with the tracepoints whose names are those of the function, or like it.
pub(super) fn beside(error: CliError, definition: &Definition, context: &Context) -> CliError {
    let Point::Function { name, .. } = &definition.point else {
        return error;
    };
    let tracefs = MachineTracepoints::find(context.globals.debugfs_dir.as_deref()).0;
    let mut all = Vec::new();
    for system in tracefs.systems().unwrap_or_default() {
        let names = tracefs.names(&system).unwrap_or_default();
        all.extend(
            names
                .into_iter()
                .map(|name| (format!("{system}:{name}"), name)),
        );
    }
    let program = context.program;
    if let Some((whole, _)) = all.iter().find(|(_, own)| own == name) {
        return error.hint(format!(
            "{whole} is a tracepoint of this name; '{program} list -v {whole}' tells its fields"
        ));
    }
    let near = nearest(name, all.iter().map(|(_, own)| own.as_str()));
    let near = near.and_then(|near| all.iter().find(|(_, own)| own == near));
    match near {
        Some((whole, _)) => error.hint(format!("a tracepoint of a name like it: {whole}")),
        None => error,
    }
}
