//! Functions that a runtime dumped with their code: their instructions, lines and frames.

use std::sync::OnceLock;

use rperf_symbol::jit_dump::{JitCode, JitImage};
use rperf_symbol::{Symbol, SymbolIndex};
use rperf_unwind::{Cause, ModuleId};

use crate::code::{Code, first};
use crate::inline::SourceLine;

/// The functions of one dump.
pub(crate) struct Made {
    code: JitCode,
    /// By position; read when the first frame in one is looked into.
    functions: Box<[OnceLock<Option<Box<Function>>>]>,
}

/// One of them.
pub(crate) struct Function {
    image: JitImage,
    /// What it is called among the objects of all stacks.
    pub(crate) module: ModuleId,
    frames: Result<rperf_unwind::Object, Cause>,
}

impl Made {
    pub(crate) fn new(code: JitCode) -> Self {
        let functions = std::iter::repeat_with(OnceLock::new).take(code.len());
        Self {
            functions: functions.collect(),
            code,
        }
    }

    /// A function; `module` numbers it the first time.
    pub(crate) fn function(
        &self,
        index: SymbolIndex,
        module: impl FnOnce() -> ModuleId,
    ) -> Option<&Function> {
        let place = self.functions.get(index.as_usize())?;
        let read = || {
            let image = self.code.image(index)?;
            let frames = rperf_unwind::Object::parse(image.file.clone(), None);
            Some(Box::new(Function {
                image,
                module: module(),
                frames: frames.map_err(|_| Cause::LostFile),
            }))
        };
        place.get_or_init(read).as_deref()
    }

    /// The line of the instruction at `address`, in the function `symbol`.
    pub(crate) fn line(
        &self,
        index: SymbolIndex,
        symbol: &Symbol,
        address: u64,
    ) -> Option<SourceLine<'_>> {
        let line = self.code.line(index, address.checked_sub(symbol.start)?)?;
        Some(SourceLine {
            path: line.file,
            line: line.line,
        })
    }
}

impl Function {
    /// The instructions from `offset` bytes into the function to its end, `most` bytes of them.
    pub(crate) fn code(&self, offset: u64, most: usize) -> Option<Code<'_>> {
        let text = self.image.file.get(self.image.text.clone())?;
        Some(Code {
            file: &self.image.file,
            bytes: first(most, text.get(usize::try_from(offset).ok()?..)?).into(),
        })
    }

    /// The same place for unwinders.
    pub(crate) fn frames(&self, offset: u64) -> rperf_unwind::Code<'_> {
        rperf_unwind::Code {
            module: self.module,
            offset: (self.image.text.start as u64).wrapping_add(offset),
            object: self.frames.as_ref().map_err(|cause| *cause),
        }
    }
}
