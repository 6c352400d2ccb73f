//! Functions while they run: their instructions with what fell on them by now.

use std::io::{self, Write};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_disasm::{Code, Function, Hit, Listing};
use rperf_hist::Watched;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;
use rperf_tui::{Annotated, Seen};
use rperf_view::annotate::{AnnotateOptions, Annotation, Counted, annotation};
use rperf_view::top::Rate;

use super::session::Session;
use crate::cli::commands::annotate::{Request, Sources, why_no_code};
use crate::cli::error::CliError;

/// The functions whose code is shown.
pub(super) struct LiveCode {
    request: Request,
    sources: Sources,
}

/// A function that is shown, or why it isn't.
pub(super) enum Shown {
    Code(Arc<Annotated>),
    Nothing(String),
}

/// What fell on all functions, of the events of one table.
struct Table {
    events: Vec<EventIndex>,
    name: String,
    frequency: Option<u64>,
    totals: Vec<Hit>,
}

impl LiveCode {
    /// None yet; the options say how they look.
    ///
    /// # Errors
    ///
    /// Status 129: words that are not known.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let request = Request::of_browser(matches)?;
        let sources = Sources::new(request.prefix.clone());
        Ok(Self { request, sources })
    }

    /// How code looks first, and whether shares of it are of all functions.
    pub(super) fn looks(&self) -> (AnnotateOptions, bool) {
        self.request.looks()
    }

    /// The functions that are watched, those that were asked for first in front; once for each table.
    pub(super) fn functions(&mut self, session: &mut Session) -> Vec<Shown> {
        let tables: Vec<Table> = (0..session.tables())
            .map(|number| Table::of(session, number))
            .collect();
        let mut shown = Vec::new();
        session.live.with_watched(|watched, resolver| {
            for watched in watched {
                let all = tables
                    .iter()
                    .filter_map(|table| self.shown(watched, table, resolver));
                shown.extend(all);
            }
        });
        shown
    }

    fn shown(
        &mut self,
        watched: &Watched,
        table: &Table,
        resolver: &Resolver<'_>,
    ) -> Option<Shown> {
        let function = Function::watched(watched, &table.events)?;
        Some(
            match Code::new(resolver, &function, self.request.listing(None)) {
                Ok(code) => Shown::Code(Arc::new(Annotated {
                    counted: table.counted().to_string(),
                    event: table.events.first().map_or(0, |event| event.0 as usize),
                    totals: table.totals.clone(),
                    sources: self.sources.of(&code),
                    bottom: String::new(),
                    code,
                })),
                Err(why) => Shown::Nothing(why_no_code(resolver, &function, why)),
            },
        )
    }

    /// Prints the function that is watched, as the events of a table saw it: instructions with at least this share, in percent,
    /// and what is around them.
    pub(super) fn write(
        &mut self,
        out: &mut dyn Write,
        session: &mut Session,
        (number, least): (usize, u8),
    ) -> io::Result<()> {
        let table = Table::of(session, number);
        let written = session.live.with_watched(|watched, resolver| {
            let Some(watched) = watched.first() else {
                return Ok(());
            };
            let (event, symbol) = (&table.name, watched.symbol());
            writeln!(
                out,
                "Showing {event} for {symbol}\n  Events  Pcnt (>={least}%)"
            )?;
            match Function::watched(watched, &table.events) {
                Some(function) => self.write_code(out, (&function, least), &table, resolver),
                None => writeln!(out, "   no sample fell on {symbol} yet"),
            }
        });
        written.unwrap_or(Ok(()))
    }

    fn write_code(
        &mut self,
        out: &mut dyn Write,
        (function, least): (&Function, u8),
        table: &Table,
        resolver: &Resolver<'_>,
    ) -> io::Result<()> {
        let listing = match Listing::new(resolver, function, self.request.listing(None)) {
            Ok(listing) => listing,
            Err(why) => return writeln!(out, "{}", why_no_code(resolver, function, why)),
        };
        self.sources.add(&listing);
        let shown = Annotation {
            object: &resolver.world().dso(function.symbol.dso).long_name,
            name: resolver.symbol_name(function.symbol),
            counted: table.counted(),
            function,
            listing: &listing,
            wholes: &function.sums,
            share: "local period",
            source: &self.sources,
        };
        let options = AnnotateOptions {
            least: Some(least).filter(|least| *least > 0),
            ..self.request.looks
        };
        annotation(out, &shown, &options)
    }
}

impl Table {
    fn of(session: &Session, number: usize) -> Self {
        let (name, table) = session.table(number).unzip();
        let wholes = table.map_or(&[][..], |table| &table.histogram().wholes);
        let hit = |sum: &rperf_hist::Sum| Hit {
            samples: sum.samples,
            period: sum.period,
        };
        Self {
            events: session.events_of(number),
            name: name.unwrap_or_default(),
            frequency: match session.rate(number) {
                Some(Rate::Hertz(rate)) => Some(rate),
                _ => None,
            },
            totals: wholes.iter().map(hit).collect(),
        }
    }

    fn counted(&self) -> Counted<'_> {
        let hits = self.totals.iter();
        Counted {
            name: &self.name,
            plural: false,
            frequency: self.frequency,
            total: Hit {
                samples: hits.clone().map(|hit| hit.samples).sum(),
                period: hits.map(|hit| hit.period).sum(),
            },
        }
    }
}

impl Session {
    /// Begins to count the samples of a function by instruction.
    pub(super) fn watch(&mut self, function: Watched) {
        self.live.watched_mut().push(function);
        self.hurry();
    }

    /// Watches the function at an address of the object that another is in; whether there is one.
    pub(super) fn follow(&mut self, seen: Seen, address: u64) -> bool {
        let symbol = seen.begin.symbol();
        let found = self.live.with_watched(|watched, resolver| {
            // The screen's own place may be one that the World has forgotten.
            let frames = watched.iter().filter_map(Watched::frame);
            let frame = frames.into_iter().find(|frame| frame.symbol == symbol)?;
            Watched::at(resolver, resolver.beside(frame, address)?)
        });
        let found = found.flatten();
        let is_there = found.is_some();
        self.live.watched_mut().extend(found);
        is_there
    }

    /// Ends what [`Session::watch`] began.
    pub(super) fn leave(&mut self, seen: Seen) {
        let symbol = seen.begin.symbol();
        let watched = self.live.watched_mut();
        let is_it = |watched: &Watched| watched.frame().is_some_and(|frame| frame.symbol == symbol);
        if let Some(place) = watched.iter().rposition(is_it) {
            watched.remove(place);
        }
    }
}
