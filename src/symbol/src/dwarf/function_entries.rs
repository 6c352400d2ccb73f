//! Finds the functions of a unit that have a wanted name, and those that have code, by scanning a few attributes of its
//! entries.

use std::cell::RefCell;

use gimli::{DwTag, Dwarf, UnitHeader, UnitOffset};
use rustc_hash::FxHashSet;

use super::abbreviations::FixedDistances;
use super::die_scanner::{DieReference, DieScanner, ScannedDie};
use super::name_cache::NameCache;
use super::sections::Slice;

/// Maximum number of entries, the function's own included, in which the name of a function is searched. Compilers use up to
/// three: a concrete instance, its abstract origin, and that one's specification (the declaration in a class).
pub const MAX_ORIGINS: usize = 4;

/// Whether a unit has a function of a wanted name that is not only declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitMatch {
    No,
    /// The names of some of its functions may be in other units.
    Perhaps,
    Yes,
    /// Its entries are in another file.
    Split,
}

/// A function ("instance" below) whose name may be in another entry.
struct NameLink {
    /// That entry: the function's specification or abstract origin.
    origin: UnitOffset,
    /// The function's own entry.
    offset: UnitOffset,
    is_declaration: bool,
}

/// Whether a function of this unit has a name accepted by `wanted`. `known` caches what `wanted`
/// returns for the strings of `dwarf`.
pub(super) fn defines(
    dwarf: &Dwarf<Slice<'_>>,
    header: &UnitHeader<Slice<'_>>,
    wanted: &dyn Fn(&str) -> bool,
    known: &mut NameCache,
) -> UnitMatch {
    let Some(mut scanner) = DieScanner::new(dwarf, header, &is_function) else {
        return UnitMatch::No;
    };
    if scanner.is_skeleton() {
        return UnitMatch::Split;
    }
    let mut search = UnitScan::new(wanted, known);
    let mut verdict = UnitMatch::No;
    // The loop gets only the entries for which the few attributes that `is_settled` reads do not suffice.
    while let Some(entry) = scanner
        .next_to_read(&mut |scanner, start, at, fixed| search.is_settled(scanner, start, at, fixed))
    {
        let is_named = scanner.has_name(&entry.names, wanted);
        if is_named && !entry.is_declaration {
            return UnitMatch::Yes;
        }
        if search.is_instance_of_named(&entry) {
            return UnitMatch::Yes;
        }
        if search.add(&entry, is_named) && !entry.is_declaration {
            verdict = UnitMatch::Perhaps;
        }
    }
    match search.leads_to_definition() {
        true => UnitMatch::Yes,
        false => verdict,
    }
}

fn is_function(tag: DwTag) -> bool {
    tag == gimli::DW_TAG_subprogram
}

/// Functions of a unit, in entry order.
#[derive(Debug, Default)]
pub struct FunctionEntries {
    /// Functions, except declarations, that have a wanted name, their own or that of their specification or abstract origin.
    pub with_wanted_name: Vec<UnitOffset>,
    /// Functions, except declarations, that have address attributes.
    pub with_code: Vec<UnitOffset>,
}

/// A filter for function names, with cached results.
#[derive(Clone, Copy)]
pub struct WantedNames<'n> {
    /// Accepts a name.
    pub is_wanted: &'n dyn Fn(&str) -> bool,
    /// Cached results of `is_wanted` for the unit's strings.
    pub cached_names: Option<&'n CachedNames>,
    /// For an entry whose name may be in another unit: whether it has a wanted name.
    pub has_wanted_name: &'n dyn Fn(UnitOffset) -> bool,
}

/// Cached results for the strings of one object in one search.
#[derive(Debug)]
pub struct CachedNames(pub(super) RefCell<NameCache>);

impl FunctionEntries {
    /// Reads the functions of a unit; without wanted names, only those with code. Stops at damaged
    /// entries.
    #[must_use]
    pub fn read(
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        wanted: Option<WantedNames<'_>>,
    ) -> Self {
        let Some(scanner) = DieScanner::new(dwarf, header, &is_function) else {
            return Self::default();
        };
        match wanted {
            None => Self::coded(scanner),
            Some(wanted) => match wanted.cached_names {
                Some(known) => Self::of_names(scanner, wanted, &mut known.0.borrow_mut()),
                None => Self::of_names(scanner, wanted, &mut NameCache::default()),
            },
        }
    }

    fn coded(mut scanner: DieScanner<'_, '_>) -> Self {
        let mut functions = Self::default();
        let with_code = &mut functions.with_code;
        while let Some(entry) = scanner.next_to_read(&mut |_, start, _, fixed| {
            let has_code = fixed.has_addresses && !fixed.is_declaration;
            with_code.extend(has_code.then_some(UnitOffset(start)));
            // These attributes are enough.
            true
        }) {
            with_code.extend(entry.has_code().then_some(entry.offset));
        }
        functions
    }

    fn of_names(
        mut scanner: DieScanner<'_, '_>,
        wanted: WantedNames<'_>,
        known: &mut NameCache,
    ) -> Self {
        let mut functions = Self::default();
        let with_code = &mut functions.with_code;
        let mut search = UnitScan::new(wanted.is_wanted, known);
        while let Some(entry) = scanner.next_to_read(&mut |scanner, start, at, fixed| {
            let is_enough = search.is_settled(scanner, start, at, fixed);
            let has_code = fixed.has_addresses && !fixed.is_declaration;
            with_code.extend((is_enough && has_code).then_some(UnitOffset(start)));
            is_enough
        }) {
            with_code.extend(entry.has_code().then_some(entry.offset));
            let is_named = scanner.has_name(&entry.names, wanted.is_wanted);
            if is_named && !entry.is_declaration {
                functions.with_wanted_name.push(entry.offset);
            }
            let leads_elsewhere = search.add(&entry, is_named);
            if !is_named && leads_elsewhere && (wanted.has_wanted_name)(entry.offset) {
                search.named.insert(entry.offset);
                functions
                    .with_wanted_name
                    .extend((!entry.is_declaration).then_some(entry.offset));
            }
        }
        search.add_instances(&mut functions.with_wanted_name);
        functions
    }
}

/// State of scanning a unit.
struct UnitScan<'s> {
    known: &'s mut NameCache,
    wanted: &'s dyn Fn(&str) -> bool,
    /// Entries with a wanted name.
    named: FxHashSet<UnitOffset>,
    links: Vec<NameLink>,
}

impl<'s> UnitScan<'s> {
    fn new(wanted: &'s dyn Fn(&str) -> bool, known: &'s mut NameCache) -> Self {
        Self {
            known,
            wanted,
            named: FxHashSet::default(),
            links: Vec::new(),
        }
    }

    /// Handles the entry at `start` by attributes at fixed distances from `at`, the end of its abbreviation code. Returns
    /// whether that suffices. It doesn't, so that the caller reads all attributes, if the entry has a wanted name of its own, if
    /// it is not a declaration and its origin is known to have a wanted name ([`defines`] can stop there), or if it is damaged.
    fn is_settled(
        &mut self,
        scanner: &DieScanner<'_, '_>,
        start: usize,
        at: usize,
        fixed: &FixedDistances,
    ) -> bool {
        let word = |distance: &u32| scanner.word(at + *distance as usize);
        for distance in fixed.names.iter().flatten() {
            let is_wanted = |offset| {
                self.known
                    .get(offset, || scanner.accepts_string(offset, self.wanted))
            };
            if word(distance).is_none_or(is_wanted) {
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
        self.links.push(NameLink {
            origin,
            offset: UnitOffset(start),
            is_declaration: fixed.is_declaration,
        });
        true
    }

    /// Whether a fully read entry is an instance, not a declaration, of an entry with a wanted name.
    fn is_instance_of_named(&self, entry: &ScannedDie) -> bool {
        let is_named = |origin| matches!(origin, DieReference::SameUnit(origin) if self.named.contains(&origin));
        !entry.is_declaration && entry.origin.is_some_and(is_named)
    }

    /// Handles a fully read entry. Returns true if its name may be in another unit.
    fn add(&mut self, entry: &ScannedDie, is_named: bool) -> bool {
        if is_named {
            self.named.insert(entry.offset);
        }
        match entry.origin {
            Some(DieReference::SameUnit(origin)) => self.links.push(NameLink {
                origin,
                offset: entry.offset,
                is_declaration: entry.is_declaration,
            }),
            Some(DieReference::OtherUnit) => return true,
            None => {}
        }
        false
    }

    /// Adds to `functions` the instances of named entries, and the instances of those in turn, but no declarations; then sorts
    /// `functions`.
    fn add_instances(&mut self, functions: &mut Vec<UnitOffset>) {
        let Self { named, links, .. } = self;
        for _ in 1..MAX_ORIGINS {
            let before = named.len();
            let instances = links.iter().filter(|link| named.contains(&link.origin));
            let instances: Vec<&NameLink> = instances.collect();
            for instance in instances {
                if named.insert(instance.offset) && !instance.is_declaration {
                    functions.push(instance.offset);
                }
            }
            if named.len() == before {
                break;
            }
        }
        functions.sort_unstable_by_key(|offset| offset.0);
    }

    /// Whether any entry that is not a declaration refers to a named declaration, directly or through other declarations.
    fn leads_to_definition(&mut self) -> bool {
        let Self { named, links, .. } = self;
        for _ in 1..MAX_ORIGINS {
            let referring = links.iter().filter(|link| named.contains(&link.origin));
            let referring: Vec<&NameLink> = referring.collect();
            if referring.iter().any(|link| !link.is_declaration) {
                return true;
            }
            if referring.is_empty() {
                return false;
            }
            named.extend(referring.iter().map(|link| link.offset));
        }
        false
    }
}
