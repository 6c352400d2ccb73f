//! This machine's tracepoints.

pub(crate) use rperf_input::MachineTracepoints;
use rperf_sys::Tracefs;
use rperf_tracepoint::{Abi, Tracepoint};

/// Returns the format of a tracepoint of this machine.
///
/// # Errors
///
/// Errors of reading or parsing the format file.
pub(crate) fn describe(
    tracefs: &Tracefs,
    system: &str,
    name: &str,
) -> Result<Tracepoint, anyhow::Error> {
    let text = tracefs.format(system, name)?;
    Ok(Tracepoint::parse(system, &text, Abi::NATIVE)?)
}
