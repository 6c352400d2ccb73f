//! Selects the units that meet all given criteria (they contain a function, the caller's own check accepts them), on several
//! threads, before the caller reads the selected ones in order.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use gimli::{Dwarf, UnitHeader};

use super::function_entries::{CachedNames, UnitMatch, defines};
use super::index::{UnitNumber, is_of_compilation};
use super::info::{DebugInfo, DebugUnit};
use super::name_cache::NameCache;
use super::name_search::NameSearch;
use super::sections::Slice;
use super::units::Units;
use crate::files::Files;

/// Number of units a thread processes at a time.
const BATCH: u32 = 8;

/// A function to search for.
#[derive(Clone, Copy)]
pub struct FunctionQuery<'s> {
    /// A prefix of all names that match.
    pub start: &'s str,
    /// Whether a name matches.
    pub matches: &'s (dyn Fn(&str) -> bool + Sync),
    /// For a unit whose functions may have their names in other units (`UnitMatch::Perhaps`): reads those units, and returns
    /// whether the unit has the function.
    pub is_in_unit: &'s (dyn Fn(DebugUnit<'_>) -> bool + Sync),
}

/// Criteria for units.
#[derive(Clone, Copy)]
pub struct UnitPrefilter<'s> {
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// If given, the unit must have this function, and not only a declaration.
    pub function: Option<FunctionQuery<'s>>,
    /// If given, a further criterion, which is checked for units with the function.
    pub keep: Option<&'s (dyn Fn(DebugUnit<'_>) -> bool + Sync)>,
}

/// The selected units: all of them, or those selected by one thread.
#[derive(Debug, Default)]
pub(super) struct SelectedUnits {
    /// Their numbers, ascending.
    pub(super) selected: Vec<UnitNumber>,
    /// Number of units whose entries are in missing files, so that they could not be searched.
    pub(super) missing: usize,
    /// A cache of whether names match, for the caller's own search; `None` without a function, and in the result of one thread.
    pub(super) cached_names: Option<CachedNames>,
}

/// State of a search, shared by its threads.
struct PrefilterState<'s> {
    prefilter: &'s UnitPrefilter<'s>,
    info: &'s DebugInfo,
    files: &'s dyn Files,
    /// A search for the function's names in section bytes; `None` without a function, or if the names' prefix is too short: then
    /// every unit may have the function.
    name_search: Option<NameSearch<'s>>,
    /// The next unit to process.
    next: AtomicU32,
}

impl UnitPrefilter<'_> {
    /// Searches all compile units.
    pub(super) fn select_units(&self, info: &DebugInfo, files: &dyn Files) -> SelectedUnits {
        let main = Units::new(&info.object).main;
        let search = PrefilterState {
            prefilter: self,
            info,
            files,
            name_search: self
                .function
                .and_then(|function| NameSearch::find(&main, function.start, function.matches)),
            next: AtomicU32::new(0),
        };
        let parts: Vec<SelectedUnits> = thread::scope(|scope| {
            // If a thread can't be started, the others process its share.
            let start = |_| {
                let thread = thread::Builder::new();
                thread.spawn_scoped(scope, || search.process_batches()).ok()
            };
            let workers: Vec<_> = (1..self.threads.get()).filter_map(start).collect();
            // This thread is one of the `threads`.
            let own = search.process_batches();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            let parts = joined.map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)));
            std::iter::once(own).chain(parts).collect()
        });
        let mut result = SelectedUnits::default();
        for part in parts {
            result.selected.extend(part.selected);
            result.missing += part.missing;
        }
        result.selected.sort_unstable();
        // A new cache, without what the threads added to theirs.
        let known = self.function.map(|_| search.initial_names());
        result.cached_names = known.map(|known| CachedNames(RefCell::new(known)));
        result
    }
}

impl PrefilterState<'_> {
    /// Creates a cache of names, for a thread or for the caller.
    fn initial_names(&self) -> NameCache {
        match &self.name_search {
            Some(name_search) => NameCache::of_offsets(name_search.offsets()),
            None => NameCache::default(),
        }
    }

    /// Processes batches of units in one thread until no units are left; returns the selected ones.
    fn process_batches(&self) -> SelectedUnits {
        let units = Units::new(&self.info.object);
        let count = UnitNumber::try_from(self.info.object.index.len()).unwrap_or(UnitNumber::MAX);
        let mut result = SelectedUnits::default();
        let mut known = self.initial_names();
        loop {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= count {
                return result;
            }
            for number in first..count.min(first.saturating_add(BATCH)) {
                match self.is_selected(&units, number, &mut known) {
                    Some(true) => result.selected.push(number),
                    Some(false) => {}
                    None => result.missing += 1,
                }
            }
        }
    }

    /// Whether a unit is selected; `None` if its entries are missing.
    fn is_selected(
        &self,
        units: &Units<'_, '_>,
        number: UnitNumber,
        known: &mut NameCache,
    ) -> Option<bool> {
        let Some(header) = units.header(number) else {
            return Some(false);
        };
        if !is_of_compilation(&header) {
            return Some(false);
        }
        let verdict = self.verdict(&units.main, &header, known);
        match (verdict, self.prefilter.keep) {
            (UnitMatch::No, _) => return Some(false),
            (UnitMatch::Yes, None) => return Some(true),
            _ => {}
        }
        let Ok(skeleton) = units.main.unit(header).map(Rc::new) else {
            return Some(false);
        };
        let mut is_kept = false;
        // [`DebugUnit::cached_names`] is for the caller's own search; this one used `known`.
        let no_cached_names = None;
        let visited =
            self.info
                .visit_unit(self.files, units, &skeleton, no_cached_names, &mut |unit| {
                    is_kept = self.has_function(verdict, &unit)
                        && self.prefilter.keep.is_none_or(|keep| keep(unit));
                    ControlFlow::Continue(())
                });
        visited.map(|_| is_kept)
    }

    /// Whether the function is in a unit, as far as the unit in the object's file alone determines it: otherwise `Perhaps` or,
    /// with entries in a `.dwo` file, `Split`. If no function is searched for, `Yes`.
    fn verdict(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        known: &mut NameCache,
    ) -> UnitMatch {
        let Some(function) = self.prefilter.function else {
            return UnitMatch::Yes;
        };
        let name_search = self.name_search.as_ref();
        let may_be =
            |name_search: &NameSearch<'_>| name_search.may_be_in(dwarf, header, function.matches);
        match name_search.is_none_or(may_be) {
            true => defines(dwarf, header, function.matches, known),
            false => UnitMatch::No,
        }
    }

    /// Whether the function is in this unit. `verdict` is that of the unit in the object's file; `unit` has the entries, which
    /// may be in a `.dwo` file.
    fn has_function(&self, verdict: UnitMatch, unit: &DebugUnit<'_>) -> bool {
        let Some(function) = self.prefilter.function else {
            return true;
        };
        let verdict = match verdict {
            UnitMatch::Split => {
                // The threads' caches are for the strings of the object's file.
                let known = &mut NameCache::disabled();
                defines(unit.dwarf, &unit.unit.header, function.matches, known)
            }
            verdict => verdict,
        };
        match verdict {
            UnitMatch::Yes => true,
            UnitMatch::No => false,
            // The entries of a `.dwo` file are not split again: `Split` is not expected here.
            UnitMatch::Perhaps | UnitMatch::Split => (function.is_in_unit)(unit.clone()),
        }
    }
}
