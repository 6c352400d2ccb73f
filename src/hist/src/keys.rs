//! Sort keys with their columns.
//!
//! To add a key: a file in this folder with its [`Key`], and one line in [`KEYS`].

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
use rperf_symbol::SymbolOrigin;

use self::comm::NumberlessName;
use self::field::TraceField;
pub(crate) use self::symbol::FUNCTION_NAME;
use crate::marks::BranchMark;
use crate::names::RecordingNames;
use crate::options::CountedItems;
use crate::payloads::TextId;
pub(crate) use crate::properties::Property;
use crate::properties::{Cacheline, PropertiesId};
use crate::values::ValuesId;

/// The sort keys of `--sort` except tracepoint fields. A prefix of several names selects the first of them.
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
    &weight::LOCAL_RETIRE_LAT,
    &weight::RETIRE_LAT,
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
    /// The name for `--sort`.
    pub name: &'static str,
    /// Title of the column.
    pub title: &'static str,
    /// Minimum width of the column, in characters, if a row of the table has no known function.
    pub unresolved_width: usize,
    /// Padding of its cells.
    pub pads: CellPadding,
    /// The part of a sample that the key depends on.
    pub(crate) reads: KeyDependency,
    /// Determines which samples share a row.
    pub(crate) identity: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    /// Determines the order of rows that are equal in the numbers by which rows are sorted first, usually the period. For some
    /// keys, different identities have the same rank.
    pub(crate) rank: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    /// The text of a cell.
    pub(crate) text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
}

/// Padding of cells to the width of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellPadding {
    /// After a cell, except in the last column.
    UnlessLast,
    /// After a cell, also in the last column.
    Always,
    /// Before a cell: numbers.
    Before,
}

/// Name and title of a key.
struct KeyLabel {
    /// Its name in `--sort`.
    name: &'static str,
    /// The title of its column.
    title: &'static str,
}

/// Returns the label of a key.
const fn label(name: &'static str, title: &'static str) -> KeyLabel {
    KeyLabel { name, title }
}

impl Key {
    /// A key whose rank is the same as its identity.
    const fn plain(
        label: KeyLabel,
        reads: KeyDependency,
        pads: CellPadding,
        value: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
        text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
    ) -> Self {
        Self {
            name: label.name,
            title: label.title,
            unresolved_width: 0,
            pads,
            reads,
            identity: value,
            rank: value,
            text,
        }
    }

    /// The kind of items that must be counted for this key; `None` if the key can be used with every kind.
    #[must_use]
    pub fn required_items(&self) -> Option<CountedItems> {
        match self.reads {
            KeyDependency::Property(Property::Branch) => Some(CountedItems::Branches),
            KeyDependency::Property(Property::Access) => Some(CountedItems::Accesses),
            _ => None,
        }
    }

    /// Whether the key is `symbol`.
    #[must_use]
    pub fn shows_function(&self) -> bool {
        self == &symbol::SYMBOL
    }

    /// Whether its cells show mapping sizes.
    pub(crate) fn shows_map_size(&self) -> bool {
        self == &size::DSO_SIZE
    }

    /// Whether its cells show source lines or files.
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

    /// Whether its cells show offsets in functions.
    pub(crate) fn shows_offset(&self) -> bool {
        self == &symbol::SYMBOL_OFFSET
    }

    /// Whether its cells show the number of running threads.
    #[must_use]
    pub fn shows_parallelism(&self) -> bool {
        self.reads == KeyDependency::Property(Property::Parallelism)
    }

    /// Whether its cells show tracepoint payloads.
    #[must_use]
    pub fn shows_payload(&self) -> bool {
        self.reads == KeyDependency::Payload
    }

    /// Whether its cells show a function of the callchain.
    #[must_use]
    pub fn shows_parent(&self) -> bool {
        self.reads == KeyDependency::Parent
    }

    /// Whether its cells show a tracepoint field.
    pub(crate) fn shows_field(&self) -> bool {
        matches!(self.reads, KeyDependency::Field(_))
    }

    /// Whether samples of the event with this index have a value for the key: tracepoint fields
    /// belong to one event.
    pub(crate) fn applies_to(&self, event: usize) -> bool {
        match self.reads {
            KeyDependency::Field(field) => field.event == event,
            _ => true,
        }
    }

    /// The index of the key among the keys of tracepoint fields; 0 for other keys.
    pub(crate) fn field_number(&self) -> usize {
        match self.reads {
            KeyDependency::Field(field) => field.number,
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

/// The part of a sample that a key depends on. Parts that no key depends on do not distinguish samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyDependency {
    /// The name of the task.
    Comm,
    /// The thread.
    Thread,
    /// The processor.
    Cpu,
    /// The payload of a tracepoint.
    Payload,
    /// A function of the callchain.
    Parent,
    /// A field of a tracepoint.
    Field(TraceField),
    /// One of the properties.
    Property(Property),
    /// The code at one frame.
    Site,
}

/// Properties common to all frames of a sample. Those that no key uses have a constant value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SampleContext {
    pub(crate) comm: Option<CommId>,
    pub(crate) thread: Thread,
    /// `u32::MAX` if not recorded.
    pub(crate) cpu: u32,
    /// The payload of a tracepoint; `None` for other events.
    pub(crate) payload: Option<TextId>,
    /// The function of the callchain that the key `parent` shows.
    pub(crate) parent: Option<SymbolId>,
    /// The tracepoint fields used by keys.
    pub(crate) values: Option<ValuesId>,
    /// Further properties used by keys.
    pub(crate) properties: Option<PropertiesId>,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// The code of one frame: a function, or an address without a known function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct CodeSite {
    pub(crate) dso: Option<DsoId>,
    pub(crate) symbol: Option<SymbolId>,
    /// The address if there is no symbol, or if call graphs distinguish addresses, otherwise 0.
    pub(crate) address: u64,
    /// The address of the frame, if it or its offset is shown next to the symbol, otherwise 0.
    pub(crate) shown_address: u64,
    /// Its source location, if used.
    pub(crate) line: LocationText,
    /// `None` without a mapping.
    pub(crate) level: Option<Level>,
    /// Size of the mapping in bytes, if used.
    pub(crate) map_size: Option<u64>,
    /// The branch that starts or ends at this frame, if any.
    pub(crate) mark: Option<BranchMark>,
}

/// Source location of a frame, as the index of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum LocationText {
    /// Not used, or unknown. If keys show lines, code without a known line gets [`Self::Address`] instead, unless it has neither
    /// a function nor an object.
    #[default]
    None,
    /// `FILE:LINE`.
    Known(TextId),
    /// Text of keys for code without a known line: `FUNCTION+OFFSET`, `OBJECT[ADDRESS]`. Call graphs do not show it.
    Address(TextId),
}

/// The input of keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyInput<'a> {
    pub(crate) context: &'a SampleContext,
    pub(crate) site: &'a CodeSite,
    /// The privilege level of the row's frame in the earliest sample. Unlike [`CodeSite::level`], it is also known for a
    /// frame without a mapping: it is that of the nearest inner frame with one, or that of the sample if there is none.
    pub(crate) level: Level,
    /// Number of samples of the row.
    pub(crate) samples: u64,
    /// Index of the requested tracepoint field: [`Key::field_number`].
    pub(crate) field_number: usize,
}

/// A level in brackets and an address, formatted like C's `%#.16x`: no 0x for zero.
fn address_text(level: char, address: u64) -> String {
    match address {
        0 => format!("[{level}] {:016x}", 0),
        address => format!("[{level}] {address:#018x}"),
    }
}

/// Suffix of the names of inlined functions.
pub(crate) const INLINED: &str = " (inlined)";

/// Displayed properties of a code or data address.
struct ShownCode {
    /// Its level letter.
    level: char,
    dso: Option<DsoId>,
    /// The symbol, with the address in its object.
    symbol: Option<(SymbolId, u64)>,
    /// The address shown if there is no symbol.
    ip: u64,
    /// The address shown before the name or address with [`RecordingNames::shows_addresses`].
    shown_address: u64,
}

impl ShownCode {
    /// The text of a cell: the level, and a function, a variable with offset, or an address. With
    /// [`RecordingNames::shows_addresses`], the address and the origin of the symbols come first.
    fn text(&self, names: &dyn RecordingNames) -> String {
        let level = self.level;
        let prefix = match names.shows_addresses() {
            true => {
                let origin = self.dso.and_then(|dso| names.origin(dso));
                format!(
                    "{:<18} {} ",
                    hexadecimal(self.shown_address),
                    origin.map_or('!', SymbolOrigin::letter)
                )
            }
            false => String::new(),
        };
        let Some((symbol, address)) = self.symbol else {
            return format!("{prefix}{}", address_text(level, self.ip));
        };
        let name = names.symbol(symbol);
        if names.is_data(symbol) {
            let offset = address.wrapping_sub(names.range(symbol).0);
            return format!("{prefix}[{level}] {name}+{offset:#x}");
        }
        match names.is_inlined(symbol) {
            true => format!("{prefix}[{level}] {name}{INLINED}"),
            false => format!("{prefix}[{level}] {name}"),
        }
    }
}

/// Formatted like C's `%#x`: no 0x for zero.
pub(crate) fn hexadecimal(address: u64) -> String {
    match address {
        0 => "0".to_owned(),
        address => format!("{address:#x}"),
    }
}

/// The value of one key. Values are compared in row order: unknown values come last, unless they are [`KeyValue::First`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum KeyValue<'n> {
    /// Unknown, sorted before known values.
    First,
    /// By bytes, descending.
    Descending(Reverse<&'n str>),
    /// By bytes.
    Text(&'n str),
    /// By text ignoring numbers.
    Numberless(NumberlessName<'n>),
    /// Bytes of a tracepoint field, descending.
    Bytes(Reverse<&'n [u8]>),
    /// A function of an object. For `symoff`, a location in it: `start` and `end` are both its address.
    Function {
        dso: Option<&'n str>,
        start: i64,
        end: i64,
    },
    /// A function that its range does not identify, because it is inlined or another function may have had the same range at
    /// another time. For `symoff`, a location: the name of its function, and its address as `start`; `end` is the same for equal
    /// `start`, so it never decides a comparison.
    Named { name: &'n str, start: i64, end: i64 },
    /// Numbers, and addresses as signed numbers: kernel addresses come first.
    Number(i64),
    /// Two numbers.
    Pair(u64, u64),
    /// A cache line.
    Cacheline(Cacheline),
    /// Unknown.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_addresses_and_unknown_values_are_ordered_as_in_perf() {
        let kernel = KeyValue::Number(-1);
        assert!(kernel < KeyValue::Number(0x1000));
        assert!(KeyValue::Text("zz") < KeyValue::Absent);
    }
}
