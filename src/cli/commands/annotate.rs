//! `rperf annotate`: the instructions that samples fell on.

mod args;
mod chosen;
mod files;
mod missing;
mod objdump;
mod print;
mod request;
mod skid;
mod sources;

use clap::ArgMatches;
use rperf_disasm::Hits;
use rperf_hist::Select;

use crate::cli::choice;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::filter::Wanted;
use crate::cli::findings::{conclude, tell_of_symbols};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::progress::Progress;
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::replay;

pub(super) use self::args::command;
use self::print::Printer;
use self::request::Request;

/// Prints the functions.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let request = Request::new(matches, context)?;
    let wanted = Wanted::new(matches)?;
    let verbose = context.verbosity(matches) > 0;
    let symbols = Symbols::new(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, jobs, &progress)?;
    let resolver = symbols.resolver(context, replay.world(), data.features());
    let chosen = choice::Chosen::new(wanted.filter(data.described(), false)?);
    let select = chosen.as_ref().map(|chosen| chosen as &dyn Select);
    let hits = replay.fold(jobs, || Hits::new(&resolver, select))?;
    let functions = hits.functions(jobs);
    drop(progress);
    let tables = chosen::choose(&request, &functions, &resolver, data.described(), &input);
    let tables = tables.inspect_err(|_| tell_of_symbols(context, &resolver, verbose))?;
    context.paginate("annotate")?;
    let printer = Printer {
        request: &request,
        functions: &functions,
        resolver: &resolver,
        events: data.events(),
        jobs,
    };
    printer.print(&tables, context)?;
    let shown = tables.iter().filter(|table| !table.functions.is_empty());
    let shown = shown.flat_map(|table| &table.events);
    let shown = shown.filter_map(|event| data.events().get(event.0 as usize));
    skid::tell(shown, context);
    tell_of_symbols(context, &resolver, verbose);
    conclude(&input.path, &replay.diagnostics(), context)?;
    Ok(Exit::Ok)
}
