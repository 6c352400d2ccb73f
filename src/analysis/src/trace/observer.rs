//! The state machine of a trace: the call that each thread is in.

use rperf_replay::FoldControl;
use rperf_syscalls::{
    Abi, ArgumentOptions, CallArguments, CapturedBytes, Syscall, SyscallTable, TaskNames,
    write_arguments, write_result,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::summary::{CallStatistics, CallSummary, error_number};
use super::{CapturedArgument, TraceRecord};
use crate::{EventContext, Loss, Observer, TaskChange};

/// Selection of the calls that are printed and counted, and how they are printed.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// The interface of the traced system.
    pub abi: Abi,
    /// Only these calls; `None` for all.
    pub selected: Option<FxHashSet<u32>>,
    /// Only calls of at least this many nanoseconds; 0 for all.
    pub min_duration: u64,
    /// Only calls that failed.
    pub failed_only: bool,
    /// The number of lines after which the trace ends.
    pub max_events: Option<u64>,
    /// Whether lines are printed.
    pub prints_lines: bool,
    /// Whether calls are summed up.
    pub sums_up: bool,
    /// How arguments are printed.
    pub arguments: ArgumentOptions,
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
    /// The content of the line.
    pub text: CallText<'a>,
}

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallText<'a> {
    /// A call with its result; `None` if it does not return.
    Call(&'a str, Option<&'a str>),
    /// A call that is interrupted by the line of another thread.
    Begun(&'a str),
    /// The name and the result of a call that began in an earlier line, or whose begin was not seen.
    Continued(&'a str, &'a str),
    /// Another event.
    Event(&'a str),
    /// Records were lost.
    Lost(u64),
}

/// Joins entries and returns of calls.
pub struct TraceObserver<S> {
    options: TraceOptions,
    table: &'static SyscallTable,
    sink: S,
    threads: FxHashMap<u32, ThreadState>,
    names: CommNames,
    /// The thread whose call has begun last and is not printed yet.
    current: Option<u32>,
    summary: CallSummary,
    lines: u64,
    lost: u64,
    has_ended: bool,
}

/// The names of threads.
#[derive(Debug, Default)]
struct CommNames(FxHashMap<u32, Vec<u8>>);

impl TaskNames for CommNames {
    fn comm(&self, tid: u32) -> Option<&[u8]> {
        self.0.get(&tid).map(Vec::as_slice)
    }
}

/// The call that a thread is in.
#[derive(Debug, Default)]
struct ThreadState {
    begun: Option<BegunCall>,
}

#[derive(Debug)]
struct BegunCall {
    number: u32,
    time: u64,
    arguments: [u64; 6],
    /// `name(arguments`; empty once it is printed.
    text: String,
}

impl<S: TraceSink> TraceObserver<S> {
    /// Begins a trace.
    #[must_use]
    pub fn new(options: TraceOptions, sink: S) -> Self {
        Self {
            table: SyscallTable::of(options.abi),
            options,
            sink,
            threads: FxHashMap::default(),
            names: CommNames::default(),
            current: None,
            summary: CallSummary::default(),
            lines: 0,
            lost: 0,
            has_ended: false,
        }
    }

    /// Sets the name of a thread that is known from elsewhere.
    pub fn name_thread(&mut self, tid: u32, comm: &[u8]) {
        self.names.0.insert(tid, comm.to_vec());
    }

    /// Returns the sink.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Whether the number of lines is reached, or no line can be printed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of lost records.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Ends the trace: a call that has not returned is printed as such.
    pub fn finish(mut self) -> (S, CallSummary) {
        self.interrupt();
        for (tid, thread) in &mut self.summary.threads {
            let comm = self.names.comm(*tid);
            thread.comm = String::from_utf8_lossy(comm.unwrap_or_default()).into_owned();
        }
        (self.sink, self.summary)
    }

    fn print(&mut self, tid: u32, time: Option<u64>, duration: Option<u64>, text: CallText<'_>) {
        if !self.options.prints_lines || self.has_ended {
            return;
        }
        let line = TraceLine {
            time,
            duration,
            tid,
            comm: self.names.comm(tid).unwrap_or_default(),
            text,
        };
        let goes_on = self.sink.line(&line);
        if !matches!(text, CallText::Lost(_) | CallText::Begun(_)) {
            self.lines += 1;
        }
        self.has_ended = !goes_on
            || self
                .options
                .max_events
                .is_some_and(|most| self.lines >= most);
    }

    /// Prints the begin of the current call, since a line of another thread follows.
    fn interrupt(&mut self) {
        if self.options.min_duration > 0 || self.options.failed_only {
            return;
        }
        let Some(tid) = self.current.take() else {
            return;
        };
        let begun = self
            .threads
            .get_mut(&tid)
            .and_then(|thread| thread.begun.as_mut());
        let Some(begun) = begun.filter(|begun| !begun.text.is_empty()) else {
            return;
        };
        let (time, text) = (begun.time, std::mem::take(&mut begun.text));
        self.print(tid, Some(time), None, CallText::Begun(&text));
    }

    fn is_selected(&self, number: u32) -> bool {
        let selected = self.options.selected.as_ref();
        selected.is_none_or(|selected| selected.contains(&number))
    }

    fn enter(
        &mut self,
        tid: u32,
        time: u64,
        number: u32,
        arguments: [u64; 6],
        captured: &[CapturedArgument],
    ) {
        if self.current != Some(tid) {
            self.interrupt();
        }
        let syscall = self.table.get(number);
        let mut text = String::new();
        if self.options.prints_lines {
            let mut bytes = call_name(number, syscall).into_bytes();
            bytes.push(b'(');
            let captured: Vec<CapturedBytes<'_>> = captured.iter().map(borrowed).collect();
            let call = CallArguments {
                captured: &captured,
                ..self.call(syscall, arguments)
            };
            // Writing to memory does not fail.
            let _ = write_arguments(&mut bytes, &call, &self.names, self.options.arguments);
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let never_returns = matches!(
            syscall.map(|call| call.name),
            Some("exit" | "exit_group" | "rt_sigreturn")
        );
        let begun = BegunCall {
            number,
            time,
            arguments,
            text,
        };
        if never_returns {
            if self.options.min_duration == 0 && !self.options.failed_only {
                self.print(tid, Some(time), None, CallText::Call(&begun.text, None));
            }
            self.threads.remove(&tid);
            return;
        }
        self.threads.entry(tid).or_default().begun = Some(begun);
        self.current = Some(tid);
    }

    fn call<'a>(&self, syscall: Option<&'a Syscall>, values: [u64; 6]) -> CallArguments<'a> {
        CallArguments {
            abi: self.options.abi,
            syscall,
            values,
            captured: &[],
        }
    }

    fn exit(&mut self, tid: u32, time: u64, number: u32, result: i64) {
        let state = self.threads.entry(tid).or_default();
        let begun = state.begun.take().filter(|begun| begun.number == number);
        if self.current == Some(tid) {
            self.current = None;
        }
        let start = begun.as_ref().map(|begun| begun.time);
        let duration = start.map(|start| time.saturating_sub(start));
        if self.options.sums_up {
            let thread = self.summary.threads.entry(tid).or_default();
            let statistics: &mut CallStatistics = thread.calls.entry(number).or_default();
            statistics.add(duration.unwrap_or_default(), result);
        }
        let is_hidden = (self.options.failed_only && error_number(result).is_none())
            || (self.options.min_duration > 0
                && duration.is_none_or(|duration| duration < self.options.min_duration));
        if is_hidden || !self.options.prints_lines {
            return;
        }
        let syscall = self.table.get(number);
        let arguments = begun.as_ref().map_or([0; 6], |begun| begun.arguments);
        let mut bytes = Vec::new();
        let call = self.call(syscall, arguments);
        let _ = write_result(&mut bytes, &call, result, &self.names);
        let returned = String::from_utf8_lossy(&bytes);
        let text = begun.map(|begun| begun.text).unwrap_or_default();
        let name = call_name(number, syscall);
        let text = match text.is_empty() {
            true => CallText::Continued(&name, &returned),
            false => CallText::Call(&text, Some(&returned)),
        };
        self.print(tid, start, duration, text);
    }

    fn other(&mut self, tid: u32, time: u64, name: &str, fields: &[(String, String)]) {
        self.interrupt();
        if !self.options.prints_lines {
            return;
        }
        let mut text = format!("{name}(");
        let mut is_first = true;
        for (field, value) in fields {
            let is_text = value.starts_with('"');
            if value == "0" && !self.options.arguments.show_zeros {
                continue;
            }
            if !is_first {
                text.push_str(", ");
            }
            is_first = false;
            text.push_str(&format!("{field}: {value}"));
            let is_task = !is_text && (field.ends_with("pid") || field.ends_with("tid"));
            let comm = value.parse().ok().filter(|_| is_task);
            if let Some(comm) = comm.and_then(|tid| self.names.comm(tid)) {
                text.push_str(&format!(" ({})", String::from_utf8_lossy(comm)));
            }
        }
        text.push(')');
        self.print(tid, Some(time), None, CallText::Event(&text));
    }
}

fn borrowed(captured: &CapturedArgument) -> CapturedBytes<'_> {
    CapturedBytes {
        argument: captured.argument,
        bytes: &captured.bytes,
        is_truncated: captured.is_truncated,
        is_late: false,
    }
}

/// Returns the name of a call, or a text for an unknown number.
fn call_name(number: u32, syscall: Option<&Syscall>) -> String {
    syscall.map_or_else(|| format!("syscall_{number}"), |call| call.name.to_owned())
}

impl<S: TraceSink> Observer<TraceRecord> for TraceObserver<S> {
    fn sample(&mut self, at: &EventContext, record: TraceRecord) {
        let tid = at.task.tid;
        let number = match &record {
            TraceRecord::Enter { number, .. } | TraceRecord::Exit { number, .. } => Some(*number),
            TraceRecord::Event { .. } => None,
        };
        if number.is_some_and(|number| !self.is_selected(number)) {
            return;
        }
        if self.summary.events == 0 {
            self.sink.begin(at.time());
        }
        self.summary.events += 1;
        if self.options.sums_up {
            self.summary.threads.entry(tid).or_default().events += 1;
        }
        match record {
            TraceRecord::Enter {
                number,
                arguments,
                captured,
            } => self.enter(tid, at.time(), number, arguments, &captured),
            TraceRecord::Exit { number, result } => self.exit(tid, at.time(), number, result),
            TraceRecord::Event { name, fields } => self.other(tid, at.time(), &name, &fields),
        }
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        match change {
            TaskChange::Fork { parent, child } => {
                if let Some(comm) = self.names.0.get(&parent.tid).cloned() {
                    self.names.0.insert(child.tid, comm);
                }
            }
            TaskChange::Comm { task, name, .. } => {
                self.names.0.insert(task.tid, name.to_vec());
            }
            TaskChange::Exit(_) => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.lost = self.lost.saturating_add(loss.records);
        self.interrupt();
        self.print(
            at.task.tid,
            Some(at.time()),
            None,
            CallText::Lost(loss.records),
        );
    }

    fn flow(&self) -> FoldControl {
        match self.has_ended {
            true => FoldControl::Stop,
            false => FoldControl::Continue,
        }
    }
}
