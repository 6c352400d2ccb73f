//! What tells the rows of a report apart: each sort key with its column, in one place.
//!
//! To add a key: a file beside the others with its [`Key`], and one line in [`KEYS`].

mod branch;
mod cgroup;
mod comm;
mod cpu;
mod dso;
mod field;
mod memory;
mod parallelism;
mod parent;
mod size;
mod socket;
mod source;
mod symbol;
mod thread;
mod time;
mod trace;
mod transaction;
mod weight;

use std::cmp::Reverse;
use std::fmt;

use rperf_replay::{CommId, DsoId};
use rperf_resolve::{Level, SymbolId};
use rperf_symbol::Origin;

use self::comm::Numberless;
use self::field::TraceField;
pub(crate) use crate::facts::Fact;
use crate::facts::{Cacheline, FactsId};
use crate::marks::Mark;
use crate::names::Names;
use crate::options::Counted;
use crate::payloads::PayloadId;
use crate::values::ValuesId;

/// All sort keys. A word that several names begin with means the first of them.
pub(crate) static KEYS: &[&Key] = &[
    &thread::PID,
    &comm::COMM,
    &dso::DSO,
    &symbol::SYMBOL,
    &parent::PARENT,
    &cpu::CPU,
    &socket::SOCKET,
    &source::SRCLINE,
    &source::SRCFILE,
    &weight::LOCAL_WEIGHT,
    &weight::WEIGHT,
    &transaction::TRANSACTION,
    &trace::TRACE,
    &size::SYMBOL_SIZE,
    &size::DSO_SIZE,
    &cgroup::CGROUP,
    &cgroup::CGROUP_ID,
    &time::TIME,
    &size::CODE_PAGE_SIZE,
    &thread::TID,
    &thread::TGID,
    &comm::COMM_NODIGIT,
    &symbol::SYMBOL_OFFSET,
    &parallelism::PARALLELISM,
    &weight::LOCAL_INS_LAT,
    &weight::INS_LAT,
    &branch::DSO_FROM,
    &branch::DSO_TO,
    &branch::SYMBOL_FROM,
    &branch::SYMBOL_TO,
    &branch::MISPREDICT,
    &branch::ABORT,
    &branch::IN_TX,
    &branch::CYCLES,
    &branch::SRCLINE_FROM,
    &branch::SRCLINE_TO,
    &branch::ADDR_FROM,
    &branch::ADDR_TO,
    &memory::SYMBOL_DADDR,
    &memory::DSO_DADDR,
    &memory::LOCKED,
    &memory::TLB,
    &memory::MEM,
    &memory::SNOOP,
    &memory::DCACHELINE,
    &memory::SYMBOL_IADDR,
    &memory::PHYS_DADDR,
    &memory::DATA_PAGE_SIZE,
    &memory::BLOCKED,
];

/// One sort key and its column.
pub struct Key {
    /// The word that `--sort` takes.
    pub name: &'static str,
    /// Title of the column.
    pub title: &'static str,
    /// The column's least width, in characters, in a table with an unresolved row.
    pub unresolved_width: usize,
    /// How its cells are filled up with blanks.
    pub pads: Pads,
    /// Which part of a sample it looks at.
    pub(crate) reads: Reads,
    /// What makes two samples belong to one row.
    pub(crate) identity: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    /// What orders rows of equal weight; some keys can't tell all rows apart by it.
    pub(crate) rank: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    /// The cell.
    pub(crate) text: fn(&Subject<'_>, &dyn Names) -> String,
}

/// Where blanks are put to make cells as wide as their column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pads {
    /// Behind a cell, but not in the last column.
    Never,
    /// Behind a cell, in the last column too.
    Always,
    /// In front of it: numbers.
    Before,
}

impl Key {
    /// A key of that name and title whose rows are ordered by what makes them.
    const fn plain(
        (name, title): (&'static str, &'static str),
        reads: Reads,
        pads: Pads,
        what: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
        text: fn(&Subject<'_>, &dyn Names) -> String,
    ) -> Self {
        Self {
            name,
            title,
            unresolved_width: 0,
            pads,
            reads,
            identity: what,
            rank: what,
            text,
        }
    }

    /// What has to be counted for it to have anything to show.
    #[must_use]
    pub fn needs(&self) -> Option<Counted> {
        match self.reads {
            Reads::Fact(Fact::Branch) => Some(Counted::Branches),
            Reads::Fact(Fact::Access) => Some(Counted::Accesses),
            _ => None,
        }
    }

    /// Whether its cells show the size of mappings.
    pub(crate) fn shows_map_size(&self) -> bool {
        self == &size::DSO_SIZE
    }

    /// Whether its cells show lines or files of source.
    #[must_use]
    pub fn shows_source(&self) -> bool {
        [
            &source::SRCLINE,
            &source::SRCFILE,
            &branch::SRCLINE_FROM,
            &branch::SRCLINE_TO,
        ]
        .contains(&self)
    }

    /// Whether its cells show the place in a function.
    pub(crate) fn shows_offset(&self) -> bool {
        self == &symbol::SYMBOL_OFFSET
    }

    /// Whether its cells show how many threads ran.
    #[must_use]
    pub fn shows_parallelism(&self) -> bool {
        self.reads == Reads::Fact(Fact::Parallelism)
    }

    /// Whether its cells show what tracepoints tell.
    #[must_use]
    pub fn shows_payload(&self) -> bool {
        self.reads == Reads::Payload
    }

    /// Whether its cells show a function of the callchain.
    #[must_use]
    pub fn shows_parent(&self) -> bool {
        self.reads == Reads::Parent
    }

    /// Whether its cells show a field of a tracepoint.
    pub(crate) fn shows_field(&self) -> bool {
        matches!(self.reads, Reads::Field(_))
    }

    /// Whether samples of the event at `event` have something to show in its cells, or something that stands for it:
    /// fields are of one event alone.
    pub(crate) fn is_of(&self, event: usize) -> bool {
        match self.reads {
            Reads::Field(field) => field.event == event,
            _ => true,
        }
    }

    /// The number among the keys of fields of the one that it is.
    pub(crate) fn field(&self) -> usize {
        match self.reads {
            Reads::Field(field) => field.number,
            _ => 0,
        }
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
    /// A function of the callchain.
    Parent,
    /// A field of a tracepoint.
    Field(TraceField),
    /// One of the facts.
    Fact(Fact),
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
    /// The function of the callchain that was looked for.
    pub(crate) parent: Option<SymbolId>,
    /// The fields of the tracepoint that keys show.
    pub(crate) values: Option<ValuesId>,
    /// Whatever else keys read.
    pub(crate) facts: Option<FactsId>,
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
    /// Where the frame is, if that is shown beside the symbol or behind it, else 0.
    pub(crate) place: u64,
    /// Where in the source it is, where that is asked for.
    pub(crate) line: Line,
    /// Kernel or user space; `None` without a mapping, which leaves it open.
    pub(crate) level: Option<Level>,
    /// Bytes of the mapping, where they are asked for.
    pub(crate) map_size: Option<u64>,
    /// The end of a branch that it is.
    pub(crate) mark: Option<Mark>,
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
    /// Samples of the row.
    pub(crate) samples: u64,
    /// Which of the keys of fields is asked: [`Key::field`].
    pub(crate) field: usize,
}

/// An address in brackets, as C's `%#.16x` writes it: no 0x before a zero.
fn address_text(level: char, address: u64) -> String {
    match address {
        0 => format!("[{level}] {:016x}", 0),
        address => format!("[{level}] {address:#018x}"),
    }
}

/// What stands behind the name of an inlined function.
const INLINED: &str = " (inlined)";

/// What is shown of one piece of code or data.
struct Code {
    /// A letter for it.
    level: char,
    dso: Option<DsoId>,
    /// The symbol, with the address in terms of its object.
    symbol: Option<(SymbolId, u64)>,
    /// What is shown where there is no symbol.
    ip: u64,
    /// What is shown beside it in [`Names::shows_places`].
    place: u64,
}

impl Code {
    /// A function, or a variable with the place in it, or an address.
    fn text(&self, names: &dyn Names) -> String {
        let level = self.level;
        let place = match names.shows_places() {
            true => {
                let origin = self.dso.and_then(|dso| names.origin(dso));
                format!(
                    "{:<18} {} ",
                    hexadecimal(self.place),
                    origin.map_or('!', Origin::letter)
                )
            }
            false => String::new(),
        };
        let Some((symbol, address)) = self.symbol else {
            return format!("{place}{}", address_text(level, self.ip));
        };
        let name = names.symbol(symbol);
        if names.is_data(symbol) {
            let offset = address.wrapping_sub(names.range(symbol).0);
            return format!("{place}[{level}] {name}+{offset:#x}");
        }
        match names.is_inlined(symbol) {
            true => format!("{place}[{level}] {name}{INLINED}"),
            false => format!("{place}[{level}] {name}"),
        }
    }
}

/// As C's `%#x` writes it: no 0x before a zero.
fn hexadecimal(address: u64) -> String {
    match address {
        0 => "0".to_owned(),
        address => format!("{address:#x}"),
    }
}

/// One key's view of a subject, comparable. Variants of one key stand in the order of rows: what is not known comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part<'n> {
    /// Not known, and before all that is.
    First,
    /// By bytes, backwards.
    Descending(Reverse<&'n str>),
    /// By bytes.
    Text(&'n str),
    /// The same where numbers do not count.
    Numberless(Numberless<'n>),
    /// What a field of a record holds, backwards.
    Bytes(Reverse<&'n [u8]>),
    /// A function of an object.
    Function {
        dso: Option<&'n str>,
        start: i64,
        end: i64,
    },
    /// A function inlined into another one, whose range it has; or a place by the name of its function.
    Named { name: &'n str, start: i64, end: i64 },
    /// Numbers, and addresses as signed numbers: the kernel's come first.
    Number(i64),
    /// Two numbers.
    Pair(u64, u64),
    /// A cache line.
    Cacheline(Cacheline),
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
