//! Which units have what is looked for, told by several threads before those units are read one after the other.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use gimli::{UnitHeader, UnitType};

use super::index::UnitNumber;
use super::info::{DebugInfo, DebugUnit};
use super::mentions::{Mentioned, Mentions};
use super::sections::Slice;
use super::units::Units;
use crate::files::Files;

/// How many units a thread takes at a time.
const BATCH: u32 = 8;

/// What a unit must have.
#[derive(Clone, Copy)]
pub struct Sift<'s> {
    /// How many threads look.
    pub threads: NonZeroUsize,
    /// A name that an entry of it has, up to type arguments (`name<u8>`).
    pub name: Option<&'s str>,
    /// Whether the unit itself is wanted, which is not asked of those that lack the name. With it comes where the name is, if
    /// there is no other way to have it.
    pub keep: &'s (dyn Fn(DebugUnit<'_>, Option<&Mentioned<'_>>) -> bool + Sync),
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Sifted {
    /// Rising.
    pub(super) kept: Vec<UnitNumber>,
    /// How many units have their entries in files that are missing.
    pub(super) missing: usize,
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
            mentions: self.name.and_then(|name| Mentions::find(&main, name)),
            next: AtomicU32::new(0),
        };
        let parts: Vec<Sifted> = thread::scope(|scope| {
            let workers = (0..self.threads.get()).map(|_| scope.spawn(|| search.part()));
            let workers: Vec<_> = workers.collect();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            let parts = joined.map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)));
            parts.collect()
        });
        let mut found = Sifted::default();
        for part in parts {
            found.kept.extend(part.kept);
            found.missing += part.missing;
        }
        found.kept.sort_unstable();
        found
    }
}

impl Search<'_> {
    /// What one thread finds among the units that it takes.
    fn part(&self) -> Sifted {
        let units = Units::new(&self.info.object);
        let count = UnitNumber::try_from(self.info.object.index.len()).unwrap_or(UnitNumber::MAX);
        let mut found = Sifted::default();
        loop {
            let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= count {
                return found;
            }
            for number in first..count.min(first.saturating_add(BATCH)) {
                match self.wants(&units, number) {
                    Some(true) => found.kept.push(number),
                    Some(false) => {}
                    None => found.missing += 1,
                }
            }
        }
    }

    /// Whether a unit is wanted; `None` where its entries are missing.
    fn wants(&self, units: &Units<'_, '_>, number: UnitNumber) -> Option<bool> {
        let Some(header) = units.header(number) else {
            return Some(false);
        };
        if !is_of_compilation(&header) {
            return Some(false);
        }
        let mentions = self.mentions.as_ref();
        let mentioned = mentions.and_then(|mentions| mentions.within(&units.main, &header));
        if mentioned
            .as_ref()
            .is_some_and(|mentioned| mentioned.places.is_empty())
        {
            return Some(false);
        }
        let Ok(skeleton) = units.main.unit(header).map(Rc::new) else {
            return Some(false);
        };
        let mut is_kept = false;
        let visited = self.info.visit(self.files, units, &skeleton, &mut |unit| {
            is_kept = (self.sift.keep)(unit, mentioned.as_ref());
            ControlFlow::Continue(())
        });
        visited.map(|_| is_kept)
    }
}

/// Units of types and parts of units are read where others refer to them.
fn is_of_compilation(header: &UnitHeader<Slice<'_>>) -> bool {
    matches!(
        header.type_(),
        UnitType::Compilation | UnitType::Skeleton(_)
    )
}
