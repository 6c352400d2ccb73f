//! What a browser shows of functions.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rperf_disasm::{Code, Function, Functions};
use rperf_replay::DsoId;
use rperf_resolve::SymbolId;
use rperf_symbol::{Binding, Symbol};
use rperf_tui::{Annotated, News, Place, Request as Asked, Seen, Shown, Text};

use super::chosen::Chosen;
use super::files::Files;
use super::missing::{self, Missing, why_no_code};
use super::print::Printer;
use super::sources::Sources;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Answers what browsers ask of the functions that samples fell on.
pub(in crate::cli::commands) struct Annotator<'a, 'w> {
    pub(super) printer: Printer<'a, 'w>,
    pub(super) tables: &'a [Chosen],
    sources: Mutex<Sources>,
}

impl<'a, 'w> Annotator<'a, 'w> {
    pub(super) fn new(printer: Printer<'a, 'w>, tables: &'a [Chosen]) -> Self {
        let sources = Mutex::new(Sources::new(printer.request.prefix.clone()));
        Self {
            printer,
            tables,
            sources,
        }
    }

    /// The hottest function whose code is at hand.
    ///
    /// # Errors
    ///
    /// Status 1: none has any.
    pub(super) fn first(&self, context: &Context) -> Result<Annotated, CliError> {
        let mut missing = Missing::default();
        let mut tried = 0;
        for table in self.tables {
            for function in &table.functions {
                match self.printer.code(function)? {
                    Ok(code) => return Ok(self.annotated(table, code)),
                    Err(why) => missing.add(function, why),
                }
                tried += 1;
            }
        }
        missing.tell(self.printer.resolver, tried, context)?;
        Err(CliError::message(
            1,
            "no function has the share that --percent-limit asks for",
        ))
    }

    /// The answer to what is of functions; `None` for all else.
    pub(in crate::cli::commands) fn answer(&self, asked: &Asked) -> Option<Result<News, CliError>> {
        let answer = match asked {
            Asked::Annotate(place) => self.named(place),
            Asked::Map(place) => self.map(place),
            Asked::Follow(seen, address) => self.beside(*seen, *address),
            Asked::Hotter(seen) => self.neighbour(*seen, -1),
            Asked::Colder(seen) => self.neighbour(*seen, 1),
            Asked::SaveFunction(name, text) => save_function(name, text),
            _ => return None,
        };
        Some(answer)
    }

    fn named(&self, place: &Place) -> Result<News, CliError> {
        let (table, function) = self.find(place)?;
        self.shown(table, function)
    }

    /// The symbols of the object that a function is in: where each begins and ends, who sees it, its name.
    fn map(&self, place: &Place) -> Result<News, CliError> {
        let resolver = self.printer.resolver;
        let named = (0..).zip(resolver.world().dsos());
        let mut named = named.filter(|(_, dso)| {
            let name = place.dso.as_ref();
            name.is_some_and(|name| dso.is_called(name))
        });
        let dso = match named.next() {
            Some((number, _)) => DsoId(number),
            None => self.find(place)?.1.symbol.dso,
        };
        let line = |(id, symbol): (SymbolId, Symbol)| {
            let binding = match symbol.binding {
                Binding::Global => 'g',
                Binding::Weak => 'w',
                Binding::Local => 'l',
                Binding::Other => 'u',
            };
            let (start, end) = (symbol.start, symbol.end);
            format!(
                "{start:16x} {end:16x} {binding} {}",
                resolver.symbol_name(id)
            )
        };
        let lines = resolver.symbols(dso).map(line).collect();
        let title = &resolver.world().dso(dso).long_name;
        Ok(News::Shown(Shown::new(Text::new(title, lines))))
    }

    /// The function that rows call so.
    fn find(&self, place: &Place) -> Result<(&Chosen, &Function), CliError> {
        let resolver = self.printer.resolver;
        let table = self.table(place.event)?;
        let name = |function: &Function| resolver.symbol_name(function.symbol);
        let is_it = |function: &&Function| {
            let dso = resolver.world().dso(function.symbol.dso);
            let in_dso = |wanted: &String| dso.is_called(wanted);
            name(function) == place.symbol && place.dso.as_ref().is_none_or(in_dso)
        };
        match table.functions.iter().find(is_it) {
            Some(function) => Ok((table, function)),
            None => {
                let names = table.functions.iter().map(name);
                Err(missing::no_samples_in(
                    &place.symbol,
                    names,
                    &"the recording",
                ))
            }
        }
    }

    /// The function at an address of the object that another is in.
    fn beside(&self, seen: Seen, address: u64) -> Result<News, CliError> {
        let table = self.table(seen.event)?;
        let frame = seen.begin.beside(self.printer.resolver, address);
        let found = frame.and_then(|frame| self.printer.functions.at(&frame, &table.events));
        match found {
            Some(function) => self.shown(table, &function),
            None => {
                let text = format!("No function is known at {address:#x}.");
                Ok(News::Said(text))
            }
        }
    }

    /// The function so many places behind another in the order of samples.
    fn neighbour(&self, seen: Seen, step: isize) -> Result<News, CliError> {
        let table = self.table(seen.event)?;
        let symbol = seen.begin.symbol();
        let functions = &table.functions;
        let here = functions
            .iter()
            .position(|function| Some(function.symbol) == symbol);
        let there = match here {
            Some(here) => here.checked_add_signed(step),
            None => Some(0),
        };
        match there.and_then(|there| functions.get(there)) {
            Some(function) => self.shown(table, function),
            None => Ok(News::Said("There is no such function.".to_owned())),
        }
    }

    /// The table that an event is in.
    fn table(&self, event: usize) -> Result<&Chosen, CliError> {
        let is_in = |table: &&Chosen| table.events.iter().any(|found| found.0 as usize == event);
        let found = self.tables.iter().find(is_in);
        found.ok_or_else(|| CliError::message(1, "no sample of this event fell on a function"))
    }

    fn shown(&self, table: &Chosen, function: &Function) -> Result<News, CliError> {
        Ok(match self.printer.code(function)? {
            Ok(code) => News::Code(Arc::new(self.annotated(table, code))),
            Err(why) => News::Said(why_no_code(self.printer.resolver, function, why)),
        })
    }

    fn annotated(&self, table: &Chosen, code: Code) -> Annotated {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        Annotated {
            counted: self.printer.counted(table).to_string(),
            event: table.events.first().map_or(0, |event| event.0 as usize),
            totals: self.printer.totals(table, Functions::total),
            sources: sources.of(&code),
            bottom: String::new(),
            code,
        }
    }
}

/// Writes a function's lines into the working directory, over those that are there.
pub(in crate::cli::commands) fn save_function(
    function: &str,
    text: &str,
) -> Result<News, CliError> {
    let mut files = Files::new(Path::new("."));
    let path = files.write(function, |out| out.write_all(text.as_bytes()))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    Ok(News::Said(format!(
        "{} was written.",
        name.unwrap_or_default()
    )))
}
