//! From entries to the rows that are shown: ordered, with text and call graphs.

use std::num::NonZeroUsize;

use crate::entries::Entries;
use crate::graphs::Graphs;
use crate::histogram::{Branch, Histogram, Row, Sum};
use crate::keys::{Key, Subject};
use crate::lines::{Line, Lines};
use crate::names::Names;
use crate::options::{Direction, Options};
use crate::parallel;
use crate::ranks::{Ranks, View};
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
    let layouts: Vec<&Layout> = events.iter().map(|event| event.layout).collect();
    let views = [View::Identity, View::Rank];
    let [identity, rank] = Ranks::new(&layouts, &options.keys(), names, views, threads);
    let numbered = layouts.iter().copied().enumerate();
    let entries: Vec<Entries<'_>> = numbered
        .map(|(index, layout)| {
            Entries::count(
                layout,
                identity.labels(index, layout),
                options.children,
                threads,
            )
        })
        .collect();
    let all: Vec<Sum> = events.iter().map(whole).collect();
    let wholes = shared_out(&all, events, options);
    let leader = events.first().zip(entries.first()).zip(wholes.first());
    let mut graphs = leader.map_or_else(Vec::new, |((event, entries), whole)| {
        call_graphs(event, entries, (names, options), whole.period, threads)
    });
    let lists = entries.iter().map(Entries::list).collect();
    let lines = Lines::new(lists, &identity).ordered(&rank, options, callers(events, options));
    let maker = Maker {
        names,
        options,
        layouts,
        lines,
    };
    let shown = maker.lines.iter().filter(|line| maker.shows(line));
    let shown = shown.map(|line| {
        let graph = graphs.get_mut(line.entry as usize);
        let graph = graph.filter(|_| line.event == 0).map(std::mem::take);
        (line, graph.unwrap_or_default())
    });
    let rows = parallel::map(shown.collect(), threads, |(line, graph)| {
        maker.row(line, graph)
    });
    Histogram {
        events: events.iter().map(|event| event.index).collect(),
        all: all.first().copied().unwrap_or_default(),
        columns: options.columns.clone(),
        children: options.children,
        lent_graphs: false,
        rows,
        wholes,
    }
}

/// What the shares of each event are of: `all` of it, or what the filters have left.
fn shared_out(all: &[Sum], events: &[Event<'_>], options: &Options) -> Vec<Sum> {
    let left = |(all, event): (&Sum, &Event<'_>)| match options.relative {
        true => all.without(event.layout.filtered),
        false => *all,
    };
    all.iter().zip(events).map(left).collect()
}

/// The call graph of each entry of the leader, in their order; none where they are not asked for. Their shares are of the
/// period `whole`.
fn call_graphs(
    event: &Event<'_>,
    entries: &Entries<'_>,
    (names, options): (&dyn Names, &Options),
    whole: u64,
    threads: NonZeroUsize,
) -> Vec<Vec<Branch>> {
    let Some(graph) = options.graph.as_ref().filter(|_| event.callchains) else {
        return Vec::new();
    };
    let graphs = Graphs::new(event.layout, names, graph, whole);
    let chains = entries.chains(graphs.least_row(), threads);
    parallel::map(chains, threads, |chains| graphs.make(&chains))
}

/// The sum of all samples of an event, those that are not shown too.
fn whole(event: &Event<'_>) -> Sum {
    let mut whole = event.layout.filtered;
    for stack in &event.layout.stacks {
        whole.add(stack.weight.sum());
    }
    whole
}

/// Which way call graphs go, where rows of callers stand beside those of their callees.
fn callers(events: &[Event<'_>], options: &Options) -> Option<Direction> {
    let callchains = events.first().is_some_and(|event| event.callchains);
    let graphs = callchains && options.children && options.graph.is_some();
    graphs.then_some(options.order)
}

/// Gives lines their text.
struct Maker<'a> {
    names: &'a dyn Names,
    options: &'a Options,
    layouts: Vec<&'a Layout>,
    lines: Lines<'a>,
}

impl Maker<'_> {
    fn shows(&self, line: &Line) -> bool {
        let Some(part) = &self.options.symbol_filter else {
            return true;
        };
        let subject = self
            .lines
            .entry(line)
            .subject(self.layouts[line.event as usize]);
        let symbol = subject.site.symbol;
        symbol.is_some_and(|symbol| self.names.symbol(symbol).contains(part))
    }

    fn row(&self, line: &Line, graph: Vec<Branch>) -> Row {
        let entry = self.lines.entry(line);
        let subject = entry.subject(self.layouts[line.event as usize]);
        let columns = self.options.columns.iter();
        let keys = columns.filter_map(|field| field.key());
        let cell = |key: &Key| {
            let field = key.field();
            (key.text)(&Subject { field, ..subject }, self.names)
        };
        Row {
            weights: self.lines.weights(line, 0),
            others: self.lines.others(line),
            cells: keys.map(cell).collect(),
            unresolved: subject.site.symbol.is_none(),
            chains: if line.event == 0 { entry.chains } else { 0 },
            graph,
        }
    }
}
