//! `report --tasks`, `--mmaps`: the threads of a recording as a tree.

use std::io::{self, Write};

use crate::padding::Blanks;

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread that started it, if the recording tells.
    pub parent: Option<u32>,
    /// Its last name.
    pub comm: String,
    /// Threads between it and one without a known parent.
    pub level: usize,
    /// Its memory by rising address, where that is asked for.
    pub mappings: Vec<TaskMapping>,
}

/// What is mapped somewhere in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// Whether others see what is written (`MAP_SHARED`).
    pub shared: bool,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// The file's inode number, 0 where there is none.
    pub inode: u64,
    /// The file's name.
    pub name: String,
}

/// Writes the tasks, each behind the one that started it, and their memory.
pub fn write_tasks(out: &mut dyn Write, tasks: &[Task]) -> io::Result<()> {
    writeln!(out, "# {:>8} {:>8} {:>8}  comm", "pid", "tid", "ppid")?;
    for task in tasks {
        let parent = task
            .parent
            .map_or(-1, |parent| i64::from(parent.cast_signed()));
        let indent = Blanks(task.level);
        let line = format!("  {:8} {:8} {parent:8} |{indent}", task.pid, task.tid);
        writeln!(out, "{line}{}", task.comm)?;
        let width = line.len();
        for mapping in &task.mappings {
            writeln!(out, "{}  {}", Blanks(width), text(mapping))?;
        }
    }
    Ok(())
}

fn text(mapping: &TaskMapping) -> String {
    let may = |bit: u32, letter| if mapping.prot & bit == 0 { '-' } else { letter };
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
    fn memory_stands_below_its_task() {
        let mapping = TaskMapping {
            start: 0x1000,
            end: 0x3000,
            prot: 5,
            shared: false,
            offset: 0x4000,
            inode: 12,
            name: "/bin/sh".to_owned(),
        };
        let task = Task {
            pid: 7,
            tid: 8,
            parent: Some(7),
            comm: "sh".to_owned(),
            level: 1,
            mappings: vec![mapping],
        };
        let mut out = Vec::new();
        write_tasks(&mut out, &[task]).expect("memory takes it");
        let expected = "\
#      pid      tid     ppid  comm
         7        8        7 | sh
                                 1000-3000 r-xp 00004000 12 /bin/sh
";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
