//! Time charts: rows of boxes over time, for CPUs and tasks.

mod paint;
mod svg;

pub use self::paint::{IDLE_PAINTS, Paint};

/// A chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimeChart {
    /// The title.
    pub title: String,
    /// Lines below the title, such as a note of missing data.
    pub notes: Vec<String>,
    /// The first time, in nanoseconds of the recording's clock.
    pub start: u64,
    /// The last time.
    pub end: u64,
    /// Width in pixels; `None` fits the window.
    pub width: Option<u32>,
    /// The rows, from top to bottom.
    pub rows: Vec<ChartRow>,
    /// Wakeups, drawn as arrows between rows.
    pub arrows: Vec<ChartArrow>,
    /// Time ranges without complete data.
    pub gaps: Vec<ChartGap>,
}

/// The kind of a row. Rows of a kind should be together: a heading is drawn above each row that differs in kind from the
/// previous row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A CPU. Only in rows of this kind, the names of boxes are written into them if they are wide enough.
    Cpu,
    /// A task.
    Task,
    /// A task with its system calls.
    Calls,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartRow {
    /// The kind of the row.
    pub kind: RowKind,
    /// The text to its left.
    pub label: String,
    /// Further text, shown while the pointer is on the label.
    pub details: String,
    /// Nanoseconds that a search adds to its total if the row matches.
    pub weight: u64,
    /// Names that boxes refer to.
    pub names: Vec<String>,
    /// The boxes, in any order.
    pub boxes: Vec<ChartBox>,
    /// The frequency of a CPU, drawn as a line of steps: times in nanoseconds, each with the line's height from then on, in
    /// percent of the row's height.
    pub line: Vec<(u64, u8)>,
}

/// A box in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartBox {
    /// The start time in nanoseconds.
    pub from: u64,
    /// The end time.
    pub to: u64,
    /// Its lower edge, in percent of the row's height from the bottom.
    pub low: u8,
    /// Its upper edge.
    pub high: u8,
    /// Its colour.
    pub paint: Paint,
    /// Whether the box summarises short periods of one state of a task or CPU whose state changed too fast to draw each change.
    /// The other states have boxes with the same times, one above the other; the height of each shows its state's share of the
    /// time.
    pub is_merged: bool,
    /// Index of its name in the row's names.
    pub name: Option<u32>,
}

/// A wakeup, drawn as an arrow from one row to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartArrow {
    /// The time in nanoseconds.
    pub time: u64,
    /// Index of the waker's row.
    pub from: usize,
    /// Index of the row of the woken task.
    pub to: usize,
}

/// A time range without complete data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartGap {
    /// The start time in nanoseconds.
    pub from: u64,
    /// The end time.
    pub to: u64,
    /// Index of the row; `None` for all rows.
    pub row: Option<usize>,
    /// The reason, shown while the pointer is on the range.
    pub name: String,
}
