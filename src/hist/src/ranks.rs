//! What keys say of contexts and sites, as numbers in the order of rows.

use std::num::NonZeroUsize;

use crate::codes::{Codes, Column};
use crate::entries::First;
use crate::keys::{Context, Key, Part, Reads, Site, Subject};
use crate::names::Names;
use crate::parallel;
use crate::stacks::Layout;
use rperf_resolve::Level;

/// Which of its two views a key is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// What makes two samples belong to one row.
    Identity,
    /// What orders rows of equal weight.
    Rank,
}

/// One view of some keys, of all that the events of a group hold.
pub(crate) struct Ranks {
    keys: Vec<KeyRanks>,
}

/// A number for each context and each site of an event: entries that the keys don't tell apart have the same.
pub(crate) struct Labels {
    pub(crate) contexts: Vec<u32>,
    pub(crate) sites: Vec<u32>,
}

struct KeyRanks {
    /// Whether it looks at sites; else at contexts.
    of_sites: bool,
    /// By event.
    ranks: Vec<Vec<u32>>,
    count: u32,
}

impl Ranks {
    /// Each view of `keys`.
    pub(crate) fn new<const N: usize>(
        layouts: &[&Layout],
        keys: &[&'static Key],
        names: &dyn Names,
        views: [View; N],
        threads: NonZeroUsize,
    ) -> [Self; N] {
        let wanted = views
            .iter()
            .flat_map(|view| keys.iter().map(|key| (*view, *key)));
        let ranks = parallel::map(wanted.collect(), threads, |(view, key)| {
            KeyRanks::new(layouts, key, names, view)
        });
        let mut ranks = ranks.into_iter();
        views.map(|_| Self {
            keys: ranks.by_ref().take(keys.len()).collect(),
        })
    }

    /// Appends the column of the key at `index`, of entries that appeared first in some event.
    pub(crate) fn push<'f>(
        &self,
        index: usize,
        firsts: impl Iterator<Item = (usize, &'f First)>,
        codes: &mut Codes,
    ) {
        let key = &self.keys[index];
        codes.push(firsts.map(|(event, first)| key.of(event, first)), key.count);
    }

    /// The columns of all keys.
    pub(crate) fn codes<'f>(
        &self,
        firsts: impl ExactSizeIterator<Item = (usize, &'f First)> + Clone,
    ) -> Codes {
        let mut codes = Codes::new(firsts.len());
        for index in 0..self.keys.len() {
            self.push(index, firsts.clone(), &mut codes);
        }
        codes
    }

    /// What the keys tell apart in the event at `index`.
    pub(crate) fn labels(&self, index: usize, layout: &Layout) -> Labels {
        let side = |of_sites: bool, count| {
            let mut codes = Codes::new(count);
            for key in self.keys.iter().filter(|key| key.of_sites == of_sites) {
                codes.push(key.ranks[index].iter().copied(), key.count);
            }
            codes.dense().ranks
        };
        Labels {
            contexts: side(false, layout.contexts.len()),
            sites: side(true, layout.sites.len()),
        }
    }
}

impl KeyRanks {
    fn new(layouts: &[&Layout], key: &Key, names: &dyn Names, view: View) -> Self {
        let of_sites = key.reads == Reads::Site;
        let what = match view {
            View::Identity => key.identity,
            View::Rank => key.rank,
        };
        // Of the two a key looks at one; level and samples of a row are for its text.
        let part = |context, site| -> Part<'_> {
            let subject = Subject {
                context,
                site,
                level: Level::User,
                samples: 0,
                field: key.field(),
            };
            what(&subject, names)
        };
        let (no_context, no_site) = (Context::default(), Site::default());
        let column = if of_sites {
            let sites = layouts.iter().flat_map(|layout| &layout.sites);
            Column::new(sites.map(|site| part(&no_context, site)))
        } else {
            let contexts = layouts.iter().flat_map(|layout| &layout.contexts);
            Column::new(contexts.map(|context| part(context, &no_site)))
        };
        let mut ranks = column.ranks.into_iter();
        let events = layouts.iter().map(|layout| match of_sites {
            true => layout.sites.len(),
            false => layout.contexts.len(),
        });
        Self {
            of_sites,
            ranks: events
                .map(|count| ranks.by_ref().take(count).collect())
                .collect(),
            count: column.count,
        }
    }

    fn of(&self, event: usize, first: &First) -> u32 {
        let at = if self.of_sites {
            first.site
        } else {
            first.context
        };
        self.ranks[event][at as usize]
    }
}
