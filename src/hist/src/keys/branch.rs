//! Keys of branches: source, target, and properties recorded by the hardware.

use std::cmp::Reverse;

use super::{
    CellPadding, Key, KeyDependency, KeyInput, KeyLabel, KeyValue, Property, ShownCode,
    address_text, label,
};
use crate::keys::LineNumber;
use crate::names::RecordingNames;
use crate::properties::{BranchProperty, PropertyAddress};

const fn key(
    label: KeyLabel,
    what: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
) -> Key {
    Key::plain(
        label,
        KeyDependency::Property(Property::Branch),
        CellPadding::Always,
        what,
        text,
    )
}

pub(super) static DSO_FROM: Key = key(
    label("dso_from", "Source Shared Object"),
    |subject, names| dso(from(subject, names), names),
    |subject, names| dso_text(from(subject, names), names),
);

pub(super) static DSO_TO: Key = key(
    label("dso_to", "Target Shared Object"),
    |subject, names| dso(to(subject, names), names),
    |subject, names| dso_text(to(subject, names), names),
);

pub(super) static SYMBOL_FROM: Key = Key {
    pads: CellPadding::Never,
    ..key(
        label("symbol_from", "Source Symbol"),
        |subject, names| symbol(from(subject, names), names),
        |subject, names| symbol_text(from(subject, names), subject, names),
    )
};

pub(super) static SYMBOL_TO: Key = Key {
    pads: CellPadding::Never,
    ..key(
        label("symbol_to", "Target Symbol"),
        |subject, names| symbol(to(subject, names), names),
        |subject, names| symbol_text(to(subject, names), subject, names),
    )
};

pub(super) static ADDR_FROM: Key = Key {
    pads: CellPadding::Never,
    ..key(
        label("addr_from", "Source Address"),
        |subject, names| address(from(subject, names)),
        |subject, names| place_text(from(subject, names), subject, names),
    )
};

pub(super) static ADDR_TO: Key = Key {
    pads: CellPadding::Never,
    ..key(
        label("addr_to", "Target Address"),
        |subject, names| address(to(subject, names)),
        |subject, names| place_text(to(subject, names), subject, names),
    )
};

pub(super) static SRCLINE_FROM: Key = key(
    label("srcline_from", "From Source:Line"),
    |subject, names| KeyValue::Text(line(from(subject, names), names)),
    |subject, names| line(from(subject, names), names).to_owned(),
);

pub(super) static SRCLINE_TO: Key = key(
    label("srcline_to", "To Source:Line"),
    |subject, names| KeyValue::Text(line(to(subject, names), names)),
    |subject, names| line(to(subject, names), names).to_owned(),
);

pub(super) static MISPREDICT: Key = key(
    label("mispredict", "Branch Mispredicted"),
    |subject, names| flags(subject, names, MISPREDICTED | PREDICTED),
    |subject, names| match branch(subject, names).map(|branch| branch.flags) {
        Some(flags) if flags & PREDICTED != 0 => "N".to_owned(),
        Some(flags) if flags & MISPREDICTED != 0 => "Y".to_owned(),
        _ => NOT_AVAILABLE.to_owned(),
    },
);

pub(super) static IN_TX: Key = key(
    label("in_tx", "Branch in transaction"),
    |subject, names| flags(subject, names, IN_TRANSACTION),
    |subject, names| mark(subject, names, IN_TRANSACTION, "T"),
);

pub(super) static ABORT: Key = key(
    label("abort", "Transaction abort"),
    |subject, names| flags(subject, names, ABORTED),
    |subject, names| mark(subject, names, ABORTED, "A"),
);

/// Cycles since the previous branch.
pub(super) static CYCLES: Key = key(
    label("cycles", "Basic Block Cycles"),
    |subject, names| match branch(subject, names) {
        Some(branch) => KeyValue::Number(i64::from(cycles(branch)).wrapping_neg()),
        None => KeyValue::Absent,
    },
    |subject, names| match branch(subject, names).map(cycles) {
        None => NOT_AVAILABLE.to_owned(),
        Some(0) => "-".to_owned(),
        // perf prints it as a short.
        Some(cycles) => cycles.cast_signed().to_string(),
    },
);

/// Bits of a branch's flags.
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
const IN_TRANSACTION: u64 = 1 << 2;
const ABORTED: u64 = 1 << 3;
const CYCLES_AT: u32 = 4;

/// Text for samples without branches.
const NOT_AVAILABLE: &str = "N/A";

fn branch<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n BranchProperty> {
    names.facts(subject).branch.as_ref()
}

fn from<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n PropertyAddress> {
    branch(subject, names).map(|branch| &branch.from)
}

fn to<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n PropertyAddress> {
    branch(subject, names).map(|branch| &branch.to)
}

/// By name, descending, as in perf; unknown ones first.
fn dso<'n>(spot: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    match spot.map(|spot| spot.site.dso) {
        Some(Some(dso)) => KeyValue::Descending(Reverse(names.dso(dso))),
        Some(None) => KeyValue::First,
        None => KeyValue::Absent,
    }
}

fn dso_text(spot: Option<&PropertyAddress>, names: &dyn RecordingNames) -> String {
    let text = match spot.map(|spot| spot.site.dso) {
        Some(Some(dso)) => names.dso(dso),
        Some(None) => "[unknown]",
        None => NOT_AVAILABLE,
    };
    text.to_owned()
}

/// By range only: as in perf, functions at the same addresses of two objects are one row unless
/// objects are shown.
fn symbol<'n>(spot: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let Some(spot) = spot else {
        return KeyValue::Absent;
    };
    let Some(symbol) = spot.site.symbol else {
        return address(Some(spot));
    };
    let (start, end) = names.range(symbol);
    KeyValue::Function {
        dso: None,
        start: start.cast_signed(),
        end: end.cast_signed(),
    }
}

fn symbol_text(
    spot: Option<&PropertyAddress>,
    subject: &KeyInput<'_>,
    names: &dyn RecordingNames,
) -> String {
    let Some(spot) = spot else {
        return NOT_AVAILABLE.to_owned();
    };
    let code = ShownCode {
        level: subject.level.letter(),
        dso: spot.site.dso,
        symbol: spot.site.symbol.map(|symbol| (symbol, spot.address)),
        ip: spot.address,
        place: spot.address,
    };
    code.text(names)
}

fn address(spot: Option<&PropertyAddress>) -> KeyValue<'static> {
    spot.map_or(KeyValue::Absent, |spot| {
        KeyValue::Number(spot.ip.cast_signed())
    })
}

/// A function and the offset in it.
fn place_text(
    spot: Option<&PropertyAddress>,
    subject: &KeyInput<'_>,
    names: &dyn RecordingNames,
) -> String {
    let Some(spot) = spot else {
        return NOT_AVAILABLE.to_owned();
    };
    let level = subject.level.letter();
    let Some(symbol) = spot.site.symbol else {
        return address_text(level, spot.address);
    };
    let name = names.symbol(symbol);
    match spot.address.wrapping_sub(names.range(symbol).0) {
        0 => format!("[{level}] {name}"),
        offset => format!("[{level}] {name}+{offset:#x}"),
    }
}

fn line<'n>(spot: Option<&PropertyAddress>, names: &'n dyn RecordingNames) -> &'n str {
    match spot.map(|spot| spot.site.line) {
        Some(LineNumber::Known(line) | LineNumber::Address(line)) => names.line(line),
        _ => "??:0",
    }
}

fn flags(subject: &KeyInput<'_>, names: &dyn RecordingNames, mask: u64) -> KeyValue<'static> {
    branch(subject, names).map_or(KeyValue::Absent, |branch| {
        KeyValue::Number((branch.flags & mask).cast_signed())
    })
}

fn mark(subject: &KeyInput<'_>, names: &dyn RecordingNames, mask: u64, letter: &str) -> String {
    let text = match branch(subject, names).map(|branch| branch.flags & mask) {
        None => NOT_AVAILABLE,
        Some(0) => ".",
        Some(_) => letter,
    };
    text.to_owned()
}

fn cycles(branch: &BranchProperty) -> u16 {
    (branch.flags >> CYCLES_AT) as u16
}
