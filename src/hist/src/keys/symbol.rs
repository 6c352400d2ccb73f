//! `symbol`, `symoff`: the function, or the place in it; the address where none is known.

use super::{Code, INLINED, Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static SYMBOL: Key = Key {
    name: "symbol",
    title: "Symbol",
    unresolved_width: 22,
    pads: Pads::Never,
    reads: Reads::Site,
    identity,
    rank: |subject, names| {
        let name = |symbol| Part::Text(names.symbol(symbol));
        subject.site.symbol.map_or(Part::Absent, name)
    },
    text,
};

/// Each instruction is a row.
pub(super) static SYMBOL_OFFSET: Key = Key {
    name: "symoff",
    title: "Symbol Offset",
    unresolved_width: 22,
    pads: Pads::Never,
    reads: Reads::Site,
    identity: place,
    rank: |subject, names| match subject.site.symbol {
        Some(symbol) => Part::Named {
            name: names.symbol(symbol),
            start: subject.site.place.cast_signed(),
            end: 0,
        },
        None => Part::Absent,
    },
    text: |subject, names| {
        let function = text(subject, names);
        let Some(symbol) = subject.site.symbol else {
            return function;
        };
        let offset = subject.site.place.wrapping_sub(names.range(symbol).0);
        match function.strip_suffix(INLINED) {
            Some(function) => format!("{function}+{offset:#x}{INLINED}"),
            // Variables have theirs already.
            None if names.is_data(symbol) => function,
            None => format!("{function}+{offset:#x}"),
        }
    },
};

/// A place is its object and address, with the name of what is inlined there.
fn place<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    let (site, at) = (subject.site, subject.site.place.cast_signed());
    match identity(subject, names) {
        Part::Named { name, .. } => Part::Named {
            name,
            start: at,
            end: at,
        },
        Part::Function { dso, .. } => Part::Function {
            dso,
            start: at,
            end: at,
        },
        _ => Part::Number(site.address.cast_signed()),
    }
}

/// A function is its object and range: two static functions of one name are two rows. Where runtimes put one function
/// after the other, the name counts, too.
fn identity<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    let Some(symbol) = subject.site.symbol else {
        return Part::Number(subject.site.address.cast_signed());
    };
    let (start, end) = names.range(symbol);
    let (start, end) = (start.cast_signed(), end.cast_signed());
    if names.is_inlined(symbol) || names.shares_its_place(symbol) {
        let name = names.symbol(symbol);
        return Part::Named { name, start, end };
    }
    Part::Function {
        dso: subject.site.dso.map(|dso| names.dso(dso)),
        start,
        end,
    }
}

fn text(subject: &Subject<'_>, names: &dyn Names) -> String {
    let site = subject.site;
    let code = Code {
        level: subject.level.letter(),
        dso: site.dso,
        symbol: site.symbol.map(|symbol| (symbol, site.place)),
        ip: site.address,
        place: site.place,
    };
    code.text(names)
}
