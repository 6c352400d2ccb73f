//! TRACING_DATA: the formats of the recorded tracepoints, read from tracefs.

use std::io;

use rperf_events::TracepointName;
use rperf_sys::{Tracefs, page_size};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

/// Returns the content of TRACING_DATA with the formats of `tracepoints`, without duplicates and in tracefs order, as in perf;
/// `None` if there are no tracepoints.
///
/// # Errors
/// The list of tracepoints, a format or a header can't be read: the samples can't be decoded without all of these.
pub(crate) fn tracing_data<'a>(
    tracepoints: impl Iterator<Item = &'a TracepointName>,
    tracefs: &Tracefs,
) -> io::Result<Option<TracingDataBuilder>> {
    let requested: Vec<&TracepointName> = tracepoints.collect();
    if requested.is_empty() {
        return Ok(None);
    }
    let long_size = u8::try_from(size_of::<usize>()).unwrap_or(8);
    let page_size = u32::try_from(page_size()).unwrap_or(4096);
    let mut builder = TracingDataBuilder::new(Endian::NATIVE, long_size, page_size);
    for system in tracefs.systems()? {
        let names_in_system: Vec<&str> = requested
            .iter()
            .filter(|tracepoint| tracepoint.system == system)
            .map(|tracepoint| tracepoint.name.as_str())
            .collect();
        if names_in_system.is_empty() {
            continue;
        }
        for name in tracefs.event_names(&system)? {
            if names_in_system.contains(&name.as_str()) {
                builder.event(&system, &tracefs.format(&system, &name)?);
            }
        }
    }
    let text = |path| tracefs.read(path);
    builder.headers(&text("events/header_page")?, &text("events/header_event")?);
    // Strings of printk formats and names of tasks are optional: without them readers show numbers.
    builder.printk_formats(&text("printk_formats").unwrap_or_default());
    builder.saved_cmdlines(&text("saved_cmdlines").unwrap_or_default());
    Ok(Some(builder))
}
