//! `rperf top`: which code runs now.

mod args;
mod browse;
mod code;
mod keys;
mod request;
mod roll;
mod screen;
mod session;
mod settings;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::ArgMatches;
use rperf_hist::Watched;
use rperf_view::top::Room;

pub(super) use self::args::command;

use self::browse::Browser;
use self::code::LiveCode;
use self::roll::Roll;
use self::screen::Screen;
use self::session::{Session, Step};
use self::settings::Settings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::flag;
use crate::cli::stacks::warn_of_cut;

/// What can be done where records are lost.
const LOST: &str = "samples were lost: -m 8M has larger rings, a lower -F fewer samples";

/// Seconds from one refresh to the next.
const DELAY: f64 = 2.0;

/// Shows interval after interval until the user has seen enough.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let request = request::build(matches, context)?;
    let settings = Settings::new(matches, context, request::has_callchains(&request))?;
    let on = |id| flag(matches, id) == Some(true);
    let rolls = on("roll") || on("json") || !context.output.is_terminal();
    let delay = delay(matches)?;
    let intervals = matches.get_one::<u64>("intervals").copied();
    let set_up = |session: &mut Session| {
        session.zero = on("zero");
        session.live.hidden_mut().kernel = on("hide_kernel_symbols");
        session.live.hidden_mut().user = on("hide_user_symbols");
    };
    let bounds = Bounds::new(matches);
    if browse::is_wanted(matches, context)? {
        let browser = Browser {
            matches,
            context,
            observed: &request,
            settings: &settings,
            delay,
            intervals,
            room: bounds.room(),
        };
        return Ok(exit(browser.run(set_up)?));
    }
    let code = LiveCode::new(matches)?;
    let symbol = matches.get_one::<String>("sym-annotate");
    if symbol.is_some() && on("json") {
        return Err(CliError::usage(
            "--sym-annotate shows text: not with --json",
        ));
    }
    let mut session = Session::begin(matches, context, (&request, &settings), delay)?;
    set_up(&mut session);
    let shown = match rolls {
        true => {
            let mut roll = Roll {
                layout: settings.layout,
                room: bounds.room(),
                json: on("json"),
                code: symbol.is_some().then_some(code),
            };
            if let Some(symbol) = symbol {
                session.watch(Watched::named(symbol, None));
            }
            let stopped = roll_on(&mut session, context, &mut roll, intervals)?;
            conclude(context, &session, &request);
            stopped
        }
        false => {
            let keys = io::stdin().is_terminal();
            let looks = (settings.layout, code);
            let mut screen = Screen::new(context, looks, (bounds.most, bounds.least), keys);
            screen.show_code(symbol.map(String::as_str), &mut session);
            screen.run(&mut session, intervals)?
        }
    };
    Ok(exit(shown))
}

/// What bounds the lines that are shown.
#[derive(Clone, Copy)]
struct Bounds {
    /// How many there are at most (`-E`).
    most: Option<usize>,
    /// How many samples each has at least (`-f`).
    least: Option<u64>,
}

impl Bounds {
    fn new(matches: &ArgMatches) -> Self {
        let most = matches.get_one::<u64>("entries").copied();
        Self {
            most: most.and_then(|rows| usize::try_from(rows).ok()),
            least: matches.get_one::<u64>("count-filter").copied(),
        }
    }

    /// The room where nothing else bounds it.
    fn room(self) -> Room {
        Room {
            rows: self.most.unwrap_or(usize::MAX),
            samples: self.least.unwrap_or_default(),
            screen: None,
        }
    }
}

/// How a session ends that a signal may have ended: ^C is how one leaves.
fn exit(signal: Option<i32>) -> Exit {
    match signal {
        Some(signal) if signal != libc::SIGINT => Exit::Signal(signal),
        _ => Exit::Ok,
    }
}

/// Writes block after block; returns the signal that ended it, if one did.
fn roll_on(
    session: &mut Session,
    context: &Context,
    roll: &mut Roll,
    intervals: Option<u64>,
) -> Result<Option<i32>, CliError> {
    let mut left = intervals;
    while left != Some(0) {
        match session.step(None, None)? {
            Step::Signal(signal) => return Ok(Some(signal)),
            Step::Input | Step::Idle => continue,
            Step::Refreshed => {}
        }
        roll.write(&mut context.stdout(), session)?;
        left = left.map(|left| left - 1);
        if session.has_ended() {
            context.note(session.why_empty());
            break;
        }
    }
    Ok(None)
}

/// What became of stacks that were unwound.
fn conclude(context: &Context, session: &Session, request: &rperf_session::Request) {
    if let rperf_events::CallGraph::Dwarf { stack_size } = request.call_graph {
        warn_of_cut(context, session.live.stacks(), Some(stack_size.bytes()));
    }
}

/// Of `-d`.
fn delay(matches: &ArgMatches) -> Result<Duration, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(Duration::from_secs_f64(DELAY));
    };
    let seconds = word.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.0..1e6).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        CliError::usage(format!("-d: '{word}' is no number of seconds"))
            .hint("data addresses, which -d means to 'record', are not shown here")
    })?;
    // As in perf, no delay is the shortest that it knows.
    Ok(Duration::from_secs_f64(match seconds {
        0.0 => 1.0,
        seconds => seconds.max(0.01),
    }))
}
