//! Pages of a mapped file, brought in before the walk over it needs them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Bytes of a page, or a part of it.
const PAGE: usize = 4096;
/// How far before the walk pages are brought in: those of a file larger than memory should still be there then.
const AHEAD: usize = 32 << 20;
/// Looked at again after this time, where there is nothing to do.
const PAUSE: Duration = Duration::from_micros(50);

/// What pass 1 and a thread that goes before it tell each other. The first access to a page ends in the kernel, which takes a
/// sixth of a walk that does little else.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Up to where the walk has come.
    walked: AtomicUsize,
    ended: AtomicBool,
}

impl Pages {
    /// The walk has come to `offset`.
    pub(crate) fn walked(&self, offset: usize) {
        self.walked.store(offset, Ordering::Relaxed);
    }

    /// The walk is over.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Goes before the walk over `bytes` until it ends.
    pub(crate) fn bring(&self, bytes: &[u8]) {
        let mut next = 0;
        while next < bytes.len() && !self.ended.load(Ordering::Relaxed) {
            let walked = self.walked.load(Ordering::Relaxed);
            let until = walked.saturating_add(AHEAD).min(bytes.len());
            let Some(stretch) = bytes.get(next..until).filter(|stretch| !stretch.is_empty()) else {
                thread::sleep(PAUSE);
                continue;
            };
            let read = stretch.iter().step_by(PAGE).fold(0, |sum, byte| sum ^ byte);
            std::hint::black_box(read);
            next = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_before_the_walk_and_ends_with_it() {
        let bytes = vec![0; AHEAD + PAGE];
        let pages = Pages::default();
        thread::scope(|scope| {
            let brought = scope.spawn(|| pages.bring(&bytes));
            // The last page waits for the walk.
            thread::sleep(PAUSE * 20);
            assert!(!brought.is_finished());
            pages.walked(PAGE);
            brought.join().expect("no panic");
            let waits = scope.spawn(|| Pages::default().bring(&[]));
            waits.join().expect("nothing to do");
        });
        let ended = Pages::default();
        ended.end();
        ended.bring(&bytes);
    }
}
