//! From entries to the rows that are shown: ordered, with text and call graphs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use crate::entries::{Entries, Entry};
use crate::fields::{Field, Number};
use crate::graphs::Graphs;
use crate::histogram::{Branch, Histogram, Row, Sum, Weights};
use crate::keys::{Key, Part};
use crate::names::Names;
use crate::options::{Direction, Options};
use crate::order;
use crate::parallel;
use crate::stacks::Layout;

/// One event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    /// Its place in the recording.
    pub(crate) index: usize,
    pub(crate) layout: &'a Layout,
    /// Whether its samples have callchains.
    pub(crate) callchains: bool,
}

/// Makes the report of one event, or of a group of them whose leader comes first.
pub(crate) fn histogram(
    events: &[Event<'_>],
    options: &Options,
    names: &dyn Names,
    threads: NonZeroUsize,
) -> Histogram {
    let keys = options.keys();
    let entries: Vec<Entries<'_>> = events
        .iter()
        .map(|event| Entries::count(event.layout, &keys, names, options.children))
        .collect();
    let all: Vec<Sum> = events.iter().map(whole).collect();
    let left = |(all, event): (&Sum, &Event<'_>)| match options.relative {
        true => all.without(event.layout.filtered),
        false => *all,
    };
    let wholes: Vec<Sum> = all.iter().zip(events).map(left).collect();
    let maker = Maker {
        keys,
        names,
        options,
        events,
        lists: entries.iter().map(Entries::list).collect(),
    };
    let leader = events.first().zip(entries.first()).zip(wholes.first());
    let mut graphs = match (leader, &options.graph) {
        (Some(((event, entries), whole)), Some(graph)) if event.callchains => {
            let graphs = Graphs::new(event.layout, names, graph, whole.period);
            let chains = entries.chains(graphs.least_row());
            parallel::map(chains, threads, |chains| graphs.make(chains))
        }
        _ => Vec::new(),
    };
    let shown = maker.ordered().into_iter().filter(|line| maker.shows(line));
    let rows = shown.map(|line| {
        let graph = graphs.get_mut(line.entry as usize);
        let graph = graph.filter(|_| line.event == 0).map(std::mem::take);
        maker.row(line, graph.unwrap_or_default())
    });
    Histogram {
        events: events.iter().map(|event| event.index).collect(),
        all: all.first().copied().unwrap_or_default(),
        columns: options.columns.clone(),
        children: options.children,
        rows: rows.collect(),
        wholes,
    }
}

fn whole(event: &Event<'_>) -> Sum {
    let mut whole = event.layout.filtered;
    for stack in &event.layout.stacks {
        whole.add(stack.weight.sum());
    }
    whole
}

/// A row before it has text.
struct Line {
    /// The first event that has such an entry, and the entry's number there.
    event: usize,
    entry: u32,
    /// The leader's numbers, and those of the others.
    weights: Weights,
    others: Vec<Weights>,
}

impl Line {
    fn numbers(&self, number: Number) -> impl Iterator<Item = u64> {
        let all = std::iter::once(&self.weights).chain(&self.others);
        all.map(move |weights| number.of(weights))
    }
}

struct Maker<'a> {
    keys: Vec<&'static Key>,
    names: &'a dyn Names,
    options: &'a Options,
    events: &'a [Event<'a>],
    /// The entries of each event.
    lists: Vec<&'a [Entry]>,
}

impl<'a> Maker<'a> {
    fn shows(&self, line: &Line) -> bool {
        let Some(part) = &self.options.symbol_filter else {
            return true;
        };
        let subject = self.entry(line).subject(self.events[line.event].layout);
        let symbol = subject.site.symbol;
        symbol.is_some_and(|symbol| self.names.symbol(symbol).contains(part))
    }

    fn entry(&self, line: &Line) -> &'a Entry {
        &self.lists[line.event][line.entry as usize]
    }

    /// What a selected view of each key says of an entry.
    fn parts(&self, event: usize, entry: &Entry, view: View) -> Vec<Part<'a>> {
        let subject = entry.subject(self.events[event].layout);
        let keys = self.keys.iter();
        keys.map(|key| match view {
            View::Identity => (key.identity)(&subject, self.names),
            View::Rank => (key.rank)(&subject, self.names),
        })
        .collect()
    }

    /// The rows, ordered by what tells them apart.
    fn lines(&self) -> Vec<Line> {
        if let [list] = self.lists[..] {
            let line = |(entry, known): (u32, &Entry)| Line {
                event: 0,
                entry,
                weights: known.weights,
                others: Vec::new(),
            };
            let mut lines: Vec<Line> = (0..).zip(list).map(line).collect();
            lines.sort_by_cached_key(|line| self.parts(0, self.entry(line), View::Identity));
            return lines;
        }
        let mut lines: BTreeMap<Vec<Part<'_>>, Line> = BTreeMap::new();
        for (event, list) in self.lists.iter().enumerate() {
            for (number, entry) in (0..).zip(*list) {
                let identity = self.parts(event, entry, View::Identity);
                let line = lines.entry(identity).or_insert_with(|| Line {
                    event,
                    entry: number,
                    weights: Weights::default(),
                    others: vec![Weights::default(); self.lists.len() - 1],
                });
                match event.checked_sub(1) {
                    None => line.weights = entry.weights,
                    Some(other) => line.others[other] = entry.weights,
                }
            }
        }
        lines.into_values().collect()
    }

    /// The rows from the first to the last.
    fn ordered(&self) -> Vec<Line> {
        let lines = self.lines();
        let candidates: Vec<Candidate<'_>> = lines
            .iter()
            .map(|line| {
                let entry = self.entry(line);
                Candidate {
                    line,
                    entry,
                    depth: if line.event == 0 { entry.depth } else { 0 },
                    rank: self.parts(line.event, entry, View::Rank),
                }
            })
            .collect();
        let at = |position: u32| &candidates[position as usize];
        let compare = Compare {
            event: match self.options.sort_event {
                event if event < self.events.len() => event,
                _ => 0,
            },
            fields: &self.options.order_by,
            callers: self.callers(),
        };
        let count = lines.len() as u32;
        let order = if compare.callers.is_some() {
            order::by_insertion(count, |new, old| {
                compare.order(at(new), at(old)) == Ordering::Less
            })
        } else {
            order::by_sorting(count, |left, right| compare.order(at(left), at(right)))
        };
        let mut lines: Vec<Option<Line>> = lines.into_iter().map(Some).collect();
        let taken = order.into_iter().filter_map(|position| {
            let line = lines.get_mut(position as usize)?;
            line.take()
        });
        taken.collect()
    }

    /// Which way call graphs go, where rows of callers stand beside those of their callees.
    fn callers(&self) -> Option<Direction> {
        let callchains = self.events.first().is_some_and(|event| event.callchains);
        let graphs = callchains && self.options.children && self.options.graph.is_some();
        graphs.then_some(self.options.order)
    }

    fn row(&self, line: Line, graph: Vec<Branch>) -> Row {
        let entry = self.entry(&line);
        let subject = entry.subject(self.events[line.event].layout);
        let columns = self.options.columns.iter();
        let keys = columns.filter_map(|field| field.key());
        Row {
            weights: line.weights,
            others: line.others,
            cells: keys.map(|key| (key.text)(&subject, self.names)).collect(),
            unresolved: subject.site.symbol.is_none(),
            chains: if line.event == 0 { entry.chains } else { 0 },
            graph,
        }
    }
}

#[derive(Clone, Copy)]
enum View {
    Identity,
    Rank,
}

/// A row with what it is ordered by.
struct Candidate<'a> {
    line: &'a Line,
    entry: &'a Entry,
    /// Length of the longest chain in its call graph.
    depth: u32,
    rank: Vec<Part<'a>>,
}

/// The order of rows.
struct Compare<'a> {
    /// The event of a group that counts before the others, if not its leader.
    event: usize,
    fields: &'a [Field],
    /// As perf compares where callers are shown with their callees: of one thread and of equal weight, callers first.
    callers: Option<Direction>,
}

impl Compare<'_> {
    fn order(&self, this: &Candidate<'_>, that: &Candidate<'_>) -> Ordering {
        let mut ranks = this.rank.iter().zip(&that.rank);
        let mut fields = self.fields.iter().map(|field| match field {
            Field::Number(Number::Total) => self.by_total(this, that),
            Field::Number(number) if self.event > 0 => {
                // The leader does not count then, as in perf.
                let of = |line: &Line| -> Vec<u64> {
                    let mut numbers: Vec<u64> = line.numbers(*number).collect();
                    numbers.swap(0, self.event);
                    numbers.remove(self.event);
                    numbers
                };
                of(that.line).cmp(&of(this.line))
            }
            Field::Number(number) => {
                let numbers = that.line.numbers(*number);
                numbers.cmp(this.line.numbers(*number))
            }
            Field::Key(_) => ranks
                .next()
                .map_or(Ordering::Equal, |(this, that)| this.cmp(that)),
        });
        fields
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn by_total(&self, this: &Candidate<'_>, that: &Candidate<'_>) -> Ordering {
        let weights = that.line.weights.total.cmp(&this.line.weights.total);
        if weights.is_ne() || this.entry.first.thread != that.entry.first.thread {
            return weights;
        }
        match self.callers {
            Some(Direction::Caller) => that.depth.cmp(&this.depth),
            Some(Direction::Callee) => this.depth.cmp(&that.depth),
            None => Ordering::Equal,
        }
    }
}
