//! From entries to the rows that are shown: ordered, with text and call graphs.

use std::cmp::Ordering;
use std::num::NonZeroUsize;

use crate::entries::{Entries, Entry};
use crate::graphs::Graphs;
use crate::histogram::{Branch, Histogram, Row};
use crate::keys::{Key, Part};
use crate::names::Names;
use crate::options::{Direction, Options};
use crate::order;
use crate::parallel;
use crate::stacks::Layout;

/// Makes the report of one event from its stacks. `graphs` says whether the event has callchains to show.
pub(crate) fn histogram(
    layout: &Layout,
    options: &Options,
    graphs: bool,
    names: &dyn Names,
    threads: NonZeroUsize,
) -> Histogram {
    let entries = Entries::count(layout, &options.keys, names, options.children);
    let weights = || layout.stacks.iter().map(|stack| &stack.weight);
    let period = weights().fold(0, |sum: u64, weight| sum.saturating_add(weight.period));
    let maker = Maker {
        layout,
        names,
        options,
        list: entries.list(),
    };
    let mut trees = match &options.graph {
        Some(graph) if graphs => {
            let graphs = Graphs {
                layout,
                names,
                options: graph,
                whole: period,
            };
            let chains = entries.chains(graphs.least_row());
            parallel::map(chains, threads, |chains| graphs.make(chains))
        }
        _ => vec![Vec::new(); entries.list().len()],
    };
    let rows = maker.order(graphs).into_iter().map(|number| {
        let graph = std::mem::take(&mut trees[number as usize]);
        maker.row(&entries.list()[number as usize], graph)
    });
    Histogram {
        keys: options.keys.clone(),
        samples: weights().map(|weight| weight.samples).sum(),
        period,
        children: options.children,
        rows: rows.collect(),
    }
}

struct Maker<'a> {
    layout: &'a Layout,
    names: &'a dyn Names,
    options: &'a Options,
    list: &'a [Entry],
}

impl<'a> Maker<'a> {
    /// What a selected view of each key says of an entry.
    fn parts(&self, entry: &Entry, view: View) -> Vec<Part<'a>> {
        let subject = entry.subject(self.layout);
        let keys = self.options.keys.iter();
        keys.map(|key| match view {
            View::Identity => (key.identity)(&subject, self.names),
            View::Rank => (key.rank)(&subject, self.names),
        })
        .collect()
    }

    /// The numbers of the entries from the first row to the last.
    fn order(&self, graphs: bool) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..).zip(self.list).map(|(number, _)| number).collect();
        numbers
            .sort_by_cached_key(|number| self.parts(&self.list[*number as usize], View::Identity));
        let sorted: Vec<Candidate<'_>> = numbers
            .iter()
            .map(|number| {
                let entry = &self.list[*number as usize];
                Candidate {
                    entry,
                    rank: self.parts(entry, View::Rank),
                    samples: if self.options.by_samples {
                        entry.samples
                    } else {
                        0
                    },
                }
            })
            .collect();
        let count = numbers.len() as u32;
        let at = |position: u32| &sorted[position as usize];
        let order = if graphs && self.options.children && self.options.graph.is_some() {
            let caller = self.options.order == Direction::Caller;
            order::by_insertion(count, |new, old| {
                at(new).beside_callers(at(old), caller) == Ordering::Less
            })
        } else {
            order::by_sorting(count, |left, right| at(left).compare(at(right)))
        };
        let number = |position: u32| numbers[position as usize];
        order.into_iter().map(number).collect()
    }

    fn row(&self, entry: &Entry, graph: Vec<Branch>) -> Row {
        let subject = entry.subject(self.layout);
        let cell = |key: &&Key| (key.text)(&subject, self.names);
        Row {
            own: entry.own,
            total: entry.total,
            samples: entry.samples,
            cells: self.options.keys.iter().map(cell).collect(),
            unresolved: subject.site.symbol.is_none(),
            chains: entry.chains,
            graph,
        }
    }
}

#[derive(Clone, Copy)]
enum View {
    Identity,
    Rank,
}

/// An entry with what it is ordered by.
struct Candidate<'a> {
    entry: &'a Entry,
    rank: Vec<Part<'a>>,
    /// Samples, where they count.
    samples: u64,
}

impl Candidate<'_> {
    /// Heavier ones first, then by the keys.
    fn compare(&self, other: &Self) -> Ordering {
        let (this, that) = (self.entry, other.entry);
        (that.total, that.own)
            .cmp(&(this.total, this.own))
            .then_with(|| self.rank.cmp(&other.rank))
            .then_with(|| other.samples.cmp(&self.samples))
    }

    /// As perf compares where callers are shown with their callees: of one thread and of equal weight, callers first.
    fn beside_callers(&self, other: &Self, outermost_first: bool) -> Ordering {
        let (this, that) = (self.entry, other.entry);
        if this.total == that.total && this.first.thread == that.first.thread {
            let depth = if outermost_first {
                that.depth.cmp(&this.depth)
            } else {
                this.depth.cmp(&that.depth)
            };
            return depth.then_with(|| self.compare(other));
        }
        self.compare(other)
    }
}
