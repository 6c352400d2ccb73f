//! The keys of branches: where they came from, where they went, and what the hardware tells of them.

use std::cmp::Reverse;

use super::{Code, Fact, Key, Pads, Part, Reads, Subject, address_text};
use crate::facts::{Branch, Spot};
use crate::keys::Line;
use crate::names::Names;

const fn key(
    name: (&'static str, &'static str),
    what: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    text: fn(&Subject<'_>, &dyn Names) -> String,
) -> Key {
    Key::plain(name, Reads::Fact(Fact::Branch), Pads::Always, what, text)
}

pub(super) static DSO_FROM: Key = key(
    ("dso_from", "Source Shared Object"),
    |subject, names| dso(from(subject, names), names),
    |subject, names| dso_text(from(subject, names), names),
);

pub(super) static DSO_TO: Key = key(
    ("dso_to", "Target Shared Object"),
    |subject, names| dso(to(subject, names), names),
    |subject, names| dso_text(to(subject, names), names),
);

pub(super) static SYMBOL_FROM: Key = Key {
    pads: Pads::Never,
    ..key(
        ("symbol_from", "Source Symbol"),
        |subject, names| symbol(from(subject, names), names),
        |subject, names| symbol_text(from(subject, names), subject, names),
    )
};

pub(super) static SYMBOL_TO: Key = Key {
    pads: Pads::Never,
    ..key(
        ("symbol_to", "Target Symbol"),
        |subject, names| symbol(to(subject, names), names),
        |subject, names| symbol_text(to(subject, names), subject, names),
    )
};

pub(super) static ADDR_FROM: Key = Key {
    pads: Pads::Never,
    ..key(
        ("addr_from", "Source Address"),
        |subject, names| address(from(subject, names)),
        |subject, names| place_text(from(subject, names), subject, names),
    )
};

pub(super) static ADDR_TO: Key = Key {
    pads: Pads::Never,
    ..key(
        ("addr_to", "Target Address"),
        |subject, names| address(to(subject, names)),
        |subject, names| place_text(to(subject, names), subject, names),
    )
};

pub(super) static SRCLINE_FROM: Key = key(
    ("srcline_from", "From Source:Line"),
    |subject, names| Part::Text(line(from(subject, names), names)),
    |subject, names| line(from(subject, names), names).to_owned(),
);

pub(super) static SRCLINE_TO: Key = key(
    ("srcline_to", "To Source:Line"),
    |subject, names| Part::Text(line(to(subject, names), names)),
    |subject, names| line(to(subject, names), names).to_owned(),
);

pub(super) static MISPREDICT: Key = key(
    ("mispredict", "Branch Mispredicted"),
    |subject, names| flags(subject, names, MISPREDICTED | PREDICTED),
    |subject, names| match branch(subject, names).map(|branch| branch.flags) {
        Some(flags) if flags & PREDICTED != 0 => "N".to_owned(),
        Some(flags) if flags & MISPREDICTED != 0 => "Y".to_owned(),
        _ => NOT_KNOWN.to_owned(),
    },
);

pub(super) static IN_TX: Key = key(
    ("in_tx", "Branch in transaction"),
    |subject, names| flags(subject, names, IN_TRANSACTION),
    |subject, names| mark(subject, names, IN_TRANSACTION, "T"),
);

pub(super) static ABORT: Key = key(
    ("abort", "Transaction abort"),
    |subject, names| flags(subject, names, ABORTED),
    |subject, names| mark(subject, names, ABORTED, "A"),
);

/// Since the branch before.
pub(super) static CYCLES: Key = key(
    ("cycles", "Basic Block Cycles"),
    |subject, names| match branch(subject, names) {
        Some(branch) => Part::Number(i64::from(cycles(branch)).wrapping_neg()),
        None => Part::Absent,
    },
    |subject, names| match branch(subject, names).map(cycles) {
        None => NOT_KNOWN.to_owned(),
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

/// What is shown of samples without branches.
const NOT_KNOWN: &str = "N/A";

fn branch<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Option<&'n Branch> {
    names.facts(subject).branch.as_ref()
}

fn from<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Option<&'n Spot> {
    branch(subject, names).map(|branch| &branch.from)
}

fn to<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Option<&'n Spot> {
    branch(subject, names).map(|branch| &branch.to)
}

/// Backwards by name, as perf has it; what is not known first.
fn dso<'n>(spot: Option<&Spot>, names: &'n dyn Names) -> Part<'n> {
    match spot.map(|spot| spot.site.dso) {
        Some(Some(dso)) => Part::Descending(Reverse(names.dso(dso))),
        Some(None) => Part::First,
        None => Part::Absent,
    }
}

fn dso_text(spot: Option<&Spot>, names: &dyn Names) -> String {
    let text = match spot.map(|spot| spot.site.dso) {
        Some(Some(dso)) => names.dso(dso),
        Some(None) => "[unknown]",
        None => NOT_KNOWN,
    };
    text.to_owned()
}

/// By its range alone: functions at one place of two objects are one row unless their objects are shown, as in perf.
fn symbol<'n>(spot: Option<&Spot>, names: &'n dyn Names) -> Part<'n> {
    let Some(spot) = spot else {
        return Part::Absent;
    };
    let Some(symbol) = spot.site.symbol else {
        return address(Some(spot));
    };
    let (start, end) = names.range(symbol);
    Part::Function {
        dso: None,
        start: start.cast_signed(),
        end: end.cast_signed(),
    }
}

fn symbol_text(spot: Option<&Spot>, subject: &Subject<'_>, names: &dyn Names) -> String {
    let Some(spot) = spot else {
        return NOT_KNOWN.to_owned();
    };
    let code = Code {
        level: subject.level.letter(),
        dso: spot.site.dso,
        symbol: spot.site.symbol.map(|symbol| (symbol, spot.address)),
        ip: spot.address,
        place: spot.address,
    };
    code.text(names)
}

fn address(spot: Option<&Spot>) -> Part<'static> {
    spot.map_or(Part::Absent, |spot| Part::Number(spot.ip.cast_signed()))
}

/// A function and the place in it.
fn place_text(spot: Option<&Spot>, subject: &Subject<'_>, names: &dyn Names) -> String {
    let Some(spot) = spot else {
        return NOT_KNOWN.to_owned();
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

fn line<'n>(spot: Option<&Spot>, names: &'n dyn Names) -> &'n str {
    match spot.map(|spot| spot.site.line) {
        Some(Line::Known(line) | Line::Address(line)) => names.line(line),
        _ => "??:0",
    }
}

fn flags(subject: &Subject<'_>, names: &dyn Names, mask: u64) -> Part<'static> {
    branch(subject, names).map_or(Part::Absent, |branch| {
        Part::Number((branch.flags & mask).cast_signed())
    })
}

fn mark(subject: &Subject<'_>, names: &dyn Names, mask: u64, letter: &str) -> String {
    let text = match branch(subject, names).map(|branch| branch.flags & mask) {
        None => NOT_KNOWN,
        Some(0) => ".",
        Some(_) => letter,
    };
    text.to_owned()
}

fn cycles(branch: &Branch) -> u16 {
    (branch.flags >> CYCLES_AT) as u16
}
