//! Groups of senders and receivers: every sender of a group writes to every receiver of the group.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rperf_sys::raise_open_files_limit;

use crate::BenchError;
use crate::gate::{Gate, WorkerGate};
use crate::workers::Workers;

/// Number of senders in a group, and of receivers in a group.
const SIDE: u32 = 20;
/// Bytes of a message.
const MESSAGE: usize = 100;

/// The benchmark `sched messaging`.
#[derive(Debug, Clone, Copy)]
pub struct Messaging {
    /// Number of groups of 20 senders and 20 receivers.
    pub groups: u32,
    /// Number of messages that each sender writes to each receiver.
    pub loops: u64,
    /// Whether the tasks are threads instead of processes.
    pub threads: bool,
    /// Whether the tasks use pipes instead of socket pairs.
    pub pipes: bool,
}

impl Messaging {
    /// Number of senders in a group, and of receivers in a group.
    pub const SIDE: u32 = SIDE;

    /// Returns the number of senders and receivers in all groups.
    #[must_use]
    pub fn task_count(&self) -> u64 {
        u64::from(self.groups) * u64::from(2 * SIDE)
    }

    /// Runs the benchmark; returns the time from the common start of all tasks until all have ended.
    ///
    /// # Errors
    /// A system call failed, for instance because of a limit of processes, threads or descriptors, or a task ended too early.
    pub fn run(&self) -> Result<Duration, BenchError> {
        if self.threads {
            // This process has the descriptors of all groups open at the same time.
            raise_open_files_limit().map_err(BenchError::of("setrlimit"))?;
        }
        let gate = Gate::new().map_err(BenchError::of("pipe"))?;
        let mut workers = Workers::new(self.threads);
        for group in 1..=self.groups {
            self.start_group(group, &gate, &mut workers)?;
        }
        let start = gate.open(self.task_count(), &mut workers)?;
        workers.wait()?;
        Ok(start.elapsed())
    }

    fn start_group(
        &self,
        group: u32,
        gate: &Gate,
        workers: &mut Workers,
    ) -> Result<(), BenchError> {
        // One for each receiver. All senders of the group share them.
        let mut write_ends = Vec::new();
        for number in 1..=SIDE {
            let name = format!("receiver {number} of group {group}");
            let call = if self.pipes { "pipe" } else { "socketpair" };
            let (read_end, write_end) = self.channel().map_err(BenchError::of(call))?;
            let (gate, messages) = (gate.worker(), self.loops * u64::from(SIDE));
            workers.start(name, move || receive(&gate, read_end, messages))?;
            write_ends.push(write_end);
        }
        let write_ends = Arc::new(write_ends);
        for number in 1..=SIDE {
            let name = format!("sender {number} of group {group}");
            let (gate, write_ends, loops) = (gate.worker(), Arc::clone(&write_ends), self.loops);
            workers.start(name, move || send(&gate, &write_ends, loops))?;
        }
        Ok(())
    }

    /// Creates a pipe or socket pair; returns the end that the receiver reads and the end that the senders write.
    fn channel(&self) -> io::Result<(File, File)> {
        let (read_end, write_end): (OwnedFd, OwnedFd) = if self.pipes {
            let (reader, writer) = io::pipe()?;
            (reader.into(), writer.into())
        } else {
            let (one, other) = UnixStream::pair()?;
            (one.into(), other.into())
        };
        Ok((read_end.into(), write_end.into()))
    }
}

fn receive(gate: &WorkerGate, mut read_end: File, messages: u64) -> io::Result<()> {
    gate.pass()?;
    let mut message = [0; MESSAGE];
    for _ in 0..messages {
        read_end.read_exact(&mut message)?;
    }
    Ok(())
}

/// Runs a sender. `write_ends` are those of the channels of all receivers in its group.
fn send(gate: &WorkerGate, write_ends: &[File], loops: u64) -> io::Result<()> {
    gate.pass()?;
    let message = [0; MESSAGE];
    for _ in 0..loops {
        for mut write_end in write_ends {
            write_end.write_all(&message)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_by_each_kind_of_task_and_channel() {
        for (threads, pipes) in [(false, false), (false, true), (true, false), (true, true)] {
            let bench = Messaging {
                groups: 1,
                loops: 3,
                threads,
                pipes,
            };
            assert_eq!(bench.task_count(), 40);
            assert!(bench.run().unwrap() > Duration::ZERO, "{bench:?}");
        }
    }
}
