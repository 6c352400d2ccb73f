//! What tells the rows of a report apart: each sort key with its column, in one place.
//!
//! To add a key: a file beside the others with its [`Key`], and one line in [`KEYS`].

mod comm;
mod cpu;
mod dso;
mod source;
mod symbol;
mod thread;
mod trace;

use std::fmt;

use rperf_replay::{CommId, DsoId};
use rperf_resolve::{Level, SymbolId};

use crate::names::Names;
use crate::payloads::PayloadId;

/// All sort keys. A word that several names begin with means the first of them.
pub(crate) static KEYS: &[&Key] = &[
    &thread::PID,
    &comm::COMM,
    &dso::DSO,
    &symbol::SYMBOL,
    &cpu::CPU,
    &thread::TID,
    &trace::TRACE,
    &source::SRCLINE,
    &source::SRCFILE,
];

/// One sort key and its column.
pub struct Key {
    /// The word that `--sort` takes.
    pub name: &'static str,
    /// Title of the column.
    pub title: &'static str,
    /// The column's least width, in characters, in a table with an unresolved row.
    pub unresolved_width: usize,
    /// Whether its cells are filled up with blanks in the last column too.
    pub pads: bool,
    /// Which part of a sample it looks at.
    pub(crate) reads: Reads,
    /// What makes two samples belong to one row.
    pub(crate) identity: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    /// What orders rows of equal weight; some keys can't tell all rows apart by it.
    pub(crate) rank: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    /// The cell.
    pub(crate) text: fn(&Subject<'_>, &dyn Names) -> String,
}

impl Key {
    /// Whether its cells show lines or files of source.
    #[must_use]
    pub fn shows_source(&self) -> bool {
        self == &source::SRCLINE || self == &source::SRCFILE
    }

    /// Whether its cells show what tracepoints tell.
    #[must_use]
    pub fn shows_payload(&self) -> bool {
        self.reads == Reads::Payload
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Key {}

/// The part of a sample that a key looks at: what can't be seen needn't be kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The name of the task.
    Comm,
    /// The thread.
    Thread,
    /// The processor.
    Cpu,
    /// What a tracepoint tells.
    Payload,
    /// The code at one frame.
    Site,
}

/// Who was sampled: equal for all frames of a sample. What no key reads is left at its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Context {
    pub(crate) comm: Option<CommId>,
    pub(crate) thread: Thread,
    /// `u32::MAX` where the samples don't tell.
    pub(crate) cpu: u32,
    /// What the tracepoint told; `None` for other events.
    pub(crate) payload: Option<PayloadId>,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The code of one frame: a function, or an address of which no function is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Site {
    pub(crate) dso: Option<DsoId>,
    pub(crate) symbol: Option<SymbolId>,
    /// The address where no symbol is known, or where call graphs tell addresses apart, else 0.
    pub(crate) address: u64,
    /// Where in the source it is, where that is asked for.
    pub(crate) line: Line,
    /// Kernel or user space; `None` without a mapping, which leaves it open.
    pub(crate) level: Option<Level>,
}

/// Where in the source a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Line {
    /// Nobody asked, or the code is in no file.
    #[default]
    None,
    /// `FILE:LINE`.
    Known(PayloadId),
    /// What keys show where the code is in no file: `FUNCTION+OFFSET`, `OBJECT[ADDRESS]`.
    Address(PayloadId),
}

/// What keys are applied to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) context: &'a Context,
    pub(crate) site: &'a Site,
    pub(crate) level: Level,
}

/// One key's view of a subject, comparable. Variants of one key stand in the order of rows: what is not known comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part<'n> {
    /// By bytes.
    Text(&'n str),
    /// A function of an object.
    Function {
        dso: Option<&'n str>,
        start: i64,
        end: i64,
    },
    /// A function inlined into another one, whose range it has.
    Inlined { name: &'n str, start: i64, end: i64 },
    /// Numbers, and addresses as signed numbers: the kernel's come first.
    Number(i64),
    /// Not known.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_addresses_and_unknown_things_are_ordered_as_in_perf() {
        let kernel = Part::Number(-1);
        assert!(kernel < Part::Number(0x1000));
        assert!(Part::Text("zz") < Part::Absent);
    }
}
