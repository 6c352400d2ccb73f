//! Two tasks that pass a message back and forth through two pipes.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rperf_sys::{poll, set_nonblocking};

use crate::BenchError;
use crate::workers::Workers;

/// The benchmark `sched pipe`.
#[derive(Debug, Clone, Copy)]
pub struct PingPong {
    /// Number of round trips.
    pub loops: u64,
    /// Whether the tasks are threads instead of processes.
    pub threads: bool,
    /// Whether reads do not block: if a pipe is empty, poll(2) waits for data.
    pub nonblocking: bool,
    /// Bytes of a message.
    pub size: usize,
}

impl PingPong {
    /// Runs the benchmark; returns the total time of all round trips, including that of starting and ending the other task.
    ///
    /// # Errors
    /// A system call failed, or a task ended too early.
    pub fn run(&self) -> Result<Duration, BenchError> {
        // `own_reader` and `own_writer` are this task's ends of the pipes, `reader` and `writer` those of the replying task.
        let channels = || -> io::Result<_> {
            let (own_reader, writer) = self.pipe()?;
            let (reader, own_writer) = self.pipe()?;
            Ok(((own_reader, own_writer), (reader, writer)))
        };
        let ((mut own_reader, mut own_writer), (mut reader, mut writer)) =
            channels().map_err(BenchError::of("pipe"))?;
        let (loops, size) = (self.loops, self.size);
        let mut workers = Workers::new(self.threads);
        let start = Instant::now();
        workers.start("the replying task".to_owned(), move || {
            let mut message = vec![0; size];
            for _ in 0..loops {
                receive(&mut reader, &mut message)?;
                writer.write_all(&message)?;
            }
            Ok(())
        })?;
        let mut message = vec![0; size];
        for _ in 0..loops {
            let sent = own_writer.write_all(&message);
            let round = sent.and_then(|()| receive(&mut own_reader, &mut message));
            round.map_err(BenchError::of("pipe between the two tasks"))?;
        }
        workers.wait()?;
        Ok(start.elapsed())
    }

    fn pipe(&self) -> io::Result<(PipeReader, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        if self.nonblocking {
            set_nonblocking(&reader)?;
        }
        Ok((reader, writer))
    }
}

/// Reads a whole message. Waits with poll(2) if the pipe is empty and nonblocking.
fn receive(reader: &mut PipeReader, message: &mut [u8]) -> io::Result<()> {
    let mut read = 0;
    while let Some(rest) = message.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&[reader.as_fd()], -1)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_back_and_forth_between_tasks_of_each_kind() {
        // 100,000 bytes do not fit into a pipe (64 KiB by default): such a message needs several reads.
        for (threads, nonblocking, size) in
            [(false, false, 4), (false, true, 100_000), (true, true, 4)]
        {
            let bench = PingPong {
                loops: 20,
                threads,
                nonblocking,
                size,
            };
            assert!(bench.run().unwrap() > Duration::ZERO, "{bench:?}");
        }
    }
}
