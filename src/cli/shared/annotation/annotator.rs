//! Serves a browser's requests for annotated functions.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rperf_disasm::{FunctionCode, SampledFunction, SampledFunctions};
use rperf_replay::DsoId;
use rperf_resolve::SymbolId;
use rperf_symbol::{Binding, Symbol};
use rperf_tui::{
    Annotated, BrowserRequest, FunctionKey, PreparedScreen, ReaderMessage, ShownFunction,
    TextScreen,
};

use super::chosen_functions::ChosenFunctions;
use super::function_files::AnnotationFiles;
use super::missing_code::{self, MissingCode, why_no_code};
use super::print::AnnotationPrinter;
use super::sources::SourceTexts;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Serves a browser's requests for annotated functions.
pub(crate) struct Annotator<'a, 'w> {
    pub(crate) printer: AnnotationPrinter<'a, 'w>,
    /// The functions to show: a table for each event or group of events.
    pub(crate) tables: &'a [ChosenFunctions],
    sources: Mutex<SourceTexts>,
}

impl<'a, 'w> Annotator<'a, 'w> {
    pub(crate) fn new(printer: AnnotationPrinter<'a, 'w>, tables: &'a [ChosenFunctions]) -> Self {
        let sources = Mutex::new(SourceTexts::new(printer.request.prefix.clone()));
        Self {
            printer,
            tables,
            sources,
        }
    }

    /// Returns the hottest function whose code is available, of the first table that has one.
    ///
    /// # Errors
    ///
    /// Status 1: no function was chosen, none has code, or objdump failed.
    pub(crate) fn hottest_with_code(&self, context: &Context) -> Result<Annotated, CliError> {
        let mut missing = MissingCode::default();
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
        // Returns an error if any function was tried: none of them has code.
        missing.report(self.printer.resolver, tried, context)?;
        Err(CliError::message(
            1,
            "all functions are below --percent-limit",
        ))
    }

    /// Serves a request about functions; returns `None` for any other request.
    pub(crate) fn answer(
        &self,
        request: &BrowserRequest,
    ) -> Option<Result<ReaderMessage, CliError>> {
        let answer = match request {
            BrowserRequest::Annotate(shown) => self.open_named(shown),
            BrowserRequest::Map(shown) => self.map(shown),
            BrowserRequest::Follow(key, address) => self.open_at(*key, *address),
            BrowserRequest::Hotter(key) => self.neighbour(*key, -1),
            BrowserRequest::Colder(key) => self.neighbour(*key, 1),
            BrowserRequest::SaveFunction(name, text) => save_function(name, text),
            _ => return None,
        };
        Some(answer)
    }

    fn open_named(&self, shown: &ShownFunction) -> Result<ReaderMessage, CliError> {
        let (table, function) = self.find(shown)?;
        self.open(table, function)
    }

    /// Lists the symbols of an object, each with start, end, binding and name. The object is the one that `shown` names; if it
    /// names none, the one that contains the function of `shown`.
    fn map(&self, shown: &ShownFunction) -> Result<ReaderMessage, CliError> {
        let resolver = self.printer.resolver;
        let name = shown.dso.as_ref();
        let mut dsos = (0..).zip(resolver.world().dsos());
        let dso = match dsos.find(|(_, dso)| name.is_some_and(|name| dso.has_name(name))) {
            Some((number, _)) => DsoId(number),
            None => self.find(shown)?.1.symbol.dso,
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
        Ok(ReaderMessage::Shown(PreparedScreen::new(TextScreen::new(
            title, lines,
        ))))
    }

    /// Returns the sampled function that the browser shows as `shown`, and its table.
    fn find(
        &self,
        shown: &ShownFunction,
    ) -> Result<(&ChosenFunctions, &SampledFunction), CliError> {
        let resolver = self.printer.resolver;
        let table = self.table(shown.event)?;
        let name = |function: &SampledFunction| resolver.symbol_name(function.symbol);
        let is_wanted = |function: &&SampledFunction| {
            let dso = resolver.world().dso(function.symbol.dso);
            let in_dso = |wanted: &String| dso.has_name(wanted);
            name(function) == shown.symbol && shown.dso.as_ref().is_none_or(in_dso)
        };
        match table.functions.iter().find(is_wanted) {
            Some(function) => Ok((table, function)),
            None => {
                let names = table.functions.iter().map(name).collect();
                Err(missing_code::no_samples_in(
                    &shown.symbol,
                    &[names],
                    &"the recording",
                ))
            }
        }
    }

    /// Opens the function at an address of the object that contains the function of `key`.
    fn open_at(&self, key: FunctionKey, address: u64) -> Result<ReaderMessage, CliError> {
        let table = self.table(key.event)?;
        let frame = key.start_location.frame_at(self.printer.resolver, address);
        let found = frame.and_then(|frame| self.printer.functions.at(&frame, &table.events));
        match found {
            Some(function) => self.open(table, &function),
            None => {
                let text = format!("No symbol at {address:#x}.");
                Ok(ReaderMessage::Notice(text))
            }
        }
    }

    /// Opens the function `step` positions further in the list of functions, which is sorted hottest first; the first function
    /// if the current one is not in the list.
    fn neighbour(&self, key: FunctionKey, step: isize) -> Result<ReaderMessage, CliError> {
        let table = self.table(key.event)?;
        let symbol = key.start_location.symbol();
        let functions = &table.functions;
        let here = functions
            .iter()
            .position(|function| Some(function.symbol) == symbol);
        let there = match here {
            Some(here) => here.checked_add_signed(step),
            None => Some(0),
        };
        match there.and_then(|there| functions.get(there)) {
            Some(function) => self.open(table, function),
            None => {
                let notice = match here {
                    None => "No functions.",
                    Some(_) if step < 0 => "No hotter function.",
                    Some(_) => "No colder function.",
                };
                Ok(ReaderMessage::Notice(notice.to_owned()))
            }
        }
    }

    /// Returns the table of an event.
    fn table(&self, event: usize) -> Result<&ChosenFunctions, CliError> {
        let is_in =
            |table: &&ChosenFunctions| table.events.iter().any(|index| index.0 as usize == event);
        let found = self.tables.iter().find(is_in);
        found.ok_or_else(|| CliError::message(1, "this event has no samples in functions"))
    }

    fn open(
        &self,
        table: &ChosenFunctions,
        function: &SampledFunction,
    ) -> Result<ReaderMessage, CliError> {
        Ok(match self.printer.code(function)? {
            Ok(code) => ReaderMessage::Code(Arc::new(self.annotated(table, code))),
            Err(why) => ReaderMessage::Notice(why_no_code(self.printer.resolver, function, why)),
        })
    }

    fn annotated(&self, table: &ChosenFunctions, code: FunctionCode) -> Annotated {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        Annotated {
            title: self.printer.annotated_events(table).to_string(),
            event: table.events.first().map_or(0, |event| event.0 as usize),
            totals: self.printer.totals(table, SampledFunctions::total),
            sources: sources.of(&code),
            // Empty, so that the browser shows a hint on the keys.
            bottom: String::new(),
            code,
        }
    }
}

/// Writes a function's lines to the working directory, overwriting an existing file.
pub(crate) fn save_function(function: &str, text: &str) -> Result<ReaderMessage, CliError> {
    let mut files = AnnotationFiles::new(Path::new("."));
    let path = files.write(function, |out| out.write_all(text.as_bytes()))?;
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    Ok(ReaderMessage::Notice(format!(
        "{} was written.",
        name.unwrap_or_default()
    )))
}
