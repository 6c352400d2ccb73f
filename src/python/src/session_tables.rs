//! The samples of a session as tables.

use pyo3::prelude::*;
use rperf_events::split_modifiers;
use rperf_replay::FoldControl;
use rperf_tracepoint::FieldReader;

use crate::analysis::{RecordingPass, conclude};
use crate::columns::{ColumnBlock, ColumnRenderer, SampleColumn};
use crate::error::{or_value_error, value_error};
use crate::session::PySession;
use crate::table::{PyTable, TableCollector};

/// The columns of a table by default.
const DEFAULT_COLUMNS: [&str; 10] = [
    "time", "event", "cpu", "pid", "tid", "comm", "period", "ip", "dso", "symbol",
];
/// Optional prefix of a column that is a tracepoint's field; needed only if the field has the name of another column.
const FIELD_PREFIX: &str = "fields.";
/// The default of `rows` of [`TableRequest::parts`], which is `process_tables` in Python.
pub(crate) const DEFAULT_ROWS: usize = 1 << 20;
/// The number of rows for one table of all samples.
const ALL_ROWS: usize = usize::MAX;

/// The samples and columns of a table.
pub(crate) struct TableRequest {
    /// Names of columns; [`DEFAULT_COLUMNS`] if `None`.
    pub(crate) columns: Option<Vec<String>>,
    /// The name of the events whose samples are rows, with or without their modifiers; `None` for all events.
    pub(crate) event: Option<String>,
}

impl TableRequest {
    /// Reads all samples into one table.
    pub(crate) fn whole(&self, session: &Bound<'_, PySession>) -> PyResult<PyTable> {
        let mut whole = None;
        self.collect(session, ALL_ROWS, &mut |_, table| {
            whole = Some(table);
            Ok(())
        })?;
        // Not an error in practice: with `ALL_ROWS`, a table is passed even without samples.
        whole.ok_or_else(|| value_error("the recording was not read"))
    }

    /// Passes tables of at least `rows` rows to `function`; the last may have fewer. Without samples, none is passed.
    pub(crate) fn parts(
        &self,
        session: &Bound<'_, PySession>,
        function: &Py<PyAny>,
        rows: usize,
    ) -> PyResult<()> {
        if rows == 0 {
            return Err(value_error("rows must be at least 1"));
        }
        self.collect(session, rows, &mut |py, table| {
            function.call1(py, (table,)).map(drop)
        })
    }

    /// Reads the samples and passes them to `each` in tables of at least `rows` rows, since blocks of samples are not divided;
    /// the last table may have fewer. Without samples, one empty table is passed if `rows` is [`ALL_ROWS`], otherwise none.
    fn collect(
        &self,
        session: &Bound<'_, PySession>,
        rows: usize,
        each: &mut (dyn FnMut(Python<'_>, PyTable) -> PyResult<()> + Send),
    ) -> PyResult<()> {
        let py = session.py();
        let (recording, options) = session.borrow().inputs();
        let diagnostics = py.detach(|| {
            options.run(&recording, |analysis| {
                let mut collector = self.collector(analysis)?;
                let renderer = self.renderer(analysis)?;
                let mut failed = None;
                let mut add_block = |block: &mut ColumnBlock| {
                    collector.add(block);
                    let done = Python::attach(|py| {
                        py.check_signals()?;
                        match collector.rows() >= rows {
                            true => each(py, collector.take(py)?),
                            false => Ok(()),
                        }
                    });
                    match done {
                        Ok(()) => FoldControl::Continue,
                        Err(error) => {
                            failed = Some(error);
                            FoldControl::Stop
                        }
                    }
                };
                let ordered = analysis
                    .replay
                    .ordered(analysis.jobs, &renderer, &mut add_block);
                if let Some(error) = failed {
                    return Err(error);
                }
                or_value_error(ordered)?;
                Python::attach(|py| match collector.rows() > 0 || rows == ALL_ROWS {
                    true => each(py, collector.take(py)?),
                    false => Ok(()),
                })?;
                Ok(analysis.replay.diagnostics())
            })
        });
        conclude(py, &recording, &diagnostics?)
    }

    fn collector<'a>(&self, analysis: &RecordingPass<'a>) -> PyResult<TableCollector<'a>> {
        let names = analysis.events().iter().map(|event| event.name.clone());
        let columns = self.columns(analysis)?;
        Ok(TableCollector::new(
            analysis.resolver,
            columns,
            names.collect(),
        ))
    }

    fn renderer<'a>(&self, analysis: &RecordingPass<'a>) -> PyResult<ColumnRenderer<'a, 'a>> {
        let (stacks, max_stack) = analysis.stacks();
        let columns = self.columns(analysis)?;
        Ok(ColumnRenderer {
            resolver: analysis.resolver,
            stacks,
            max_stack,
            columns: columns.into_iter().map(|(_, column)| column).collect(),
            is_row_by_event: self.is_row_by_event(analysis)?,
        })
    }

    /// By event: whether its samples are rows.
    fn is_row_by_event(&self, analysis: &RecordingPass<'_>) -> PyResult<Vec<bool>> {
        let events = analysis.events();
        let Some(selected) = &self.event else {
            return Ok(vec![true; events.len()]);
        };
        let is_selected = |name: &str| {
            name == selected || split_modifiers(name).is_some_and(|(bare, _)| bare == selected)
        };
        let is_row: Vec<bool> = events
            .iter()
            .map(|event| is_selected(&event.name))
            .collect();
        match is_row.contains(&true) {
            true => Ok(is_row),
            false => {
                let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
                Err(value_error(format!(
                    "the recording has no event '{selected}'\nhint: its events: {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// The columns with their names.
    fn columns(&self, analysis: &RecordingPass<'_>) -> PyResult<Vec<(String, SampleColumn)>> {
        let Some(names) = &self.columns else {
            let named = DEFAULT_COLUMNS.into_iter();
            let named =
                named.filter_map(|name| Some((name.to_owned(), SampleColumn::named(name)?)));
            return Ok(named.collect());
        };
        let column = |name: &String| {
            let field = name.strip_prefix(FIELD_PREFIX).unwrap_or(name);
            let column = SampleColumn::named(name).or_else(|| field_column(analysis, field));
            let column = column.ok_or_else(|| unknown_column(analysis, name))?;
            Ok((name.clone(), column))
        };
        names.iter().map(column).collect()
    }
}

/// The column of the field `name` of tracepoints: text if the field is text in the first tracepoint that has it, otherwise
/// numbers if it is a number in any tracepoint. `None` if it is neither, or no tracepoint of the recording has the field.
fn field_column(analysis: &RecordingPass<'_>, name: &str) -> Option<SampleColumn> {
    let readers = analysis.events().iter().map(|event| {
        let tracepoint = analysis.formats.of_event(&event.attr).ok()?;
        tracepoint.reader(name)
    });
    let readers: Vec<Option<FieldReader>> = readers.collect();
    let mut known = readers.iter().flatten();
    match known.next()?.is_text() {
        true => Some(SampleColumn::FieldText(readers)),
        false => readers
            .iter()
            .flatten()
            .any(FieldReader::is_number)
            .then_some(SampleColumn::FieldNumber(readers)),
    }
}

/// The error for an unknown column; its hint lists the columns and the fields that can be columns.
fn unknown_column(analysis: &RecordingPass<'_>, name: &str) -> PyErr {
    let tracepoints = analysis.events().iter();
    let tracepoints = tracepoints.filter_map(|event| analysis.formats.of_event(&event.attr).ok());
    let mut fields: Vec<&str> = tracepoints
        .flat_map(|tracepoint| tracepoint.fields())
        .filter(|(_, reader)| reader.is_text() || reader.is_number())
        .map(|(field, _)| field.name.as_str())
        .collect();
    fields.sort_unstable();
    fields.dedup();
    let fields = match fields.is_empty() {
        true => String::new(),
        false => format!("; fields of tracepoints: {}", fields.join(", ")),
    };
    value_error(format!(
        "no column '{name}'\nhint: columns: {}{fields}",
        SampleColumn::all().join(", ")
    ))
}
