//! Threads that wait on a futex until another one wakes or moves them.

use std::io;
use std::sync::atomic::AtomicU32;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::FutexScope;
use crate::BenchError;

/// The pause in which all threads fall asleep after the last one is ready.
const FALL_ASLEEP: Duration = Duration::from_millis(100);

/// More threads than can wait; the kernel takes the number as an `int`.
const ALL: u32 = u32::MAX >> 1;

/// The words of a benchmark. They are the same in all runs, so that their addresses can be shown before the first one.
#[derive(Debug, Default)]
pub struct FutexWords {
    /// The word that threads wait on; always 0.
    pub(super) waiting: AtomicU32,
    /// The word or lock that waiting threads are moved to.
    pub(super) target: AtomicU32,
}

impl FutexWords {
    /// Returns the addresses of the word that threads wait on, and of the one that they are moved to.
    #[must_use]
    pub fn addresses(&self) -> [usize; 2] {
        [&self.waiting, &self.target].map(|word| word.as_ptr() as usize)
    }
}

/// Waiting threads.
pub(super) struct Waiters<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
    words: &'scope FutexWords,
    futex_scope: FutexScope,
}

impl<'scope> Waiters<'scope> {
    /// Starts `count` threads that call `wait`, again if a signal interrupts it, and gives them time to fall asleep.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        count: u32,
        words: &'scope FutexWords,
        futex_scope: FutexScope,
        wait: impl Fn() -> io::Result<()> + Copy + Send + 'scope,
    ) -> Result<Self, BenchError> {
        let (sender, ready) = std::sync::mpsc::channel();
        let mut waiters = Self {
            threads: Vec::new(),
            words,
            futex_scope,
        };
        for _ in 0..count {
            let sender = sender.clone();
            let thread = thread::Builder::new().spawn_scoped(scope, move || {
                // Cannot fail: the receiver lives until all threads have sent.
                let _ = sender.send(());
                loop {
                    match wait() {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        result => return result,
                    }
                }
            });
            match thread {
                Ok(thread) => waiters.threads.push(thread),
                Err(error) => {
                    waiters.finish()?;
                    return Err(BenchError::of("cannot start a thread")(error));
                }
            }
        }
        drop(sender);
        for () in ready.iter().take(waiters.threads.len()) {}
        thread::sleep(FALL_ASLEEP);
        Ok(waiters)
    }

    /// Wakes the threads that still wait, and waits until all have ended.
    pub(super) fn finish(self) -> Result<(), BenchError> {
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            for word in [&self.words.waiting, &self.words.target] {
                // Threads that wait for a PI lock cannot be woken (the kernel returns an error): each gets the lock when its
                // owner releases it.
                let _ = self.futex_scope.wake(word, ALL);
            }
            thread::yield_now();
        }
        self.threads.into_iter().try_for_each(|thread| {
            let ended = thread.join().map_err(|_| BenchError::Thread)?;
            ended.map_err(BenchError::of("a waiting thread failed"))
        })
    }
}

/// Repeats an operation, which returns the number of threads that it woke or moved, until it has reached `threads` threads in
/// total; returns the total. `EAGAIN` counts as none.
pub(super) fn until_all(
    threads: u32,
    mut operation: impl FnMut() -> io::Result<u32>,
) -> io::Result<u32> {
    let mut reached = 0;
    while reached < threads {
        match operation() {
            Ok(0) => thread::yield_now(),
            Ok(more) => reached += more,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn finish_wakes_waiting_threads() {
        let words = FutexWords::default();
        let futex_scope = FutexScope::Private;
        thread::scope(|scope| {
            let wait = || futex_scope.wait(&words.waiting, 0);
            let waiters = Waiters::start(scope, 3, &words, futex_scope, wait).unwrap();
            assert_eq!(waiters.threads.len(), 3);
            waiters.finish().unwrap();
        });
        assert_eq!(words.waiting.load(Ordering::Relaxed), 0);
    }
}
