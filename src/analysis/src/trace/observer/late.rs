//! Memory that arguments of system calls point to, read from the running process when the records of the calls arrive. rperf
//! does this if no BPF program can copy the memory during the call.

use rperf_syscalls::ProcessMemory;

use super::TraceObserver;
use crate::trace::{CapturedArgument, TraceSink};

/// Reads the memory of arguments when the records of calls arrive.
#[derive(Debug)]
pub(super) struct LateReader {
    memory: Box<dyn ProcessMemory>,
    /// The maximum size in bytes of buffers, and of texts other than paths (paths have a limit of their own).
    string_size: usize,
}

impl<S: TraceSink> TraceObserver<S> {
    /// From now on, reads the memory of a call's arguments with `memory` when the entry of the call is observed, and marks it as
    /// read late: it may have changed since the call, so it does not give names to file descriptors.
    /// `string_size` is the maximum size in bytes of buffers, and of texts other than paths.
    pub fn read_memory_late(&mut self, memory: Box<dyn ProcessMemory>, string_size: usize) {
        self.late = Some(LateReader {
            memory,
            string_size,
        });
    }

    /// Returns the memory of the arguments of a call of thread `tid`; empty if memory is not read late, or if calls of this
    /// number are unknown or not shown.
    pub(super) fn late_memory(
        &self,
        tid: u32,
        number: u32,
        arguments: &[u64; 6],
    ) -> Vec<CapturedArgument> {
        let late = self.late.as_ref().filter(|_| self.is_selected(number));
        let Some((late, call)) = late.zip(self.table.get(number)) else {
            return Vec::new();
        };
        let items = call.late_memory(&*late.memory, tid, arguments, late.string_size);
        items
            .iter()
            .map(|item| CapturedArgument::new(&item.captured()))
            .collect()
    }
}
