//! Keys of `--mem-mode`: addresses, data source and properties of memory accesses.
//!
//! `ip` is an address as recorded, of code or data. `input.level` is the level of the sample's mode (`[k]`, `[.]`), while
//! `source.level()` is that of the memory (`L1 hit`).

use super::size::page_size_text;
use super::{
    CellPadding, Key, KeyDependency, KeyInput, KeyLabel, KeyValue, Property, ShownCode,
    address_text, label,
};
use crate::names::RecordingNames;
use crate::properties::{MemoryAccess, PropertyAddress};

const fn key(
    label: KeyLabel,
    pads: CellPadding,
    value: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
) -> Key {
    Key::plain(
        label,
        KeyDependency::Property(Property::Access),
        pads,
        value,
        text,
    )
}

/// Each address has its own row.
pub(super) static SYMBOL_DADDR: Key = key(
    label("symbol_daddr", "Data Symbol"),
    CellPadding::UnlessLast,
    |input, names| number(access(input, names).map(|access| access.data.ip)),
    |input, names| {
        symbol_text(
            access(input, names).map(|access| &access.data),
            input,
            names,
        )
    },
);

/// Each address has its own row.
pub(super) static SYMBOL_IADDR: Key = key(
    label("symbol_iaddr", "Code Symbol"),
    CellPadding::UnlessLast,
    |input, names| number(access(input, names).map(|access| access.code.ip)),
    |input, names| {
        symbol_text(
            access(input, names).map(|access| &access.code),
            input,
            names,
        )
    },
);

/// As in perf, unknown objects are sorted first, then names in descending order.
pub(super) static DSO_DADDR: Key = key(
    label("dso_daddr", "Data Object"),
    CellPadding::Always,
    |input, names| {
        let dso = access(input, names).and_then(|access| access.data.site.dso);
        dso.map_or(KeyValue::First, |dso| {
            KeyValue::Descending(std::cmp::Reverse(names.dso(dso)))
        })
    },
    |input, names| {
        let dso = access(input, names).and_then(|access| access.data.site.dso);
        dso.map_or("[unknown]", |dso| names.dso(dso)).to_owned()
    },
);

pub(super) static LOCKED: Key = key(
    label("locked", "Locked"),
    CellPadding::UnlessLast,
    |input, names| number(access(input, names).map(|access| access.source.lock_bits())),
    |input, names| access_text(input, names, |access| access.source.lock().to_owned()),
);

pub(super) static TLB: Key = key(
    label("tlb", "TLB access"),
    CellPadding::Always,
    |input, names| number(access(input, names).map(|access| access.source.tlb_bits())),
    |input, names| access_text(input, names, |access| access.source.tlb()),
);

pub(super) static MEM: Key = key(
    label("mem", "Memory access"),
    CellPadding::Always,
    |input, names| number(access(input, names).map(|access| access.source.level_bits())),
    |input, names| access_text(input, names, |access| access.source.level()),
);

pub(super) static SNOOP: Key = key(
    label("snoop", "Snoop"),
    CellPadding::Always,
    |input, names| number(access(input, names).map(|access| access.source.snoop_bits())),
    |input, names| access_text(input, names, |access| access.source.snoop()),
);

pub(super) static BLOCKED: Key = key(
    label("blocked", "Blocked"),
    CellPadding::UnlessLast,
    |input, names| number(access(input, names).map(|access| access.source.blocked_bits())),
    |input, names| access_text(input, names, |access| access.source.blocked()),
);

pub(super) static DCACHELINE: Key = key(
    label("dcacheline", "Data Cacheline"),
    CellPadding::UnlessLast,
    |input, names| {
        access(input, names).map_or(KeyValue::Absent, |access| {
            KeyValue::Cacheline(access.cacheline)
        })
    },
    |input, names| {
        let Some(access) = access(input, names) else {
            let no_address = None;
            return symbol_text(no_address, input, names);
        };
        let level = match access.cacheline {
            line if line.unmapped => UNMAPPED,
            line if line.shared => SHARED,
            _ => input.level.letter(),
        };
        let address = access.cacheline.address;
        let data = access.data.site;
        // `ShownCode` also formats data addresses. Here, each of its addresses is that of the cache line in the object.
        let code = ShownCode {
            level,
            dso: data.dso,
            symbol: data.symbol.map(|symbol| (symbol, address)),
            ip: address,
            shown_address: address,
        };
        code.text(names)
    },
);

/// Letter instead of the level, for unmapped cache lines.
const UNMAPPED: char = 'X';
/// Letter instead of the level, for cache lines in shared mappings of files.
const SHARED: char = 's';

pub(super) static PHYS_DADDR: Key = key(
    label("phys_daddr", "Data Physical Address"),
    CellPadding::Always,
    |input, names| number(access(input, names).map(|access| access.physical)),
    |input, names| {
        let physical = access(input, names).map_or(0, |access| access.physical);
        address_text(input.level.letter(), physical)
    },
);

pub(super) static DATA_PAGE_SIZE: Key = key(
    label("data_page_size", "Data Page Size"),
    CellPadding::Always,
    |input, names| number(access(input, names).map(|access| access.data_page_size)),
    |input, names| access_text(input, names, |access| page_size_text(access.data_page_size)),
);

fn access<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n MemoryAccess> {
    names.properties(input).access.as_ref()
}

fn access_text(
    input: &KeyInput<'_>,
    names: &dyn RecordingNames,
    text: impl Fn(&MemoryAccess) -> String,
) -> String {
    access(input, names).map_or_else(|| "N/A".to_owned(), text)
}

/// An address, size or bits as the value of a key; 0 if unknown.
fn number(value: Option<u64>) -> KeyValue<'static> {
    KeyValue::Number(value.unwrap_or_default().cast_signed())
}

/// The text of a code or data address; that of address 0 if it is unknown.
fn symbol_text(
    resolved: Option<&PropertyAddress>,
    input: &KeyInput<'_>,
    names: &dyn RecordingNames,
) -> String {
    let ip = resolved.map_or(0, |resolved| resolved.ip);
    let code = ShownCode {
        level: input.level.letter(),
        dso: resolved.and_then(|resolved| resolved.site.dso),
        symbol: resolved.and_then(|resolved| Some((resolved.site.symbol?, resolved.address))),
        ip,
        shown_address: ip,
    };
    code.text(names)
}
