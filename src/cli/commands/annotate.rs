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
use rperf_disasm::{Functions, Hits};
use rperf_hist::Select;
use rperf_replay::Replay;
use rperf_resolve::Resolver;

use super::report::Others;
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
use self::chosen::Chosen;
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
    let chosen = wanted.filter(data.described(), false)?.non_empty();
    let counting = Counting {
        replay: &replay,
        input: &input,
        resolver: &resolver,
        select: chosen.as_ref().map(|chosen| chosen as &dyn Select),
        request: &request,
        jobs,
    };
    let functions = counting.functions()?;
    drop(progress);
    let tables = counting.tables(&functions);
    let tables = tables.inspect_err(|_| tell_of_symbols(context, &resolver, verbose))?;
    let printer = counting.printer(&functions);
    if browses {
        let others = Others {
            matches,
            context,
            path: &input.path,
        };
        browse::run(&Annotator::new(printer, &tables), &others, context)?;
    } else {
        context.paginate("annotate")?;
        printer.print(&tables, context)?;
        let shown = tables.iter().filter(|table| !table.functions.is_empty());
        let shown = shown.flat_map(|table| &table.events);
        let shown = shown.filter_map(|event| data.events().get(event.0 as usize));
        skid::tell(shown, context);
    }
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

impl<'c, 'w> Counting<'c, 'w> {
    /// Counts, and gives `with` what answers for the functions.
    ///
    /// # Errors
    ///
    /// No sample fell on a function.
    pub(super) fn with<R>(
        &self,
        with: impl FnOnce(&Annotator<'_, '_>) -> R,
    ) -> Result<R, CliError> {
        let functions = self.functions()?;
        let tables = self.tables(&functions)?;
        let printer = self.printer(&functions);
        Ok(with(&Annotator::new(printer, &tables)))
    }

    /// What fell on functions; those that can't have the share that is asked for may be left out.
    fn functions(&self) -> Result<Functions, CliError> {
        let (resolver, select) = (self.resolver, self.select);
        // One that is named may be anywhere.
        let name = self.request.symbol.as_ref();
        let least = name.map_or(self.request.limit, |_| 0.0);
        let hits = || Hits::new(resolver, select).from_share(least);
        let hits = self.replay.fold(self.jobs, hits);
        Ok(hits.functions(self.jobs))
    }

    fn tables(&self, functions: &Functions) -> Result<Vec<Chosen>, CliError> {
        let recording = self.replay.data().described();
        chosen::choose(
            self.request,
            functions,
            self.resolver,
            recording,
            self.input,
        )
    }

    fn printer<'f>(&self, functions: &'f Functions) -> Printer<'f, 'w>
    where
        'c: 'f,
    {
        Printer {
            request: self.request,
            functions,
            resolver: self.resolver,
            events: self.replay.data().events(),
            jobs: self.jobs,
        }
    }
}
