//! The lines that `record` prints at its end.

use std::path::PathBuf;

use rperf_names::counted;
use rperf_session::{RecordRequest, Summary};

use super::losses;
use crate::cli::context::Context;
use crate::cli::shared::sampling::ring_size::human;

/// Prints the losses, how to reduce them, and the size of the recording; `is_verbose` adds details.
pub(super) fn print(
    context: &Context,
    request: &RecordRequest,
    recorded: &Summary,
    is_verbose: bool,
) {
    let program = context.program;
    if is_verbose {
        context.note(format_args!(
            "ring buffers of {} were read {} times",
            human(usize::try_from(recorded.ring_bytes).unwrap_or(usize::MAX)),
            recorded.wakeups
        ));
    }
    context.note(format_args!(
        "[ {program} record: Woken up {} times to write data ]",
        recorded.wakeups
    ));
    losses::print(context, request, recorded);
    if recorded.truncated_maps > 0 {
        context.warn(format_args!(
            "reading the mappings of {} took longer than {} ms and was stopped; --proc-map-timeout allows more time",
            counted(recorded.truncated_maps, "process"),
            request.synthesis.maps_timeout.as_millis()
        ));
    }
    print_jit_notes(context, request, recorded);
    if let Some(failure) = &recorded.cache_failure {
        context.warn(format_args!(
            "failed to store an object in the build-id cache: {failure}"
        ));
    }
    if let Some(failure) = &recorded.features_lost {
        context.warn(format_args!(
            "the header has no feature sections: {failure}"
        ));
    }
    context.note(closing(
        &program.to_string(),
        &output_name(request),
        recorded,
    ));
}

/// Prints which files have the symbols of JIT-compiled code. Jitdumps use the monotonic clock: if there is a jitdump and the
/// recording uses another clock, also prints a hint.
fn print_jit_notes(context: &Context, request: &RecordRequest, recorded: &Summary) {
    for pid in &recorded.jit_processes {
        let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        if map.is_file() {
            context.note(format_args!(
                "{} contains the symbols of JIT code of process {pid}: keep it for reading the recording",
                map.display()
            ));
        }
    }
    let is_monotonic = request.observe.details.clockid == Some(libc::CLOCK_MONOTONIC);
    if let Some(dump) = recorded.jit_dumps.first().filter(|_| !is_monotonic) {
        context.note(format_args!(
            "hint: {} uses the monotonic clock: record with -k mono to match its functions by time",
            dump.display()
        ));
    }
}

/// Returns the name of the output; if a timestamp is appended to it, with a placeholder for the timestamp, since each full name
/// was printed when its file was complete.
fn output_name(request: &RecordRequest) -> String {
    let name = request.output.path.display();
    match request.output.timestamped || request.output.rotation.is_some() {
        true => format!("{name}.<timestamp>"),
        false => name.to_string(),
    }
}

fn closing(program: &str, output: &str, recorded: &Summary) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "three decimals of a megabyte are shown"
    )]
    let megabytes = recorded.bytes as f64 / 1024.0 / 1024.0;
    let samples = match recorded.samples {
        0 => String::new(),
        samples => format!(" ({samples} samples)"),
    };
    let sizes = recorded.compressed;
    let compressed = sizes.map_or_else(String::new, |(original, compressed)| {
        compression_text(original, compressed)
    });
    format!(
        "[ {program} record: Captured and wrote {megabytes:.3} MB {output}{samples}{compressed} ]"
    )
}

/// Formats `, compressed (original 1.234 MB, ratio is 5.678)`. `original` and `compressed` are sizes in bytes. Empty if
/// `compressed` is 0.
fn compression_text(original: u64, compressed: u64) -> String {
    if compressed == 0 {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "three decimals are shown")]
    let (megabytes, ratio) = (
        original as f64 / 1024.0 / 1024.0,
        original as f64 / compressed as f64,
    );
    format!(", compressed (original {megabytes:.3} MB, ratio is {ratio:.3})")
}
