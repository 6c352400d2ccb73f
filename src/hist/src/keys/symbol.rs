//! `symbol`: the function. `symoff`: the function and the offset in it. Both show the address if the function is unknown.

use super::{CellPadding, INLINED, Key, KeyDependency, KeyInput, KeyValue, ShownCode};
use crate::names::RecordingNames;

pub(super) static SYMBOL: Key = Key {
    name: "symbol",
    title: "Symbol",
    unresolved_width: 22,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Site,
    identity,
    rank: |input, names| {
        let name = |symbol| KeyValue::Text(names.symbol(symbol));
        input.site.symbol.map_or(KeyValue::Absent, name)
    },
    text,
};

/// The key `symoff`: each address has its own row.
pub(super) static SYMBOL_OFFSET: Key = Key {
    name: "symoff",
    title: "Symbol Offset",
    unresolved_width: 22,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Site,
    identity: function_at,
    // By name, then by address: the order of `KeyValue::Named`, used here also for functions identified by object and range.
    rank: |input, names| match input.site.symbol {
        Some(symbol) => KeyValue::Named {
            name: names.symbol(symbol),
            start: input.site.shown_address.cast_signed(),
            // The same for all rows: the order does not depend on it.
            end: 0,
        },
        None => KeyValue::Absent,
    },
    text: |input, names| {
        let function = text(input, names);
        let Some(symbol) = input.site.symbol else {
            return function;
        };
        let offset = input.site.shown_address.wrapping_sub(names.range(symbol).0);
        match function.strip_suffix(INLINED) {
            Some(function) => format!("{function}+{offset:#x}{INLINED}"),
            // The text of a variable already has an offset.
            None if names.is_data(symbol) => function,
            None => format!("{function}+{offset:#x}"),
        }
    },
};

/// The bare name of the function, empty if unknown. No option selects it: comparisons pair rows of different builds by its cells,
/// since `identity` and the cells of `symbol` may have addresses.
pub(crate) static FUNCTION_NAME: Key = Key {
    name: "function name",
    title: "",
    unresolved_width: 0,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Site,
    identity,
    rank: |input, names| (SYMBOL.rank)(input, names),
    text: |input, names| {
        let name = |symbol| names.symbol(symbol).to_owned();
        input.site.symbol.map(name).unwrap_or_default()
    },
};

/// A location in a function is identified by object and address, or, if [`identity`] uses the function's name, by that name and
/// the address; code without a function by its address. The address is [`CodeSite::shown_address`](super::CodeSite) in a
/// function, and `CodeSite::address` without one.
fn function_at<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let (site, at) = (input.site, input.site.shown_address.cast_signed());
    match identity(input, names) {
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

/// A function is identified by object and range: two static functions with the same name are two rows. A function that is
/// inlined, or whose address other functions may have had at other times (JIT), is identified by name and range, unknown code by
/// its address.
fn identity<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let Some(symbol) = input.site.symbol else {
        return KeyValue::Number(input.site.address.cast_signed());
    };
    let (start, end) = names.range(symbol);
    let (start, end) = (start.cast_signed(), end.cast_signed());
    if names.is_inlined(symbol) || names.shares_its_address(symbol) {
        let name = names.symbol(symbol);
        return KeyValue::Named { name, start, end };
    }
    KeyValue::Function {
        dso: input.site.dso.map(|dso| names.dso(dso)),
        start,
        end,
    }
}

fn text(input: &KeyInput<'_>, names: &dyn RecordingNames) -> String {
    let site = input.site;
    let code = ShownCode {
        level: input.level.letter(),
        dso: site.dso,
        symbol: site.symbol.map(|symbol| (symbol, site.shown_address)),
        ip: site.address,
        shown_address: site.shown_address,
    };
    code.text(names)
}
