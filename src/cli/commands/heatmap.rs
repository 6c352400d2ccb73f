//! `rperf heatmap`: when samples were taken, or how long things took, as a picture.

mod latency;
mod moments;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use rperf_replay::Replay;
use rperf_resolve::Filter;
use rperf_resolve::Resolver;

use self::latency::Pair;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::filter::{Wanted, args as choose};
use crate::cli::findings::conclude;
use crate::cli::input::{self, Input};
use crate::cli::jobs::jobs;
use crate::cli::options::{number, switch, value};
use crate::cli::product::write_to;
use crate::cli::progress::Progress;
use crate::cli::symbol_options::{Symbols, args as names};
use crate::cli::symbols::replay;

/// Where the picture goes where nothing else is said.
const PICTURE: &str = "heatmap.svg";
/// Parts of a second, where nothing else is said: 20 milliseconds each.
const ROWS: u64 = 50;
/// Rows and columns that a picture may have.
const MOST: u64 = 1000;
/// Columns of a picture of durations.
const COLUMNS: u64 = 100;

const ABOUT: &str = "\
'heatmap' draws when the samples of a recording were taken: a column is a second, read from the bottom up, and the darker a \
cell, the more samples fell into it. What happens now and then, in bursts or in step shows as a pattern. A click chooses where \
a stretch of time begins, another one where it ends; above the picture stands the --time START,END that report, script and \
flamegraph take. The address keeps it.

With --from and --to it draws how long things took, from a sample of the first event to the next one of the second with the \
same key: columns are time, rows are durations. The key is the thread, or what --key names: fields of both tracepoints, such \
as dev,sector of block:block_rq_issue and block:block_rq_complete.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("heatmap")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(
            value("output", "file")
                .short('o')
                .help("where to write; - is the standard output (default: heatmap.svg)"),
        )
        .arg(input::force())
        .arg(switch("quiet").short('q').help("no notes and no warnings"))
        .arg(
            value("event", "name")
                .short('e')
                .help("the event to draw (default: the first that has samples)"),
        )
        .arg(value("from", "event").help("the event that begins what is measured"))
        .arg(value("to", "event").help("the event that ends it"))
        .arg(
            value("key", "field[,field...]")
                .help("fields in which beginning and end agree (default: the thread)"),
        )
        .arg(
            value("max-latency", "us")
                .value_parser(number)
                .help("durations up to so many microseconds; what is longer is in the top row"),
        )
        .arg(
            value("rows", "n")
                .value_parser(number)
                .help("rows of the picture (default: 50)"),
        )
        .arg(
            value("columns", "n")
                .value_parser(number)
                .help("columns of a picture of durations (default: 100)"),
        )
        .arg(value("title", "text").help("the line above the picture"))
        .args(choose::all())
        .args(names::all())
}

/// Draws the picture.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let looks = Looks::new(matches)?;
    let pair = Pair::new(matches)?;
    let wanted = Wanted::new(matches)?;
    let symbols = Symbols::new(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, jobs, &progress)?;
    let resolver = symbols.resolver(context, replay.world(), data.features());
    let question = Question {
        replay: &replay,
        resolver: &resolver,
        input: &input,
        filter: wanted.filter(data.described(), false)?,
        jobs,
        looks: &looks,
    };
    let mut heat = match &pair {
        Some(pair) => question.durations(pair, context)?,
        None => question.moments(text(matches, "event"))?,
    };
    conclude(&input.path, &replay.diagnostics(), context)?;
    if let Some(title) = text(matches, "title") {
        title.clone_into(&mut heat.title);
    }
    let path = looks.output.as_deref().unwrap_or(Path::new(PICTURE));
    write_to(path, context, |out| heat.write(out))?;
    if path != Path::new("-") {
        context.note(format_args!(
            "[ {}: {} {}; a browser shows it ]",
            path.display(),
            heat.total(),
            heat.unit
        ));
    }
    Ok(Exit::Ok)
}

/// How the picture looks.
struct Looks {
    output: Option<PathBuf>,
    rows: u32,
    columns: u64,
    /// Nanoseconds that durations reach up to, if that is given.
    longest: Option<u64>,
}

impl Looks {
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let count = |id: &str, usual: u64| match matches.get_one::<u64>(id).copied() {
            None => Ok(usual),
            Some(count) if (1..=MOST).contains(&count) => Ok(count),
            Some(_) => Err(CliError::usage(format!("--{id} takes 1 to {MOST}"))),
        };
        let latency = matches.get_one::<u64>("max-latency");
        Ok(Self {
            output: text(matches, "output").map(PathBuf::from),
            rows: u32::try_from(count("rows", ROWS)?).unwrap_or(u32::MAX),
            columns: count("columns", COLUMNS)?,
            longest: latency.map(|microseconds| microseconds.saturating_mul(1000)),
        })
    }
}

/// What is asked of a recording.
struct Question<'q> {
    replay: &'q Replay<'q>,
    resolver: &'q Resolver<'q>,
    input: &'q Input,
    filter: Filter,
    jobs: NonZeroUsize,
    looks: &'q Looks,
}

impl Question<'_> {
    fn none_left(&self) -> CliError {
        let message = format!("{}: no sample is left to draw", self.input.path.display());
        CliError::message(255, message).hint("--time, --cpu, --comms and such leave none")
    }
}

fn text<'m>(matches: &'m ArgMatches, id: &str) -> Option<&'m str> {
    matches.get_one::<String>(id).map(String::as_str)
}
