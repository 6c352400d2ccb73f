//! The closing lines.

use rperf_session::{Request, Summary};

use crate::cli::context::Context;

/// A share of lost samples from which on perf warns of it.
const LOSS_WORTH_A_WARNING: f64 = 0.05;

/// Says how much was recorded, and first what was lost and how to lose less.
pub(super) fn print(context: &Context, request: &Request, recorded: &Summary) {
    let program = context.program;
    context.note(format_args!(
        "[ {program} record: Woken up {} times to write data ]",
        recorded.woken
    ));
    losses(context, recorded);
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

fn losses(context: &Context, recorded: &Summary) {
    let mut lines = Vec::new();
    if recorded.lost_chunks > 0 {
        lines.push(format!(
            "Warning:\nProcessed {} events and lost {} chunks!\n\nCheck IO/CPU overload!\n",
            recorded.records, recorded.lost_chunks
        ));
    }
    let share = lost_share(recorded);
    if share > LOSS_WORTH_A_WARNING {
        let processed = recorded.samples + recorded.lost_samples;
        lines.push(format!(
            "Warning:\nProcessed {processed} samples and lost {:.2}%!\n",
            share * 100.0
        ));
    }
    for line in &lines {
        context.note(line);
    }
    for (cpu, lost) in &recorded.lost_by_cpu {
        context.note(format_args!(
            "CPU {cpu}: {lost} records found the ring full"
        ));
    }
    if !lines.is_empty() {
        context.note("hint: try larger rings (-m 8M), a lower -F, or fewer events");
    }
}

/// Lost samples among all that were taken.
fn lost_share(recorded: &Summary) -> f64 {
    let all = recorded.samples + recorded.lost_samples;
    if all == 0 {
        return 0.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "two decimals of a percentage are shown"
    )]
    let share = recorded.lost_samples as f64 / all as f64;
    share
}
