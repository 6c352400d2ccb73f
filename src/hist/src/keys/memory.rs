//! Keys of `--mem-mode`: addresses, data source and properties of memory accesses.

use super::size::page_text;
use super::{
    CellPadding, Key, KeyDependency, KeyInput, KeyLabel, KeyValue, Property, ShownCode,
    address_text, label,
};
use crate::names::RecordingNames;
use crate::properties::{MemoryAccess, PropertyAddress};

const fn key(
    label: KeyLabel,
    pads: CellPadding,
    what: for<'n> fn(&KeyInput<'_>, &'n dyn RecordingNames) -> KeyValue<'n>,
    text: fn(&KeyInput<'_>, &dyn RecordingNames) -> String,
) -> Key {
    Key::plain(
        label,
        KeyDependency::Property(Property::Access),
        pads,
        what,
        text,
    )
}

/// Each address is a row.
pub(super) static SYMBOL_DADDR: Key = key(
    label("symbol_daddr", "Data Symbol"),
    CellPadding::Never,
    |subject, names| address(access(subject, names).map(|access| access.data.ip)),
    |subject, names| {
        spot_text(
            access(subject, names).map(|access| &access.data),
            subject,
            names,
        )
    },
);

/// Each address is a row.
pub(super) static SYMBOL_IADDR: Key = key(
    label("symbol_iaddr", "Code Symbol"),
    CellPadding::Never,
    |subject, names| address(access(subject, names).map(|access| access.code.ip)),
    |subject, names| {
        spot_text(
            access(subject, names).map(|access| &access.code),
            subject,
            names,
        )
    },
);

pub(super) static DSO_DADDR: Key = key(
    label("dso_daddr", "Data Object"),
    CellPadding::Always,
    |subject, names| {
        let dso = access(subject, names).and_then(|access| access.data.site.dso);
        dso.map_or(KeyValue::First, |dso| {
            KeyValue::Descending(std::cmp::Reverse(names.dso(dso)))
        })
    },
    |subject, names| {
        let dso = access(subject, names).and_then(|access| access.data.site.dso);
        dso.map_or("[unknown]", |dso| names.dso(dso)).to_owned()
    },
);

pub(super) static LOCKED: Key = key(
    label("locked", "Locked"),
    CellPadding::Never,
    |subject, names| bits(access(subject, names).map(|access| access.source.lock_bits())),
    |subject, names| source(subject, names, |access| access.source.lock().to_owned()),
);

pub(super) static TLB: Key = key(
    label("tlb", "TLB access"),
    CellPadding::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.tlb_bits())),
    |subject, names| source(subject, names, |access| access.source.tlb()),
);

pub(super) static MEM: Key = key(
    label("mem", "Memory access"),
    CellPadding::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.level_bits())),
    |subject, names| source(subject, names, |access| access.source.level()),
);

pub(super) static SNOOP: Key = key(
    label("snoop", "Snoop"),
    CellPadding::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.snoop_bits())),
    |subject, names| source(subject, names, |access| access.source.snoop()),
);

pub(super) static BLOCKED: Key = key(
    label("blocked", "Blocked"),
    CellPadding::Never,
    |subject, names| bits(access(subject, names).map(|access| access.source.blocked_bits())),
    |subject, names| source(subject, names, |access| access.source.blocked()),
);

pub(super) static DCACHELINE: Key = key(
    label("dcacheline", "Data Cacheline"),
    CellPadding::Never,
    |subject, names| {
        access(subject, names).map_or(KeyValue::Absent, |access| KeyValue::Cacheline(access.line))
    },
    |subject, names| {
        let Some(access) = access(subject, names) else {
            return spot_text(None, subject, names);
        };
        let level = match access.line {
            line if line.unmapped => UNMAPPED,
            line if line.shared => SHARED,
            _ => subject.level.letter(),
        };
        let address = access.line.address;
        let data = access.data.site;
        let code = ShownCode {
            level,
            dso: data.dso,
            symbol: data.symbol.map(|data| (data, address)),
            ip: address,
            place: address,
        };
        code.text(names)
    },
);

/// Level letter of unmapped cache lines, and of those in shared file mappings.
const UNMAPPED: char = 'X';
const SHARED: char = 's';

pub(super) static PHYS_DADDR: Key = key(
    label("phys_daddr", "Data Physical Address"),
    CellPadding::Always,
    |subject, names| address(access(subject, names).map(|access| access.physical)),
    |subject, names| {
        let physical = access(subject, names).map_or(0, |access| access.physical);
        address_text(subject.level.letter(), physical)
    },
);

pub(super) static DATA_PAGE_SIZE: Key = key(
    label("data_page_size", "Data Page Size"),
    CellPadding::Always,
    |subject, names| address(access(subject, names).map(|access| access.page)),
    |subject, names| source(subject, names, |access| page_text(access.page)),
);

fn access<'n>(subject: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n MemoryAccess> {
    names.facts(subject).access.as_ref()
}

fn source(
    subject: &KeyInput<'_>,
    names: &dyn RecordingNames,
    text: impl Fn(&MemoryAccess) -> String,
) -> String {
    access(subject, names).map_or_else(|| "N/A".to_owned(), text)
}

fn address(address: Option<u64>) -> KeyValue<'static> {
    KeyValue::Number(address.unwrap_or_default().cast_signed())
}

fn bits(bits: Option<u64>) -> KeyValue<'static> {
    KeyValue::Number(bits.unwrap_or_default().cast_signed())
}

fn spot_text(
    spot: Option<&PropertyAddress>,
    subject: &KeyInput<'_>,
    names: &dyn RecordingNames,
) -> String {
    let ip = spot.map_or(0, |spot| spot.ip);
    let code = ShownCode {
        level: subject.level.letter(),
        dso: spot.and_then(|spot| spot.site.dso),
        symbol: spot.and_then(|spot| Some((spot.site.symbol?, spot.address))),
        ip,
        place: ip,
    };
    code.text(names)
}
