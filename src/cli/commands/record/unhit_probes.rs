//! Probe events without hits.

use rperf_session::Summary;

use crate::cli::context::Context;
use crate::cli::shared::probing;

/// Maximum number of events that are named without `-v`.
const MAX_NAMED: usize = 3;

/// Lists the probe events without hits; only their number if there are many, unless `is_verbose`.
pub(super) fn print(context: &Context, recorded: &Summary, is_verbose: bool) {
    if recorded.tracepoints_without_hits.is_empty() {
        return;
    }
    let probes = probing::existing_names(context);
    let unhit_probes = recorded.tracepoints_without_hits.iter();
    let unhit_probes: Vec<&String> = unhit_probes.filter(|name| probes.contains(*name)).collect();
    if unhit_probes.len() > MAX_NAMED && !is_verbose {
        context.note(format_args!(
            "{} probe events were never hit; -v names them",
            unhit_probes.len()
        ));
        return;
    }
    for name in unhit_probes {
        context.note(format_args!(
            "{name} was never hit: the probed code did not run, its filter never matched, or the code was inlined or optimized out"
        ));
    }
}
