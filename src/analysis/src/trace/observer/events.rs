//! Events other than system calls: their lines, and the events that switch the display on and off. Also the changes to the
//! state of calls after lost records, and to the files of descriptors after forks and returns.

use super::{BegunCall, NO_DURATION, TraceObserver};
use crate::TaskId;
use crate::trace::fds::ReturnedCall;
use crate::trace::{CallText, FILE_CALLS, LineDetails, NamedText, TraceSink};

/// `CLONE_FILES`.
const CLONE_FILES: u64 = 0x400;

impl<S: TraceSink> TraceObserver<S> {
    /// Whether samples of this task are ignored.
    pub(super) fn is_hidden(&self, task: TaskId) -> bool {
        self.options.hidden_process == Some(task.pid)
            || self.options.excluded_threads.contains(&task.tid)
    }

    /// Forgets the calls that threads are in or have returned from, after records were lost. Otherwise, the return or
    /// the captured memory of a later call whose start was lost could be attributed to an earlier call.
    pub(super) fn forget_calls(&mut self) {
        for state in self.threads.values_mut() {
            (state.begun, state.memory, state.returned) = (None, None, None);
        }
        self.current = None;
    }

    /// Gives a new process the descriptors of its parent. Descriptors that processes share (clone(2) with CLONE_FILES) are
    /// shown without names of files, since each process can change the descriptors of the other one. Does nothing for a new
    /// thread of the same process.
    pub(super) fn fork_files(&mut self, parent: TaskId, child: TaskId) {
        match parent.pid != child.pid && self.is_sharing_files(parent.tid) {
            true => {
                self.files.exclude(parent.pid);
                self.files.exclude(child.pid);
            }
            false => self.files.fork(parent.pid, child.pid),
        }
    }

    /// Whether a thread is in a call of clone(2) or clone3(2) whose flags have CLONE_FILES.
    fn is_sharing_files(&self, tid: u32) -> bool {
        let state = self.threads.get(&tid);
        let Some(begun) = state.and_then(|state| state.begun.as_ref()) else {
            return false;
        };
        let [first, ..] = begun.arguments;
        let flags = match self.table.get(begun.number).map(|call| call.name) {
            Some("clone") => Some(first),
            // `struct clone_args` begins with the flags.
            Some("clone3") => {
                let mut memory = begun.memory.iter();
                let memory = memory.find(|one| one.argument == 0 && !one.is_unreadable);
                memory
                    .and_then(|memory| memory.bytes.first_chunk())
                    .map(|flags| u64::from_ne_bytes(*flags))
            }
            _ => None,
        };
        flags.is_some_and(|flags| flags & CLONE_FILES != 0)
    }

    /// Updates the files that descriptors refer to. A call whose start was not seen may have changed any descriptor, so the names
    /// of the process are removed. Exec, clone and fork change no descriptors but those that exec closes.
    pub(super) fn follow_files(
        &mut self,
        process: u32,
        number: u32,
        begun: Option<&BegunCall>,
        result: i64,
    ) {
        let Some(syscall) = self.table.get(number) else {
            return;
        };
        if !FILE_CALLS.contains(&syscall.name) {
            return;
        }
        let Some(begun) = begun else {
            match syscall.name {
                // The trace of a command begins with the return of its execve. Its descriptors were read before.
                "execve" | "execveat" if result == 0 => self.files.exec(process),
                "execve" | "execveat" | "clone" | "clone3" | "fork" | "vfork" => {}
                _ => self.files.remove(process),
            }
            return;
        };
        // Late memory was read by the tracer after the start of the call, not copied by the kernel during it. It may have
        // changed since, so it gives no names.
        let is_late = begun.memory.iter().any(|memory| memory.is_late);
        let memory = if is_late { &[] } else { &begun.memory[..] };
        // The socket address among the arguments.
        let address = self.with_call(begun, memory, |call, _| call.peer());
        let call = ReturnedCall {
            name: syscall.name,
            arguments: begun.arguments,
            memory,
            result,
            address: address.as_deref(),
        };
        self.files.returned(process, &call);
    }

    /// Switches on or off at the events of `TraceOptions::switch`; returns whether this event is shown.
    pub(super) fn switch(&mut self, name: &str) -> bool {
        let Some(switch) = &self.options.switch else {
            return true;
        };
        let (switches_on, switches_off) = (
            switch.on.as_deref() == Some(name),
            switch.off.as_deref() == Some(name),
        );
        match (self.is_off, switches_on, switches_off) {
            (true, true, _) => {
                self.is_off = false;
                switch.shows_events
            }
            (true, false, _) => false,
            (false, _, true) => {
                self.is_off = true;
                switch.shows_events
            }
            // The display is on already: this event is shown or hidden like the one that switched it on.
            (false, true, false) => switch.shows_events,
            (false, false, false) => true,
        }
    }

    /// Prints and counts a page fault. `location` is the text of its code and of the memory that it accessed.
    pub(super) fn fault(&mut self, task: TaskId, time: u64, is_major: bool, location: &str) {
        // Prints the start of the current call first.
        self.interrupt();
        let name = if is_major { "majfault" } else { "minfault" };
        if self.options.sums_up {
            let thread = self.summary.threads.entry(task.tid).or_default();
            match is_major {
                true => thread.major_faults += 1,
                false => thread.minor_faults += 1,
            }
        }
        if self.options.with_details {
            self.details = Some(LineDetails {
                process: task.pid,
                moment: time,
                name: name.to_owned(),
                arguments: vec![NamedText {
                    name: "location".to_owned(),
                    text: location.to_owned(),
                }],
                ..LineDetails::default()
            });
        }
        let text = format!("{name} {location}");
        // A page fault is shown with a duration of 0.
        self.print(task.tid, Some(time), Some(0), CallText::Event(&text));
    }

    /// Counts a line of an event, if its lines are limited; returns false if its limit was reached before.
    fn count_within_limit(&mut self, name: &str) -> bool {
        let Some(limit) = self.options.event_limits.get(name).copied() else {
            return true;
        };
        let lines = self.event_lines.entry(name.to_owned()).or_default();
        *lines += 1;
        *lines <= limit
    }

    /// Whether the trace ends because all limits of events are reached.
    pub(super) fn has_reached_limits(&self) -> bool {
        let mut limits = self.options.event_limits.iter();
        self.options.ends_with_limits
            && !self.options.event_limits.is_empty()
            && limits.all(|(name, limit)| {
                self.event_lines
                    .get(name)
                    .is_some_and(|lines| lines >= limit)
            })
    }

    /// Prints an event other than a system call or a page fault, unless its limit was reached before. Ids of threads in its
    /// fields are followed by the names of the threads.
    pub(super) fn print_event(
        &mut self,
        task: TaskId,
        time: u64,
        name: &str,
        fields: &[(String, String)],
    ) {
        let tid = task.tid;
        // Prints the start of the current call first.
        self.interrupt();
        if !self.options.prints_lines || !self.count_within_limit(name) {
            return;
        }
        let mut text = format!("{name}(");
        let mut is_first = true;
        for (field, value) in fields {
            if value == "0" && !self.options.arguments.show_zeros {
                continue;
            }
            if !is_first {
                text.push_str(", ");
            }
            is_first = false;
            text.push_str(&format!("{field}: {value}"));
            let is_task = field.ends_with("pid") || field.ends_with("tid");
            let task_id = value.parse().ok().filter(|_| is_task);
            if let Some(comm) = task_id.and_then(|tid| self.names.get(tid)) {
                text.push_str(&format!(" ({})", String::from_utf8_lossy(comm)));
            }
        }
        text.push(')');
        if self.options.with_details {
            let fields = fields.iter().map(|(name, text)| NamedText {
                name: name.clone(),
                text: text.clone(),
            });
            self.details = Some(LineDetails {
                process: task.pid,
                moment: time,
                name: name.to_owned(),
                arguments: fields.collect(),
                ..LineDetails::default()
            });
        }
        self.print(tid, Some(time), NO_DURATION, CallText::Event(&text));
    }
}
