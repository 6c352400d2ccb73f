//! What a trace shows, and its lines.

use std::sync::Arc;

use rperf_syscalls::{Abi, ArgumentOptions, StructureTexts};
use rustc_hash::{FxHashMap, FxHashSet};

/// The event that has the time on a CPU.
pub const RUN_TIME_EVENT: &str = "sched:sched_stat_runtime";

/// What is printed and counted.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The interface of the traced system.
    pub abi: Abi,
    /// Only these calls; `None` for all.
    pub selected: Option<FxHashSet<u32>>,
    /// A process that is not shown: the tracer itself, if all tasks are traced.
    pub hidden_process: Option<u32>,
    /// Only calls of at least this many nanoseconds; 0 for all.
    pub min_duration: u64,
    /// Only returns and other events whose stack has at least this many frames.
    pub min_stack: usize,
    /// How many lines of other events are shown, by their names; missing ones have no limit.
    pub event_limits: FxHashMap<String, u64>,
    /// Whether the trace ends when all these limits are reached.
    pub ends_with_limits: bool,
    /// Only calls that failed.
    pub failed_only: bool,
    /// The number of lines after which the trace ends.
    pub max_events: Option<u64>,
    /// Whether lines are printed.
    pub prints_lines: bool,
    /// Whether calls are summed up.
    pub sums_up: bool,
    /// Whether lines have details for machines. Then each call has one line, when it returns.
    pub with_details: bool,
    /// Events that begin and end what is shown.
    pub switch: Option<TraceSwitch>,
    /// Whether descriptors have names: only if all calls of all threads of a process are known, apart from counted losses.
    pub names_files: bool,
    /// Whether the times of [`RUN_TIME_EVENT`] are summed up by thread.
    pub sums_run_times: bool,
    /// Whether [`RUN_TIME_EVENT`] is also printed and counted.
    pub shows_run_times: bool,
    /// The kernel's structures, if they are known.
    pub structures: Option<Arc<dyn StructureTexts>>,
    /// How arguments are printed.
    pub arguments: ArgumentOptions,
}

/// Events by name that begin and end what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSwitch {
    /// Nothing is shown before the first one of this event.
    pub on: Option<String>,
    /// Nothing is shown after one of this event, until one of `on`.
    pub off: Option<String>,
    /// Whether these events themselves are shown.
    pub shows_events: bool,
}

/// Receives lines in order.
pub trait TraceSink {
    /// Sees the time of the first event, and maybe of later ones, before their lines.
    fn begin(&mut self, time: u64);

    /// Prints a line; returns false if no more can be printed.
    fn line(&mut self, line: &TraceLine<'_>) -> bool;
}

/// A line of a trace. Times are nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// When it began; `None` if the begin was not seen.
    pub time: Option<u64>,
    /// How long it took, if it has ended and the begin was seen.
    pub duration: Option<u64>,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: &'a [u8],
    /// What happened.
    pub text: CallText<'a>,
    /// The same for machines, if requested.
    pub details: Option<&'a LineDetails>,
    /// The frames of its stack, innermost first.
    pub stack: &'a [String],
}

/// A call or an event for machines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineDetails {
    /// The process number.
    pub process: u32,
    /// The time of the record behind this line: when the call returned, or never returns.
    pub moment: u64,
    /// The working directory of the process, if it is known.
    pub directory: Option<String>,
    /// The name of the call or event.
    pub name: String,
    /// The call's arguments as text, or the fields of an event.
    pub arguments: Vec<NamedText>,
    /// The registers of the call; none of an event.
    pub values: Vec<u64>,
    /// What the call returned, if it did.
    pub result: Option<i64>,
    /// Whether the result is the number of a new thread of the same process.
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

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallText<'a> {
    /// A call with its result; `None` if it does not return.
    Call(&'a str, Option<&'a str>),
    /// A call that is interrupted by the line of another thread.
    Begun(&'a str),
    /// The return of a call, whose begin is in an earlier line or was not seen, as `name(` with arguments that were not known then.
    Continued(&'a str, &'a str),
    /// Another event.
    Event(&'a str),
    /// Records were lost.
    Lost(u64),
}
