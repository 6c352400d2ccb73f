//! `report --tasks`, `--mmaps`: the threads of a recording as a tree.

use std::io::{self, Write};

use rperf_analysis::{TaskEntry, TaskMapping};

use crate::padding::Blanks;
use crate::table::{Cell, Column, TextStyle, TextTable};

/// The width of each column before the comm of a task.
const WIDTH: usize = 8;

/// Writes the tasks, each after its parent, and their mappings.
pub fn write_tasks(out: &mut dyn Write, tasks: &[TaskEntry]) -> io::Result<()> {
    let ids = ["pid", "tid", "ppid"].map(|title| Column::right(title).fixed(WIDTH));
    // Comms follow a bar and the indentation of their level; the title has a blank in place of the bar.
    // `fixed(0)`: the last column is not padded.
    let columns = [&ids[..], &[Column::left(" comm").fixed(0)]].concat();
    let style = TextStyle {
        gap: " ",
        ..TextStyle::PLAIN
    };
    let table = TextTable::new(&columns, style);
    table.write_titles(out)?;
    for task in tasks {
        // As in perf, -1 if not recorded.
        let parent = task
            .parent
            .map_or(-1, |parent| i64::from(parent.cast_signed()));
        let comm = format!("|{}{}", Blanks(task.level), task.comm);
        let ids = [
            task.pid.to_string(),
            task.tid.to_string(),
            parent.to_string(),
        ];
        let widths = ids.iter().map(|id| id.len().max(WIDTH) + style.gap.len());
        let indent = style.row_start.len() + widths.sum::<usize>() + "|".len() + task.level;
        let row: Vec<Cell> = ids.into_iter().chain([comm]).map(Cell::from).collect();
        table.write_row(out, &row)?;
        for mapping in &task.mappings {
            writeln!(out, "{}  {}", Blanks(indent), mapping_text(mapping))?;
        }
    }
    Ok(())
}

fn mapping_text(mapping: &TaskMapping) -> String {
    let may = |bit: u32, letter| if mapping.prot & bit == 0 { '-' } else { letter };
    // PROT_READ, PROT_WRITE, PROT_EXEC.
    let letters: String = [may(1, 'r'), may(2, 'w'), may(4, 'x')]
        .into_iter()
        .collect();
    let shared = if mapping.shared { 's' } else { 'p' };
    format!(
        "{:x}-{:x} {letters}{shared} {:08x} {} {}",
        mapping.start, mapping.end, mapping.offset, mapping.inode, mapping.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_follow_their_task() {
        let mapping = TaskMapping {
            start: 0x1000,
            end: 0x3000,
            prot: 5,
            shared: false,
            offset: 0x4000,
            inode: 12,
            name: "/bin/sh".to_owned(),
        };
        let task = TaskEntry {
            pid: 7,
            tid: 8,
            parent: Some(7),
            comm: "sh".to_owned(),
            level: 1,
            mappings: vec![mapping],
        };
        let mut out = Vec::new();
        write_tasks(&mut out, &[task]).expect("writing to memory succeeds");
        let expected = "\
#      pid      tid     ppid  comm
         7        8        7 | sh
                                 1000-3000 r-xp 00004000 12 /bin/sh
";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
