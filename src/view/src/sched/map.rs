//! The rows of `sched map`, in the layout of perf 6.1.

use std::io::{self, Write};

use rperf_analysis::sched::map::MapRow;

use super::push_seconds;
use crate::terminal::Csi;

/// The SGR parameter (ECMA-48) of a red background, as in perf.
const CPU_COLOR: &str = "41";
/// The SGR parameter of blue text, as in perf.
const TASK_COLOR: &str = "34";

/// Which CPUs have columns, when rows name their tasks, and what is coloured.
#[derive(Debug, Clone, Default)]
pub struct MapColumns {
    /// The number of CPUs, each of which has a column unless `cpus` or `is_compact` is set. A row of a higher CPU increases it.
    pub cpu_count: u32,
    /// If given, only these CPUs have columns.
    pub cpus: Option<Vec<u32>>,
    /// Whether only CPUs that have switched have columns, in order of their first switch.
    pub is_compact: bool,
    /// Whether every row of a selected task other than the idle task names the task. In other cases, only its first row does, and
    /// the first one after each renaming.
    pub with_names: bool,
    /// CPUs whose `*`, the mark of a switch, is highlighted.
    pub color_cpus: Vec<u32>,
    /// Ids of threads whose codes (`A0`) and names are highlighted.
    pub color_tids: Vec<i32>,
    /// The prefix of control sequences, if stdout is a terminal.
    pub csi: Option<Csi>,
}

impl MapColumns {
    /// Writes a row.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_row(&mut self, out: &mut Vec<u8>, row: &MapRow<'_>) -> io::Result<()> {
        self.cpu_count = self.cpu_count.max(row.cpu.saturating_add(1));
        out.extend(b"  ");
        if self.is_compact {
            for cpu in row.seen_cpus {
                self.write_cpu(out, row, *cpu)?;
            }
        } else {
            for cpu in 0..self.cpu_count {
                self.write_cpu(out, row, cpu)?;
            }
        }
        out.extend(b"  ");
        push_seconds(out, row.time, 12);
        out.extend(b" secs ");
        if row.has_new_name || (self.with_names && row.is_selected() && row.task.tid != 0) {
            let mut text = row.code.bytes().to_vec();
            text.extend(b" => ");
            text.extend(&row.task.comm);
            text.extend(format!(":{}", row.task.tid).into_bytes());
            self.write_colored(out, &text, self.task_color(row.task.tid))?;
        }
        if self.is_compact && row.is_first_of_cpu {
            write!(out, " (CPU {})", row.cpu)?;
        }
        out.push(b'\n');
        Ok(())
    }

    /// Writes the column of a CPU; nothing if `cpus` is given without it.
    fn write_cpu(&self, out: &mut Vec<u8>, row: &MapRow<'_>, cpu: u32) -> io::Result<()> {
        if self.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&cpu)) {
            return Ok(());
        }
        if cpu == row.cpu {
            let is_colored = self.color_cpus.contains(&cpu);
            self.write_colored(out, b"*", is_colored.then_some(CPU_COLOR))?;
        } else {
            out.push(b' ');
        }
        match row.running(cpu) {
            None => out.extend(b"   "),
            Some((task, code)) => {
                let text = [&code.bytes()[..], b" "].concat();
                self.write_colored(out, &text, self.task_color(task.tid))?;
            }
        }
        Ok(())
    }

    fn task_color(&self, tid: i32) -> Option<&'static str> {
        self.color_tids.contains(&tid).then_some(TASK_COLOR)
    }

    fn write_colored(&self, out: &mut Vec<u8>, text: &[u8], color: Option<&str>) -> io::Result<()> {
        match (self.csi, color) {
            (Some(csi), Some(color)) => {
                write!(out, "{csi}{color}m")?;
                out.extend(text);
                // Without a parameter, the sequence resets the color.
                write!(out, "{csi}m")
            }
            _ => out.write_all(text),
        }
    }
}
