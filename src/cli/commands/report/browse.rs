//! The report in the browser: when it is used, the thread that reads, and what comes after a session.

mod requests;

pub(in crate::cli::commands) use self::requests::{Others, save};

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use rperf_perfdata::PerfData;
use rperf_replay::Walked;
use rperf_tui::{News, Next, Outcome, Report, ReportScreen, Request, Table};

use super::{Counts, Job, Question, is_empty};
use crate::cli::context::Context;
use crate::cli::display::{Display, browses, started};
use crate::cli::dump;
use crate::cli::error::{CliError, Exit};
use crate::cli::findings::conclude;
use crate::cli::input::{Input, Opened};
use crate::cli::options::flag;
use crate::cli::progress::Progress;
use crate::cli::symbols::replay;

/// A recording with more than twice as many bytes of records is shown in part first: these parts of it, one after the other.
const PARTS: [usize; 2] = [6 << 20, 48 << 20];
/// How often it is told how far the reading is.
const REFRESH: Duration = Duration::from_millis(100);
/// What is printed and not browsed.
const PRINTED: &[&str] = &[
    "stats",
    "tasks",
    "mmaps",
    "header-only",
    "threads",
    "total-cycles",
];

/// Whether the report is browsed: `--tui`, or a terminal on both sides and nothing that asks for text.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let is_on = |id| flag(matches, id) == Some(true);
    let printed = PRINTED.iter().any(|id| is_on(id)) || dump::is_wanted(matches);
    if printed || is_on("stdio") || matches.contains_id("field-separator") {
        return Ok(false);
    }
    let configured = context.config.flag("tui.report") != Some(false);
    browses(matches, context, "report", configured)
}

/// Runs sessions until one ends for good.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let mut job = Job::new(matches, context)?;
    let mut path = None;
    loop {
        let next = session(&job, path.as_ref())?;
        match next {
            Next::Nothing => return Ok(Exit::Ok),
            Next::Open(name) => path = Some(PathBuf::from(name)),
            Next::Verbose(is_verbose) => job.settings.show_places(is_verbose),
        }
    }
}

/// One session with one recording: the screen on this thread, the reading on another.
fn session(job: &Job<'_>, path: Option<&PathBuf>) -> Result<Next, CliError> {
    let mut display = Display::open(job.context)?;
    let outcome = Outcome::default();
    let (requests, asked) = channel();
    let (sender, news) = channel();
    let theme = display.theme();
    let is_verbose = job.settings.shows_places();
    let screen = ReportScreen::new(requests, Rc::clone(&outcome), is_verbose, theme);
    let is_read = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = started(scope, || {
            let failed = sender.clone();
            let reader = Reader {
                job,
                news: sender,
                is_read: &is_read,
            };
            let result = reader.run(path, asked);
            if result.is_err() {
                // The session may have ended by itself.
                let _ = failed.send(News::Failed);
            }
            result
        })?;
        let shown = display.run(Box::new(screen), news);
        drop(display);
        shown?;
        let next = outcome.borrow().clone();
        if !is_read.load(Ordering::Acquire) && !reader.is_finished() && next == Next::Nothing {
            leave();
        }
        let read = reader.join();
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(next)
    })
}

/// Ends the process: who leaves while a recording is being read does not wait for the rest of it.
#[expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "threads that read cannot be stopped, and hold nothing that has to be put away"
)]
fn leave() -> ! {
    std::process::exit(0)
}

/// Reads a recording and answers what the browser asks for.
struct Reader<'r> {
    job: &'r Job<'r>,
    news: Sender<News>,
    /// Set when all is read.
    is_read: &'r AtomicBool,
}

impl Reader<'_> {
    fn run(&self, path: Option<&PathBuf>, asked: Receiver<Request>) -> Result<(), CliError> {
        let (matches, context) = (self.job.matches, self.job.context);
        let input = match path {
            None => Input::open(matches, context)?,
            Some(path) => {
                let force = flag(matches, "force") == Some(true);
                match Opened::named(Some(path.clone()), force, context)? {
                    Opened::Whole(input) => input,
                    Opened::Stream(stream) => stream.spool(context)?,
                }
            }
        };
        let decoded = super::with_trace(matches, context, &input)?;
        let input = decoded.unwrap_or(input);
        let data = input.parse(context)?;
        let size = data.data().len();
        for length in PARTS.into_iter().filter(|length| size > 2 * length) {
            let first = data.data().get(..length).unwrap_or_default();
            let part = input.read(context)?.with_records(first, None);
            // A part may have no samples that count; the whole tells then.
            let percent = length as f64 * 100.0 / size as f64;
            let _ = self.read(&input, &part, Some(percent));
        }
        self.read(&input, &data, None)?;
        self.is_read.store(true, Ordering::Release);
        requests::answer(self.job, &input, &data, &self.news, &asked);
        Ok(())
    }

    /// Reads all of `data` and shows it; `partial` is how much of the recording that is, if not all.
    fn read(
        &self,
        input: &Input,
        data: &PerfData<'_>,
        partial: Option<f64>,
    ) -> Result<(), CliError> {
        let progress = Progress::silent();
        let walked = progress.walked.clone();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            // Without it nobody hears how far it is.
            let tell = || self.tell(&walked, data.data().len(), &is_done);
            let _ = thread::Builder::new().spawn_scoped(scope, tell);
            let result = self.count(input, data, &progress, partial);
            is_done.store(true, Ordering::Release);
            result
        })
    }

    fn count(
        &self,
        input: &Input,
        data: &PerfData<'_>,
        progress: &Progress,
        partial: Option<f64>,
    ) -> Result<(), CliError> {
        let replay = replay(data, self.job.settings.jobs, progress)?;
        let is_all = partial.is_none();
        self.job.count(input, &replay, is_all, |question, counts| {
            let report = Arc::new(report(self.job, question, counts));
            // Nobody may be left to look at it.
            let _ = self.news.send(News::Report { report, partial });
            Ok(())
        })?;
        match is_all {
            // Also what can be read in part is shown; what is missing is told at the end.
            true => {
                if let Err(error) = conclude(&input.path, &replay.diagnostics(), self.job.context) {
                    self.job.context.warn(error.text().trim_end());
                }
                Ok(())
            }
            false => Ok(()),
        }
    }

    /// Tells how far two passes over `size` bytes are, until they are done.
    fn tell(&self, walked: &Walked, size: usize, is_done: &AtomicBool) {
        while !is_done.load(Ordering::Acquire) {
            let done = walked.bytes() as f64 / (2.0 * size.max(1) as f64);
            if self.news.send(News::Progress(done.min(1.0))).is_err() {
                return;
            }
            thread::sleep(REFRESH);
        }
    }
}

/// What was counted, for the browser.
fn report(job: &Job<'_>, question: &Question<'_>, counts: Counts) -> Report {
    let skips = job.settings.skip_empty;
    let pairs = question.tables.iter().zip(counts.histograms);
    let shown = pairs.filter(|(_, histogram)| !(skips && is_empty(histogram)));
    let tables = shown.map(|(table, histogram)| Table {
        name: table.name.clone(),
        plural: table.plural,
        histogram,
        layout: question.plan.layout.clone(),
        live: None,
    });
    Report {
        tables: tables.collect(),
        tip: job.settings.tip(),
        annotate: job.code.looks(),
    }
}
