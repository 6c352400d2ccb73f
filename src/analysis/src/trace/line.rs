//! The options of a trace, and its lines.

use std::sync::Arc;

use rperf_syscalls::{Abi, ArgumentOptions, StructureTexts};
use rustc_hash::{FxHashMap, FxHashSet};

/// The event with the time that a thread ran on a CPU.
pub const RUN_TIME_EVENT: &str = "sched:sched_stat_runtime";

/// The calls and events that a trace prints and counts, and how it prints them.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The system call interface of the traced programs.
    pub abi: Abi,
    /// Numbers of the calls that are shown; `None` for all.
    pub selected_calls: Option<FxHashSet<u32>>,
    /// A process that is not shown: the tracer itself, if all tasks are traced.
    pub hidden_process: Option<u32>,
    /// Ids of threads whose calls and other events are not shown.
    pub excluded_threads: FxHashSet<u32>,
    /// Only calls that took at least this many nanoseconds are printed; 0 for all.
    pub min_duration: u64,
    /// Returns of calls, and events other than calls, are only printed if their stack has at least this many frames; 0 for all.
    pub min_stack: usize,
    /// The maximum number of lines of events other than system calls, by event name. Events that are missing here have
    /// no limit.
    pub event_limits: FxHashMap<String, u64>,
    /// Whether the trace ends when all of `event_limits` are reached.
    pub ends_with_limits: bool,
    /// Whether only calls that failed are printed. The summary also has those that succeeded.
    pub failed_only: bool,
    /// The number of lines after which the trace ends; `None` for no limit. [`CallText::Begun`] and [`CallText::Lost`] are not
    /// counted.
    pub max_events: Option<u64>,
    /// Whether lines are printed.
    pub prints_lines: bool,
    /// Whether calls are summed up.
    pub sums_up: bool,
    /// Whether lines have [`LineDetails`]. If so, each call has one line: when it returns, or when it begins if it never
    /// returns, like exit_group(2).
    pub with_details: bool,
    /// Events that begin and end the shown parts of the trace.
    pub switch: Option<TraceSwitch>,
    /// Whether the names of descriptors are shown. Requires the records of all calls of all threads of a process: when records
    /// are lost, all names are forgotten.
    pub names_files: bool,
    /// Whether the times of [`RUN_TIME_EVENT`] are summed up by thread.
    pub sums_run_times: bool,
    /// Whether [`RUN_TIME_EVENT`] is also printed and counted.
    pub shows_run_times: bool,
    /// The layouts of the kernel's structures, if they are known.
    pub structures: Option<Arc<dyn StructureTexts>>,
    /// How arguments are printed.
    pub arguments: ArgumentOptions,
}

/// The names of events that begin and end the shown parts of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSwitch {
    /// Nothing is shown before the first event of this name.
    pub on: Option<String>,
    /// Nothing is shown after an event of this name, until the next event `on`.
    pub off: Option<String>,
    /// Whether these events themselves are shown.
    pub shows_events: bool,
}

/// Receives lines in order.
pub trait TraceSink {
    /// Receives the time in nanoseconds of the first selected call or other event, before its line. Only a line of lost records
    /// can be printed before this function is called.
    fn begin(&mut self, time: u64);

    /// Prints a line; returns false if no more can be printed.
    fn line(&mut self, line: &TraceLine<'_>) -> bool;
}

/// A line of a trace. Times are nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// When the call or event began; `None` if its start was not seen.
    pub time: Option<u64>,
    /// How long a call took, if its start and end were seen; 0 for a page fault, as in perf; `None` for other events.
    pub duration: Option<u64>,
    /// The thread.
    pub tid: u32,
    /// The thread's name; empty if unknown.
    pub comm: &'a [u8],
    /// The call or event as text.
    pub text: CallText<'a>,
    /// The same in parts, if [`TraceOptions::with_details`] is set.
    pub details: Option<&'a LineDetails>,
    /// The frames of the stack, innermost first; empty if there is none.
    pub stack: &'a [String],
}

/// The parts of a call or an event, for output in other forms than lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineDetails {
    /// The process id.
    pub process: u32,
    /// The time in nanoseconds of the event, or of the call's return; of its start if it never returns.
    pub moment: u64,
    /// The working directory of the process, if it is known.
    pub directory: Option<String>,
    /// The name of the call or event.
    pub name: String,
    /// The call's arguments as text, or the fields of an event.
    pub arguments: Vec<NamedText>,
    /// The six argument registers of the call. Empty for an event, and for a call whose start was not seen.
    pub registers: Vec<u64>,
    /// The result of the call, if it returned; a negated errno if it failed.
    pub result: Option<i64>,
    /// Whether the result is the id of a thread that began during the trace and is not the first one of its process.
    pub starts_thread: bool,
}

/// An argument or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// Its name.
    pub name: String,
    /// Its value.
    pub text: String,
}

/// The text of a line: of a call, another event or lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallText<'a> {
    /// A call as `name(arguments`, and its result; `None` if it never returns.
    Call(&'a str, Option<&'a str>),
    /// A call as `name(arguments` that has not returned yet. The line is printed at the next call of another thread, at the next
    /// page fault or other event of any thread, when records are lost, or at the end of the trace.
    Begun(&'a str),
    /// The return of a call, and the result. If its start is in an earlier line, `name(` with the arguments that were not known
    /// yet for that line; if its start was not seen, `name(` without arguments.
    Continued(&'a str, &'a str),
    /// Another event as `name(fields)`, or a page fault as `majfault TEXT` or `minfault TEXT`, where TEXT is that of
    /// [`TraceRecord::Fault`](super::TraceRecord::Fault).
    Event(&'a str),
    /// The number of records that were lost.
    Lost(u64),
}
