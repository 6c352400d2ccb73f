//! `rperf annotate`: the instructions that samples fell on.

mod annotator;
mod args;
mod browse;
mod chosen;
pub(super) mod code;
mod files;
mod missing;
mod objdump;
mod print;
mod request;
mod skid;
mod sources;

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_disasm::Hits;
use rperf_hist::Select;
use rperf_replay::Replay;
use rperf_resolve::Resolver;

use super::report::Others;
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

pub(super) use self::annotator::{Annotator, save_function};
pub(super) use self::args::command;
pub(super) use self::missing::why_no_code;
use self::print::Printer;
pub(super) use self::request::Request;
pub(super) use self::sources::Sources;

/// Prints the functions.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let request = Request::new(matches, context)?;
    let wanted = Wanted::new(matches)?;
    let verbose = context.verbosity(matches) > 0;
    let symbols = Symbols::new(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let browses = browse::is_wanted(matches, context)?;
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, jobs, &progress)?;
    let resolver = symbols.resolver(context, replay.world(), data.features());
    let chosen = choice::Chosen::new(wanted.filter(data.described(), false)?);
    let select = chosen.as_ref().map(|chosen| chosen as &dyn Select);
    // One that is named may be anywhere.
    let least = request.symbol.as_ref().map_or(request.limit, |_| 0.0);
    let hits = replay.fold(jobs, || Hits::new(&resolver, select).from_share(least))?;
    let functions = hits.functions(jobs);
    drop(progress);
    let tables = chosen::choose(&request, &functions, &resolver, data.described(), &input);
    let tables = tables.inspect_err(|_| tell_of_symbols(context, &resolver, verbose))?;
    let printer = Printer {
        request: &request,
        functions: &functions,
        resolver: &resolver,
        events: data.events(),
        jobs,
    };
    if browses {
        let others = Others {
            matches,
            context,
            path: &input.path,
        };
        browse::run(&Annotator::new(printer, &tables), &others, context)?;
        tell_of_symbols(context, &resolver, verbose);
        conclude(&input.path, &replay.diagnostics(), context)?;
        return Ok(Exit::Ok);
    }
    context.paginate("annotate")?;
    printer.print(&tables, context)?;
    let shown = tables.iter().filter(|table| !table.functions.is_empty());
    let shown = shown.flat_map(|table| &table.events);
    let shown = shown.filter_map(|event| data.events().get(event.0 as usize));
    skid::tell(shown, context);
    tell_of_symbols(context, &resolver, verbose);
    conclude(&input.path, &replay.diagnostics(), context)?;
    Ok(Exit::Ok)
}

/// A recording whose samples are to be counted by function.
pub(super) struct Counting<'c, 'w> {
    /// The recording.
    pub(super) replay: &'c Replay<'c>,
    /// Its file.
    pub(super) input: &'c Input,
    /// Names.
    pub(super) resolver: &'c Resolver<'w>,
    /// The samples that count; all, if nothing is said.
    pub(super) select: Option<&'c dyn Select>,
    /// How code is to look.
    pub(super) request: &'c Request,
    /// Threads to work with.
    pub(super) jobs: NonZeroUsize,
}

impl Counting<'_, '_> {
    /// Counts as `annotate` does without options, and gives `with` what answers for the functions.
    ///
    /// # Errors
    ///
    /// No sample fell on a function.
    pub(super) fn with<R>(
        &self,
        with: impl FnOnce(&Annotator<'_, '_>) -> R,
    ) -> Result<R, CliError> {
        let (resolver, select, jobs) = (self.resolver, self.select, self.jobs);
        let data = self.replay.data();
        let hits = self.replay.fold(jobs, || Hits::new(resolver, select))?;
        let functions = hits.functions(jobs);
        let request = self.request;
        let recording = data.described();
        let tables = chosen::choose(request, &functions, resolver, recording, self.input)?;
        let printer = Printer {
            request,
            functions: &functions,
            resolver,
            events: data.events(),
            jobs,
        };
        Ok(with(&Annotator::new(printer, &tables)))
    }
}
