//! The keys of `--mem-mode`: what memory accesses touched, where it was found, and what came with it.

use super::size::page_text;
use super::{Code, Fact, Key, Pads, Part, Reads, Subject, address_text};
use crate::facts::{Access, Spot};
use crate::names::Names;

const fn key(
    name: (&'static str, &'static str),
    pads: Pads,
    what: for<'n> fn(&Subject<'_>, &'n dyn Names) -> Part<'n>,
    text: fn(&Subject<'_>, &dyn Names) -> String,
) -> Key {
    Key::plain(name, Reads::Fact(Fact::Access), pads, what, text)
}

/// Each address is a row.
pub(super) static SYMBOL_DADDR: Key = key(
    ("symbol_daddr", "Data Symbol"),
    Pads::Never,
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
    ("symbol_iaddr", "Code Symbol"),
    Pads::Never,
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
    ("dso_daddr", "Data Object"),
    Pads::Always,
    |subject, names| {
        let dso = access(subject, names).and_then(|access| access.data.site.dso);
        dso.map_or(Part::First, |dso| {
            Part::Descending(std::cmp::Reverse(names.dso(dso)))
        })
    },
    |subject, names| {
        let dso = access(subject, names).and_then(|access| access.data.site.dso);
        dso.map_or("[unknown]", |dso| names.dso(dso)).to_owned()
    },
);

pub(super) static LOCKED: Key = key(
    ("locked", "Locked"),
    Pads::Never,
    |subject, names| bits(access(subject, names).map(|access| access.source.lock_bits())),
    |subject, names| source(subject, names, |access| access.source.lock().to_owned()),
);

pub(super) static TLB: Key = key(
    ("tlb", "TLB access"),
    Pads::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.tlb_bits())),
    |subject, names| source(subject, names, |access| access.source.tlb()),
);

pub(super) static MEM: Key = key(
    ("mem", "Memory access"),
    Pads::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.level_bits())),
    |subject, names| source(subject, names, |access| access.source.level()),
);

pub(super) static SNOOP: Key = key(
    ("snoop", "Snoop"),
    Pads::Always,
    |subject, names| bits(access(subject, names).map(|access| access.source.snoop_bits())),
    |subject, names| source(subject, names, |access| access.source.snoop()),
);

pub(super) static BLOCKED: Key = key(
    ("blocked", "Blocked"),
    Pads::Never,
    |subject, names| bits(access(subject, names).map(|access| access.source.blocked_bits())),
    |subject, names| source(subject, names, |access| access.source.blocked()),
);

pub(super) static DCACHELINE: Key = key(
    ("dcacheline", "Data Cacheline"),
    Pads::Never,
    |subject, names| {
        access(subject, names).map_or(Part::Absent, |access| Part::Cacheline(access.line))
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
        let code = Code {
            level,
            dso: data.dso,
            symbol: data.symbol.map(|data| (data, address)),
            ip: address,
            place: address,
        };
        code.text(names)
    },
);

/// What stands for the level of cache lines that nothing is known of, and of those in files that others have mapped, too.
const UNMAPPED: char = 'X';
const SHARED: char = 's';

pub(super) static PHYS_DADDR: Key = key(
    ("phys_daddr", "Data Physical Address"),
    Pads::Always,
    |subject, names| address(access(subject, names).map(|access| access.physical)),
    |subject, names| {
        let physical = access(subject, names).map_or(0, |access| access.physical);
        address_text(subject.level.letter(), physical)
    },
);

pub(super) static DATA_PAGE_SIZE: Key = key(
    ("data_page_size", "Data Page Size"),
    Pads::Always,
    |subject, names| address(access(subject, names).map(|access| access.page)),
    |subject, names| source(subject, names, |access| page_text(access.page)),
);

fn access<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Option<&'n Access> {
    names.facts(subject).access.as_ref()
}

fn source(subject: &Subject<'_>, names: &dyn Names, text: impl Fn(&Access) -> String) -> String {
    access(subject, names).map_or_else(|| "N/A".to_owned(), text)
}

fn address(address: Option<u64>) -> Part<'static> {
    Part::Number(address.unwrap_or_default().cast_signed())
}

fn bits(bits: Option<u64>) -> Part<'static> {
    Part::Number(bits.unwrap_or_default().cast_signed())
}

fn spot_text(spot: Option<&Spot>, subject: &Subject<'_>, names: &dyn Names) -> String {
    let ip = spot.map_or(0, |spot| spot.ip);
    let code = Code {
        level: subject.level.letter(),
        dso: spot.and_then(|spot| spot.site.dso),
        symbol: spot.and_then(|spot| Some((spot.site.symbol?, spot.address))),
        ip,
        place: ip,
    };
    code.text(names)
}
