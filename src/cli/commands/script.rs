//! `rperf script`: every sample of a recording as text.

mod apart;
mod args;
mod built_in;
mod check;
mod dump;
mod object;
mod plan;
mod records;
mod settings;
mod stream;
mod text;

use std::io::Write as _;
use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_lines::{Error, Selection, SourceFiles};
use rperf_replay::{Flow, Replay};
use rperf_view::header::write_header;
use rperf_view::script::{Block, Join};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::filter::CPU_HINT;
use crate::cli::findings::conclude;
use crate::cli::input::{Input, Opened};
use crate::cli::itrace;
use crate::cli::options::flag;
use crate::cli::progress::Progress;
use crate::cli::stacks::{copied, warn_of_cut};
use crate::cli::symbols::replay;

use self::apart::Apart;
pub(super) use self::args::command;
pub(super) use self::built_in::names as built_in_names;
use self::plan::Plan;
use self::settings::Settings;
use self::text::SampleText;

/// Prints the samples.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    if flag(matches, "list") == Some(true) {
        return built_in::list(context);
    }
    if let Some(exit) = built_in::run(matches, context)? {
        return Ok(exit);
    }
    let settings = Settings::new(selection(matches, context)?, matches, context)?;
    args::refuse_mixtures(matches, &settings)?;
    match Opened::open(matches, context)? {
        Opened::Whole(input) => whole(matches, context, &input, &settings)?,
        Opened::Stream(stream) if dump::is_wanted(matches) || settings.checks => {
            whole(matches, context, &stream.spool(context)?, &settings)?;
        }
        // A trace comes behind what tells of it, as one piece.
        Opened::Stream(stream) if matches.contains_id("itrace") => {
            whole(matches, context, &stream.spool(context)?, &settings)?;
        }
        Opened::Stream(stream) => {
            context.paginate("script")?;
            stream::print(context, stream, &settings)?;
        }
    }
    Ok(Exit::Ok)
}

/// Prints the samples of a recording that has an end.
fn whole(
    matches: &ArgMatches,
    context: &Context,
    stored: &Input,
    settings: &Settings,
) -> Result<(), CliError> {
    let decoded = match settings.header_only || dump::is_wanted(matches) {
        true => None,
        false => itrace::decoded(stored, (matches, false), context)?,
    };
    let input = decoded.as_ref().unwrap_or(stored);
    let data = input.parse(context)?;
    context.paginate("script")?;
    if settings.header || settings.header_only {
        let options = settings.header_options(stored.changed);
        write_header(&mut context.stdout(), &stored.read(context)?, &options)?;
    }
    if settings.header_only {
        return Ok(());
    }
    let plan = Plan::new(context, &input.path, data.described(), settings)?;
    let progress = Progress::beside_text(context, data.data().len());
    let replay = replay(&data, settings.jobs, &progress)?;
    let mut join = Join::new(settings.clock, settings.nanoseconds);
    join.follow(plan.switch.clone());
    join.set_metrics(plan.metrics.clone());
    let resolver = settings
        .symbols
        .resolver(context, replay.world(), data.features());
    let sources = SourceFiles::new(&DiskFiles);
    let text = SampleText::new(&resolver, &plan, &sources);
    match dump::is_wanted(matches) {
        _ if settings.checks => check::order(context, &replay),
        true => {
            let unsorted = dump::is_unsorted(matches);
            dump::print(context, input, &replay, &text, (join, unsorted))?;
        }
        false if settings.per_event => {
            let mut apart = Apart::create(&input.path, data.events())?;
            join.keep_apart();
            let take = |block: &mut Block| apart.write(context, &mut join, block);
            deliver(context, &replay, (&text, settings.jobs), take)?;
            apart.finish(context)?;
        }
        false => print(context, &replay, (&text, settings.jobs), join)?,
    }
    settings.tell(context, &resolver);
    conclude(&input.path, &replay.diagnostics(), context)
}

/// The fields that `-F` asks for.
fn selection(matches: &ArgMatches, context: &Context) -> Result<Selection, CliError> {
    let mut selection = Selection::default();
    for list in matches.get_many::<String>("fields").into_iter().flatten() {
        selection.apply(list).map_err(refused)?;
    }
    for warning in selection.warnings() {
        context.note(warning);
    }
    Ok(selection)
}

fn refused(error: Error) -> CliError {
    let text = error.to_string();
    let first = match &error {
        // perf breaks these, which name nothing, into two lines.
        Error::NoAddressForSymbols | Error::NoAddressForLines => text.lines().next(),
        _ => None,
    };
    let message = first.unwrap_or(&text);
    let cli = match error.is_usage() {
        true => CliError::usage(message),
        false => CliError::message(255, message),
    };
    let rest = text.strip_prefix(message).unwrap_or_default();
    let cli = rest.lines().skip(1).fold(cli, CliError::detail);
    match &error {
        Error::UnknownField { field } => {
            let valid = Selection::valid_fields();
            cli.detail(format!("'{field}' is none of {valid}"))
        }
        Error::NotAllBranches => cli.hint("run 'record -b ...'"),
        Error::NotRecorded {
            attribute: "CPU", ..
        } => cli.hint(CPU_HINT),
        Error::NotRecorded {
            attribute: "ADDR", ..
        } => cli.hint("record with 'record -d'"),
        _ => cli,
    }
}

/// Writes the samples in order of time.
fn print(
    context: &Context,
    replay: &Replay<'_>,
    text: (&SampleText<'_, '_>, NonZeroUsize),
    mut join: Join,
) -> Result<(), CliError> {
    let mut stdout = context.stdout();
    let take = |block: &mut Block| Ok(stdout.write_all(join.join(block))?);
    deliver(context, replay, text, take)?;
    stdout.flush()?;
    Ok(())
}

/// Has the samples rendered and taken in order of time, and tells what was left out of them.
fn deliver(
    context: &Context,
    replay: &Replay<'_>,
    (text, threads): (&SampleText<'_, '_>, NonZeroUsize),
    mut take: impl FnMut(&mut Block) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut taken = Ok(());
    replay.ordered(threads, text, &mut |block: &mut Block| {
        taken = take(block);
        match taken {
            Ok(()) => Flow::Continue,
            Err(_) => Flow::Stop,
        }
    })?;
    taken?;
    warn_of_cut(context, &text.stacks(), copied(replay.data().events()));
    if text.guests() > 0 {
        context.warn(format_args!(
            "{} samples of guests were left out",
            text.guests()
        ));
    }
    Ok(())
}
