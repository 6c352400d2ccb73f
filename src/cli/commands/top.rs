//! `rperf top`: a live profile.

mod args;
mod batch_output;
mod browse;
// The annotation of one function (`--sym-annotate`, or a key on the screen).
mod code;
mod keys;
mod request;
mod screen;
mod session;
mod settings;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::ArgMatches;
use rperf_hist::WatchedFunction;
use rperf_view::top::RowLimits;

pub(super) use self::args::command;

use self::batch_output::BatchOutput;
use self::browse::TopBrowser;
use self::code::LiveCode;
use self::screen::TopScreen;
use self::session::{StepEnd, TopSession};
use self::settings::TopSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::stack_folding::warn_of_truncated;

/// The hint for lost records.
const LOST: &str = "samples were lost: try larger ring buffers (-m 8M) or a lower frequency (-F)";

/// The default refresh interval, in seconds.
const DELAY: f64 = 2.0;

/// Runs the command.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let request = request::build(matches, context)?;
    let settings = TopSettings::new(matches, context, request::has_callchains(&request))?;
    let is_set = |id| flag(matches, id) == Some(true);
    let is_batch = is_set("roll") || is_set("json") || !context.output.is_terminal();
    let delay = delay(matches)?;
    let intervals = matches.get_one::<u64>("intervals").copied();
    let set_up = |session: &mut TopSession| {
        session.zero = is_set("zero");
        session.live.hidden_mut().kernel = is_set("hide_kernel_symbols");
        session.live.hidden_mut().user = is_set("hide_user_symbols");
    };
    let bounds = RowBounds::new(matches);
    if browse::is_wanted(matches, context)? {
        let browser = TopBrowser {
            matches,
            context,
            request: &request,
            settings: &settings,
            delay,
            intervals,
            limits: bounds.limits(),
        };
        return Ok(exit_status(browser.run(set_up)?));
    }
    let code = LiveCode::new(matches, context)?;
    let symbol = matches.get_one::<String>("sym-annotate");
    if symbol.is_some() && is_set("json") {
        return Err(CliError::usage(
            "--sym-annotate and --json exclude each other",
        ));
    }
    let mut session = TopSession::begin(matches, context, &request, &settings, delay)?;
    set_up(&mut session);
    let signal = match is_batch {
        true => {
            let mut batch = BatchOutput {
                layout: settings.layout,
                limits: bounds.limits(),
                json: is_set("json"),
                code: symbol.is_some().then_some(code),
            };
            if let Some(symbol) = symbol {
                let any_object = None;
                session.watch(WatchedFunction::named(symbol, any_object));
            }
            let signal = write_batches(&mut session, context, &mut batch, intervals)?;
            warn_of_truncated_stacks(context, &session, &request);
            signal
        }
        false => {
            let reads_keys = io::stdin().is_terminal();
            let mut screen = TopScreen::new(context, settings.layout, code, bounds, reads_keys);
            screen.show_code(symbol.map(String::as_str), &mut session);
            screen.run(&mut session, intervals)?
        }
    };
    Ok(exit_status(signal))
}

/// The limits on rows that options give.
#[derive(Clone, Copy)]
struct RowBounds {
    /// Maximum number of rows (`-E`).
    max_rows: Option<usize>,
    /// Minimum number of samples of a row (`-f`).
    min_samples: Option<u64>,
}

impl RowBounds {
    fn new(matches: &ArgMatches) -> Self {
        let entries = matches.get_one::<u64>("entries").copied();
        Self {
            max_rows: entries.and_then(|rows| usize::try_from(rows).ok()),
            min_samples: matches.get_one::<u64>("count-filter").copied(),
        }
    }

    /// The limits without those of a screen. An option that is not given limits nothing.
    fn limits(self) -> RowLimits {
        RowLimits {
            max_rows: self.max_rows.unwrap_or(usize::MAX),
            min_samples: self.min_samples.unwrap_or_default(),
            screen: None,
        }
    }
}

/// Returns the exit status of a session that `signal` ended, if any. SIGINT counts as success: ^C is the ordinary way to quit.
fn exit_status(signal: Option<i32>) -> ExitStatus {
    match signal {
        Some(signal) if signal != libc::SIGINT => ExitStatus::Signal(signal),
        _ => ExitStatus::Ok,
    }
}

/// Writes a block for each interval and each event or group; returns the signal that ended the session, if any.
fn write_batches(
    session: &mut TopSession,
    context: &Context,
    batch: &mut BatchOutput,
    intervals: Option<u64>,
) -> Result<Option<i32>, CliError> {
    let (no_input, no_timeout) = (None, None);
    let mut left = intervals;
    while left != Some(0) {
        match session.step(no_input, no_timeout)? {
            StepEnd::Signal(signal) => return Ok(Some(signal)),
            StepEnd::Input | StepEnd::Idle => continue,
            StepEnd::Refreshed => {}
        }
        batch.write(&mut context.stdout(), session)?;
        left = left.map(|left| left - 1);
        if session.has_ended() {
            // After the end, `why_empty` says that all observed tasks have ended, whether the tables are empty or not.
            context.note(session.why_empty());
            break;
        }
    }
    Ok(None)
}

/// Warns of stacks that are incomplete because their copies were truncated.
fn warn_of_truncated_stacks(
    context: &Context,
    session: &TopSession,
    request: &rperf_session::RecordRequest,
) {
    if let rperf_events::CallGraph::Dwarf { stack_size, .. } = request.observe.call_graph {
        warn_of_truncated(
            context,
            session.live.stack_summary(),
            Some(stack_size.bytes()),
        );
    }
}

/// The refresh interval, `-d`; [`DELAY`] by default, 1 second if 0 is given, and at least 10 ms.
fn delay(matches: &ArgMatches) -> Result<Duration, CliError> {
    let Some(text) = matches.get_one::<String>("delay") else {
        return Ok(Duration::from_secs_f64(DELAY));
    };
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.filter(|seconds| (0.0..1e6).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        CliError::usage(format!("-d: '{text}' is not a number of seconds"))
            .hint("in top, -d is the refresh interval (in record: data addresses)")
    })?;
    // As in perf, 0 is 1 second.
    Ok(Duration::from_secs_f64(match seconds {
        0.0 => 1.0,
        seconds => seconds.max(0.01),
    }))
}
