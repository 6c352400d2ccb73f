//! `report --threads`: what was counted in each thread.

use std::io::{self, Write};

use crate::padding::RightAligned;

/// Counts of a recording's threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadCounts {
    /// The events: name, and place in the recording.
    pub events: Vec<(String, usize)>,
    /// The threads in the order in which they are shown.
    pub threads: Vec<ThreadCount>,
}

/// What was counted in one thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadCount {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// One count for each event.
    pub counts: Vec<u64>,
}

/// How counts are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadLayout {
    /// A line for each thread, a column for each event.
    #[default]
    Normal,
    /// A line for each thread and event.
    Raw,
}

/// Writes titles and rows, which are as wide as they need to be.
pub fn write_threads(
    out: &mut dyn Write,
    counted: &ThreadCounts,
    layout: ThreadLayout,
) -> io::Result<()> {
    let rows = match layout {
        ThreadLayout::Normal => normal(counted),
        ThreadLayout::Raw => raw(counted),
    };
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| RightAligned(cell, *width).to_string())
            .collect();
        let start = if number == 0 { "# " } else { "  " };
        writeln!(out, "{start}{}", cells.join("  "))?;
    }
    Ok(())
}

/// The cells with those of the titles before them.
fn normal(counted: &ThreadCounts) -> Vec<Vec<String>> {
    let names = counted.events.iter().map(|(name, _)| name.clone());
    let titles = ["PID", "TID"].map(str::to_owned).into_iter().chain(names);
    let mut rows = vec![titles.collect()];
    for thread in &counted.threads {
        let counts = thread.counts.iter().map(u64::to_string);
        let ids = [thread.pid, thread.tid].map(|id| id.to_string());
        rows.push(ids.into_iter().chain(counts).collect());
    }
    rows
}

fn raw(counted: &ThreadCounts) -> Vec<Vec<String>> {
    let titles = ["PID", "TID", "Name", "Raw", "Count"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for thread in &counted.threads {
        for ((name, place), count) in counted.events.iter().zip(&thread.counts) {
            rows.push(vec![
                thread.pid.to_string(),
                thread.tid.to_string(),
                name.clone(),
                format!("{place:x}"),
                count.to_string(),
            ]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let counted = ThreadCounts {
            events: vec![("cycles".to_owned(), 0), ("faults".to_owned(), 10)],
            threads: vec![
                ThreadCount {
                    pid: 7,
                    tid: 10_000,
                    counts: vec![123_456_789, 0],
                },
                ThreadCount {
                    pid: 7,
                    tid: 8,
                    counts: vec![1, 2],
                },
            ],
        };
        let text = |layout| {
            let mut out = Vec::new();
            write_threads(&mut out, &counted, layout).expect("memory takes all");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(
            text(ThreadLayout::Normal),
            "\
# PID    TID     cycles  faults
    7  10000  123456789       0
    7      8          1       2
"
        );
        assert_eq!(
            text(ThreadLayout::Raw),
            "\
# PID    TID    Name  Raw      Count
    7  10000  cycles    0  123456789
    7  10000  faults    a          0
    7      8  cycles    0          1
    7      8  faults    a          2
"
        );
    }
}
