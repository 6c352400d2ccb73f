//! Probe events of which nothing was recorded because nothing came to their places.

use rperf_session::Summary;

use crate::cli::commands::probe;
use crate::cli::context::Context;

/// Names them.
pub(super) fn print(context: &Context, recorded: &Summary) {
    if recorded.unhit.is_empty() {
        return;
    }
    let probes = probe::names(context);
    for name in recorded.unhit.iter().filter(|name| probes.contains(*name)) {
        context.note(format_args!(
            "{name} was never hit: what was recorded did not come to its place, its filter held nowhere, or the code there is \
             inlined elsewhere or optimised out"
        ));
    }
}
