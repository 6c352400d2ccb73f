//! Whether a unit has a function of some name, told without reading the unit for good.

use gimli::{Dwarf, UnitHeader, UnitOffset};
use rustc_hash::FxHashSet;

use super::known::Known;
use super::plan::Fixed;
use super::sections::Slice;
use super::skim::{Origin, Skim};

/// How many entries there are from a copy of a completion of a declaration to the name.
pub const MAX_ORIGINS: usize = 4;

/// Whether a unit has a function with code or copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    No,
    /// Names of its functions stand in other units.
    Perhaps,
    Yes,
    /// Its entries are in another file.
    Split,
}

/// A function that has its name from another entry.
struct Link {
    origin: UnitOffset,
    offset: UnitOffset,
    is_declaration: bool,
}

/// Whether a function of this unit has a name that `wanted` says yes to. `known` remembers that of the texts of `dwarf`.
pub(super) fn defines(
    dwarf: &Dwarf<Slice<'_>>,
    header: &UnitHeader<Slice<'_>>,
    wanted: &dyn Fn(&str) -> bool,
    known: &mut Known,
) -> Verdict {
    let is_function = |tag| tag == gimli::DW_TAG_subprogram;
    let Some(mut skim) = Skim::new(dwarf, header, &is_function) else {
        return Verdict::No;
    };
    if skim.is_skeleton() {
        return Verdict::Split;
    }
    let mut search = Search {
        known,
        wanted,
        named: FxHashSet::default(),
        links: Vec::new(),
    };
    let mut verdict = Verdict::No;
    while let Some(entry) =
        skim.next_but(&mut |skim, start, at, fixed| search.take(skim, start, at, fixed))
    {
        let is_declaration = entry.is_declaration;
        if skim.has_name(&entry.names, wanted) {
            if !is_declaration {
                return Verdict::Yes;
            }
            search.named.insert(entry.offset);
        }
        match entry.origin {
            Some(Origin::Here(origin)) => search.links.push(Link {
                origin,
                offset: entry.offset,
                is_declaration,
            }),
            Some(Origin::Elsewhere) if !is_declaration => verdict = Verdict::Perhaps,
            _ => {}
        }
    }
    match search.leads_to_code() {
        true => Verdict::Yes,
        false => verdict,
    }
}

/// What was seen of a unit.
struct Search<'s> {
    known: &'s mut Known,
    wanted: &'s dyn Fn(&str) -> bool,
    /// Declarations with a wanted name.
    named: FxHashSet<UnitOffset>,
    links: Vec<Link>,
}

impl Search<'_> {
    /// Takes an entry by what is at fixed distances. False where it must be read as a whole.
    fn take(&mut self, skim: &Skim<'_, '_>, start: usize, at: usize, fixed: &Fixed) -> bool {
        let word = |distance: &u32| skim.word(at + *distance as usize);
        for name in fixed.names.iter().flatten() {
            let ask = |text| self.known.get(text, || skim.is_text(text, self.wanted));
            if word(name).is_none_or(ask) {
                return false;
            }
        }
        let Some(origin) = &fixed.origin else {
            return true;
        };
        let Some(origin) = word(origin) else {
            return false;
        };
        self.links.push(Link {
            origin: UnitOffset(origin),
            offset: UnitOffset(start),
            is_declaration: fixed.is_declaration,
        });
        true
    }

    /// Whether a copy of a named declaration, or of such a copy, is none itself.
    fn leads_to_code(&mut self) -> bool {
        let Self { named, links, .. } = self;
        for _ in 1..MAX_ORIGINS {
            let copies = links.iter().filter(|link| named.contains(&link.origin));
            let copies: Vec<&Link> = copies.collect();
            if copies.iter().any(|link| !link.is_declaration) {
                return true;
            }
            if named.is_empty() || copies.is_empty() {
                return false;
            }
            named.extend(copies.iter().map(|link| link.offset));
        }
        false
    }
}
