//! Which units have what is looked for, told by several threads before those units are read one after the other.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use gimli::{Dwarf, UnitHeader, UnitType};

use super::defined::{KnownNames, Verdict, defines};
use super::index::UnitNumber;
use super::info::{DebugInfo, DebugUnit};
use super::known::Known;
use super::mentions::Mentions;
use super::sections::Slice;
use super::units::Units;
use crate::files::Files;

/// How many units a thread takes at a time.
const BATCH: u32 = 8;

/// A function that a unit must have.
#[derive(Clone, Copy)]
pub struct Sought<'s> {
    /// How its names begin, as far as that is known.
    pub start: &'s str,
    /// Whether it may be called so.
    pub is_name: &'s (dyn Fn(&str) -> bool + Sync),
    /// Whether it is in a unit where others have the names of functions: the answer of one who reads those, too.
    pub is_in: &'s (dyn Fn(DebugUnit<'_>) -> bool + Sync),
}

/// What a unit must have.
#[derive(Clone, Copy)]
pub struct Sift<'s> {
    /// How many threads look.
    pub threads: NonZeroUsize,
    /// A function with code or copies.
    pub function: Option<Sought<'s>>,
    /// What else is asked of units that have it.
    pub keep: Option<&'s (dyn Fn(DebugUnit<'_>) -> bool + Sync)>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Sifted {
    /// Rising.
    pub(super) kept: Vec<UnitNumber>,
    /// How many units have their entries in files that are missing.
    pub(super) missing: usize,
    /// What is known of the names that are looked for.
    pub(super) known: Option<KnownNames>,
}

/// A sift at work.
struct Search<'s> {
    sift: &'s Sift<'s>,
    info: &'s DebugInfo,
    files: &'s dyn Files,
    mentions: Option<Mentions<'s>>,
    /// The first unit that no thread has taken.
    next: AtomicU32,
}

impl Sift<'_> {
    /// Looks through all units of compilation.
    pub(super) fn look(&self, info: &DebugInfo, files: &dyn Files) -> Sifted {
        let main = Units::new(&info.object).main;
        let search = Search {
            sift: self,
            info,
            files,
            mentions: self
                .function
                .and_then(|function| Mentions::find(&main, function.start, function.is_name)),
            next: AtomicU32::new(0),
        };
        let parts: Vec<Sifted> = thread::scope(|scope| {
            // A thread that cannot be started leaves its share to the others.
            let start = |_| {
                let thread = thread::Builder::new();
                thread.spawn_scoped(scope, || search.part()).ok()
            };
            let workers: Vec<_> = (1..self.threads.get()).filter_map(start).collect();
            let own = search.part();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            let parts = joined.map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)));
            std::iter::once(own).chain(parts).collect()
        });
        let mut found = Sifted::default();
        for part in parts {
            found.kept.extend(part.kept);
            found.missing += part.missing;
        }
        found.kept.sort_unstable();
        let known = self.function.map(|_| search.known());
        found.known = known.map(|known| KnownNames(RefCell::new(known)));
        found
    }
}

impl Search<'_> {
    /// What is known of names to begin with.
    fn known(&self) -> Known {
        match &self.mentions {
            Some(mentions) => Known::of_places(mentions.places()),
            None => Known::default(),
        }
    }

    /// What one thread finds among the units that it takes.
    fn part(&self) -> Sifted {
        let units = Units::new(&self.info.object);
        let count = UnitNumber::try_from(self.info.object.index.len()).unwrap_or(UnitNumber::MAX);
        let mut found = Sifted::default();
        let mut known = self.known();
        loop {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= count {
                return found;
            }
            for number in first..count.min(first.saturating_add(BATCH)) {
                match self.wants(&units, number, &mut known) {
                    Some(true) => found.kept.push(number),
                    Some(false) => {}
                    None => found.missing += 1,
                }
            }
        }
    }

    /// Whether a unit is wanted; `None` where its entries are missing.
    fn wants(&self, units: &Units<'_, '_>, number: UnitNumber, known: &mut Known) -> Option<bool> {
        let Some(header) = units.header(number) else {
            return Some(false);
        };
        if !is_of_compilation(&header) {
            return Some(false);
        }
        let verdict = self.verdict(&units.main, &header, known);
        match (verdict, self.sift.keep) {
            (Verdict::No, _) => return Some(false),
            (Verdict::Yes, None) => return Some(true),
            _ => {}
        }
        let Ok(skeleton) = units.main.unit(header).map(Rc::new) else {
            return Some(false);
        };
        let mut is_kept = false;
        let visited = self
            .info
            .visit(self.files, units, &skeleton, None, &mut |unit| {
                is_kept = self.has_function(verdict, &unit)
                    && self.sift.keep.is_none_or(|keep| keep(unit));
                ControlFlow::Continue(())
            });
        visited.map(|_| is_kept)
    }

    /// Whether the function is in a unit, as far as the unit itself tells.
    fn verdict(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        known: &mut Known,
    ) -> Verdict {
        let Some(function) = self.sift.function else {
            return Verdict::Yes;
        };
        let mentions = self.mentions.as_ref();
        let may_be = |mentions: &Mentions<'_>| mentions.may_be_in(dwarf, header, function.is_name);
        match mentions.is_none_or(may_be) {
            true => defines(dwarf, header, function.is_name, known),
            false => Verdict::No,
        }
    }

    /// The same of a unit whose entries are at hand.
    fn has_function(&self, verdict: Verdict, unit: &DebugUnit<'_>) -> bool {
        let Some(function) = self.sift.function else {
            return true;
        };
        let verdict = match verdict {
            Verdict::Split => {
                let known = &mut Known::forgetful();
                defines(unit.dwarf, &unit.unit.header, function.is_name, known)
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Yes => true,
            Verdict::No => false,
            Verdict::Perhaps | Verdict::Split => (function.is_in)(unit.clone()),
        }
    }
}

/// Units of types and parts of units are read where others refer to them.
fn is_of_compilation(header: &UnitHeader<Slice<'_>>) -> bool {
    matches!(
        header.type_(),
        UnitType::Compilation | UnitType::Skeleton(_)
    )
}
