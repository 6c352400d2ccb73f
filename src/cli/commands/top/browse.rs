//! What runs now in the browser: the screen on this thread, the observation on another.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use rperf_hist::{Fading, Watched};
use rperf_session::Request as Observed;
use rperf_tui::{Live, News, Outcome, Place, Report, ReportScreen, Request, Table};
use rperf_view::report::Layout;
use rperf_view::top::{Rate, Room, Status, first_rows};

use super::code::{LiveCode, Shown};
use super::session::{Session, Step};
use super::settings::Settings;
use crate::cli::commands::annotate::save_function;
use crate::cli::commands::report::save;
use crate::cli::context::Context;
use crate::cli::display::{Display, browses, started};
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// How long an answer may take to what the browser asks for.
const PATIENCE: Duration = Duration::from_millis(50);

/// Whether the browser is used: `--tui`, or a terminal on both sides and nothing that asks for text.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(super) fn is_wanted(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let texts = ["stdio", "roll", "json"];
    if texts.iter().any(|id| flag(matches, id) == Some(true)) {
        return Ok(false);
    }
    browses(matches, context, "top", true)
}

/// What is browsed.
pub(super) struct Browser<'b> {
    pub(super) matches: &'b ArgMatches,
    pub(super) context: &'b Context,
    pub(super) observed: &'b Observed,
    pub(super) settings: &'b Settings,
    pub(super) delay: Duration,
    pub(super) intervals: Option<u64>,
    /// Which rows there are.
    pub(super) room: Room,
}

impl Browser<'_> {
    /// Browses until the user leaves; `set_up` is done to the session first. Returns the signal that ended it, if one did.
    pub(super) fn run(
        &self,
        set_up: impl FnOnce(&mut Session) + Send,
    ) -> Result<Option<i32>, CliError> {
        let mut display = Display::open(self.context)?;
        let (requests, asked) = channel();
        let (news, told) = channel();
        let outcome = Outcome::default();
        let mut screen =
            ReportScreen::new(requests, Rc::clone(&outcome), false, display.theme()).live();
        if let Some(symbol) = self.matches.get_one::<String>("sym-annotate") {
            screen = screen.asking(Request::Annotate(Place {
                symbol: symbol.clone(),
                dso: None,
                event: 0,
            }));
        }
        let die = display.ender();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let engine = started(scope, || {
                let result = self.observe(set_up, (&news, asked), (&is_over, &die));
                // The session may have ended by itself.
                let _ = news.send(News::Failed);
                result
            })?;
            let shown = display.run(Box::new(screen), told);
            is_over.store(true, Ordering::Release);
            drop(display);
            shown?;
            let observed = engine.join();
            observed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn observe(
        &self,
        set_up: impl FnOnce(&mut Session),
        (news, asked): (&Sender<News>, Receiver<Request>),
        (is_over, die): (&AtomicBool, &dyn Fn(i32)),
    ) -> Result<Option<i32>, CliError> {
        let observed = (self.observed, self.settings);
        let mut session = Session::begin(self.matches, self.context, observed, self.delay)?;
        set_up(&mut session);
        let mut code = LiveCode::new(self.matches)?;
        let mut is_asked = false;
        let mut left = self.intervals;
        while left != Some(0) && !is_over.load(Ordering::Acquire) {
            match session.step(None, Some(PATIENCE))? {
                Step::Signal(signal) => {
                    // The screen may be waiting for keys on a terminal that is gone.
                    die(signal);
                    return Ok(Some(signal));
                }
                Step::Idle | Step::Input => {}
                Step::Refreshed => {
                    left = left.map(|left| left - 1);
                    let mut report = report(&session, &self.settings.layout, self.room);
                    report.annotate = code.looks();
                    let report = Arc::new(report);
                    let partial = None;
                    // Nobody may be left to look at it.
                    let _ = news.send(News::Report { report, partial });
                    is_asked = tell(&mut session, &mut code, (news, is_asked));
                }
            }
            for request in asked.try_iter() {
                is_asked |= matches!(request, Request::Annotate(_));
                if let Request::Follow(seen, address) = request
                    && session.follow(seen, address)
                {
                    is_asked = tell(&mut session, &mut code, (news, true));
                    continue;
                }
                if let Some(answer) = obey(&mut session, request)? {
                    let _ = news.send(answer);
                }
            }
        }
        Ok(None)
    }
}

/// Tells what fell on the functions that are watched. The last of them `is_asked` for until it is shown; whether it still is.
fn tell(
    session: &mut Session,
    code: &mut LiveCode,
    (news, is_asked): (&Sender<News>, bool),
) -> bool {
    let mut functions = code.functions(session);
    let count = session.tables();
    let is_known = session
        .live
        .watched_mut()
        .last()
        .is_some_and(|last| last.frame().is_some());
    if is_asked && is_known && functions.len() >= count {
        // Of the first table: that is what is looked at where there is one.
        let last = functions.swap_remove(functions.len() - count);
        // Nobody may be left to look at it.
        let _ = news.send(match last {
            Shown::Code(code) => News::Code(code),
            Shown::Nothing(text) => News::Said(text),
        });
    }
    for function in functions {
        if let Shown::Code(code) = function {
            let _ = news.send(News::Update(code));
        }
    }
    is_asked && !is_known
}

/// Does what the browser asks for.
fn obey(session: &mut Session, request: Request) -> Result<Option<News>, CliError> {
    let not_here = "That is of recordings: 'record' makes one, 'report' shows it.";
    Ok(match request {
        Request::Zero => {
            session.zero = !session.zero;
            let now = if session.zero { "on" } else { "off" };
            Some(News::Said(format!("Sample zeroing {now}.")))
        }
        Request::Stop => {
            session.switch()?;
            None
        }
        Request::Annotate(place) => {
            session.watch(Watched::named(&place.symbol, place.dso.as_deref()));
            None
        }
        Request::Left(seen) => {
            session.leave(seen);
            None
        }
        Request::Follow(_, address) => {
            Some(News::Said(format!("No function is known at {address:#x}.")))
        }
        Request::SaveFunction(name, text) => Some(save_function(&name, &text)?),
        Request::Save(text) => Some(save(&text)?),
        _ => Some(News::Said(not_here.to_owned())),
    })
}

/// The tables of the last interval.
fn report(session: &Session, layout: &Layout, room: Room) -> Report {
    let tables = (0..session.tables()).filter_map(|number| {
        let (name, table) = session.table(number)?;
        let live = session.status(number, |status| live(&status, session, table));
        Some(Table {
            name,
            plural: false,
            histogram: first_rows(table.histogram(), room),
            layout: layout.clone(),
            live: Some(live),
        })
    });
    Report {
        tables: tables.collect(),
        ..Report::default()
    }
}

fn live(status: &Status<'_>, session: &Session, table: &Fading) -> Live {
    let rate = match status.event.rate {
        Some(Rate::Hertz(rate)) => format!(", {rate} Hz"),
        _ => String::new(),
    };
    let said = match (table.histogram().rows.is_empty(), session.interval().losses) {
        (true, _) => session.why_empty(),
        (false, 0) => String::new(),
        (false, _) => super::LOST.to_owned(),
    };
    Live {
        rate,
        losses: format!(
            " lost: {}/{} drop: {}/{}",
            status.lost.0, status.lost.1, status.dropped.0, status.dropped.1
        ),
        seen: table.seen(),
        bottom: format!(
            "{:.0} samples/s, {:.1}% kernel, ({}); own CPU {:.1}%{}{said}",
            status.per_second,
            status.kernel,
            status.scope,
            session.interval().own_cost,
            if said.is_empty() { "" } else { "; " }
        ),
    }
}
