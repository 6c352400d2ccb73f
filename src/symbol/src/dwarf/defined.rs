//! Which functions of a unit have some name, or code, told by little of their entries.

use std::cell::RefCell;

use gimli::{DwTag, Dwarf, UnitHeader, UnitOffset};
use rustc_hash::FxHashSet;

use super::known::Known;
use super::plan::Fixed;
use super::sections::Slice;
use super::skim::{Origin, Skim, Skimmed};

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
    let Some(mut skim) = Skim::new(dwarf, header, &is_function) else {
        return Verdict::No;
    };
    if skim.is_skeleton() {
        return Verdict::Split;
    }
    let mut search = Search::new(wanted, known);
    let mut verdict = Verdict::No;
    while let Some(entry) =
        skim.next_but(&mut |skim, start, at, fixed| search.take(skim, start, at, fixed))
    {
        let is_named = skim.has_name(&entry.names, wanted);
        if is_named && !entry.is_declaration {
            return Verdict::Yes;
        }
        if search.is_code_of_named(&entry) {
            return Verdict::Yes;
        }
        if search.add(&entry, is_named) && !entry.is_declaration {
            verdict = Verdict::Perhaps;
        }
    }
    match search.leads_to_code() {
        true => Verdict::Yes,
        false => verdict,
    }
}

fn is_function(tag: DwTag) -> bool {
    tag == gimli::DW_TAG_subprogram
}

/// Functions of a unit, in the order of their entries.
#[derive(Debug, Default)]
pub struct FunctionEntries {
    /// Those with code or copies that have a wanted name, their own or that of what they complete or are copies of.
    pub named: Vec<UnitOffset>,
    /// Those that have code by their attributes.
    pub with_code: Vec<UnitOffset>,
}

/// Names of functions that are wanted, with what is known of them already.
#[derive(Clone, Copy)]
pub struct WantedNames<'n> {
    /// Says yes to a wanted name.
    pub is_name: &'n dyn Fn(&str) -> bool,
    /// The answers of `is_name` about the unit's texts.
    pub known: Option<&'n KnownNames>,
    /// Says yes to an entry whose name stands in another unit, if that is wanted.
    pub is_elsewhere: &'n dyn Fn(UnitOffset) -> bool,
}

/// Answers about the texts of one object and the names of one search.
#[derive(Debug)]
pub struct KnownNames(pub(super) RefCell<Known>);

impl FunctionEntries {
    /// Reads the functions of a unit; without names that are wanted, those with code alone. What comes before damage is kept.
    #[must_use]
    pub fn read(
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        wanted: Option<WantedNames<'_>>,
    ) -> Self {
        let Some(skim) = Skim::new(dwarf, header, &is_function) else {
            return Self::default();
        };
        match wanted {
            None => Self::coded(skim),
            Some(wanted) => match wanted.known {
                Some(known) => Self::of_names(skim, wanted, &mut known.0.borrow_mut()),
                None => Self::of_names(skim, wanted, &mut Known::default()),
            },
        }
    }

    fn coded(mut skim: Skim<'_, '_>) -> Self {
        let mut found = Self::default();
        let with_code = &mut found.with_code;
        while let Some(entry) = skim.next_but(&mut |_, start, _, fixed| {
            let has_code = fixed.has_addresses && !fixed.is_declaration;
            with_code.extend(has_code.then_some(UnitOffset(start)));
            true
        }) {
            with_code.extend(entry.has_code().then_some(entry.offset));
        }
        found
    }

    fn of_names(mut skim: Skim<'_, '_>, wanted: WantedNames<'_>, known: &mut Known) -> Self {
        let mut found = Self::default();
        let with_code = &mut found.with_code;
        let mut search = Search::new(wanted.is_name, known);
        while let Some(entry) = skim.next_but(&mut |skim, start, at, fixed| {
            let is_enough = search.take(skim, start, at, fixed);
            let has_code = fixed.has_addresses && !fixed.is_declaration;
            with_code.extend((is_enough && has_code).then_some(UnitOffset(start)));
            is_enough
        }) {
            with_code.extend(entry.has_code().then_some(entry.offset));
            let is_named = skim.has_name(&entry.names, wanted.is_name);
            if is_named && !entry.is_declaration {
                found.named.push(entry.offset);
            }
            let leads_elsewhere = search.add(&entry, is_named);
            if !is_named && leads_elsewhere && (wanted.is_elsewhere)(entry.offset) {
                search.named.insert(entry.offset);
                found
                    .named
                    .extend((!entry.is_declaration).then_some(entry.offset));
            }
        }
        search.add_copies(&mut found.named);
        found
    }
}

/// What was seen of a unit.
struct Search<'s> {
    known: &'s mut Known,
    wanted: &'s dyn Fn(&str) -> bool,
    /// Entries with a wanted name.
    named: FxHashSet<UnitOffset>,
    links: Vec<Link>,
}

impl<'s> Search<'s> {
    fn new(wanted: &'s dyn Fn(&str) -> bool, known: &'s mut Known) -> Self {
        Self {
            known,
            wanted,
            named: FxHashSet::default(),
            links: Vec::new(),
        }
    }

    /// Takes an entry by what is at fixed distances. False where it must be read as a whole: it may have a wanted name.
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
        let Some(origin) = word(origin).map(UnitOffset) else {
            return false;
        };
        if !fixed.is_declaration && self.named.contains(&origin) {
            return false;
        }
        self.links.push(Link {
            origin,
            offset: UnitOffset(start),
            is_declaration: fixed.is_declaration,
        });
        true
    }

    /// Whether an entry that was read as a whole has code or copies of what was found to have a wanted name.
    fn is_code_of_named(&self, entry: &Skimmed) -> bool {
        let is_named =
            |origin| matches!(origin, Origin::Here(origin) if self.named.contains(&origin));
        !entry.is_declaration && entry.origin.is_some_and(is_named)
    }

    /// Takes an entry that was read as a whole. True where its name may stand in another unit.
    fn add(&mut self, entry: &Skimmed, is_named: bool) -> bool {
        if is_named {
            self.named.insert(entry.offset);
        }
        match entry.origin {
            Some(Origin::Here(origin)) => self.links.push(Link {
                origin,
                offset: entry.offset,
                is_declaration: entry.is_declaration,
            }),
            Some(Origin::Elsewhere) => return true,
            None => {}
        }
        false
    }

    /// Adds the copies of named entries, and copies of these, that are no declarations themselves.
    fn add_copies(&mut self, found: &mut Vec<UnitOffset>) {
        let Self { named, links, .. } = self;
        for _ in 1..MAX_ORIGINS {
            let known = named.len();
            let copies = links.iter().filter(|link| named.contains(&link.origin));
            let copies: Vec<&Link> = copies.collect();
            for copy in copies {
                if named.insert(copy.offset) && !copy.is_declaration {
                    found.push(copy.offset);
                }
            }
            if named.len() == known {
                break;
            }
        }
        found.sort_unstable_by_key(|offset| offset.0);
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
