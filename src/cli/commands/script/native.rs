//! The trace scripts of perf that rperf computes itself, without an interpreter.

use std::ffi::OsString;
use std::io::{self, Write};

use rperf_analysis::trace_scripts::{
    CompactionTimes, DropLocations, EventFields, FailedByComm, FailedByTask, FileIo, FutexWaits,
    PacketTimes, ScriptSample, SyscallCounts, SyscallsByTask, TaskReadWrite, TaskRuns,
    TaskSelection, WakeupLatencies,
};
use rperf_view::terminal::Csi;
use rperf_view::trace_scripts as view;

use super::native_tasks::TaskAnalyzer;
use super::{native_compaction, native_packets};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::built_in_scripts::NativeScript;

/// The number of rows of `rwtop`.
const TOP_ROWS: usize = 20;
/// The number of dashes below the title of the counts, as in perf's scripts `syscall-counts` and `sctop`.
const SYSCALL_COUNTS_RULE: usize = 11;
const SCTOP_RULE: usize = 10;
/// Default seconds between refreshes of the scripts that have an interval.
const INTERVAL: u64 = 3;

/// A script with its arguments and its results so far.
pub(super) enum NativeTable {
    Syscalls(SyscallCounts),
    /// `sctop`: with the seconds between refreshes.
    TopSyscalls(SyscallCounts, u64),
    SyscallsByTask(SyscallsByTask),
    FailedByComm(FailedByComm),
    FailedByTask(FailedByTask),
    ReadWrite(TaskReadWrite),
    /// `rwtop`: with the seconds between refreshes.
    TopReadWrite(TaskReadWrite, u64),
    Files(FileIo),
    Wakeups(WakeupLatencies),
    Futexes(FutexWaits),
    Drops(DropLocations),
    Compactions(CompactionTimes, view::CompactionLayout),
    Packets(Box<PacketTimes>, view::PacketLayout),
    Tasks(Box<TaskAnalyzer>),
}

/// What tables need besides their counts: functions that look up names, and the prefix of control sequences.
pub(super) struct ScriptContext<'n> {
    /// The name of a system call, or its number as text.
    pub(super) syscall: &'n dyn Fn(i64) -> String,
    /// Function and offset of an address of the kernel.
    pub(super) function: &'n dyn Fn(u64) -> (String, u64),
    /// Introduces control sequences of the terminal.
    pub(super) csi: Csi,
}

impl ScriptContext<'_> {
    /// Clears the screen. As in perf's scripts, a newline follows, so that the cursor is in the second row.
    fn clear_screen(&self, out: &mut dyn Write) -> io::Result<()> {
        let csi = self.csi;
        writeln!(out, "{csi}H{csi}2J")
    }
}

impl NativeTable {
    /// The table of a script with these arguments.
    ///
    /// # Errors
    ///
    /// Status 129: other arguments than the script takes.
    pub(super) fn new(script: NativeScript, words: &[OsString]) -> Result<Self, CliError> {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        Ok(match script {
            NativeScript::SyscallCounts => Self::Syscalls(SyscallCounts {
                tasks: comm_argument(script, &words)?,
                ..SyscallCounts::default()
            }),
            NativeScript::Sctop => {
                let (tasks, interval) = top_arguments(script, &words)?;
                let counts = SyscallCounts {
                    tasks,
                    ..SyscallCounts::default()
                };
                Self::TopSyscalls(counts, interval)
            }
            NativeScript::SyscallCountsByPid => Self::SyscallsByTask(SyscallsByTask {
                tasks: task_argument(script, &words)?,
                ..SyscallsByTask::default()
            }),
            NativeScript::FailedSyscalls => Self::FailedByComm(FailedByComm {
                tasks: comm_argument(script, &words)?,
                ..FailedByComm::default()
            }),
            NativeScript::FailedSyscallsByPid => Self::FailedByTask(FailedByTask {
                tasks: task_argument(script, &words)?,
                ..FailedByTask::default()
            }),
            NativeScript::Rwtop => {
                let interval = interval_argument(script, &words)?;
                Self::TopReadWrite(TaskReadWrite::default(), interval)
            }
            NativeScript::RwByFile => match &*words {
                [comm] => Self::Files(FileIo::of_comm(comm)),
                _ => return Err(usage(script, "<comm>")),
            },
            NativeScript::CompactionTimes => {
                let (times, layout) = native_compaction::parse(&words)?;
                Self::Compactions(times, layout)
            }
            NativeScript::NetdevTimes => {
                Self::Packets(Box::default(), native_packets::parse(&words)?)
            }
            NativeScript::TaskAnalyzer => Self::Tasks(Box::new(TaskAnalyzer::parse(&words)?)),
            // The scripts below take no arguments.
            _ if !words.is_empty() => return Err(usage(script, "")),
            NativeScript::RwByPid => Self::ReadWrite(TaskReadWrite::default()),
            NativeScript::WakeupLatency => Self::Wakeups(WakeupLatencies::default()),
            NativeScript::FutexContention => Self::Futexes(FutexWaits::default()),
            NativeScript::NetDropmonitor => Self::Drops(DropLocations::default()),
        })
    }

    /// Sets the properties that depend on the terminal.
    ///
    /// # Errors
    ///
    /// Those of [`TaskAnalyzer::set_colors`].
    pub(super) fn prepare(&mut self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Tasks(table) => table.set_colors(context),
            _ => Ok(()),
        }
    }

    /// The tracepoints whose samples are needed.
    pub(super) fn events(&self) -> &'static [EventFields] {
        match self {
            Self::Syscalls(_) | Self::TopSyscalls(..) | Self::SyscallsByTask(_) => {
                SyscallCounts::EVENTS
            }
            Self::FailedByComm(_) => FailedByComm::EVENTS,
            Self::FailedByTask(_) => FailedByTask::EVENTS,
            Self::ReadWrite(_) | Self::TopReadWrite(..) => TaskReadWrite::EVENTS,
            Self::Files(_) => FileIo::EVENTS,
            Self::Wakeups(_) => WakeupLatencies::EVENTS,
            Self::Futexes(_) => FutexWaits::EVENTS,
            Self::Drops(_) => DropLocations::EVENTS,
            Self::Compactions(..) => CompactionTimes::EVENTS,
            Self::Packets(..) => PacketTimes::EVENTS,
            Self::Tasks(_) => TaskRuns::EVENTS,
        }
    }

    /// Whether samples of other events are counted, to be listed below the table.
    pub(super) fn counts_others(&self) -> bool {
        matches!(self, Self::ReadWrite(_) | Self::Files(_) | Self::Wakeups(_))
    }

    /// Seconds between refreshes of a script that has an interval.
    pub(super) fn interval(&self) -> Option<u64> {
        match self {
            Self::TopSyscalls(_, interval) | Self::TopReadWrite(_, interval) => Some(*interval),
            _ => None,
        }
    }

    /// Adds a sample of one of the tracepoints of [`Self::events`].
    pub(super) fn sample(&mut self, sample: &ScriptSample<'_>) {
        match self {
            Self::Syscalls(table) | Self::TopSyscalls(table, _) => table.sample(sample),
            Self::SyscallsByTask(table) => table.sample(sample),
            Self::FailedByComm(table) => table.sample(sample),
            Self::FailedByTask(table) => table.sample(sample),
            Self::ReadWrite(table) | Self::TopReadWrite(table, _) => table.sample(sample),
            Self::Files(table) => table.sample(sample),
            Self::Wakeups(table) => table.sample(sample),
            Self::Futexes(table) => table.sample(sample),
            Self::Drops(table) => table.sample(sample),
            Self::Compactions(table, _) => table.sample(sample),
            Self::Packets(table, _) => table.sample(sample),
            Self::Tasks(table) => table.runs.sample(sample),
        }
    }

    /// Writes the text that perf's script prints before the first event.
    pub(super) fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Syscalls(_)
            | Self::SyscallsByTask(_)
            | Self::FailedByTask(_)
            | Self::Futexes(_) => writeln!(out, "Press control+C to stop and show the summary"),
            Self::Tasks(table) => table.begin(out),
            Self::Drops(_) => writeln!(out, "Starting trace (Ctrl-C to dump results)"),
            _ => Ok(()),
        }
    }

    /// Writes the table. A script with an interval clears the screen first, and empties its table afterwards.
    pub(super) fn write(
        &mut self,
        out: &mut dyn Write,
        context: &ScriptContext<'_>,
    ) -> io::Result<()> {
        match self {
            Self::Syscalls(table) => {
                view::write_syscall_counts(out, table, context.syscall, SYSCALL_COUNTS_RULE)
            }
            Self::TopSyscalls(table, _) => {
                context.clear_screen(out)?;
                view::write_syscall_counts(out, table, context.syscall, SCTOP_RULE)?;
                table.counts.clear();
                Ok(())
            }
            Self::SyscallsByTask(table) => {
                view::write_syscalls_by_task(out, table, context.syscall)
            }
            Self::FailedByComm(table) => view::write_failed_by_comm(out, table),
            Self::FailedByTask(table) => view::write_failed_by_task(out, table, context.syscall),
            Self::ReadWrite(table) => view::write_io_by_task(out, table),
            Self::TopReadWrite(table, _) => {
                context.clear_screen(out)?;
                view::write_top_io(out, table, TOP_ROWS)?;
                table.clear();
                Ok(())
            }
            Self::Files(table) => view::write_io_by_file(out, table),
            Self::Wakeups(table) => view::write_wakeups(out, table),
            Self::Futexes(table) => view::write_futexes(out, table),
            Self::Compactions(table, layout) => view::write_compactions(out, table, *layout),
            Self::Packets(table, layout) => view::write_packets(out, table, layout),
            Self::Tasks(table) => table.write(out),
            Self::Drops(table) => {
                writeln!(out, "Gathering kallsyms data")?;
                let rows = table.counts.iter().map(|(address, count)| {
                    let (function, offset) = (context.function)(address.cast_unsigned());
                    (function, offset, *count)
                });
                view::write_drops(out, &rows.collect::<Vec<_>>())
            }
        }
    }
}

/// The tasks with the given name; without arguments, all tasks.
fn comm_argument(script: NativeScript, words: &[String]) -> Result<TaskSelection, CliError> {
    match words {
        [] => Ok(TaskSelection::All),
        [comm] => Ok(TaskSelection::Comm(comm.clone())),
        _ => Err(usage(script, "[comm]")),
    }
}

/// The tasks with the given name or thread id; without arguments, all tasks.
fn task_argument(script: NativeScript, words: &[String]) -> Result<TaskSelection, CliError> {
    match words {
        [] => Ok(TaskSelection::All),
        [task] => Ok(TaskSelection::parse(task)),
        _ => Err(usage(script, "[comm|pid]")),
    }
}

/// The given interval in seconds; without arguments, [`INTERVAL`].
fn interval_argument(script: NativeScript, words: &[String]) -> Result<u64, CliError> {
    match words {
        [] => Ok(INTERVAL),
        [interval] => seconds(script, interval),
        _ => Err(usage(script, "[interval]")),
    }
}

/// The optional arguments of `sctop`: a name of tasks and an interval. A single number is an interval.
fn top_arguments(script: NativeScript, words: &[String]) -> Result<(TaskSelection, u64), CliError> {
    match words {
        [] => Ok((TaskSelection::All, INTERVAL)),
        [word] => Ok(match word.parse() {
            Ok(interval) => (TaskSelection::All, interval),
            Err(_) => (TaskSelection::Comm(word.clone()), INTERVAL),
        }),
        [comm, interval] => Ok((
            TaskSelection::Comm(comm.clone()),
            seconds(script, interval)?,
        )),
        _ => Err(usage(script, "[comm] [interval]")),
    }
}

fn seconds(script: NativeScript, word: &str) -> Result<u64, CliError> {
    word.parse().map_err(|_| {
        let name = script.name();
        CliError::usage(format!(
            "script {name}: interval '{word}': not a number of seconds"
        ))
    })
}

fn usage(script: NativeScript, arguments: &str) -> CliError {
    let name = script.name();
    CliError::usage(
        format!("usage: script report {name} {arguments}")
            .trim_end()
            .to_owned(),
    )
}
