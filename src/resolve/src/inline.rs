//! Functions inlined into others: frames that share an address with the frame around them.

use std::sync::{Arc, PoisonError, RwLock};

use rperf_symbol::dwarf::FunctionId;
use rperf_symbol::{Budget, DebugSource, Files, Lines, SearchPaths, SourceFrame, SymbolIndex};
use rustc_hash::FxHashMap;

use crate::frame::Frame;

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine<'r> {
    /// The file's path, as far as the compiler told.
    pub path: &'r str,
    /// From 1; 0 for code that belongs to no line.
    pub line: u32,
}

impl<'r> SourceLine<'r> {
    /// What is said of code in a file that tells no lines.
    pub const UNKNOWN: Self = Self {
        path: "??",
        line: 0,
    };

    /// The path's last part.
    #[must_use]
    pub fn file_name(&self) -> &'r str {
        let (_, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        name
    }
}

/// A frame of a callchain, and where in its source it is: for a caller, at the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'r> {
    /// The frame. Those of inlined functions have the address of the function around them, and a symbol of their own.
    pub frame: Frame,
    /// The place in the source; `None` for code that is in no file: the kernel without a vmlinux, the vdso, code made at
    /// run time.
    pub place: Option<SourceLine<'r>>,
}

/// What is needed to read debug information.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) paths: &'a SearchPaths,
    pub(crate) budget: &'a Arc<Budget>,
}

/// The debug information of one object, and the symbols made of it so far.
pub(crate) struct Inlines {
    pub(crate) lines: Lines,
    symbols: RwLock<Symbols>,
}

/// Symbols of inlined functions. As in perf, one function inlined into two others makes two of them.
#[derive(Default)]
struct Symbols {
    /// By number, which is the symbol's place behind the object's own symbols.
    made: Vec<(FunctionId, SymbolIndex)>,
    numbers: FxHashMap<(FunctionId, SymbolIndex), u32>,
    /// Functions that differ in no more than their linkage name are one.
    by_name: FxHashMap<(Box<str>, SymbolIndex), u32>,
}

impl Inlines {
    pub(crate) fn open(reading: Reading<'_>, source: &DebugSource) -> Option<Self> {
        let lines = Lines::open(reading.files, reading.paths, source, reading.budget)?;
        Some(Self {
            lines,
            symbols: RwLock::default(),
        })
    }

    /// The number of the symbol for `function` inlined into the object's symbol `base`.
    pub(crate) fn number(&self, function: FunctionId, base: SymbolIndex) -> Option<u32> {
        let key = (function, base);
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = symbols.numbers.get(&key) {
            return Some(number);
        }
        drop(symbols);
        let name = (self.lines.function_name(function).into(), base);
        let mut symbols = self.symbols.write().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(symbols.made.len()).ok()?;
        let number = *symbols.by_name.entry(name).or_insert(next);
        symbols.numbers.insert(key, number);
        if number == next {
            symbols.made.push(key);
        }
        Some(number)
    }

    /// Function and base of a symbol made before.
    pub(crate) fn made(&self, number: usize) -> Option<(FunctionId, SymbolIndex)> {
        let symbols = self.symbols.read().unwrap_or_else(PoisonError::into_inner);
        symbols.made.get(number).copied()
    }

    pub(crate) fn place(&self, frame: SourceFrame) -> SourceLine<'_> {
        let line = |file| SourceLine {
            path: self.lines.file(file),
            line: frame.line,
        };
        frame.file.map_or(SourceLine::UNKNOWN, line)
    }
}
