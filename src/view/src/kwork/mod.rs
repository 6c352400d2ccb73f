//! The tables of `kwork`, in the layout of perf 6.1; that of `kwork top`, a newer command, in the layout of perf 7.2.

pub mod json;
pub mod table;
pub mod timehist;
pub mod top;

use rperf_analysis::kwork::{Kwork, KworkClass};

/// The width of the column of names.
const NAME_WIDTH: usize = 30;
/// The maximum number of bytes of a name in that column, so that a blank follows it.
const NAME_BYTES: usize = NAME_WIDTH - 1;

/// Returns the text for a piece of work: `eth0:10`, `(s)RCU:9` or `(w)vmstat_update`.
#[must_use]
pub fn work_text(work: &Kwork) -> Vec<u8> {
    let prefix: &[u8] = match work.class {
        KworkClass::Irq => b"",
        KworkClass::Softirq => b"(s)",
        KworkClass::Workqueue => b"(w)",
        // perf's prefix of tasks; no table lists them as pieces of work.
        KworkClass::Sched => b"(t)",
    };
    let mut text = prefix.to_vec();
    text.extend(&work.name);
    if work.class != KworkClass::Workqueue {
        text.extend(format!(":{}", work.id).into_bytes());
    }
    text
}

/// Appends a piece of work to a line, truncated and padded to the column's width.
fn push_work(line: &mut Vec<u8>, work: &Kwork) {
    let mut text = work_text(work);
    text.truncate(NAME_BYTES);
    line.extend(&text);
    line.resize(line.len() + NAME_WIDTH - text.len(), b' ');
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as in perf: 53 bits are enough for three decimals"
)]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as in perf: 53 bits are enough for three decimals"
)]
fn percent(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => part as f64 / all as f64 * 100.0,
    }
}
