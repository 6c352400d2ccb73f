//! Key values of contexts and sites as ranks: numbers in the order of the values.
//!
//! A key has two functions, `identity` and `rank`, each of which returns a value. In this file, a rank is the number of
//! a value of either function.

use std::num::NonZeroUsize;

use crate::codes::{RankCodes, RankColumn};
use crate::entries::FirstAppearance;
use crate::keys::{CodeSite, Key, KeyDependency, KeyInput, KeyValue, SampleContext};
use crate::names::RecordingNames;
use crate::parallel;
use crate::stacks::MergedStacks;
use rperf_resolve::Level;

/// Selects one of the two values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyView {
    /// Determines which samples share a row.
    Identity,
    /// Determines the order of rows: the value that [`Key::rank`] returns.
    Rank,
}

/// The ranks of one [`KeyView`] of several keys, for all events of a group.
pub(crate) struct RankTable {
    keys: Vec<KeyRanks>,
}

/// A number for each context of an event, and one for each site. Contexts that the keys don't distinguish have the same number;
/// so do such sites.
pub(crate) struct EntryLabels {
    pub(crate) contexts: Vec<u32>,
    pub(crate) sites: Vec<u32>,
}

struct KeyRanks {
    /// Whether the key depends on sites; otherwise it depends on contexts.
    of_sites: bool,
    /// By event, for each site or context.
    ranks: Vec<Vec<u32>>,
    /// Number of distinct ranks.
    count: u32,
}

impl RankTable {
    /// Creates a table of the ranks of `keys` for each of `views`. `all_merged` has the stacks of each event of the group.
    pub(crate) fn new<const N: usize>(
        all_merged: &[&MergedStacks],
        keys: &[&'static Key],
        names: &dyn RecordingNames,
        views: [KeyView; N],
        threads: NonZeroUsize,
    ) -> [Self; N] {
        let pairs = views
            .iter()
            .flat_map(|view| keys.iter().map(|key| (*view, *key)));
        let ranks = parallel::map(pairs.collect(), threads, |(view, key)| {
            KeyRanks::new(all_merged, key, names, view)
        });
        let mut ranks = ranks.into_iter();
        views.map(|_| Self {
            keys: ranks.by_ref().take(keys.len()).collect(),
        })
    }

    /// Appends the column of the key at `index` for entries (an entry is a row of one event). An entry is given by the index of
    /// its event in the group and its first appearance, whose context and site represent all others of the entry.
    pub(crate) fn push<'f>(
        &self,
        index: usize,
        firsts: impl Iterator<Item = (usize, &'f FirstAppearance)>,
        codes: &mut RankCodes,
    ) {
        let key = &self.keys[index];
        codes.push(firsts.map(|(event, first)| key.of(event, first)), key.count);
    }

    /// The columns of all keys, for entries as in [`RankTable::push`].
    pub(crate) fn codes<'f>(
        &self,
        firsts: impl ExactSizeIterator<Item = (usize, &'f FirstAppearance)> + Clone,
    ) -> RankCodes {
        let mut codes = RankCodes::new(firsts.len());
        for index in 0..self.keys.len() {
            self.push(index, firsts.clone(), &mut codes);
        }
        codes
    }

    /// The labels of the contexts and sites of `merged`, the stacks of the event with the index `event` in the group.
    pub(crate) fn labels(&self, event: usize, merged: &MergedStacks) -> EntryLabels {
        const OF_CONTEXTS: bool = false;
        const OF_SITES: bool = true;
        let labels_of = |of_sites: bool, len| {
            let mut codes = RankCodes::new(len);
            for key in self.keys.iter().filter(|key| key.of_sites == of_sites) {
                codes.push(key.ranks[event].iter().copied(), key.count);
            }
            codes.dense().ranks
        };
        EntryLabels {
            contexts: labels_of(OF_CONTEXTS, merged.contexts.len()),
            sites: labels_of(OF_SITES, merged.sites.len()),
        }
    }
}

impl KeyRanks {
    fn new(
        all_merged: &[&MergedStacks],
        key: &Key,
        names: &dyn RecordingNames,
        view: KeyView,
    ) -> Self {
        let of_sites = key.reads == KeyDependency::Site;
        let value_of = match view {
            KeyView::Identity => key.identity,
            KeyView::Rank => key.rank,
        };
        // A key uses either the context or the site; level and samples of a row are only used for text.
        let value = |context, site| -> KeyValue<'_> {
            let input = KeyInput {
                context,
                site,
                level: Level::User,
                samples: 0,
                field_number: key.field_number(),
            };
            value_of(&input, names)
        };
        let (no_context, no_site) = (SampleContext::default(), CodeSite::default());
        let column = if of_sites {
            let sites = all_merged.iter().flat_map(|merged| &merged.sites);
            RankColumn::new(sites.map(|site| value(&no_context, site)))
        } else {
            let contexts = all_merged.iter().flat_map(|merged| &merged.contexts);
            RankColumn::new(contexts.map(|context| value(context, &no_site)))
        };
        let mut ranks = column.ranks.into_iter();
        let counts = all_merged.iter().map(|merged| match of_sites {
            true => merged.sites.len(),
            false => merged.contexts.len(),
        });
        Self {
            of_sites,
            ranks: counts
                .map(|count| ranks.by_ref().take(count).collect())
                .collect(),
            count: column.count,
        }
    }

    fn of(&self, event: usize, first: &FirstAppearance) -> u32 {
        let at = if self.of_sites {
            first.site
        } else {
            first.context
        };
        self.ranks[event][at as usize]
    }
}
