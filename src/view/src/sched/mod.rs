//! The output of the subcommands of `sched`.

pub mod antagonists;
pub mod comparison;
pub mod delay_histogram;
pub mod delays;
pub mod latency;
pub mod map;
pub mod off_cpu;
pub mod replay;
pub mod stats;
pub mod timehist;

use crate::digits;

/// Nanoseconds per microsecond.
const MICROSECOND: u64 = 1_000;

/// Appends a time in nanoseconds as seconds with six decimals, rounded down, right-aligned in `width` columns.
fn push_seconds(out: &mut Vec<u8>, nanos: u64, width: usize) {
    let micros = nanos / MICROSECOND;
    digits::decimal(
        out,
        micros / 1_000_000,
        width.saturating_sub(".000000".len()),
    );
    out.push(b'.');
    digits::decimal_zeros(out, micros % 1_000_000, 6);
}

/// A time in nanoseconds, shown in seconds with six decimals, rounded down.
#[derive(Debug, Clone, Copy)]
pub struct Seconds(pub u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = self.0 / MICROSECOND;
        let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        f.pad(&text)
    }
}
