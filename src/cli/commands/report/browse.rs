//! `report` in the browser: each session shows one recording while a second thread reads it.

mod requests;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use rperf_perfdata::{PerfData, UnpackSummary};
use rperf_replay::BytesRead;
use rperf_tui::{
    BrowserRequest, ReaderMessage, ReportScreen, ReportTable, ReportTables, SessionEnd,
    SharedSessionEnd,
};

use super::{CountParameters, ReportCounts, ReportJob, is_empty};
use crate::cli::context::Context;
use crate::cli::display::{BrowserTerminal, browses, spawn_browser_thread};
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{Input, OpenedInput};
use crate::cli::options::flag;
use crate::cli::progress::ProgressDisplay;
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;

/// The lengths in bytes of the prefixes of a recording that are shown before it is read completely; each only if the recording is
/// more than twice as long as the prefix.
const PREFIX_LENGTHS: [usize; 2] = [6 << 20, 48 << 20];
/// The interval of progress updates.
const REFRESH: Duration = Duration::from_millis(100);
/// Switches whose output is printed instead of shown in the browser.
const PRINTED: &[&str] = &[
    "stats",
    "tasks",
    "mmaps",
    "header-only",
    "threads",
    "total-cycles",
    "json",
    "csv",
];

/// Whether the browser is used: with `--tui`; by default, if stdin and stdout are terminals and the configuration allows it;
/// never if an option selects other output.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let is_on = |id| flag(matches, id) == Some(true);
    let printed = PRINTED.iter().any(|id| is_on(id)) || record_dump::is_wanted(matches);
    if printed || is_on("stdio") || matches.contains_id("field-separator") {
        return Ok(false);
    }
    let configured = context.config.flag("tui.report") != Some(false);
    browses(matches, context, "report", configured)
}

/// Runs sessions until the user quits.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let mut job = ReportJob::new(matches, context)?;
    let mut path = None;
    loop {
        let next = session(&job, path.as_ref())?;
        match next {
            // The user quit: nothing is shown next.
            SessionEnd::Nothing => return Ok(ExitStatus::Ok),
            SessionEnd::Open(name) => path = Some(PathBuf::from(name)),
            SessionEnd::Verbose(is_verbose) => job.settings.set_verbose(is_verbose),
        }
    }
}

/// Runs a session with one recording: the screen on this thread, the reading on another. `path` is the recording that the user
/// chose in an earlier session; `None` for the one that the options name.
fn session(job: &ReportJob<'_>, path: Option<&PathBuf>) -> Result<SessionEnd, CliError> {
    let mut display = BrowserTerminal::open(job.context)?;
    // Set by the screen: what the user wants next.
    let outcome = SharedSessionEnd::default();
    let (request_sender, requests) = channel();
    let (message_sender, messages) = channel();
    let theme = display.theme();
    let is_verbose = job.settings.is_verbose();
    let screen = ReportScreen::new(request_sender, Rc::clone(&outcome), is_verbose, theme);
    let can_be_joined = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = spawn_browser_thread(scope, || {
            let failure_sender = message_sender.clone();
            let reader = RecordingReader {
                job,
                messages: message_sender,
                can_be_joined: &can_be_joined,
            };
            let result = reader.run(path, requests);
            if result.is_err() {
                // Set before the message is sent, as the message ends the screen.
                can_be_joined.store(true, Ordering::Release);
                // Fails if the session has ended.
                let _ = failure_sender.send(ReaderMessage::Failed);
            }
            result
        })?;
        let displayed = display.run(Box::new(screen), messages);
        drop(display);
        displayed?;
        let next = outcome.borrow().clone();
        if !can_be_joined.load(Ordering::Acquire) && next == SessionEnd::Nothing {
            exit_now();
        }
        // The error, if reading failed.
        let read = reader.join();
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(next)
    })
}

/// Ends the process without waiting for a recording to be read completely.
#[expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "threads that read cannot be stopped, and hold nothing that needs cleanup"
)]
fn exit_now() -> ! {
    std::process::exit(0)
}

/// Reads a recording and answers the browser's requests.
struct RecordingReader<'r> {
    job: &'r ReportJob<'r>,
    messages: Sender<ReaderMessage>,
    /// Set when the recording has been read completely, or reading has failed: then the thread ends with the session.
    can_be_joined: &'r AtomicBool,
}

impl RecordingReader<'_> {
    fn run(
        &self,
        path: Option<&PathBuf>,
        requests: Receiver<BrowserRequest>,
    ) -> Result<(), CliError> {
        let (matches, context) = (self.job.matches, self.job.context);
        let input = match path {
            None => Input::open(matches, context)?,
            Some(path) => {
                let force = flag(matches, "force") == Some(true);
                OpenedInput::named(Some(path.clone()), force, context)?.complete(context)?
            }
        };
        // A hardware trace is decoded to samples first.
        let decoded = super::with_trace(matches, context, &input)?;
        let input = decoded.unwrap_or(input);
        let data = input.parse(context)?;
        let size = data.data().len();
        for length in PREFIX_LENGTHS
            .into_iter()
            .filter(|length| size > 2 * length)
        {
            let prefix = data.data().get(..length).unwrap_or_default();
            // The summary can be empty: only `--stats` shows it.
            let part = input
                .parse_quietly(context)?
                .with_records(prefix, UnpackSummary::default());
            let percent = length as f64 * 100.0 / size as f64;
            // Errors are ignored: a part may have no matching samples, and the complete report shows other errors again.
            let _ = self.read(&input, &part, Some(percent));
        }
        self.read(&input, &data, None)?;
        self.can_be_joined.store(true, Ordering::Release);
        requests::answer(self.job, &input, &data, &self.messages, &requests);
        Ok(())
    }

    /// Reads all of `data` and shows it. If `data` is only a part of the recording, `partial` is its percentage.
    fn read(
        &self,
        input: &Input,
        data: &PerfData<'_>,
        partial: Option<f64>,
    ) -> Result<(), CliError> {
        let progress = ProgressDisplay::silent();
        let bytes_read = progress.bytes_read.clone();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            // If the thread can't be started, no progress is shown.
            let send_progress = || self.send_progress(&bytes_read, data.data().len(), &is_done);
            let _ = thread::Builder::new().spawn_scoped(scope, send_progress);
            let result = self.count(input, data, progress, partial);
            is_done.store(true, Ordering::Release);
            result
        })
    }

    fn count(
        &self,
        input: &Input,
        data: &PerfData<'_>,
        progress: ProgressDisplay,
        partial: Option<f64>,
    ) -> Result<(), CliError> {
        let (jobs, context) = (self.job.settings.jobs, self.job.context);
        let analysis = Analysis::with_progress(input, data, jobs, progress, context)?;
        let is_all = partial.is_none();
        self.job.count(&analysis, is_all, |parameters, counts| {
            let report = Arc::new(report(self.job, parameters, counts));
            // Fails if the session has ended.
            let _ = self
                .messages
                .send(ReaderMessage::Report { report, partial });
            Ok(())
        })?;
        // A damaged recording is shown as far as it can be read; the damage is reported when the terminal is restored.
        if is_all && let Err(error) = analysis.conclude() {
            context.warn(error.text().trim_end());
        }
        Ok(())
    }

    /// Sends progress until `is_done`. An analysis reads the recording twice, so `2 * size` bytes in all.
    fn send_progress(&self, bytes_read: &BytesRead, size: usize, is_done: &AtomicBool) {
        while !is_done.load(Ordering::Acquire) {
            let fraction = bytes_read.bytes() as f64 / (2.0 * size.max(1) as f64);
            if self
                .messages
                .send(ReaderMessage::Progress(fraction.min(1.0)))
                .is_err()
            {
                return;
            }
            thread::sleep(REFRESH);
        }
    }
}

/// The report for the browser.
fn report(
    job: &ReportJob<'_>,
    parameters: &CountParameters<'_>,
    counts: ReportCounts,
) -> ReportTables {
    let skips_empty = job.settings.skips_empty();
    let pairs = parameters.tables.iter().zip(counts.histograms);
    let shown_pairs = pairs.filter(|(_, histogram)| !(skips_empty && is_empty(histogram)));
    let tables = shown_pairs.map(|(table, histogram)| ReportTable {
        name: table.name.clone(),
        plural: table.plural,
        histogram,
        layout: parameters.plan.layout.clone(),
        live: None,
    });
    ReportTables {
        tables: tables.collect(),
        tip: job.settings.tip(),
        annotate: job.code.view_options(),
    }
}
