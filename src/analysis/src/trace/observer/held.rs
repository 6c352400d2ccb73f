//! Memory joined with calls: it precedes a call's begin and return, or follows them if another tracer's probe is before ours.

use super::{BegunCall, BegunMemory, TraceObserver};
use crate::TaskId;
use crate::trace::{CapturedArgument, TraceSink};

#[derive(Debug)]
pub(super) struct HeldReturn {
    task: TaskId,
    time: u64,
    begun: BegunCall,
    result: i64,
}

impl<S: TraceSink> TraceObserver<S> {
    /// Keeps memory for the call that begins next, or adds it to the one that the thread is in.
    pub(super) fn memory(
        &mut self,
        tid: u32,
        number: u32,
        is_return: bool,
        memory: Vec<CapturedArgument>,
    ) {
        let state = self.threads.entry(tid).or_default();
        let begun = state.begun.as_mut().filter(|begun| begun.number == number);
        match (begun, is_return) {
            (Some(begun), true) => begun.memory.extend(memory),
            // A probe of another tracer was first at the tracepoint.
            (Some(begun), false) if begun.memory.is_empty() => {
                begun.memory = memory;
                self.memory_is_late = true;
            }
            (_, false) => state.memory = Some(BegunMemory { number, memory }),
            (None, true) => {
                // The begin may be from before the trace: memory is late only if the return has been seen.
                self.memory_is_late |= state.returned == Some(number);
                if let Some(held) = state
                    .held
                    .as_mut()
                    .filter(|held| held.begun.number == number)
                {
                    held.begun.memory.extend(memory);
                    self.release_thread(tid);
                }
            }
        }
    }

    /// Shows all returns that were held for memory, which does not come any more. To be called when all records up to now are delivered.
    pub fn release(&mut self) {
        for tid in std::mem::take(&mut self.holding) {
            self.release_thread(tid);
        }
    }

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
            } = held;
            self.returned(task, time, &begun, result);
        }
    }

    /// Holds a return if memory follows those of its kind; gives it back otherwise.
    pub(super) fn hold(
        &mut self,
        task: TaskId,
        time: u64,
        begun: Option<BegunCall>,
        result: i64,
    ) -> Option<BegunCall> {
        let begun = begun?;
        let syscall = self.table.get(begun.number).filter(|_| self.memory_is_late);
        let has_memory =
            result >= 0 && syscall.is_some_and(|call| !call.capture_plan().at_return.is_empty());
        if !has_memory {
            return Some(begun);
        }
        self.threads.entry(task.tid).or_default().held = Some(HeldReturn {
            task,
            time,
            begun,
            result,
        });
        self.holding.push(task.tid);
        None
    }
}
