//! Rows of tasks with their system calls: reads and receives above the middle; writes, sends and syncs below it; polls and
//! failed calls on both sides.

use rperf_analysis::timechart::{CallKind, PieceContent, TaskLane};
use rperf_flame::{ChartBox, ChartRow, Paint, RowKind};

use super::picture::{share, task_name};
use super::tasks::Elapsed;

/// Half of the height of a row, in percent.
const MIDDLE: u8 = 50;

/// The part of a row in which calls are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallPlace {
    /// From the middle up.
    Above,
    /// From the middle down.
    Below,
    /// From the middle in both directions.
    Both,
}

/// Returns how a state of [`TaskCalls::timeline`](rperf_analysis::timechart::TaskCalls) is drawn: its colour, and the part of the
/// row. A state is an index in [`CallKind::ALL`], or [`CallKind::FAILED_STATE`], the next number.
fn look(state: usize) -> (Paint, CallPlace) {
    match CallKind::ALL.get(state) {
        Some(CallKind::Read) => (Paint::Read, CallPlace::Above),
        Some(CallKind::Receive) => (Paint::Receive, CallPlace::Above),
        Some(CallKind::Write) => (Paint::Write, CallPlace::Below),
        Some(CallKind::Send) => (Paint::Send, CallPlace::Below),
        Some(CallKind::Sync) => (Paint::Sync, CallPlace::Below),
        Some(CallKind::Poll) => (Paint::Poll, CallPlace::Both),
        None => (Paint::Failed, CallPlace::Both),
    }
}

/// Returns the row of a task.
pub(super) fn call_row(lane: &TaskLane) -> ChartRow {
    let calls = &lane.calls;
    let mut boxes = Vec::new();
    for piece in calls.timeline.pieces() {
        let is_merged = matches!(piece.content, PieceContent::Merged(_));
        let whole = piece.to - piece.from;
        let (mut above, mut below) = (MIDDLE, MIDDLE);
        for (state, nanos) in piece.sums().nanos.into_iter().enumerate() {
            let (paint, place) = look(state);
            // The part of the piece's time in this state, in percent. It is halved below: 100 fills the half of the row above or
            // below the middle; for `Both`, each half.
            let share = share(nanos, whole);
            let (low, high) = match place {
                CallPlace::Above => {
                    let low = above;
                    above = above.saturating_add(share / 2).min(100);
                    (low, above)
                }
                CallPlace::Below => {
                    let high = below;
                    below = below.saturating_sub(share / 2);
                    (below, high)
                }
                CallPlace::Both => (MIDDLE - share / 2, MIDDLE + share / 2),
            };
            if low < high {
                boxes.push(ChartBox {
                    from: piece.from,
                    to: piece.to,
                    low,
                    high,
                    paint,
                    is_merged,
                    name: None,
                });
            }
        }
    }
    let name = task_name(lane);
    let bytes = ByteCount(calls.bytes_in.saturating_add(calls.bytes_out));
    ChartRow {
        kind: RowKind::Calls,
        label: format!("{name} ({bytes})"),
        details: format!(
            "{name}: {} calls, {} read or received, {} written or sent; {} in calls, without polling",
            calls.count,
            ByteCount(calls.bytes_in),
            ByteCount(calls.bytes_out),
            Elapsed(calls.nanos)
        ),
        weight: calls.nanos,
        names: Vec::new(),
        boxes,
        line: Vec::new(),
    }
}

/// A number of bytes with a unit.
struct ByteCount(u64);

impl std::fmt::Display for ByteCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0x4000_0000.. => write!(f, "{:.1} GiB", bytes / 1_073_741_824.0),
            0x10_0000.. => write!(f, "{:.1} MiB", bytes / 1_048_576.0),
            0x400.. => write!(f, "{:.1} KiB", bytes / 1024.0),
            bytes => write!(f, "{bytes} B"),
        }
    }
}
