//! Progress of a command, on stderr.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rperf_replay::BytesRead;

use super::context::Context;
use super::output::OutputStreams;

/// The delay before progress is shown.
const DISPLAY_DELAY: Duration = Duration::from_secs(1);
/// The refresh interval of the line.
const REFRESH: Duration = Duration::from_millis(200);

/// A progress line for passes over a recording, until dropped. It is shown after a delay, if stderr is a terminal, without `-q`,
/// and while neither a pager nor a browser uses the terminal.
pub(crate) struct ProgressDisplay {
    /// The counter to which passes add the bytes that they read.
    pub(crate) bytes_read: BytesRead,
    refresher: Option<(Arc<ProgressEnd>, JoinHandle<()>)>,
}

/// Whether progress has ended.
#[derive(Default)]
struct ProgressEnd {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl ProgressDisplay {
    /// Starts progress for passes over `size` bytes, for a command that prints nothing meanwhile.
    pub(crate) fn start(context: &Context, size: usize) -> Self {
        let bytes_read = BytesRead::default();
        let is_enabled = !context.output.is_quiet() && OutputStreams::shows_errors_on_terminal();
        let is_terminal_in_use = context.output.redirected();
        let line = ProgressLine {
            size: size as u64,
            pass: 0,
            since: Instant::now(),
        };
        let start_thread = |ending| {
            let bytes_read = bytes_read.clone();
            thread::Builder::new()
                .spawn(move || refresh(line, &bytes_read, &is_terminal_in_use, ending))
        };
        let refresher = is_enabled.then(|| {
            let ending = Arc::new(ProgressEnd::default());
            // If the thread cannot be started, no progress is shown.
            let thread = start_thread(Arc::clone(&ending)).ok()?;
            Some((ending, thread))
        });
        Self {
            bytes_read,
            refresher: refresher.flatten(),
        }
    }

    /// Creates progress that is not shown.
    pub(crate) fn silent() -> Self {
        Self {
            bytes_read: BytesRead::default(),
            refresher: None,
        }
    }

    /// Starts progress for a command that prints as it reads: not shown if its output is a terminal.
    pub(crate) fn for_text_output(context: &Context, size: usize) -> Self {
        match context.output.is_terminal() {
            true => Self::silent(),
            false => Self::start(context, size),
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        let Some((ending, thread)) = self.refresher.take() else {
            return;
        };
        let has_ended = ending.has_ended.lock();
        *has_ended.unwrap_or_else(PoisonError::into_inner) = true;
        ending.changed.notify_one();
        // The thread returns nothing and does not panic.
        let _ = thread.join();
    }
}

/// Refreshes the line until the end, then erases it.
fn refresh(
    mut line: ProgressLine,
    bytes_read: &BytesRead,
    is_terminal_in_use: &AtomicBool,
    ending: Arc<ProgressEnd>,
) {
    let mut pause = DISPLAY_DELAY;
    let mut is_written = false;
    let mut has_ended = ending
        .has_ended
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    while !*has_ended {
        let waited = ending.changed.wait_timeout(has_ended, pause);
        let timeout;
        (has_ended, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        // Nothing is written while a pager or a browser uses the terminal.
        if timeout.timed_out() && !is_terminal_in_use.load(Ordering::Relaxed) {
            let text = line.text(bytes_read.bytes(), Instant::now());
            OutputStreams::status(&text);
            is_written = true;
            pause = REFRESH;
        }
    }
    if is_written && !is_terminal_in_use.load(Ordering::Relaxed) {
        OutputStreams::status("");
    }
}

/// The progress line.
struct ProgressLine {
    /// The number of bytes that each pass reads.
    size: u64,
    /// The number of completed passes.
    pass: u64,
    /// When the current pass began.
    since: Instant,
}

impl ProgressLine {
    /// Formats `reading: 512 of 2048 MB, 128 MB/s, 12 s left` for `bytes_read` bytes at `now`.
    fn text(&mut self, bytes_read: u64, now: Instant) -> String {
        let size = self.size.max(1);
        let pass = bytes_read / size;
        if pass > self.pass {
            (self.pass, self.since) = (pass, now);
        }
        let done = bytes_read - pass * size;
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
        let mut line = ProgressLine {
            size: 1_000_000_000,
            pass: 0,
            since: start,
        };
        let mut text =
            |bytes_read, seconds| line.text(bytes_read, start + Duration::from_secs(seconds));
        assert_eq!(text(0, 1), "reading: 0 of 1000 MB");
        let half = "reading: 500 of 1000 MB, 250 MB/s, 2 s left";
        assert_eq!(text(500_000_000, 2), half);
        assert_eq!(text(1_000_000_000, 3), "reading: 0 of 1000 MB");
        let last = "reading: 900 of 1000 MB, 90 MB/s, 2 s left";
        assert_eq!(text(1_900_000_000, 13), last);
    }
}
