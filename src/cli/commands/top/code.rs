//! Live annotation: the instructions of watched functions, with their samples so far.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_disasm::{FunctionCode, HitCount, Listing, ObjdumpListing, SampledFunction};
use rperf_hist::WatchedFunction;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;
use rperf_tui::{Annotated, FunctionKey};
use rperf_view::annotate::{AnnotateOptions, AnnotatedEvents, Annotation, write_annotation};
use rperf_view::top::DisplayedRate;

use super::session::TopSession;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::annotation::{AnnotationRequest, SourceTexts, why_no_code};

/// The options and caches of live annotation.
pub(super) struct LiveCode {
    request: AnnotationRequest,
    sources: SourceTexts,
    listings: ListingCache,
}

/// objdump's output by function and object, which does not change between refreshes.
#[derive(Default)]
struct ListingCache(BTreeMap<String, ObjdumpListing>);

impl ListingCache {
    /// Returns the output for a function, if objdump is used.
    fn get(
        &mut self,
        request: &AnnotationRequest,
        resolver: &Resolver<'_>,
        function: &SampledFunction,
    ) -> Result<Option<&ObjdumpListing>, CliError> {
        let object = &resolver.world().dso(function.symbol.dso).long_name;
        let key = format!("{} {object}", resolver.symbol_name(function.symbol));
        if !self.0.contains_key(&key)
            && let Some(listing) = request.objdump_listing(resolver, function)?
        {
            self.0.insert(key.clone(), listing);
        }
        Ok(self.0.get(&key))
    }
}

/// The annotation of a function, or why the function can't be annotated.
pub(super) enum AnnotatedCode {
    Code(Arc<Annotated>),
    /// The reason.
    Unavailable(String),
}

/// The events of one of the tables of `top` (one for each event, or one for all), and their totals over all functions.
struct TableTotals {
    events: Vec<EventIndex>,
    /// The names of the events.
    name: String,
    /// The sampling frequency; `None` if `top` has several events (even in several tables), or its only event has a period.
    frequency: Option<u64>,
    /// The totals of each event.
    totals: Vec<HitCount>,
}

impl LiveCode {
    /// Reads the options of annotation.
    ///
    /// # Errors
    ///
    /// Status 129: invalid option values.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let request = AnnotationRequest::of_browser(matches, context)?;
        let sources = SourceTexts::new(request.prefix.clone());
        Ok(Self {
            request,
            sources,
            listings: ListingCache::default(),
        })
    }

    /// The initial format of annotations, and whether percentages are relative to all functions.
    pub(super) fn view_options(&self) -> (AnnotateOptions, bool) {
        self.request.view_options()
    }

    /// Returns the annotations of the watched functions of which a frame is known, in the order in which the functions were
    /// added; of each function, one for each table.
    pub(super) fn annotations(&mut self, session: &mut TopSession) -> Vec<AnnotatedCode> {
        let tables: Vec<TableTotals> = (0..session.table_count())
            .map(|number| TableTotals::of(session, number))
            .collect();
        let mut annotations = Vec::new();
        session.live.with_watched(|watched_functions, resolver| {
            for watched in watched_functions {
                let annotated = tables
                    .iter()
                    .filter_map(|table| self.annotated(watched, table, resolver));
                annotations.extend(annotated);
            }
        });
        annotations
    }

    fn annotated(
        &mut self,
        watched: &WatchedFunction,
        table: &TableTotals,
        resolver: &Resolver<'_>,
    ) -> Option<AnnotatedCode> {
        let function = SampledFunction::watched(watched, &table.events)?;
        let listing = match self.listings.get(&self.request, resolver, &function) {
            Ok(listing) => listing,
            Err(error) => return Some(AnnotatedCode::Unavailable(error.text())),
        };
        Some(
            match FunctionCode::new(resolver, &function, self.request.list_options(listing)) {
                Ok(code) => AnnotatedCode::Code(Arc::new(Annotated {
                    title: table.annotated_events().to_string(),
                    event: table.events.first().map_or(0, |event| event.0 as usize),
                    totals: table.totals.clone(),
                    sources: self.sources.of(&code),
                    // Empty: the last line shows a hint on the keys.
                    bottom: String::new(),
                    code,
                })),
                Err(why) => AnnotatedCode::Unavailable(why_no_code(resolver, &function, why)),
            },
        )
    }

    /// Prints the annotation of the first watched function, with the counts of table `number`: the instructions with at least
    /// `min_percent` percent (0: all), and their context.
    pub(super) fn write(
        &mut self,
        out: &mut dyn Write,
        session: &mut TopSession,
        number: usize,
        min_percent: u8,
    ) -> io::Result<()> {
        let table = TableTotals::of(session, number);
        let written = session.live.with_watched(|watched_functions, resolver| {
            let Some(watched) = watched_functions.first() else {
                return Ok(());
            };
            let (event, symbol) = (&table.name, watched.symbol());
            writeln!(
                out,
                "Showing {event} for {symbol}\n  Events  Pcnt (>={min_percent}%)"
            )?;
            match SampledFunction::watched(watched, &table.events) {
                Some(function) => self.write_code(out, &function, min_percent, &table, resolver),
                None => writeln!(out, "   no samples in {symbol} yet"),
            }
        });
        // `None`: an earlier use of the resolver panicked.
        written.unwrap_or(Ok(()))
    }

    fn write_code(
        &mut self,
        out: &mut dyn Write,
        function: &SampledFunction,
        min_percent: u8,
        table: &TableTotals,
        resolver: &Resolver<'_>,
    ) -> io::Result<()> {
        let objdump = match self.listings.get(&self.request, resolver, function) {
            Ok(objdump) => objdump,
            Err(error) => return writeln!(out, "{}", error.text()),
        };
        let listing = match Listing::new(resolver, function, self.request.list_options(objdump)) {
            Ok(listing) => listing,
            Err(why) => return writeln!(out, "{}", why_no_code(resolver, function, why)),
        };
        self.sources.add(&listing);
        let annotated = Annotation {
            object: &resolver.world().dso(function.symbol.dso).long_name,
            name: resolver.symbol_name(function.symbol),
            events: table.annotated_events(),
            function,
            listing: &listing,
            // Percentages refer to the function's own total ("local"), not to that of all functions in `table`.
            totals: &function.sums,
            percent_type: "local period",
            source: &self.sources,
        };
        let options = AnnotateOptions {
            min_percent: Some(min_percent).filter(|percent| *percent > 0),
            ..self.request.looks
        };
        write_annotation(out, &annotated, &options)
    }
}

impl TableTotals {
    fn of(session: &TopSession, number: usize) -> Self {
        let (name, table) = session.table(number).unzip();
        let totals = table.map_or(&[][..], |table| &table.histogram().totals);
        let hit = |sum: &rperf_hist::ColumnSum| HitCount {
            samples: sum.samples,
            period: sum.period,
        };
        Self {
            events: session.events_of(number),
            name: name.unwrap_or_default(),
            frequency: match session.rate(number) {
                Some(DisplayedRate::Hertz(rate)) => Some(rate),
                _ => None,
            },
            totals: totals.iter().map(hit).collect(),
        }
    }

    fn annotated_events(&self) -> AnnotatedEvents<'_> {
        let hits = self.totals.iter();
        AnnotatedEvents {
            name: &self.name,
            // In `top`, the heading says "event" even for several events.
            plural: false,
            frequency: self.frequency,
            total: HitCount {
                samples: hits.clone().map(|hit| hit.samples).sum(),
                period: hits.map(|hit| hit.period).sum(),
            },
        }
    }
}

impl TopSession {
    /// Starts counting the samples of a function by instruction.
    pub(super) fn watch(&mut self, function: WatchedFunction) {
        self.live.watched_mut().push(function);
    }

    /// Watches the function at `address` in the object of the watched function `seen`; returns whether one was found.
    pub(super) fn follow(&mut self, seen: FunctionKey, address: u64) -> bool {
        let symbol = seen.start_location.symbol();
        let found = self.live.with_watched(|watched, resolver| {
            // Starts at a frame of the watched function, because the location in `seen` may no longer exist in the World (the
            // processes and mappings at a time).
            let frames = watched.iter().filter_map(WatchedFunction::frame);
            let frame = frames.into_iter().find(|frame| frame.symbol == symbol)?;
            WatchedFunction::at(resolver, resolver.frame_in_object(frame, address)?)
        });
        let found = found.flatten();
        let is_found = found.is_some();
        self.live.watched_mut().extend(found);
        is_found
    }

    /// Stops counting the samples of a function by instruction. If it is watched more than once, ends only the latest watch.
    pub(super) fn stop_watching(&mut self, seen: FunctionKey) {
        let symbol = seen.start_location.symbol();
        let watched = self.live.watched_mut();
        let is_seen =
            |watched: &WatchedFunction| watched.frame().is_some_and(|frame| frame.symbol == symbol);
        if let Some(index) = watched.iter().rposition(is_seen) {
            watched.remove(index);
        }
    }
}
