//! `rperf script`: prints the samples of a recording, or passes them to a script.

mod args;
mod built_in;
mod check;
mod counts;
mod counts_script;
mod dump;
mod firefox;
mod generated;
mod installed;
mod interpreter;
mod language;
mod native;
mod native_compaction;
mod native_memory;
mod native_packets;
mod native_run;
mod native_tasks;
mod object;
mod per_event_dump;
mod plan;
mod records;
mod rows;
mod run_script;
mod script_stream;
mod settings;
mod sqlite_export;
mod stream;
mod text;

use std::io::Write as _;

use clap::ArgMatches;
use rperf_lines::{Error, FieldSelection, SourceFiles};
use rperf_names::{counted, nearest, was_or_were};
use rperf_replay::{Diagnostics, FoldControl};
use rperf_view::header::write_header;
use rperf_view::script::{BlockJoiner, ScriptBlock};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::CPU_HINT;
use crate::cli::findings::conclude;
use crate::cli::input::{Input, OpenedInput};
use crate::cli::itrace;
use crate::cli::options::flag;
use crate::cli::shared::analysis::Analysis;
use crate::cli::stack_folding::{stack_copy_size, warn_of_truncated};
use rperf_input::DiskFiles;

pub(super) use self::args::command;
use self::counts::CountTable;
use self::per_event_dump::PerEventDump;
use self::plan::ScriptPlan;
use self::rows::RowLayout;
use self::settings::ScriptSettings;
use self::text::SampleText;

/// Runs the command.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    if flag(matches, "list") == Some(true) {
        return built_in::list(context);
    }
    // Each of these three returns `None` without its arguments: `-g`; `-s`; the name of a built-in script.
    if let Some(exit) = generated::run(matches, context)? {
        return Ok(exit);
    }
    if let Some(exit) = run_script::run(matches, context)? {
        return Ok(exit);
    }
    if let Some(exit) = built_in::run(matches, context)? {
        return Ok(exit);
    }
    // With `--csv` or `--template`, the layout of the row that is printed for each sample.
    let rows = RowLayout::new(matches)?;
    let selection = selection(matches, rows.as_ref(), context)?;
    let mut settings = ScriptSettings::new(selection, matches, context)?;
    settings.rows = rows;
    args::refuse_mixtures(matches, &settings)?;
    match OpenedInput::open(matches, context)? {
        OpenedInput::Stream(stream) if !needs_complete(matches, &settings) => {
            context.paginate("script")?;
            stream::print(context, stream, &settings)?;
        }
        opened => print_recording(matches, context, &opened.complete(context)?, &settings)?,
    }
    Ok(ExitStatus::Ok)
}

/// Whether a stream must be read to its end before anything is printed.
fn needs_complete(matches: &ArgMatches, settings: &ScriptSettings) -> bool {
    // The columns of CSV depend on all events. A hardware trace can only be decoded as a whole.
    let needs_all = settings.is_csv() || matches.contains_id("itrace");
    needs_all || dump::is_wanted(matches) || settings.checks_order
}

/// Prints the samples of a complete recording.
fn print_recording(
    matches: &ArgMatches,
    context: &Context,
    stored: &Input,
    settings: &ScriptSettings,
) -> Result<(), CliError> {
    let decoded = match settings.header_only || dump::is_wanted(matches) {
        true => None,
        false => {
            let by_default = false; // Without `--itrace`, a hardware trace is not decoded.
            itrace::decoded(stored, matches, by_default, context)?
        }
    };
    let input = decoded.as_ref().unwrap_or(stored);
    let data = input.parse(context)?;
    context.paginate("script")?;
    if settings.header || settings.header_only {
        let options = settings.header_options(stored.mtime);
        let original = stored.parse_quietly(context)?; // Not the copy with the decoded trace.
        write_header(&mut context.stdout(), &original, &options)?;
    }
    if settings.header_only {
        return Ok(());
    }
    let mut plan = ScriptPlan::new(context, &input.path, data.metadata(), settings)?;
    if decoded.is_some() {
        plan.show_branch_kinds(); // Those of the decoded branches.
    }
    let is_counted = counts::are_counted(data.events()); // Counts of intervals, no samples: from `stat record`.
    if is_counted {
        counts::check(settings, context)?;
    }
    let analysis = Analysis::open_for_rows(input, &data, settings.jobs, context)?;
    let replay = &analysis.replay;
    let mut join = BlockJoiner::new(settings.clock, settings.nanoseconds); // A block: the text of consecutive records.
    join.set_switch(plan.switch.clone());
    join.set_metrics(plan.metrics.clone());
    let resolver = analysis.resolver(&settings.symbols);
    let sources = SourceFiles::new(&DiskFiles);
    let text = SampleText::new(&resolver, &plan, &sources);
    if settings.checks_order {
        check::order(context, replay);
    } else if dump::is_wanted(matches) {
        dump::print(&analysis, &text, join, dump::is_unsorted(matches))?;
    } else if settings.per_event_dump {
        let mut dump = PerEventDump::create(&input.path, data.events())?;
        join.keep_parts(); // Each part of a block is written to the file of its event.
        let take = |block: &mut ScriptBlock| dump.write(context, &mut join, block);
        deliver(&analysis, &text, take)?;
        dump.finish(context)?;
    } else if is_counted {
        print_counts(&analysis, &plan)?;
    } else {
        print(&analysis, &text, join)?;
    }
    settings.report_symbol_problems(context, &resolver);
    analysis.conclude()
}

/// Returns the fields that the template of `rows` (`--template`) needs or `-F` lists; by default, those of perf. Prints warnings
/// about each `-F` that replaces an earlier one.
fn selection(
    matches: &ArgMatches,
    rows: Option<&RowLayout>,
    context: &Context,
) -> Result<FieldSelection, CliError> {
    let mut selection = FieldSelection::default();
    if let Some(fields) = rows.and_then(RowLayout::fields) {
        selection.apply(&fields).map_err(field_error)?;
    }
    for list in matches.get_many::<String>("fields").into_iter().flatten() {
        selection.apply(list).map_err(field_error)?;
    }
    for warning in selection.warnings() {
        context.note(warning);
    }
    Ok(selection)
}

fn field_error(error: Error) -> CliError {
    let text = error.to_string();
    let first_line = match &error {
        // perf splits these errors into two lines. In other errors, a line break belongs to an event's name.
        Error::NoAddressForSymbols | Error::NoAddressForLines => text.lines().next(),
        _ => None,
    };
    let message = first_line.unwrap_or(&text);
    let cli = match error.is_usage() {
        true => CliError::usage(message),
        false => CliError::message(255, message),
    };
    let rest = text.strip_prefix(message).unwrap_or_default();
    // `rest` is empty or begins with a line break: its first line is empty.
    let cli = rest.lines().skip(1).fold(cli, CliError::detail);
    match &error {
        Error::UnknownField { field } => {
            let valid = FieldSelection::valid_fields();
            let near = nearest(field, valid.split(','));
            let near = near.map_or_else(String::new, |name| format!(", did you mean '{name}'?"));
            cli.detail(format!("unknown field '{field}'{near}"))
                .hint(format!("the fields are {}", valid.replace(',', ", ")))
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

/// Writes the counts of each interval, and reports records of counts that cannot be decoded.
fn print_counts(analysis: &Analysis<'_>, plan: &ScriptPlan) -> Result<(), CliError> {
    let mut table = CountTable::default();
    let mut out = analysis.context.stdout();
    table.print(analysis.replay.data(), &plan.filter, &mut out)?;
    out.flush()?;
    let diagnostics = Diagnostics {
        bad_records: table.decode_errors,
        ..Diagnostics::default()
    };
    let is_truncated = analysis.data().is_truncated();
    conclude(
        &analysis.input.path,
        is_truncated,
        &diagnostics,
        analysis.context,
    )
}

/// Writes the samples ordered by time.
fn print(
    analysis: &Analysis<'_>,
    text: &SampleText<'_, '_>,
    mut join: BlockJoiner,
) -> Result<(), CliError> {
    let mut stdout = analysis.context.stdout();
    if let Some(titles) = text.plan.rows.as_ref().and_then(RowLayout::titles) {
        stdout.write_all(titles.as_bytes())?;
    }
    let take = |block: &mut ScriptBlock| Ok(stdout.write_all(join.join(block))?);
    deliver(analysis, text, take)?;
    stdout.flush()?;
    Ok(())
}

/// Renders the samples in parallel, and passes their text to `take` in time order. Warns of truncated stacks and
/// skipped samples.
fn deliver(
    analysis: &Analysis<'_>,
    text: &SampleText<'_, '_>,
    mut take: impl FnMut(&mut ScriptBlock) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Analysis {
        context, replay, ..
    } = analysis;
    let mut taken = Ok(());
    let mut render = || {
        replay.ordered(analysis.jobs, text, &mut |block: &mut ScriptBlock| {
            taken = take(block);
            match taken {
                Ok(()) => FoldControl::Continue,
                Err(_) => FoldControl::Stop,
            }
        })
    };
    // Loading the kernel's symbols in another thread while samples are rendered saves time if kernel addresses are resolved. With
    // a filter, or with events without addresses, perhaps none is, and the symbols would be loaded in vain.
    let needs_kernel = text.shows_all_addresses() && replay.has_kernel_samples();
    match analysis.jobs.get() > 1 && needs_kernel {
        true => text.resolver.while_loading_kernel_symbols(render),
        false => render(),
    }?;
    taken?;
    warn_of_truncated(
        context,
        &text.stack_summary(),
        stack_copy_size(replay.data().events()),
    );
    warn_of_guests(context, text.skipped_guest_samples());
    Ok(())
}

/// Warns if samples of guests were skipped.
fn warn_of_guests(context: &Context, skipped: u64) {
    if skipped > 0 {
        context.warn(format_args!(
            "{} of guests {} skipped",
            counted(skipped, "sample"),
            was_or_were(skipped)
        ));
    }
}
