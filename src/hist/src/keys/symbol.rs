//! `symbol`: the function, or the address where none is known.

use super::{Code, Key, Pads, Part, Reads, Subject};
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
        return Part::Inlined { name, start, end };
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
