//! Keys of branches: source, target, and properties recorded by the hardware.

use std::cmp::Reverse;

use rperf_resolve::Level;

use super::source::UNKNOWN;
use super::{
    CellPadding, Key, KeyDependency, KeyInput, KeyLabel, KeyValue, Property, ShownCode,
    address_text, label,
};
use crate::keys::LocationText;
use crate::names::RecordingNames;
use crate::properties::{BranchProperty, PropertyAddress};

const fn key(
    label: KeyLabel,
    value: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
) -> Key {
    Key::plain(
        label,
        KeyDependency::Property(Property::Branch),
        CellPadding::Always,
        value,
        text,
    )
}

pub(super) static DSO_FROM: Key = key(
    label("dso_from", "Source Shared Object"),
    |input, names| dso(from(input, names), names),
    |input, names| dso_text(from(input, names), names),
);

pub(super) static DSO_TO: Key = key(
    label("dso_to", "Target Shared Object"),
    |input, names| dso(to(input, names), names),
    |input, names| dso_text(to(input, names), names),
);

pub(super) static SYMBOL_FROM: Key = Key {
    pads: CellPadding::UnlessLast,
    ..key(
        label("symbol_from", "Source Symbol"),
        |input, names| symbol(from(input, names), names),
        |input, names| symbol_text(from(input, names), names),
    )
};

pub(super) static SYMBOL_TO: Key = Key {
    pads: CellPadding::UnlessLast,
    ..key(
        label("symbol_to", "Target Symbol"),
        |input, names| symbol(to(input, names), names),
        |input, names| symbol_text(to(input, names), names),
    )
};

pub(super) static ADDR_FROM: Key = Key {
    pads: CellPadding::UnlessLast,
    ..key(
        label("addr_from", "Source Address"),
        |input, names| address(from(input, names)),
        |input, names| location_text(from(input, names), input, names),
    )
};

pub(super) static ADDR_TO: Key = Key {
    pads: CellPadding::UnlessLast,
    ..key(
        label("addr_to", "Target Address"),
        |input, names| address(to(input, names)),
        |input, names| location_text(to(input, names), input, names),
    )
};

pub(super) static SRCLINE_FROM: Key = key(
    label("srcline_from", "From Source:Line"),
    |input, names| KeyValue::Text(line(from(input, names), names)),
    |input, names| line(from(input, names), names).to_owned(),
);

pub(super) static SRCLINE_TO: Key = key(
    label("srcline_to", "To Source:Line"),
    |input, names| KeyValue::Text(line(to(input, names), names)),
    |input, names| line(to(input, names), names).to_owned(),
);

pub(super) static MISPREDICT: Key = key(
    label("mispredict", "Branch Mispredicted"),
    |input, names| flags(input, names, MISPREDICTED | PREDICTED),
    |input, names| match branch(input, names).map(|branch| branch.flags) {
        Some(flags) if flags & PREDICTED != 0 => "N".to_owned(),
        Some(flags) if flags & MISPREDICTED != 0 => "Y".to_owned(),
        _ => NOT_AVAILABLE.to_owned(),
    },
);

pub(super) static IN_TX: Key = key(
    label("in_tx", "Branch in transaction"),
    |input, names| flags(input, names, IN_TRANSACTION),
    |input, names| flag_text(input, names, IN_TRANSACTION, "T"),
);

pub(super) static ABORT: Key = key(
    label("abort", "Transaction abort"),
    |input, names| flags(input, names, ABORTED),
    |input, names| flag_text(input, names, ABORTED, "A"),
);

/// Cycles since the previous branch.
pub(super) static CYCLES: Key = key(
    label("cycles", "Basic Block Cycles"),
    |input, names| match branch(input, names) {
        // Highest first.
        Some(branch) => KeyValue::Number(i64::from(cycles(branch)).wrapping_neg()),
        None => KeyValue::Absent,
    },
    |input, names| match branch(input, names).map(cycles) {
        None => NOT_AVAILABLE.to_owned(),
        Some(0) => "-".to_owned(),
        // perf prints the number as a C short.
        Some(cycles) => cycles.cast_signed().to_string(),
    },
);

// Bits of `BranchProperty::flags`.
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
const IN_TRANSACTION: u64 = 1 << 2;
const ABORTED: u64 = 1 << 3;
/// Position of the 16 bits of cycles in the flags.
const CYCLES_SHIFT: u32 = 4;

/// Text for samples without branches, and for branches without a recorded prediction.
const NOT_AVAILABLE: &str = "N/A";

fn branch<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n BranchProperty> {
    names.properties(input).branch.as_ref()
}

fn from<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n PropertyAddress> {
    branch(input, names).map(|branch| &branch.from)
}

fn to<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n PropertyAddress> {
    branch(input, names).map(|branch| &branch.to)
}

/// Returns the sort value of the object at one `end` of a branch, its source or target. As in perf, names are in descending
/// order, after unknown objects; samples without branches come last.
fn dso<'n>(end: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    match end.map(|end| end.site.dso) {
        Some(Some(dso)) => KeyValue::Descending(Reverse(names.dso(dso))),
        Some(None) => KeyValue::First,
        None => KeyValue::Absent,
    }
}

fn dso_text(end: Option<&PropertyAddress>, names: &dyn RecordingNames) -> String {
    let text = match end.map(|end| end.site.dso) {
        Some(Some(dso)) => names.dso(dso),
        Some(None) => "[unknown]",
        None => NOT_AVAILABLE,
    };
    text.to_owned()
}

/// Returns the address range of the function, or the address if the function is unknown. As in perf, functions of two objects
/// at the same addresses are one row unless objects are a key.
fn symbol<'n>(end: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let Some(end) = end else {
        return KeyValue::Absent;
    };
    let Some(symbol) = end.site.symbol else {
        return address(Some(end));
    };
    // `limit` is the end of the function; `end` is an end of the branch.
    let (start, limit) = names.range(symbol);
    KeyValue::Function {
        dso: None,
        start: start.cast_signed(),
        end: limit.cast_signed(),
    }
}

fn symbol_text(end: Option<&PropertyAddress>, names: &dyn RecordingNames) -> String {
    let Some(end) = end else {
        return NOT_AVAILABLE.to_owned();
    };
    let code = ShownCode {
        // Of this end of the branch. As in perf, `H` if nothing is mapped there.
        level: end.site.level.unwrap_or(Level::Hypervisor).letter(),
        dso: end.site.dso,
        symbol: end.site.symbol.map(|symbol| (symbol, end.address)),
        // Not `end.ip`: as in perf, the address in the object is shown if there is no symbol.
        ip: end.address,
        shown_address: end.address,
    };
    code.text(names)
}

/// Returns the recorded address, by which rows are distinguished and sorted; texts use the address in the object.
fn address(end: Option<&PropertyAddress>) -> KeyValue<'static> {
    end.map_or(KeyValue::Absent, |end| {
        KeyValue::Number(end.ip.cast_signed())
    })
}

/// A function and the offset in it, or an address without a function.
fn location_text(
    end: Option<&PropertyAddress>,
    input: &KeyInput<'_>,
    names: &dyn RecordingNames,
) -> String {
    let Some(end) = end else {
        return NOT_AVAILABLE.to_owned();
    };
    // As in perf, the level of the sample, not of this end of the branch.
    let level = input.level.letter();
    let Some(symbol) = end.site.symbol else {
        return address_text(level, end.address);
    };
    let name = names.symbol(symbol);
    match end.address.wrapping_sub(names.range(symbol).0) {
        0 => format!("[{level}] {name}"),
        offset => format!("[{level}] {name}+{offset:#x}"),
    }
}

fn line<'n>(end: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> &'n str {
    match end.map(|end| end.site.line) {
        Some(LocationText::Known(line) | LocationText::Address(line)) => names.line(line),
        Some(LocationText::None) | None => UNKNOWN,
    }
}

fn flags(input: &KeyInput<'_>, names: &dyn RecordingNames, mask: u64) -> KeyValue<'static> {
    branch(input, names).map_or(KeyValue::Absent, |branch| {
        KeyValue::Number((branch.flags & mask).cast_signed())
    })
}

/// `letter` if a bit of `mask` is set.
fn flag_text(input: &KeyInput<'_>, names: &dyn RecordingNames, mask: u64, letter: &str) -> String {
    let text = match branch(input, names).map(|branch| branch.flags & mask) {
        None => NOT_AVAILABLE,
        Some(0) => ".",
        Some(_) => letter,
    };
    text.to_owned()
}

fn cycles(branch: &BranchProperty) -> u16 {
    (branch.flags >> CYCLES_SHIFT) as u16
}
