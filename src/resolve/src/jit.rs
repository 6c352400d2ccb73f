//! JIT-compiled functions in a dump: instructions, source lines and frame information.

use std::sync::OnceLock;

use rperf_symbol::jit_dump::{JitCode, JitImage};
use rperf_symbol::{Symbol, SymbolIndex};
use rperf_unwind::{ModuleId, TruncationCause};

use crate::code::{CodeBytes, first};
use crate::inline::SourceLine;

/// The functions of one dump.
pub(crate) struct JitObject {
    code: JitCode,
    /// By [`SymbolIndex`]; loaded on first use.
    functions: Box<[OnceLock<Option<Box<DumpedFunction>>>]>,
}

/// A function of a dump.
pub(crate) struct DumpedFunction {
    /// An ELF file in memory that contains only this function.
    image: JitImage,
    /// The number of the function's ELF file in unwinding.
    pub(crate) module: ModuleId,
    frame_info: Result<rperf_unwind::FrameInfo, TruncationCause>,
}

impl JitObject {
    pub(crate) fn new(code: JitCode) -> Self {
        let functions = std::iter::repeat_with(OnceLock::new).take(code.len());
        Self {
            functions: functions.collect(),
            code,
        }
    }

    /// The function at `index`; `module` is called on first use and returns [`DumpedFunction::module`].
    pub(crate) fn function(
        &self,
        index: SymbolIndex,
        module: impl FnOnce() -> ModuleId,
    ) -> Option<&DumpedFunction> {
        let slot = self.functions.get(index.as_usize())?;
        let read = || {
            let image = self.code.image(index)?;
            let debug_file = None;
            let frame_info = rperf_unwind::FrameInfo::parse(image.file.clone(), debug_file);
            Some(Box::new(DumpedFunction {
                image,
                module: module(),
                // An image that cannot be parsed is reported like a file that cannot be read.
                frame_info: frame_info.map_err(|_| TruncationCause::LostFile),
            }))
        };
        slot.get_or_init(read).as_deref()
    }

    /// The source line of the instruction at `address` in the function at `index`, which has the symbol `symbol`.
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

impl DumpedFunction {
    /// The instructions from `offset` in the function to its end, at most `max_len` bytes.
    pub(crate) fn code(&self, offset: u64, max_len: usize) -> Option<CodeBytes<'_>> {
        let text = self.image.file.get(self.image.text.clone())?;
        Some(CodeBytes {
            file: &self.image.file,
            bytes: first(max_len, text.get(usize::try_from(offset).ok()?..)?).into(),
        })
    }

    /// The instruction at `offset` in the function, as an offset in the ELF file, for unwinding.
    pub(crate) fn unwind_location(&self, offset: u64) -> rperf_unwind::ObjectOffset<'_> {
        rperf_unwind::ObjectOffset {
            module: self.module,
            offset: (self.image.text.start as u64).wrapping_add(offset),
            frame_info: self.frame_info.as_ref().map_err(|cause| *cause),
        }
    }
}
