//! The functions as text, on stdout or in files.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use rperf_disasm::{Code, Function, Functions, Hit, Listing, NoCode, Told};
use rperf_hist::parallel;
use rperf_perfdata::EventDesc;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;
use rperf_view::annotate::{Annotation, Counted, annotation};
use rperf_wire::AttrFlags;

use super::chosen::Chosen;
use super::files::Files;
use super::missing::Missing;
use super::objdump;
use super::request::Request;
use super::sources::Sources;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Functions that are listed side by side before they are printed.
const AT_ONCE: usize = 64;

/// Prints functions.
pub(super) struct Printer<'p, 'w> {
    pub(super) request: &'p Request,
    pub(super) functions: &'p Functions,
    pub(super) resolver: &'p Resolver<'w>,
    pub(super) events: &'p [EventDesc],
    pub(super) jobs: NonZeroUsize,
}

impl<'p> Printer<'p, '_> {
    /// Prints the functions of all tables.
    pub(super) fn print(&self, tables: &[Chosen], context: &Context) -> Result<(), CliError> {
        let mut missing = Missing::default();
        let mut sources = Sources::new(self.request.prefix.clone());
        let mut files = self.request.directory.as_deref().map(Files::new);
        for table in tables {
            let sheet = self.sheet(table);
            for functions in table.functions.chunks(AT_ONCE) {
                let wanted = functions.iter().collect();
                let listings = parallel::map(wanted, self.jobs, |function| self.list(function));
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
                        |out: &mut dyn Write| sheet.write(out, function, &listing, &sources);
                    match &mut files {
                        Some(files) => drop(files.write(name, write)?),
                        None => write(&mut context.stdout())?,
                    }
                }
            }
        }
        context.stdout().flush()?;
        let wanted = tables.iter().map(|table| table.functions.len()).sum();
        match self.request.skip_missing {
            true => Ok(()),
            false => missing.tell(self.resolver, wanted, context),
        }
    }

    fn list(&self, function: &Function) -> Result<Result<Listing<'p>, NoCode>, CliError> {
        let told = self.told(function)?;
        let options = self.request.listing(told.as_ref());
        Ok(Listing::new(self.resolver, function, options))
    }

    /// A function's code for a browser; why there is none.
    pub(super) fn code(&self, function: &Function) -> Result<Result<Code, NoCode>, CliError> {
        let told = self.told(function)?;
        let options = self.request.listing(told.as_ref());
        Ok(Code::new(self.resolver, function, options))
    }

    /// What an objdump prints of a function, if one is asked.
    fn told(&self, function: &Function) -> Result<Option<Told>, CliError> {
        let asked = |program| {
            let place = Listing::place(self.resolver, function).ok()?;
            let syntax = self.request.syntax;
            Some(objdump::ask(
                program,
                self.resolver,
                function,
                &place,
                syntax,
            ))
        };
        let objdump = self.request.objdump.as_deref();
        objdump.and_then(asked).transpose()
    }

    /// What was counted of a table's events, on each of them.
    pub(super) fn totals(
        &self,
        table: &Chosen,
        count: fn(&Functions, EventIndex) -> Hit,
    ) -> Vec<Hit> {
        let events = table.events.iter();
        events.map(|event| count(self.functions, *event)).collect()
    }

    /// What a table's title tells.
    pub(super) fn counted<'t>(&self, table: &'t Chosen) -> Counted<'t> {
        let mut total = Hit::default();
        match self.request.symbol {
            // As in perf, nothing else is counted where one function is asked for.
            Some(_) => {
                let functions = table.functions.iter();
                functions.for_each(|function| total.add(sum(&function.sums)));
            }
            None => total = sum(&self.totals(table, Functions::chosen)),
        }
        let leader = table.events.first();
        let attr = leader.and_then(|event| Some(&self.events.get(event.0 as usize)?.attr));
        let attr = attr.filter(|attr| attr.flags.contains(AttrFlags::FREQ));
        Counted {
            name: &table.name,
            plural: table.plural,
            frequency: attr.map(|attr| attr.sample_period),
            total,
        }
    }

    fn sheet<'t>(&self, table: &'t Chosen) -> Sheet<'t, 'p> {
        Sheet {
            request: self.request,
            resolver: self.resolver,
            counted: self.counted(table),
            share: self.request.share.text(),
            totals: self.totals(table, Functions::total),
        }
    }
}

/// The samples of all events, and what those of the first stand for.
fn sum(hits: &[Hit]) -> Hit {
    Hit {
        samples: hits.iter().map(|hit| hit.samples).sum(),
        period: hits.first().map_or(0, |hit| hit.period),
    }
}

/// What the functions of a table have in common.
struct Sheet<'t, 'p> {
    request: &'p Request,
    resolver: &'p Resolver<'p>,
    counted: Counted<'t>,
    share: String,
    totals: Vec<Hit>,
}

impl Sheet<'_, '_> {
    fn write(
        &self,
        out: &mut dyn Write,
        function: &Function,
        listing: &Listing<'_>,
        source: &Sources,
    ) -> io::Result<()> {
        let shown = Annotation {
            object: &self.resolver.world().dso(function.symbol.dso).long_name,
            name: self.resolver.symbol_name(function.symbol),
            counted: self.counted,
            function,
            listing,
            wholes: match self.request.share.global {
                true => &self.totals,
                false => &function.sums,
            },
            share: &self.share,
            source,
        };
        annotation(out, &shown, &self.request.looks)
    }
}
