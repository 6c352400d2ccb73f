//! How far a command is, on stderr while somebody waits.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rperf_replay::Walked;

use super::context::Context;
use super::output::Output;

/// What takes no longer says nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// The line is written anew after so long.
const REFRESH: Duration = Duration::from_millis(200);

/// A line that tells of the walks over a recording, until dropped: if stderr is a terminal and a walk takes its time.
pub(crate) struct Progress {
    /// What the walks add to.
    pub(crate) walked: Walked,
    shown: Option<(Arc<Ending>, JoinHandle<()>)>,
}

/// Whether there is nothing to tell any more.
#[derive(Default)]
struct Ending {
    is_near: Mutex<bool>,
    changed: Condvar,
}

impl Progress {
    /// For walks over so many bytes, by a command that prints nothing meanwhile.
    pub(crate) fn start(context: &Context, size: usize) -> Self {
        let walked = Walked::default();
        let is_wanted = !context.output.is_quiet() && Output::shows_errors_on_terminal();
        let paged = context.output.redirected();
        let line = Line {
            size: size as u64,
            pass: 0,
            since: Instant::now(),
        };
        let show = |ending| {
            let walked = walked.clone();
            thread::Builder::new().spawn(move || tell(line, &walked, &paged, ending))
        };
        let shown = is_wanted.then(|| {
            let ending = Arc::new(Ending::default());
            // Without a thread for it nothing is told.
            let thread = show(Arc::clone(&ending)).ok()?;
            Some((ending, thread))
        });
        Self {
            walked,
            shown: shown.flatten(),
        }
    }

    /// The same where somebody else tells.
    pub(crate) fn silent() -> Self {
        Self {
            walked: Walked::default(),
            shown: None,
        }
    }

    /// The same for a command that prints as it goes: on a terminal its text tells enough.
    pub(crate) fn beside_text(context: &Context, size: usize) -> Self {
        match context.output.is_terminal() {
            true => Self::silent(),
            false => Self::start(context, size),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some((ending, thread)) = self.shown.take() else {
            return;
        };
        let near = ending.is_near.lock();
        *near.unwrap_or_else(PoisonError::into_inner) = true;
        ending.changed.notify_one();
        // It has nothing to return, and no reason to panic.
        let _ = thread.join();
    }
}

/// Writes the line again and again, and takes it away at the end.
fn tell(mut line: Line, walked: &Walked, paged: &AtomicBool, ending: Arc<Ending>) {
    let mut pause = PATIENCE;
    let mut is_written = false;
    let mut near = ending
        .is_near
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    while !*near {
        let waited = ending.changed.wait_timeout(near, pause);
        let timeout;
        (near, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        // A pager owns the terminal from its start.
        if timeout.timed_out() && !paged.load(Ordering::Relaxed) {
            let text = line.text(walked.bytes(), Instant::now());
            Output::status(&text);
            is_written = true;
            pause = REFRESH;
        }
    }
    if is_written && !paged.load(Ordering::Relaxed) {
        Output::status("");
    }
}

/// What is told.
struct Line {
    /// Bytes of a pass.
    size: u64,
    /// Passes that are done, and since when the present one runs.
    pass: u64,
    since: Instant,
}

impl Line {
    /// `reading: 512 of 2048 MB, 128 MB/s, 12 s left`, when so much was walked over at `now`.
    fn text(&mut self, walked: u64, now: Instant) -> String {
        let size = self.size.max(1);
        let pass = walked / size;
        if pass > self.pass {
            (self.pass, self.since) = (pass, now);
        }
        let done = walked - pass * size;
        let seconds = now.duration_since(self.since).as_secs_f64();
        let rate = done as f64 / seconds.max(f64::EPSILON);
        let megabytes = |bytes: f64| bytes / 1e6;
        let mut text = format!(
            "reading: {:.0} of {:.0} MB",
            megabytes(done as f64),
            megabytes(size as f64)
        );
        if done > 0 && seconds > 0.0 {
            let left = ((size - done) as f64 / rate).ceil();
            let _ = write!(text, ", {:.0} MB/s, {left:.0} s left", megabytes(rate));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_a_rate_of_its_own() {
        let start = Instant::now();
        let mut line = Line {
            size: 1_000_000_000,
            pass: 0,
            since: start,
        };
        let mut text = |walked, seconds| line.text(walked, start + Duration::from_secs(seconds));
        assert_eq!(text(0, 1), "reading: 0 of 1000 MB");
        let half = "reading: 500 of 1000 MB, 250 MB/s, 2 s left";
        assert_eq!(text(500_000_000, 2), half);
        assert_eq!(text(1_000_000_000, 3), "reading: 0 of 1000 MB");
        let last = "reading: 900 of 1000 MB, 90 MB/s, 2 s left";
        assert_eq!(text(1_900_000_000, 13), last);
    }
}
