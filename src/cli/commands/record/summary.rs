//! The closing lines.

use std::path::PathBuf;

use rperf_session::{Request, Summary};

use super::losses;
use super::ring_size::human;
use crate::cli::context::Context;

/// Says how much was recorded, and first what was lost and how to lose less; with more words where they are wanted.
pub(super) fn print(context: &Context, request: &Request, recorded: &Summary, is_verbose: bool) {
    let program = context.program;
    if is_verbose {
        context.note(format_args!(
            "rings of {} were looked at {} times: when one was half full, or as full as options say, at a signal, an order or a time",
            human(usize::try_from(recorded.ring_bytes).unwrap_or(usize::MAX)),
            recorded.woken
        ));
    }
    context.note(format_args!(
        "[ {program} record: Woken up {} times to write data ]",
        recorded.woken
    ));
    losses::print(context, request, recorded);
    if recorded.cut_maps > 0 {
        context.warn(format_args!(
            "the mappings of {} processes took longer than {} ms to be read and were left out in part; --proc-map-timeout gives more time",
            recorded.cut_maps,
            request.maps_within.as_millis()
        ));
    }
    run_time_code(context, request, recorded);
    if let Some(failure) = &recorded.cache_failure {
        context.warn(format_args!("failed to keep {failure}"));
    }
    if let Some(failure) = &recorded.features_lost {
        context.warn(format_args!(
            "the header has no feature sections: {failure}"
        ));
    }
    context.note(closing(&program.to_string(), &name(request), recorded));
}

/// Says where the names of code stand that was made at run time, and what keeps functions apart by time.
fn run_time_code(context: &Context, request: &Request, recorded: &Summary) {
    for pid in &recorded.code_makers {
        let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
        if map.is_file() {
            context.note(format_args!(
                "{} has the names of code that process {pid} made: readers need it",
                map.display()
            ));
        }
    }
    let is_monotonic = request.details.clockid == Some(libc::CLOCK_MONOTONIC);
    if let Some(dump) = recorded.jit_dumps.first().filter(|_| !is_monotonic) {
        context.note(format_args!(
            "hint: {} has times of the monotonic clock: with -k mono its functions are told apart to the nanosecond",
            dump.display()
        ));
    }
}

/// The output's name; that of each file with a time in it was said when the file was complete.
fn name(request: &Request) -> String {
    let name = request.output.display();
    match request.stamped || request.rotation.is_some() {
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
    let compressed = recorded.compressed.map_or(String::new(), compressed);
    format!(
        "[ {program} record: Captured and wrote {megabytes:.3} MB {output}{samples}{compressed} ]"
    )
}

fn compressed((original, compressed): (u64, u64)) -> String {
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
