//! `perf.table`: samples as columns that NumPy takes without copying.

use std::hash::Hash;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyMemoryView};
use rperf_replay::{CommId, DsoId};
use rperf_resolve::{Resolver, SymbolId};
use rperf_wire::name_text;
use rustc_hash::FxHashMap;

use crate::columns::{ColumnBlock, ColumnItems, FoldedFrame, SampleColumn};

/// The name of unknown functions and objects.
const UNKNOWN: &str = "[unknown]";

/// Samples as rows, stored by column. A column is a memoryview: of signed numbers of 4 bytes (CPUs, processes and threads, and
/// codes of texts; `categories` has the texts), of signed numbers of 8 bytes (fields of tracepoints), or of unsigned numbers of
/// 8 bytes (all other numbers).
#[pyclass(frozen, name = "table", module = "perf")]
pub(crate) struct PyTable {
    rows: usize,
    columns: Vec<PyColumn>,
}

struct PyColumn {
    name: String,
    /// The memoryview.
    view: Py<PyAny>,
    /// The texts by code; `None` for a column of numbers.
    categories: Option<Py<PyList>>,
}

#[pymethods]
impl PyTable {
    fn __len__(&self) -> usize {
        self.rows
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        let columns = self.columns.iter();
        columns.map(|column| column.name.as_str()).collect()
    }

    /// A column as memoryview: numbers, or codes of its categories.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        Ok(self.column(name)?.view.clone_ref(py))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.column(name).is_ok()
    }

    /// The texts of a column by code; `None` for a column of numbers.
    fn categories(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyList>>> {
        let categories = self.column(name)?.categories.as_ref();
        Ok(categories.map(|list| list.clone_ref(py)))
    }

    /// The table as `pandas.DataFrame`: columns of numbers share its memory, columns of codes are categorical.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("perf._pandas")?;
        module.call_method1("to_pandas", (slf,))
    }

    fn __repr__(&self) -> String {
        format!(
            "perf.table({} rows: {})",
            self.rows,
            self.columns().join(", ")
        )
    }
}

impl PyTable {
    fn column(&self, name: &str) -> PyResult<&PyColumn> {
        let column = self.columns.iter().find(|column| column.name == name);
        column.ok_or_else(|| {
            PyKeyError::new_err(format!(
                "the table has no column '{name}': {}",
                self.columns().join(", ")
            ))
        })
    }
}

/// Maps keys, for example ids of symbols, to the codes of their texts.
struct Codes<K> {
    by_key: FxHashMap<K, u32>,
    /// The last key with its code: consecutive samples often have the same key.
    last: Option<(K, u32)>,
}

impl<K> Default for Codes<K> {
    fn default() -> Self {
        Self {
            by_key: FxHashMap::default(),
            last: None,
        }
    }
}

impl<K: Eq + Hash + Clone> Codes<K> {
    /// The code of the text of `key`; `text` is called only for a new key.
    fn code(&mut self, key: &K, categories: &mut Categories, text: impl FnOnce() -> String) -> u32 {
        if let Some((last, code)) = &self.last
            && last == key
        {
            return *code;
        }
        let code = match self.by_key.get(key) {
            Some(code) => *code,
            None => {
                let code = categories.code(text());
                self.by_key.insert(key.clone(), code);
                code
            }
        };
        self.last = Some((key.clone(), code));
        code
    }
}

/// The different texts of a column; the code of a text is its index. Several keys may have the same text.
#[derive(Default)]
struct Categories {
    list: Vec<String>,
    codes: FxHashMap<String, u32>,
}

impl Categories {
    fn code(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        *self.codes.entry(text).or_insert_with_key(|text| {
            self.list.push(text.clone());
            next
        })
    }
}

/// The items of a column so far. A column of texts uses one of the maps from keys to codes; a column of numbers or events none.
#[derive(Default)]
struct Collected {
    /// The numbers or codes, in native byte order.
    bytes: Vec<u8>,
    categories: Categories,
    comms: Codes<CommId>,
    dsos: Codes<Option<DsoId>>,
    symbols: Codes<Option<SymbolId>>,
    stacks: Codes<Box<[FoldedFrame]>>,
    fields: Codes<Box<[u8]>>,
}

impl Collected {
    fn push_code(&mut self, code: u32) {
        self.bytes.extend_from_slice(&code.to_ne_bytes());
    }

    fn add(&mut self, items: &ColumnItems, resolver: &Resolver<'_>) {
        // The World, the processes and mappings at a time, has the names of threads and objects.
        let world = resolver.world();
        let dso_name = |dso: DsoId| world.dso(dso).name.clone();
        match items {
            // Numbers, or indexes of events: the bytes of the column as they are.
            ColumnItems::Final(bytes) => self.bytes.extend_from_slice(bytes),
            ColumnItems::Comms(ids) => {
                for id in ids {
                    let text = || world.comm(*id).to_owned();
                    let code = self.comms.code(id, &mut self.categories, text);
                    self.push_code(code);
                }
            }
            ColumnItems::Dsos(ids) => {
                for id in ids {
                    let text = || id.map_or_else(|| UNKNOWN.to_owned(), dso_name);
                    let code = self.dsos.code(id, &mut self.categories, text);
                    self.push_code(code);
                }
            }
            ColumnItems::Symbols(ids) => {
                for id in ids {
                    let text = || id.map_or(UNKNOWN, |id| resolver.symbol_name(id)).to_owned();
                    let code = self.symbols.code(id, &mut self.categories, text);
                    self.push_code(code);
                }
            }
            ColumnItems::Stacks { frames, ends } => self.add_stacks(frames, ends, resolver),
            ColumnItems::Texts { bytes, ends } => {
                let mut start = 0;
                for end in ends {
                    let field: Box<[u8]> = bytes.get(start..*end).unwrap_or_default().into();
                    start = *end;
                    let text = || name_text(&field).into_owned();
                    let code = self.fields.code(&field, &mut self.categories, text);
                    self.push_code(code);
                }
            }
        }
    }

    fn add_stacks(&mut self, frames: &[FoldedFrame], ends: &[usize], resolver: &Resolver<'_>) {
        let name = |frame: &FoldedFrame| match frame {
            FoldedFrame::Symbol(symbol) => resolver.symbol_name(*symbol).to_owned(),
            FoldedFrame::Dso(dso) => format!("[{}]", resolver.world().dso(*dso).short_name),
            FoldedFrame::Unknown => UNKNOWN.to_owned(),
        };
        let mut start = 0;
        for end in ends {
            let stack: Box<[FoldedFrame]> = frames.get(start..*end).unwrap_or_default().into();
            start = *end;
            // The frames are innermost first, the names in the text outermost first.
            let text = || {
                let names: Vec<String> = stack.iter().rev().map(name).collect();
                names.join(";")
            };
            let code = self.stacks.code(&stack, &mut self.categories, text);
            self.push_code(code);
        }
    }
}

/// Appends blocks, the columns of consecutive samples, to the columns of a table.
pub(crate) struct TableCollector<'a> {
    resolver: &'a Resolver<'a>,
    columns: Vec<(String, SampleColumn)>,
    /// The names of the events.
    events: Vec<String>,
    rows: usize,
    collected: Vec<Collected>,
}

impl<'a> TableCollector<'a> {
    pub(crate) fn new(
        resolver: &'a Resolver<'a>,
        columns: Vec<(String, SampleColumn)>,
        events: Vec<String>,
    ) -> Self {
        Self {
            resolver,
            collected: columns.iter().map(|_| Collected::default()).collect(),
            columns,
            events,
            rows: 0,
        }
    }

    /// The number of rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a block.
    pub(crate) fn add(&mut self, block: &ColumnBlock) {
        self.rows += block.rows;
        for (to, items) in self.collected.iter_mut().zip(&block.items) {
            to.add(items, self.resolver);
        }
    }

    /// Removes the rows so far and returns them as a table.
    pub(crate) fn take(&mut self, py: Python<'_>) -> PyResult<PyTable> {
        let rows = std::mem::take(&mut self.rows);
        let mut columns = Vec::new();
        for ((name, column), collected) in self.columns.iter().zip(&mut self.collected) {
            let collected = std::mem::take(collected);
            let bytes = PyByteArray::new(py, &collected.bytes);
            // The array is a copy: the original is freed before the other columns are converted.
            drop(collected.bytes);
            let view = PyMemoryView::from(&bytes)?;
            let view = view.call_method1("cast", (column.format().to_string(),))?;
            let categories = match column {
                SampleColumn::Number(_) | SampleColumn::FieldNumber(_) => None,
                SampleColumn::Event => Some(PyList::new(py, &self.events)?.unbind()),
                _ => Some(PyList::new(py, &collected.categories.list)?.unbind()),
            };
            columns.push(PyColumn {
                name: name.clone(),
                view: view.unbind(),
                categories,
            });
        }
        Ok(PyTable { rows, columns })
    }
}
