//! Converts text of `perf script` in its default layout to a perf.data.
//!
//! ```text
//! sh   126 [001]  11.634297: sched:sched_switch: prev_comm=sh ...          a tracepoint: task, CPU, time, event, fields
//! load 2614  3004.135046:  250000 cpu-clock:                               with a callchain: ... time, period, event
//! <TAB>    114a leaf+0x11 (/tmp/load)                                      its frames, innermost first, up to an empty line
//! load 2614  3004.135046:  250000 cpu-clock:u:  55e9 leaf+0x1 (/tmp/load)  without one: address, function and object
//! ```
//!
//! The text is read twice: once for the events, functions and fields that occur, once to write samples. Functions become symbol
//! tables ([`SymbolFile`]), which readers find in the build-id cache; tracepoints get formats with the fields found in their
//! texts.

mod addresses;
mod events;
mod frame;
mod image;
mod kernel;
mod objects;
mod parse;
#[cfg(test)]
mod tests;
mod tracepoint;
mod write;

use std::borrow::Cow;

use crate::Error;

pub use self::image::{SymbolFile, SymbolFileKind};
pub use self::write::ImportedText;

use self::parse::{Items, LineProblem};

/// Output of `perf script`, not yet parsed.
#[derive(Debug)]
pub struct ScriptText<'t> {
    /// Kept for the offsets in errors: those in `text` differ after a replaced byte.
    bytes: &'t [u8],
    /// The bytes as text; those that are not UTF-8 are replaced.
    text: Cow<'t, str>,
}

impl<'t> ScriptText<'t> {
    /// Takes the text; [`Self::write`] parses it.
    #[must_use]
    pub fn new(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            text: String::from_utf8_lossy(bytes),
        }
    }

    /// The samples, header lines and other records of the text, from its start; each is parsed when it is taken.
    fn items(&self) -> Items<'_> {
        Items::new(&self.text)
    }

    /// The error for a line, with the line's offset in bytes.
    fn error(&self, problem: LineProblem) -> Error {
        let before = usize::try_from(problem.line - 1).unwrap_or(usize::MAX);
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        let offset: usize = lines.take(before).map(<[u8]>::len).sum();
        Error::Line {
            line: problem.line,
            offset: offset as u64,
            problem: problem.cause.to_owned(),
        }
    }
}
