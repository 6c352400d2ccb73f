//! `symbol`, `symoff`: the function, or function and offset; the address if unknown.

use super::{CellPadding, INLINED, Key, KeyDependency, KeyInput, KeyValue, ShownCode};
use crate::names::RecordingNames;

pub(super) static SYMBOL: Key = Key {
    name: "symbol",
    title: "Symbol",
    unresolved_width: 22,
    pads: CellPadding::Never,
    reads: KeyDependency::Site,
    identity,
    rank: |subject, names| {
        let name = |symbol| KeyValue::Text(names.symbol(symbol));
        subject.site.symbol.map_or(KeyValue::Absent, name)
    },
    text,
};

/// One row per instruction.
pub(super) static SYMBOL_OFFSET: Key = Key {
    name: "symoff",
    title: "Symbol Offset",
    unresolved_width: 22,
    pads: CellPadding::Never,
    reads: KeyDependency::Site,
    identity: place,
    rank: |subject, names| match subject.site.symbol {
        Some(symbol) => KeyValue::Named {
            name: names.symbol(symbol),
            start: subject.site.place.cast_signed(),
            end: 0,
        },
        None => KeyValue::Absent,
    },
    text: |subject, names| {
        let function = text(subject, names);
        let Some(symbol) = subject.site.symbol else {
            return function;
        };
        let offset = subject.site.place.wrapping_sub(names.range(symbol).0);
        match function.strip_suffix(INLINED) {
            Some(function) => format!("{function}+{offset:#x}{INLINED}"),
            // Variables already have an offset.
            None if names.is_data(symbol) => function,
            None => format!("{function}+{offset:#x}"),
        }
    },
};

/// The bare name of the function, empty if unknown: it pairs functions of different builds. Not shown.
pub(crate) static FUNCTION_NAME: Key = Key {
    name: "function name",
    title: "",
    unresolved_width: 0,
    pads: CellPadding::Never,
    reads: KeyDependency::Site,
    identity,
    rank: |subject, names| (SYMBOL.rank)(subject, names),
    text: |subject, names| {
        let name = |symbol| names.symbol(symbol).to_owned();
        subject.site.symbol.map(name).unwrap_or_default()
    },
};

/// A location is identified by object and address, and the name of an inlined function.
fn place<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let (site, at) = (subject.site, subject.site.place.cast_signed());
    match identity(subject, names) {
        KeyValue::Named { name, .. } => KeyValue::Named {
            name,
            start: at,
            end: at,
        },
        KeyValue::Function { dso, .. } => KeyValue::Function {
            dso,
            start: at,
            end: at,
        },
        _ => KeyValue::Number(site.address.cast_signed()),
    }
}

/// A function is identified by object and range: two static functions with the same name are two
/// rows. If runtimes reuse memory for functions, the name is used, too.
fn identity<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let Some(symbol) = subject.site.symbol else {
        return KeyValue::Number(subject.site.address.cast_signed());
    };
    let (start, end) = names.range(symbol);
    let (start, end) = (start.cast_signed(), end.cast_signed());
    if names.is_inlined(symbol) || names.shares_its_place(symbol) {
        let name = names.symbol(symbol);
        return KeyValue::Named { name, start, end };
    }
    KeyValue::Function {
        dso: subject.site.dso.map(|dso| names.dso(dso)),
        start,
        end,
    }
}

fn text(subject: &KeyInput<'_>, names: &dyn RecordingNames) -> String {
    let site = subject.site;
    let code = ShownCode {
        level: subject.level.letter(),
        dso: site.dso,
        symbol: site.symbol.map(|symbol| (symbol, site.place)),
        ip: site.address,
        place: site.place,
    };
    code.text(names)
}
