//! `rperf annotate`: samples by instruction.

mod args;
mod browse;
mod skid;

use std::ffi::{OsStr, OsString};

use clap::ArgMatches;
use rperf_hist::SelectSamples;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::RequestedFilters;
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::annotation::{AnnotationRequest, Annotator, FunctionCounts};
use crate::cli::shared::browser::CommandRunner;
use crate::cli::symbol_options::SymbolSources;

pub(super) use self::args::command;

/// Dumps the records, as `report` does.
fn dump(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let mut arguments: Vec<OsString> = vec!["-D".into()];
    if let Some(input) = matches.get_one::<String>("input") {
        arguments.extend(["-i".into(), input.into()]);
    }
    arguments.extend((flag(matches, "force") == Some(true)).then(|| OsString::from("-f")));
    dispatch(context, OsStr::new("report"), &arguments)
}

/// Prints or browses the annotated functions.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    if record_dump::is_wanted(matches) {
        return dump(matches, context);
    }
    let request = AnnotationRequest::new(matches, context)?;
    let filters = RequestedFilters::new(matches)?;
    let verbose = context.verbosity(matches) > 0;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let browses = browse::is_wanted(matches, context)?;
    let analysis = Analysis::open(&input, &data, jobs, context)?;
    let resolver = analysis.resolver(&symbols);
    // Only `script` has `--reltime`.
    let are_times_relative = false;
    let criteria = filters.filter(data.metadata(), are_times_relative)?;
    let criteria = criteria.non_empty();
    let counting = FunctionCounts {
        analysis: &analysis,
        resolver: &resolver,
        select: criteria
            .as_ref()
            .map(|criteria| criteria as &dyn SelectSamples),
        request: &request,
    };
    let functions = counting.functions()?;
    analysis.end_progress();
    let tables = counting.tables(&functions);
    let tables = tables.inspect_err(|_| report_symbol_problems(context, &resolver, verbose))?;
    let printer = counting.printer(&functions);
    if browses {
        let runner = CommandRunner {
            matches,
            context,
            path: &input.path,
        };
        browse::run(&Annotator::new(printer, &tables), &runner, context)?;
    } else {
        context.paginate("annotate")?;
        printer.print(&tables, context)?;
        // A note on the first event whose hits may belong to an earlier instruction than the one shown.
        let events = tables.iter().filter(|table| !table.functions.is_empty());
        let events = events.flat_map(|table| &table.events);
        let events = events.filter_map(|event| data.events().get(event.0 as usize));
        skid::note(events, context);
    }
    report_symbol_problems(context, &resolver, verbose);
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}
