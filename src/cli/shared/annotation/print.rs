//! Prints annotated functions as text, to stdout or to files.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use rperf_disasm::{FunctionCode, HitCount, Listing, NoCode, SampledFunction, SampledFunctions};
use rperf_hist::parallel;
use rperf_perfdata::EventDesc;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;
use rperf_view::annotate::{AnnotatedEvents, Annotation, write_annotation};
use rperf_wire::AttrFlags;

use super::chosen_functions::ChosenFunctions;
use super::function_files::AnnotationFiles;
use super::missing_code::MissingCode;
use super::request::AnnotationRequest;
use super::sources::SourceTexts;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Maximum number of functions that are disassembled together before they are printed.
const BATCH_SIZE: usize = 64;

/// Prints annotated functions; also returns their code and counts for a browser.
pub(crate) struct AnnotationPrinter<'p, 'w> {
    pub(crate) request: &'p AnnotationRequest,
    pub(crate) functions: &'p SampledFunctions,
    pub(crate) resolver: &'p Resolver<'w>,
    pub(crate) events: &'p [EventDesc],
    pub(crate) jobs: NonZeroUsize,
}

impl<'p> AnnotationPrinter<'p, '_> {
    /// Prints the functions of all tables (there is one per event or group) to stdout, or each function to a file if a directory
    /// was requested. Functions without code are skipped; they are reported unless `skip_missing`.
    ///
    /// # Errors
    ///
    /// Those of [`MissingCode::report`], of objdump and of writing.
    pub(crate) fn print(
        &self,
        tables: &[ChosenFunctions],
        context: &Context,
    ) -> Result<(), CliError> {
        let mut missing = MissingCode::default();
        let mut sources = SourceTexts::new(self.request.prefix.clone());
        let mut files = self.request.directory.as_deref().map(AnnotationFiles::new);
        for table in tables {
            let common = self.table_context(table);
            for functions in table.functions.chunks(BATCH_SIZE) {
                let batch = functions.iter().collect();
                let listings = parallel::map(batch, self.jobs, |function| self.list(function));
                for (function, listing) in functions.iter().zip(listings) {
                    let listing = match listing? {
                        Ok(listing) => listing,
                        Err(why) => {
                            missing.add(function, why);
                            continue;
                        }
                    };
                    sources.add(&listing);
                    let name = self.resolver.symbol_name(function.symbol);
                    let write =
                        |out: &mut dyn Write| common.write(out, function, &listing, &sources);
                    match &mut files {
                        // The path of the file is not needed.
                        Some(files) => drop(files.write(name, write)?),
                        None => write(&mut context.stdout())?,
                    }
                }
            }
        }
        context.stdout().flush()?;
        let count = tables.iter().map(|table| table.functions.len()).sum();
        match self.request.skip_missing {
            true => Ok(()),
            false => missing.report(self.resolver, count, context),
        }
    }

    /// Returns a function's listing for text output, or why there is none.
    fn list(&self, function: &SampledFunction) -> Result<Result<Listing<'p>, NoCode>, CliError> {
        let objdump_listing = self.request.objdump_listing(self.resolver, function)?;
        let options = self.request.list_options(objdump_listing.as_ref());
        Ok(Listing::new(self.resolver, function, options))
    }

    /// Returns a function's code for a browser, or why there is none.
    pub(crate) fn code(
        &self,
        function: &SampledFunction,
    ) -> Result<Result<FunctionCode, NoCode>, CliError> {
        let objdump_listing = self.request.objdump_listing(self.resolver, function)?;
        let options = self.request.list_options(objdump_listing.as_ref());
        Ok(FunctionCode::new(self.resolver, function, options))
    }

    /// Returns the result of `count` for each event of a table.
    pub(crate) fn totals(
        &self,
        table: &ChosenFunctions,
        count: fn(&SampledFunctions, EventIndex) -> HitCount,
    ) -> Vec<HitCount> {
        let events = table.events.iter();
        events.map(|event| count(self.functions, *event)).collect()
    }

    /// Returns the events and their count, as shown in a table's title.
    pub(crate) fn annotated_events<'t>(&self, table: &'t ChosenFunctions) -> AnnotatedEvents<'t> {
        let mut total = HitCount::default();
        match self.request.symbol {
            // As in perf, only the samples of the requested function are counted. The table has no other functions.
            Some(_) => {
                let functions = table.functions.iter();
                functions.for_each(|function| total.add(sum(&function.sums)));
            }
            None => total = sum(&self.totals(table, SampledFunctions::accepted)),
        }
        let leader = table.events.first();
        let attr = leader.and_then(|event| Some(&self.events.get(event.0 as usize)?.attr));
        // With this flag, `sample_period` is the frequency.
        let attr = attr.filter(|attr| attr.flags.contains(AttrFlags::FREQ));
        AnnotatedEvents {
            name: &table.name,
            plural: table.plural,
            frequency: attr.map(|attr| attr.sample_period),
            total,
        }
    }

    fn table_context<'t>(&self, table: &'t ChosenFunctions) -> TableContext<'t, 'p> {
        TableContext {
            request: self.request,
            resolver: self.resolver,
            events: self.annotated_events(table),
            percent_type: self.request.percent_type.text(),
            totals: self.totals(table, SampledFunctions::total),
        }
    }
}

/// Returns the totals for a heading: as in perf, the samples of all events, but the period of the first. `hits` has one element
/// per event.
fn sum(hits: &[HitCount]) -> HitCount {
    HitCount {
        samples: hits.iter().map(|hit| hit.samples).sum(),
        period: hits.first().map_or(0, |hit| hit.period),
    }
}

/// The common data of a table's functions.
struct TableContext<'t, 'p> {
    request: &'p AnnotationRequest,
    resolver: &'p Resolver<'p>,
    events: AnnotatedEvents<'t>,
    percent_type: String,
    totals: Vec<HitCount>,
}

impl TableContext<'_, '_> {
    fn write(
        &self,
        out: &mut dyn Write,
        function: &SampledFunction,
        listing: &Listing<'_>,
        source: &SourceTexts,
    ) -> io::Result<()> {
        let annotated = Annotation {
            object: &self.resolver.world().dso(function.symbol.dso).long_name,
            name: self.resolver.symbol_name(function.symbol),
            events: self.events,
            function,
            listing,
            totals: match self.request.percent_type.global {
                true => &self.totals,
                false => &function.sums,
            },
            percent_type: &self.percent_type,
            source,
        };
        write_annotation(out, &annotated, &self.request.looks)
    }
}
