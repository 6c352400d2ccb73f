//! Joins captured memory with system calls. Our BPF program writes the memory to a record of its own, and the tracepoint's probe
//! writes the record of the call's start or return. Usually the memory comes first. It comes second if another tracer attached
//! the probe before our program was attached.

use rperf_syscalls::SyscallTable;

use super::{BegunCall, BegunMemory, TraceObserver};
use crate::TaskId;
use crate::trace::{CapturedArgument, TraceSink};

/// A return that is not shown yet, since the record of its memory may follow.
#[derive(Debug)]
pub(super) struct HeldReturn {
    task: TaskId,
    time: u64,
    begun: BegunCall,
    result: i64,
    stack: Vec<String>,
    /// Whether `stack` has too few frames for the call to be shown.
    is_shallow: bool,
}

impl BegunCall {
    /// Adds memory that the kernel wrote, truncated to the size of the caller's buffer.
    fn add_written(&mut self, table: &SyscallTable, memory: Vec<CapturedArgument>) {
        // A buffer and the argument that points to its size, as of getpeername(2): the size was captured at the start.
        let sized = table.get(self.number).and_then(|call| call.sized_memory());
        let room = sized.and_then(|sized| {
            let mut at_begin = self.memory.iter();
            let length =
                at_begin.find(|one| one.argument == sized.length_argument && !one.is_unreadable)?;
            let length = i32::from_ne_bytes(*length.bytes.first_chunk()?);
            usize::try_from(length).ok()
        });
        let first_added = self.memory.len();
        self.memory.extend(memory);
        let added = self.memory.get_mut(first_added..).unwrap_or_default();
        if let Some((sized, room)) = sized.zip(room) {
            let mut added = added.iter_mut();
            let written = added.find(|one| one.argument == sized.memory_argument);
            if let Some(written) = written.filter(|written| written.bytes.len() > room) {
                written.bytes.truncate(room);
                written.is_truncated = true;
            }
        }
    }
}

impl<S: TraceSink> TraceObserver<S> {
    /// Adds captured memory to the call that the thread is in or whose return is held. Otherwise keeps memory of a start for the
    /// thread's next call, and drops memory of a return.
    pub(super) fn add_memory(
        &mut self,
        tid: u32,
        number: u32,
        is_return: bool,
        memory: Vec<CapturedArgument>,
    ) {
        let state = self.threads.entry(tid).or_default();
        let begun = state.begun.as_mut().filter(|begun| begun.number == number);
        match (begun, is_return) {
            (Some(begun), true) => begun.add_written(self.table, memory),
            // The start was seen before its memory: records of memory follow, so returns may be held from now on.
            (Some(begun), false) if begun.memory.is_empty() => {
                begun.memory = memory;
                self.memory_follows = true;
            }
            // The start is still to come: the thread is in no call with this number, or in one that has its memory.
            (_, false) => state.memory = Some(BegunMemory { number, memory }),
            (None, true) => {
                // If the return was seen before its memory, records of memory follow. If neither start nor return was seen, the
                // call began before the trace, and its return is still to come, in the usual order.
                self.memory_follows |= state.returned == Some(number);
                if let Some(held) = state
                    .held
                    .as_mut()
                    .filter(|held| held.begun.number == number)
                {
                    held.begun.add_written(self.table, memory);
                    self.release_thread(tid);
                }
            }
        }
    }

    /// Forgets captured memory that is kept for calls whose start has not been seen: a delayed trace captures memory before it
    /// has records of calls.
    pub fn forget_memory(&mut self) {
        for state in self.threads.values_mut() {
            state.memory = None;
        }
    }

    /// Shows all held returns. To be called when all records up to now are delivered: the memory of these returns cannot follow
    /// any more.
    pub fn release(&mut self) {
        for tid in std::mem::take(&mut self.holding) {
            self.release_thread(tid);
        }
    }

    /// Shows the held return of a thread, if there is one.
    pub(super) fn release_thread(&mut self, tid: u32) {
        let held = self
            .threads
            .get_mut(&tid)
            .and_then(|state| state.held.take());
        if let Some(held) = held {
            let HeldReturn {
                task,
                time,
                begun,
                result,
                stack,
                is_shallow,
            } = held;
            let saved = (std::mem::replace(&mut self.stack, stack), self.is_shallow);
            self.is_shallow = is_shallow;
            // This method shows the return; the field `ThreadState::returned` is only a call number.
            self.returned(task, time, Some(&begun), begun.number, result);
            (self.stack, self.is_shallow) = saved;
        }
    }

    /// Holds the return of `begun` and returns `None` if its memory may follow; otherwise returns `begun`.
    pub(super) fn hold(
        &mut self,
        task: TaskId,
        time: u64,
        begun: BegunCall,
        result: i64,
    ) -> Option<BegunCall> {
        // The memory that the kernel wrote is captured only if the call succeeded.
        let is_written = || {
            let call = self.table.get(begun.number).filter(|_| result >= 0);
            call.is_some_and(|call| {
                let structures = self.options.structures.as_deref();
                !call.capture_plan_with(structures).at_return.is_empty()
            })
        };
        // Memory that could not be read at the start is captured again at the return.
        let is_retried = || begun.memory.iter().any(|memory| memory.is_unreadable);
        let memory_may_follow = self.memory_follows && (is_retried() || is_written());
        if !memory_may_follow {
            return Some(begun);
        }
        self.threads.entry(task.tid).or_default().held = Some(HeldReturn {
            task,
            time,
            begun,
            result,
            stack: std::mem::take(&mut self.stack),
            is_shallow: self.is_shallow,
        });
        self.holding.push(task.tid);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::names::FdNames;
    use rperf_syscalls::Abi;

    fn memory(argument: usize, bytes: &[u8]) -> CapturedArgument {
        CapturedArgument {
            argument,
            bytes: bytes.to_vec(),
            ..CapturedArgument::default()
        }
    }

    /// The kernel writes the size of the whole address, but only as many of its bytes as fit into the buffer.
    #[test]
    fn an_address_is_truncated_to_its_buffer() {
        let table = SyscallTable::of(Abi::X86_64);
        let mut begun = BegunCall {
            number: table.number("getpeername").unwrap(),
            time: 0,
            arguments: [0; 6],
            memory: vec![memory(2, &5_i32.to_ne_bytes())],
            fds: FdNames::default(),
            is_printed: false,
            printed_memory: 0,
        };
        let written = vec![memory(1, b"address"), memory(2, &7_i32.to_ne_bytes())];
        begun.add_written(table, written.clone());
        assert_eq!(begun.memory[1].bytes, b"addre");
        assert!(begun.memory[1].is_truncated && !begun.memory[2].is_truncated);
        // The size of the buffer is unknown.
        begun.memory = vec![CapturedArgument {
            is_unreadable: true,
            ..memory(2, b"")
        }];
        begun.add_written(table, written);
        assert_eq!(begun.memory[1].bytes, b"address");
    }
}
