//! The state machine of a trace: the call that each thread is in.

mod events;
mod held;
mod late;
#[cfg(test)]
mod tests;

use rperf_replay::FoldControl;
use rperf_syscalls::{
    ArgumentOptions, CallArguments, CapturedBytes, Syscall, SyscallTable, argument_texts,
    error_number, write_arguments, write_result,
};
use rustc_hash::{FxHashMap, FxHashSet};

use self::held::HeldReturn;
use super::fds::FileTables;
use super::line::{
    CallText, LineDetails, NamedText, RUN_TIME_EVENT, TraceLine, TraceOptions, TraceSink,
};
use super::names::{CallNames, CommNames, FdNames};
use super::summary::{CallStatistics, CallSummary};
use super::{CapturedArgument, ProcessFiles, TraceRecord, TracedSample};
use crate::{EventContext, Loss, Observer, TaskChange, TaskId};

/// The duration in a line that has none.
const NO_DURATION: Option<u64> = None;

/// Joins starts and returns of calls, and passes lines to a [`TraceSink`].
pub struct TraceObserver<S> {
    options: TraceOptions,
    table: &'static SyscallTable,
    sink: S,
    threads: FxHashMap<u32, ThreadState>,
    names: CommNames,
    files: FileTables,
    /// The thread whose call has started last and is not printed yet.
    current: Option<u32>,
    summary: CallSummary,
    /// The number of lines so far that `TraceOptions::max_events` limits: all but starts and losses.
    lines: u64,
    /// The number of lines so far of each event with a limit, including those not printed because its limit was reached.
    event_lines: FxHashMap<String, u64>,
    lost: u64,
    has_ended: bool,
    /// Whether `TraceOptions::switch` currently hides all calls and events.
    is_off: bool,
    /// The details of the next line.
    details: Option<LineDetails>,
    /// The stack of the current sample, innermost frame first.
    stack: Vec<String>,
    /// Whether that stack has too few frames for its call to be shown.
    is_shallow: bool,
    /// Whether records of captured memory follow those of starts and returns. Usually they precede them; they follow if
    /// another tracer had already attached the probe of starts and returns when our program for memory was attached.
    memory_follows: bool,
    /// Threads with a held return (one that waits for the record of its memory), and some whose return is shown already.
    holding: Vec<u32>,
    /// Ids of the threads that began during the trace, without the first one of each process.
    started_threads: FxHashSet<u32>,
    /// Reads a call's memory when the record of its start is read; `None` if BPF programs copy it, or if it is not read at all.
    late: Option<late::LateReader>,
}

/// The state of a thread.
#[derive(Debug, Default)]
struct ThreadState {
    /// The call that it is in.
    begun: Option<BegunCall>,
    /// The captured memory of the call that starts next.
    memory: Option<BegunMemory>,
    /// A return whose memory may follow.
    held: Option<HeldReturn>,
    /// The number of the call that returned last, until the next one starts.
    returned: Option<u32>,
}

/// Captured memory of a call whose start has not been seen yet.
#[derive(Debug)]
struct BegunMemory {
    number: u32,
    memory: Vec<CapturedArgument>,
}

#[derive(Debug)]
struct BegunCall {
    number: u32,
    time: u64,
    arguments: [u64; 6],
    memory: Vec<CapturedArgument>,
    /// Names of the descriptors among its arguments, at its start.
    fds: FdNames,
    /// Whether its start is printed.
    is_printed: bool,
    /// The number of elements of `memory` when the start was printed.
    printed_memory: usize,
}

impl<S: TraceSink> TraceObserver<S> {
    /// Creates the observer of a trace that has not begun.
    #[must_use]
    pub fn new(options: TraceOptions, sink: S) -> Self {
        let switch = options.switch.as_ref();
        let has_ended = options.max_events == Some(0);
        Self {
            table: SyscallTable::of(options.abi),
            is_off: switch.is_some_and(|switch| switch.on.is_some()),
            details: None,
            stack: Vec::new(),
            is_shallow: false,
            memory_follows: false,
            holding: Vec::new(),
            started_threads: FxHashSet::default(),
            late: None,
            files: FileTables::new(options.names_files),
            options,
            sink,
            threads: FxHashMap::default(),
            names: CommNames::default(),
            current: None,
            summary: CallSummary::default(),
            lines: 0,
            event_lines: FxHashMap::default(),
            lost: 0,
            has_ended,
        }
    }

    /// Sets the name of a thread, such as one that exists before the trace.
    pub fn name_thread(&mut self, tid: u32, comm: &[u8]) {
        self.names.set(tid, comm);
    }

    /// Sets the open files of a process that exists before the trace.
    pub fn set_files(&mut self, process: u32, files: ProcessFiles) {
        self.files.seed(process, files);
    }

    /// Excludes a process from names of descriptors, since some of its threads are not traced.
    pub fn exclude_files(&mut self, process: u32) {
        self.files.exclude(process);
    }

    /// Returns the sink.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Whether a limit of lines is reached, or the sink cannot print any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of lost records.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Ends the trace and returns the sink and the sums. Prints held returns. Also prints the start of the call that began last
    /// if it has not returned, unless the options omit starts.
    pub fn finish(mut self) -> (S, CallSummary) {
        self.release();
        self.interrupt();
        for (tid, thread) in &mut self.summary.threads {
            let comm = self.names.get(*tid);
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
            comm: self.names.get(tid).unwrap_or_default(),
            text,
            details: self.details.as_ref(),
            stack: match text {
                CallText::Begun(_) | CallText::Lost(_) => &[],
                _ => &self.stack,
            },
        };
        let accepts_more = self.sink.line(&line);
        self.details = None;
        if !matches!(text, CallText::Lost(_) | CallText::Begun(_)) {
            self.lines += 1;
        }
        let limit = self.options.max_events;
        self.has_ended = !accepts_more
            || limit.is_some_and(|most| self.lines >= most)
            || self.has_reached_limits();
    }

    /// Prints the start of the current call if it is not printed yet, unless the options omit starts.
    fn interrupt(&mut self) {
        // With details, a call has only one line, at its return.
        let has_one_line = self.options.with_details;
        if has_one_line || self.options.min_duration > 0 || self.options.failed_only {
            return;
        }
        let Some(tid) = self.current.take() else {
            return;
        };
        let Some(mut begun) = self.take_begun(tid) else {
            return;
        };
        if !begun.is_printed {
            begun.is_printed = true;
            begun.printed_memory = begun.memory.len();
            let is_continued = false;
            let text = self.text(&begun, is_continued);
            let text = CallText::Begun(&text);
            self.print(tid, Some(begun.time), NO_DURATION, text);
        }
        self.threads.entry(tid).or_default().begun = Some(begun);
    }

    fn take_begun(&mut self, tid: u32) -> Option<BegunCall> {
        self.threads.get_mut(&tid)?.begun.take()
    }

    /// Returns a call as `name(arguments`, without the closing parenthesis; if `is_continued`, only with the arguments whose
    /// memory came after its start was printed. Empty if no lines are printed.
    fn text(&self, begun: &BegunCall, is_continued: bool) -> String {
        if !self.options.prints_lines {
            return String::new();
        }
        let syscall = self.table.get(begun.number);
        let mut bytes = call_name(begun.number, syscall).into_bytes();
        bytes.push(b'(');
        let printed = if is_continued {
            begun.printed_memory
        } else {
            0
        };
        let memory = begun.memory.get(printed..).unwrap_or_default();
        let options = ArgumentOptions {
            captured_only: is_continued,
            ..self.options.arguments
        };
        // Writing to a `Vec` does not fail.
        let _ = self.with_call(begun, memory, |call, names| {
            write_arguments(&mut bytes, call, names, options)
        });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Calls `read` with a begun call, which has `memory` as its captured memory, and with the names of its descriptors and of
    /// threads.
    fn with_call<R>(
        &self,
        begun: &BegunCall,
        memory: &[CapturedArgument],
        read: impl FnOnce(&CallArguments<'_>, &CallNames<'_>) -> R,
    ) -> R {
        let captured: Vec<CapturedBytes<'_>> =
            memory.iter().map(CapturedArgument::borrowed).collect();
        let call = CallArguments {
            captured: &captured,
            ..self.call_arguments(self.table.get(begun.number), begun.arguments)
        };
        let names = CallNames {
            comms: &self.names,
            fds: &begun.fds,
        };
        read(&call, &names)
    }

    /// Whether calls with this number are shown and counted now: `TraceOptions::selected_calls` has it or is `None`, and
    /// `TraceOptions::switch` does not hide it.
    fn is_selected(&self, number: u32) -> bool {
        let selected = self.options.selected_calls.as_ref();
        !self.is_off && selected.is_none_or(|selected| selected.contains(&number))
    }

    /// Sets the details of the next line, if requested.
    fn describe(&mut self, process: u32, moment: u64, begun: &BegunCall, result: Option<i64>) {
        if !self.options.with_details {
            return;
        }
        let syscall = self.table.get(begun.number);
        let directory = self.files.directory(process);
        let arguments = self.with_call(begun, &begun.memory, |call, names| {
            argument_texts(call, names, self.options.arguments)
        });
        let arguments = arguments.into_iter();
        self.details = Some(LineDetails {
            process,
            moment,
            directory: directory.map(|path| String::from_utf8_lossy(path).into_owned()),
            name: call_name(begun.number, syscall),
            arguments: arguments
                .map(|argument| NamedText {
                    name: argument.name.to_owned(),
                    text: argument.text,
                })
                .collect(),
            registers: begun.arguments.to_vec(),
            result,
            starts_thread: result
                .and_then(|result| u32::try_from(result).ok())
                .is_some_and(|tid| self.started_threads.contains(&tid)),
        });
    }

    fn enter(&mut self, task: TaskId, time: u64, number: u32, arguments: [u64; 6]) {
        let tid = task.tid;
        let is_selected = self.is_selected(number);
        if is_selected && self.current != Some(tid) {
            self.interrupt();
        }
        let syscall = self.table.get(number);
        let late = self.late_memory(tid, number, &arguments);
        let state = self.threads.entry(tid).or_default();
        state.returned = None;
        let memory = state.memory.take();
        let begun = BegunCall {
            number,
            time,
            arguments,
            memory: memory
                .filter(|memory| memory.number == number)
                .map_or(late, |memory| memory.memory),
            fds: FdNames::of_call(&self.files, task.pid, syscall, &arguments),
            is_printed: false,
            printed_memory: 0,
        };
        let never_returns = matches!(
            syscall.map(|call| call.name),
            Some("exit" | "exit_group" | "rt_sigreturn")
        );
        if never_returns {
            if is_selected && self.options.min_duration == 0 && !self.options.failed_only {
                let (is_continued, result) = (false, None);
                let text = self.text(&begun, is_continued);
                self.describe(task.pid, time, &begun, result);
                let text = CallText::Call(&text, None);
                self.print(tid, Some(time), NO_DURATION, text);
            }
            self.threads.remove(&tid);
            return;
        }
        state.begun = Some(begun);
        if is_selected {
            self.current = Some(tid);
        }
    }

    fn call_arguments<'a>(
        &'a self,
        syscall: Option<&'a Syscall>,
        values: [u64; 6],
    ) -> CallArguments<'a> {
        CallArguments {
            abi: self.options.abi,
            syscall,
            values,
            captured: &[],
            structures: self.options.structures.as_deref(),
        }
    }

    fn exit(&mut self, task: TaskId, time: u64, number: u32, result: i64) {
        let tid = task.tid;
        let begun = self.take_begun(tid).filter(|begun| begun.number == number);
        if self.current == Some(tid) {
            self.current = None;
        }
        self.threads.entry(tid).or_default().returned = Some(number);
        let Some(begun) = begun else {
            self.returned(task, time, None, number, result);
            return;
        };
        if let Some(begun) = self.hold(task, time, begun, result) {
            self.returned(task, time, Some(&begun), number, result);
        }
    }

    /// Shows the return of a call if it is selected, and updates the files of its process. `begun` is `None` if the start of the
    /// call was not seen.
    fn returned(
        &mut self,
        task: TaskId,
        time: u64,
        begun: Option<&BegunCall>,
        number: u32,
        result: i64,
    ) {
        if self.is_selected(number) {
            self.show_return(task, time, begun, number, result);
        }
        self.follow_files(task.pid, number, begun, result);
    }

    /// Adds a return to the summary, and prints it unless the options hide it.
    fn show_return(
        &mut self,
        task: TaskId,
        time: u64,
        begun: Option<&BegunCall>,
        number: u32,
        result: i64,
    ) {
        let tid = task.tid;
        let duration = begun.map(|begun| time.saturating_sub(begun.time));
        if self.options.sums_up {
            let thread = self.summary.threads.entry(tid).or_default();
            let statistics: &mut CallStatistics = thread.calls.entry(number).or_default();
            // As in perf, a call whose start was not seen counts with a duration of 0.
            statistics.add(duration.unwrap_or_default(), result);
        }
        let is_filtered_out = self.is_shallow
            || (self.options.failed_only && error_number(result).is_none())
            || (self.options.min_duration > 0
                && duration.is_none_or(|duration| duration < self.options.min_duration));
        if is_filtered_out || !self.options.prints_lines {
            return;
        }
        let syscall = self.table.get(number);
        let arguments = begun.map_or([0; 6], |begun| begun.arguments);
        let mut bytes = Vec::new();
        let call = self.call_arguments(syscall, arguments);
        let no_fds = FdNames::default();
        let names = CallNames {
            comms: &self.names,
            fds: begun.map_or(&no_fds, |begun| &begun.fds),
        };
        let _ = write_result(&mut bytes, &call, result, &names);
        let returned = String::from_utf8_lossy(&bytes);
        let call_text = match begun {
            Some(begun) => self.text(begun, begun.is_printed),
            None => format!("{}(", call_name(number, syscall)),
        };
        let text = match begun.is_none_or(|begun| begun.is_printed) {
            true => CallText::Continued(&call_text, &returned),
            false => CallText::Call(&call_text, Some(&returned)),
        };
        match begun {
            Some(begun) => self.describe(task.pid, time, begun, Some(result)),
            None if self.options.with_details => {
                let directory = self.files.directory(task.pid);
                self.details = Some(LineDetails {
                    process: task.pid,
                    moment: time,
                    directory: directory.map(|path| String::from_utf8_lossy(path).into_owned()),
                    name: call_name(number, syscall),
                    result: Some(result),
                    ..LineDetails::default()
                });
            }
            None => {}
        }
        self.print(tid, begun.map(|begun| begun.time), duration, text);
    }
}

/// Returns the name of a call, or a text for an unknown number.
fn call_name(number: u32, syscall: Option<&Syscall>) -> String {
    syscall.map_or_else(|| format!("syscall_{number}"), |call| call.name.to_owned())
}

impl<S: TraceSink> TraceObserver<S> {
    /// Counts a sample, unless it is captured memory or belongs to a call that is not selected. Passes the time of the first
    /// counted sample to the sink.
    fn count(&mut self, at: &EventContext, record: &TraceRecord) {
        let number = match record {
            TraceRecord::Enter { number, .. } | TraceRecord::Exit { number, .. } => Some(*number),
            _ => None,
        };
        let is_counted = !matches!(record, TraceRecord::Memory { .. })
            && number.is_none_or(|number| self.is_selected(number));
        if is_counted {
            if self.summary.events == 0 {
                self.sink.begin(at.time());
            }
            self.summary.events += 1;
            if self.options.sums_up {
                self.summary.threads.entry(at.task.tid).or_default().events += 1;
            }
        }
    }
}

impl<S: TraceSink> Observer<TracedSample> for TraceObserver<S> {
    fn sample(&mut self, at: &EventContext, sample: TracedSample) {
        if self.is_hidden(at.task) {
            return;
        }
        let TracedSample { record, stack } = sample;
        let tid = at.task.tid;
        let frames = stack.as_ref().map_or(0, Vec::len);
        let is_shallow = frames < self.options.min_stack;
        if let TraceRecord::Event { name, fields } = &record {
            if self.options.sums_run_times && name == RUN_TIME_EVENT {
                self.summary.add_run_time(fields);
                if !self.options.shows_run_times {
                    return;
                }
            }
            if !self.switch(name) {
                return;
            }
        }
        if self.is_off && matches!(record, TraceRecord::Fault { .. }) {
            return;
        }
        self.count(at, &record);
        // The memory of a held return can only be in the thread's next record.
        if !matches!(
            record,
            TraceRecord::Memory {
                is_return: true,
                ..
            }
        ) {
            self.release_thread(tid);
        }
        self.stack = stack.unwrap_or_default();
        match record {
            TraceRecord::Enter { number, arguments } => {
                self.enter(at.task, at.time(), number, arguments);
            }
            TraceRecord::Exit { number, result } => {
                self.is_shallow = is_shallow;
                self.exit(at.task, at.time(), number, result);
            }
            TraceRecord::Memory {
                number,
                is_return,
                memory,
            } => self.add_memory(tid, number, is_return, memory),
            _ if is_shallow => {}
            TraceRecord::Event { name, fields } => {
                self.print_event(at.task, at.time(), &name, &fields)
            }
            TraceRecord::Fault { is_major, text } => {
                self.fault(at.task, at.time(), is_major, &text);
            }
        }
        (self.stack, self.is_shallow) = (Vec::new(), false);
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        match change {
            TaskChange::Fork { parent, child } => {
                self.names.fork(parent.tid, child.tid);
                self.fork_files(parent, child);
                // A thread id can be used again by the first thread of a new process.
                match child.pid == child.tid {
                    true => self.started_threads.remove(&child.tid),
                    false => self.started_threads.insert(child.tid),
                };
            }
            TaskChange::Comm { task, name, .. } => self.names.set(task.tid, name),
            TaskChange::Exit(task) if task.pid == task.tid => self.files.remove(task.pid),
            TaskChange::Exit(_) => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.lost = self.lost.saturating_add(loss.records);
        self.release();
        // After `release`: the held returns that it shows may add names of descriptors.
        self.files.clear();
        self.interrupt();
        self.forget_calls();
        self.print(
            at.task.tid,
            Some(at.time()),
            NO_DURATION,
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
