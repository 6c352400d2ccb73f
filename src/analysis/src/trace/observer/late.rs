//! Memory of arguments that is read when the records of calls are read, if the kernel cannot copy it.

use rperf_syscalls::ProcessMemory;

use super::TraceObserver;
use crate::trace::{CapturedArgument, TraceSink};

/// How memory is read late.
#[derive(Debug)]
pub(super) struct LateReader {
    memory: Box<dyn ProcessMemory>,
    /// The maximum size in bytes of buffers, and of texts other than paths.
    string_size: usize,
}

impl<S: TraceSink> TraceObserver<S> {
    /// Reads the memory of arguments when the begin of a call is observed, and marks it as read late. It never gives
    /// names to descriptors.
    pub fn read_memory_late(&mut self, memory: Box<dyn ProcessMemory>, string_size: usize) {
        self.late = Some(LateReader {
            memory,
            string_size,
        });
    }

    /// Returns the memory of a call that is shown.
    pub(super) fn late_memory(
        &self,
        tid: u32,
        number: u32,
        arguments: &[u64; 6],
    ) -> Vec<CapturedArgument> {
        let late = self.late.as_ref().filter(|_| self.is_selected(number));
        let call = late.zip(self.table.get(number));
        let memory = call
            .map(|(late, call)| call.late_memory(&*late.memory, tid, arguments, late.string_size));
        let memory = memory.unwrap_or_default();
        let memory = memory.iter();
        memory
            .map(|memory| CapturedArgument::new(&memory.captured()))
            .collect()
    }
}
