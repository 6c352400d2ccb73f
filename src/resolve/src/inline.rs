//! Inlined functions: frames with the same address as the enclosing frame.

use std::sync::{Arc, PoisonError, RwLock};

use rperf_symbol::dwarf::FunctionId;
use rperf_symbol::{Budget, DebugSource, Files, LineIndex, SearchPaths, SourceFrame, SymbolIndex};
use rustc_hash::FxHashMap;

use crate::frame::Frame;

/// A source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine<'r> {
    /// The file's path as recorded by the compiler.
    pub path: &'r str,
    /// From 1; 0 for code without a line.
    pub line: u32,
}

impl<'r> SourceLine<'r> {
    /// The location of code that is in an object file or a JIT dump, but has no line information.
    pub const UNKNOWN: Self = Self {
        path: "??",
        line: 0,
    };

    /// The last component of the path.
    #[must_use]
    pub fn file_name(&self) -> &'r str {
        let (_, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        name
    }
}

/// A frame of a callchain with its source location; for callers, the call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFrame<'r> {
    /// The frame. Inlined functions have the address of the enclosing function, and a separate symbol.
    pub frame: Frame,
    /// The source location; `None` for code that is in neither an object file nor a JIT dump, such as the kernel without a
    /// vmlinux, and for PLT entries.
    pub source_line: Option<SourceLine<'r>>,
}

/// Inputs for reading debug information.
#[derive(Clone, Copy)]
pub(crate) struct DebugInputs<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) paths: &'a SearchPaths,
    /// The limit for the memory of all objects' debug information.
    pub(crate) budget: &'a Arc<Budget>,
}

/// The debug information of one object, and the symbols assigned to inlined functions so far.
pub(crate) struct InlineInfo {
    pub(crate) lines: LineIndex,
    symbols: RwLock<InlinedSymbols>,
}

/// Symbols of inlined functions. As in perf, a function that is inlined into two others has two symbols.
#[derive(Default)]
struct InlinedSymbols {
    /// The inlined function and the symbol into which it is inlined, by number: the number is the new symbol's index minus the
    /// length of the object's symbol table.
    by_number: Vec<(FunctionId, SymbolIndex)>,
    numbers: FxHashMap<(FunctionId, SymbolIndex), u32>,
    /// Functions with one name share a symbol, even if their linkage names differ.
    by_name: FxHashMap<(Box<str>, SymbolIndex), u32>,
}

impl InlineInfo {
    pub(crate) fn open(inputs: DebugInputs<'_>, source: &DebugSource) -> Option<Self> {
        let lines = LineIndex::open(inputs.files, inputs.paths, source, inputs.budget)?;
        Some(Self {
            lines,
            symbols: RwLock::default(),
        })
    }

    /// The number of the symbol for `function` inlined into the object's symbol `base`, assigned on first use; `None` if there
    /// are too many.
    pub(crate) fn number(&self, function: FunctionId, base: SymbolIndex) -> Option<u32> {
        let key = (function, base);
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = symbols.numbers.get(&key) {
            return Some(number);
        }
        drop(symbols);
        let name_key = (self.lines.function_name(function).into(), base);
        let mut symbols = self.symbols.write().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(symbols.by_number.len()).ok()?;
        let number = *symbols.by_name.entry(name_key).or_insert(next);
        symbols.numbers.insert(key, number);
        if number == next {
            symbols.by_number.push(key);
        }
        Some(number)
    }

    /// The function of a numbered symbol, and the symbol into which it is inlined.
    pub(crate) fn function_and_base(&self, number: usize) -> Option<(FunctionId, SymbolIndex)> {
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        symbols.by_number.get(number).copied()
    }

    pub(crate) fn source_line(&self, frame: SourceFrame) -> SourceLine<'_> {
        let line = |file| SourceLine {
            path: self.lines.file(file),
            line: frame.line,
        };
        frame.file.map_or(SourceLine::UNKNOWN, line)
    }
}
