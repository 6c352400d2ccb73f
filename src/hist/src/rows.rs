//! Creates rows from entries: sorted, with text and call graphs.

use std::num::NonZeroUsize;

use crate::entries::Entries;
use crate::graphs::GraphBuilder;
use crate::histogram::{Branch, ColumnSum, Histogram, HistogramRow};
use crate::keys::{Key, KeyInput};
use crate::lines::{RowLine, RowLines};
use crate::names::RecordingNames;
use crate::options::{Direction, HistogramOptions};
use crate::parallel;
use crate::ranks::{KeyView, RankTable};
use crate::stacks::MergedStacks;

/// An event with its stacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventInput<'a> {
    /// Its index in the recording.
    pub(crate) index: usize,
    pub(crate) merged: &'a MergedStacks,
    /// Whether its samples have callchains.
    pub(crate) callchains: bool,
}

/// Creates the report of one event, or of a group whose leader comes first.
///
/// Of the two rank tables, `identity` tells which samples share a row, and `rank` sorts the rows. [`Histogram::all`] includes
/// the filtered samples even if `totals` excludes them. `reference_call_graphs` is set later, when call graphs are copied from
/// another event.
pub(crate) fn histogram(
    events: &[EventInput<'_>],
    options: &HistogramOptions,
    names: &dyn RecordingNames,
    threads: NonZeroUsize,
) -> Histogram {
    let all_merged: Vec<&MergedStacks> = events.iter().map(|event| event.merged).collect();
    let views = [KeyView::Identity, KeyView::Rank];
    let [identity, rank] = RankTable::new(&all_merged, &options.keys(), names, views, threads);
    let numbered = all_merged.iter().copied().enumerate();
    let entries: Vec<Entries<'_>> = numbered
        .map(|(index_in_group, merged)| {
            let labels = identity.labels(index_in_group, merged);
            Entries::count(merged, labels, options.children, threads)
        })
        .collect();
    let event_totals: Vec<ColumnSum> = events.iter().map(event_total).collect();
    let totals = percentage_totals(&event_totals, events, options);
    let leader = events.first().zip(entries.first()).zip(totals.first());
    let mut graphs = leader.map_or_else(Vec::new, |((event, entries), total)| {
        let graph_options = options.graph.as_ref().filter(|_| event.callchains);
        let builder =
            graph_options.map(|graph| GraphBuilder::new(event.merged, names, graph, total.period));
        builder.map_or_else(Vec::new, |builder| call_graphs(&builder, entries, threads))
    });
    let entry_lists = entries.iter().map(Entries::list).collect();
    let direction = caller_graph_direction(events, options);
    // All rows, still without text, including those that are not shown.
    let lines = RowLines::new(entry_lists, &identity).ordered(&rank, options, direction);
    let formatter = RowFormatter {
        names,
        options,
        all_merged,
        lines,
    };
    let visible = formatter.lines.iter().filter(|line| formatter.shows(line));
    // Only the entries of the leader, event 0, have call graphs.
    let with_graphs = visible.map(|line| {
        let graph = graphs.get_mut(line.entry as usize);
        let graph = graph.filter(|_| line.event == 0).map(std::mem::take);
        (line, graph.unwrap_or_default())
    });
    let rows = parallel::map(with_graphs.collect(), threads, |(line, graph)| {
        formatter.row(line, graph)
    });
    Histogram {
        events: events.iter().map(|event| event.index).collect(),
        all: event_totals.first().copied().unwrap_or_default(),
        columns: options.columns.clone(),
        children: options.children,
        reference_call_graphs: false,
        sort_event: options.sort_event,
        rows,
        totals,
    }
}

/// For each event, the total that is 100 %: of all samples, or with [`HistogramOptions::relative`] of those that pass the
/// filters.
fn percentage_totals(
    event_totals: &[ColumnSum],
    events: &[EventInput<'_>],
    options: &HistogramOptions,
) -> Vec<ColumnSum> {
    let total = |(all, event): (&ColumnSum, &EventInput<'_>)| match options.relative {
        true => all.without(event.merged.filtered),
        false => *all,
    };
    event_totals.iter().zip(events).map(total).collect()
}

/// The call graph of each of `entries`, the entries of the leader.
fn call_graphs(
    builder: &GraphBuilder<'_>,
    entries: &Entries<'_>,
    threads: NonZeroUsize,
) -> Vec<Vec<Branch>> {
    let chains = entries.chains(builder.min_row_period(), threads);
    parallel::map(chains, threads, |chains| builder.make(&chains))
}

/// The sum of all samples of an event, including filtered samples.
fn event_total(event: &EventInput<'_>) -> ColumnSum {
    let mut total = event.merged.filtered;
    for stack in &event.merged.stacks {
        total.add(stack.weight.sum());
    }
    total
}

/// The direction of the call graphs if the order of the rows depends on it: if callers have rows, and rows have call graphs.
/// Otherwise `None`.
fn caller_graph_direction(
    events: &[EventInput<'_>],
    options: &HistogramOptions,
) -> Option<Direction> {
    let callchains = events.first().is_some_and(|event| event.callchains);
    let graphs = callchains && options.children && options.graph.is_some();
    graphs.then_some(options.direction)
}

/// Formats rows.
struct RowFormatter<'a> {
    names: &'a dyn RecordingNames,
    options: &'a HistogramOptions,
    all_merged: Vec<&'a MergedStacks>,
    lines: RowLines<'a>,
}

impl RowFormatter<'_> {
    /// Whether the row is shown: always without a filter, otherwise if its function's name contains the filter's text.
    fn shows(&self, line: &RowLine) -> bool {
        let Some(part) = &self.options.symbol_filter else {
            return true;
        };
        let input = self
            .lines
            .entry(line)
            .key_input(self.all_merged[line.event as usize]);
        let symbol = input.site.symbol;
        symbol.is_some_and(|symbol| self.names.symbol(symbol).contains(part))
    }

    fn row(&self, line: &RowLine, graph: Vec<Branch>) -> HistogramRow {
        let entry = self.lines.entry(line);
        let input = entry.key_input(self.all_merged[line.event as usize]);
        let columns = self.options.columns.iter();
        let keys = columns.filter_map(|field| field.key());
        let cell = |key: &Key| {
            let input = KeyInput {
                field_number: key.field_number(),
                ..input
            };
            (key.text)(&input, self.names)
        };
        let leader = 0;
        HistogramRow {
            weights: self.lines.weights(line, leader),
            others: self.lines.other_weights(line),
            cells: keys.map(cell).collect(),
            unresolved: input.site.symbol.is_none(),
            // As for `graph`: only the leader's entries have call graphs.
            chains: if line.event == 0 { entry.chains } else { 0 },
            graph,
        }
    }
}
