//! `report --threads`: counts per thread.

use std::io::{self, Write};

use rperf_analysis::ThreadCounts;

use crate::table::{Cell, Column, Table, TextStyle};

/// The layout of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadLayout {
    /// One line per thread, one column per event.
    #[default]
    Normal,
    /// One line per thread and event.
    Raw,
}

/// Writes titles and rows in automatic widths.
pub fn write_threads(
    out: &mut dyn Write,
    counted: &ThreadCounts,
    layout: ThreadLayout,
) -> io::Result<()> {
    let table = match layout {
        ThreadLayout::Normal => normal(counted),
        ThreadLayout::Raw => raw(counted),
    };
    table.write_text(out, TextStyle::PLAIN)
}

fn normal(counted: &ThreadCounts) -> Table {
    let names = counted.events.iter().map(|(name, _)| name.clone());
    let ids = ["PID", "TID"].map(str::to_owned).into_iter();
    let mut table = Table::new(ids.chain(names).map(Column::right).collect::<Vec<_>>());
    for thread in &counted.threads {
        let ids = [thread.pid, thread.tid].map(Cell::from).into_iter();
        let counts = thread.counts.iter().copied().map(Cell::from);
        table.push(ids.chain(counts).collect::<Vec<_>>());
    }
    table
}

fn raw(counted: &ThreadCounts) -> Table {
    let mut table = Table::new(["PID", "TID", "Name", "Raw", "Count"].map(Column::right));
    for thread in &counted.threads {
        // `Raw` is the index of the event in the recording, in hexadecimal.
        for ((name, index), count) in counted.events.iter().zip(&thread.counts) {
            table.push([
                thread.pid.into(),
                thread.tid.into(),
                name.clone().into(),
                format!("{index:x}").into(),
                (*count).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_analysis::ThreadCount;

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
            ..ThreadCounts::default()
        };
        let text = |layout| {
            let mut out = Vec::new();
            write_threads(&mut out, &counted, layout).expect("writing to memory succeeds");
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
