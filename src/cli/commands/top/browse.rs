//! `top` in the browser: the screen on the calling thread, sampling on another.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use rperf_hist::{DecayingHistogram, WatchedFunction};
use rperf_session::RecordRequest;
use rperf_tui::{
    BrowserRequest, LiveStatus, ReaderMessage, ReportScreen, ReportTable, ReportTables,
    SharedSessionEnd, ShownFunction,
};
use rperf_view::report::ReportLayout;
use rperf_view::top::{DisplayedRate, IntervalStatus, RowLimits, first_rows};

use super::code::{AnnotatedCode, LiveCode};
use super::session::{StepEnd, TopSession};
use super::settings::TopSettings;
use crate::cli::context::Context;
use crate::cli::display::{BrowserTerminal, browses, spawn_browser_thread};
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::annotation::save_function;
use crate::cli::shared::browser::save;

/// The longest wait for samples before requests of the browser are handled.
const MAX_REQUEST_DELAY: Duration = Duration::from_millis(50);

/// Whether the browser is used: never with an option for text output or `--no-tui`; otherwise with `--tui`, or if stdin and
/// stdout are a terminal with cursor control and the setting `tui.top` is not off.
///
/// # Errors
///
/// Status 129: `--tui` without such a terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let text_options = ["stdio", "roll", "json"];
    if text_options
        .iter()
        .any(|id| flag(matches, id) == Some(true))
    {
        return Ok(false);
    }
    let configured = context.config.flag("tui.top") != Some(false);
    browses(matches, context, "top", configured)
}

/// The parameters of a browser session.
pub(super) struct TopBrowser<'b> {
    pub(super) matches: &'b ArgMatches,
    pub(super) context: &'b Context,
    /// The events and the target to observe.
    pub(super) request: &'b RecordRequest,
    pub(super) settings: &'b TopSettings,
    /// The refresh interval.
    pub(super) delay: Duration,
    /// The number of refreshes after which the browser ends; `None` for no limit.
    pub(super) intervals: Option<u64>,
    /// Limits on the rows.
    pub(super) limits: RowLimits,
}

/// The sampling thread's side of the browser.
struct BrowserConnection<'b> {
    messages: &'b Sender<ReaderMessage>,
    requests_in: Receiver<BrowserRequest>,
    /// Set when the browser has exited, for whatever reason.
    is_over: &'b AtomicBool,
    /// Restores the terminal and ends the process with a signal.
    end_process: &'b dyn Fn(i32),
}

impl TopBrowser<'_> {
    /// Runs the browser until the user quits, the intervals are over or a signal is received; returns the signal, if any.
    /// `set_up` is applied to the session first.
    pub(super) fn run(
        &self,
        set_up: impl FnOnce(&mut TopSession) + Send,
    ) -> Result<Option<i32>, CliError> {
        let mut display = BrowserTerminal::open(self.context)?;
        let (requests, requests_in) = channel();
        let (messages, messages_in) = channel();
        // Not read: `top` has no other recording or details to show after the browser.
        let outcome = SharedSessionEnd::default();
        let is_verbose = false;
        let theme = display.theme();
        let mut screen = ReportScreen::new(requests, Rc::clone(&outcome), is_verbose, theme).live();
        if let Some(symbol) = self.matches.get_one::<String>("sym-annotate") {
            screen = screen.asking(BrowserRequest::Annotate(ShownFunction {
                symbol: symbol.clone(),
                dso: None,
                event: 0,
            }));
        }
        let end_process = display.process_ender();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let sampler = spawn_browser_thread(scope, || {
                let result = {
                    let browser = BrowserConnection {
                        messages: &messages,
                        requests_in,
                        is_over: &is_over,
                        end_process: &end_process,
                    };
                    self.observe(set_up, &browser)
                };
                // Ends the browser, after success as after an error. It may have exited already.
                let _ = messages.send(ReaderMessage::Failed);
                result
            })?;
            let browsed = display.run(Box::new(screen), messages_in);
            is_over.store(true, Ordering::Release);
            drop(display);
            browsed?;
            let observed = sampler.join();
            observed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Observes the target and handles requests until the browser exits, the intervals are over or a signal is received; returns
    /// the signal, if any.
    fn observe(
        &self,
        set_up: impl FnOnce(&mut TopSession),
        browser: &BrowserConnection<'_>,
    ) -> Result<Option<i32>, CliError> {
        let Self {
            matches,
            context,
            settings,
            ..
        } = *self;
        let BrowserConnection { messages, .. } = browser;
        let mut session = TopSession::begin(matches, context, self.request, settings, self.delay)?;
        set_up(&mut session);
        let mut code = LiveCode::new(self.matches, self.context)?;
        // Whether the browser waits for the annotation of the function that was watched last.
        let mut has_open_request = false;
        // The screen's thread reads the keys.
        let no_input = None;
        let mut left = self.intervals;
        while left != Some(0) && !browser.is_over.load(Ordering::Acquire) {
            match session.step(no_input, Some(MAX_REQUEST_DELAY))? {
                StepEnd::Signal(signal) => {
                    // The screen may be waiting for keys on a terminal that is gone.
                    (browser.end_process)(signal);
                    return Ok(Some(signal));
                }
                StepEnd::Idle | StepEnd::Input => {}
                StepEnd::Refreshed => {
                    left = left.map(|left| left - 1);
                    let mut report = report(&session, &self.settings.layout, self.limits);
                    report.annotate = code.view_options();
                    let report = Arc::new(report);
                    // Only `report` shows a part of a recording before all of it is read.
                    let partial = None;
                    // The browser may have exited.
                    let _ = messages.send(ReaderMessage::Report { report, partial });
                    has_open_request =
                        send_annotations(&mut session, &mut code, messages, has_open_request);
                }
            }
            for request in browser.requests_in.try_iter() {
                has_open_request |= matches!(request, BrowserRequest::Annotate(_));
                if let BrowserRequest::Follow(function, address) = request
                    && session.follow(function, address)
                {
                    let is_open = true;
                    has_open_request = send_annotations(&mut session, &mut code, messages, is_open);
                    continue;
                }
                if let Some(answer) = handle_request(&mut session, request)? {
                    let _ = messages.send(answer);
                }
            }
        }
        Ok(None)
    }
}

/// Sends the annotations of the watched functions (those that the browser shows). If `has_open_request`, the annotation of the
/// last function answers the browser's request. Returns whether the request is still open, because the last function has no
/// samples yet, so its location is unknown.
fn send_annotations(
    session: &mut TopSession,
    code: &mut LiveCode,
    messages: &Sender<ReaderMessage>,
    has_open_request: bool,
) -> bool {
    let mut annotations = code.annotations(session);
    // For each function with a known location, `annotations` has one annotation for each table; so the last function's are at its
    // end.
    let table_count = session.table_count();
    let is_known = session
        .live
        .watched_mut()
        .last()
        .is_some_and(|last| last.frame().is_some());
    if has_open_request && is_known && annotations.len() >= table_count {
        // The answer has the counts of the first table, which may not be the displayed one.
        let answer = annotations.swap_remove(annotations.len() - table_count);
        // The browser may have exited.
        let _ = messages.send(match answer {
            AnnotatedCode::Code(code) => ReaderMessage::Code(code),
            AnnotatedCode::Unavailable(text) => ReaderMessage::Notice(text),
        });
    }
    for annotation in annotations {
        if let AnnotatedCode::Code(code) = annotation {
            let _ = messages.send(ReaderMessage::Update(code));
        }
    }
    has_open_request && !is_known
}

/// Handles a request of the browser; returns the answer, if there is one now.
fn handle_request(
    session: &mut TopSession,
    request: BrowserRequest,
) -> Result<Option<ReaderMessage>, CliError> {
    let unavailable = "Only available in 'report'.";
    Ok(match request {
        // Toggles whether counts are reset at each refresh instead of decaying.
        BrowserRequest::Zero => {
            session.zero = !session.zero;
            let state = if session.zero { "on" } else { "off" };
            Some(ReaderMessage::Notice(format!("Sample zeroing {state}.")))
        }
        // Also restarts the events if they are stopped.
        BrowserRequest::Stop => {
            session.toggle_events()?;
            None
        }
        BrowserRequest::Annotate(function) => {
            session.watch(WatchedFunction::named(
                &function.symbol,
                function.dso.as_deref(),
            ));
            session.refresh_now();
            None
        }
        BrowserRequest::Closed(function) => {
            session.stop_watching(function);
            None
        }
        // The caller handles this request itself if a function is at the address.
        BrowserRequest::Follow(_, address) => {
            Some(ReaderMessage::Notice(format!("No symbol at {address:#x}.")))
        }
        BrowserRequest::SaveFunction(name, text) => Some(save_function(&name, &text)?),
        BrowserRequest::Save(text) => Some(save(&text)?),
        _ => Some(ReaderMessage::Notice(unavailable.to_owned())),
    })
}

/// The tables after the last refresh, each with the status of the last interval.
fn report(session: &TopSession, layout: &ReportLayout, limits: RowLimits) -> ReportTables {
    let tables = (0..session.table_count()).filter_map(|number| {
        let (name, table) = session.table(number)?;
        let live = session.status(number, |status| live_status(&status, session, table));
        Some(ReportTable {
            name,
            plural: false,
            histogram: first_rows(table.histogram(), limits),
            layout: layout.clone(),
            live: Some(live),
        })
    });
    ReportTables {
        tables: tables.collect(),
        ..ReportTables::default()
    }
}

fn live_status(
    status: &IntervalStatus<'_>,
    session: &TopSession,
    table: &DecayingHistogram,
) -> LiveStatus {
    let rate = match status.event.rate {
        Some(DisplayedRate::Hertz(rate)) => format!(", {rate} Hz"),
        _ => String::new(),
    };
    let suffix = match table.histogram().rows.is_empty() {
        true => session.why_empty(),
        false if session.interval().has_losses() => super::LOST.to_owned(),
        false => String::new(),
    };
    LiveStatus {
        rate,
        // Counts in the interval and in total. `drop` is perf's word; here the samples that could not be decoded.
        losses: format!(
            " lost: {}/{} drop: {}/{}",
            status.lost.0, status.lost.1, status.damaged.0, status.damaged.1
        ),
        sample_count: table.sample_count(),
        bottom: format!(
            "{:.0} samples/s, {:.1}% kernel, ({}); own CPU {:.1}%{}{suffix}",
            status.samples_per_second,
            status.kernel_percent,
            status.scope,
            session.interval().own_cpu,
            if suffix.is_empty() { "" } else { "; " }
        ),
    }
}
