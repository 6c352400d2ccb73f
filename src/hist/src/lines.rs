//! Rows without text, in order. A row has the entries of one event, or of all events of a group, that the sort keys do not
//! distinguish.

use std::cmp::{Ordering, Reverse};

use crate::codes::{RankCodes, RankColumn};
use crate::entries::{Entry, FirstAppearance};
use crate::fields::{NumberField, ReportField};
use crate::histogram::Weights;
use crate::options::{Direction, HistogramOptions};
use crate::order;
use crate::ranks::RankTable;

/// A row without text: at most one entry of each event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLine {
    /// The first event with an entry in this row.
    pub(crate) event: u32,
    /// Index of this event's entry.
    pub(crate) entry: u32,
    /// Index of the line in order of creation, which locates its entries in [`RowLines::others`].
    place: u32,
}

/// All rows of a report.
pub(crate) struct RowLines<'a> {
    /// By event.
    entries_by_event: Vec<&'a [Entry]>,
    /// The rows in display order, once [`RowLines::ordered`] has sorted them.
    list: Vec<RowLine>,
    /// For each line in order of creation, the entry of each event of the group except its leader; `None` if the event has no
    /// entry in that row.
    others: Vec<Option<u32>>,
}

impl<'a> RowLines<'a> {
    /// Merges the entries of the events into lines. Entries for which all keys have equal ranks in `identity` share a line, and
    /// the lines are in the order of these ranks.
    pub(crate) fn new(entries_by_event: Vec<&'a [Entry]>, identity: &RankTable) -> Self {
        // Event and index of each entry.
        let positions = entries_by_event
            .iter()
            .zip(0u32..)
            .flat_map(|(entries, event)| {
                let numbers = 0..entries.len() as u32;
                numbers.map(move |entry| (event, entry))
            });
        let positions: Vec<(u32, u32)> = positions.collect();
        let appearance = |(event, entry): &(u32, u32)| -> (usize, &FirstAppearance) {
            (
                *event as usize,
                &entries_by_event[*event as usize][*entry as usize].first,
            )
        };
        // Each entry's code, made of its ranks, and its index in `positions`, in the order of the codes.
        let sorted = identity.codes(positions.iter().map(appearance)).sorted();
        let other_events = entries_by_event.len().saturating_sub(1);
        let mut list = Vec::with_capacity(sorted.len());
        let mut others = Vec::new();
        for (run, place) in sorted.chunk_by(|this, next| this.0 == next.0).zip(0..) {
            let mut members = run.iter().map(|(_, at)| positions[*at as usize]).peekable();
            let Some(&(event, entry)) = members.peek() else {
                continue;
            };
            list.push(RowLine {
                event,
                entry,
                place,
            });
            let start = others.len();
            others.resize(start + other_events, None);
            // `members` still has the peeked entry, which is skipped here if it is the leader's.
            for (event, entry) in members.filter(|(event, _)| *event > 0) {
                others[start + event as usize - 1] = Some(entry);
            }
        }
        Self {
            entries_by_event,
            list,
            others,
        }
    }

    /// The lines in display order: by the fields of `options.order_by`, for keys by their ranks in `rank`. `direction` is `None`
    /// unless callers have rows too (`--children`) and rows have call graphs: then it is the direction of the graphs.
    pub(crate) fn ordered(
        mut self,
        rank: &RankTable,
        options: &HistogramOptions,
        direction: Option<Direction>,
    ) -> Self {
        let fields = &options.order_by;
        let columns = SortColumns {
            lines: &self,
            rank,
            fields,
            event: options.sort_event,
        };
        let total_index = fields
            .iter()
            .position(|field| *field == ReportField::Number(NumberField::Total));
        let order = match direction.zip(total_index) {
            Some((direction, total_index)) => columns.order_with_callers(direction, total_index),
            None => columns
                .codes(0..fields.len())
                .sorted()
                .into_iter()
                .map(|(_, line)| line)
                .collect(),
        };
        self.list = order
            .into_iter()
            .map(|line| self.list[line as usize])
            .collect();
        self
    }

    /// Iterates over the lines in their current order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &RowLine> + Clone {
        self.list.iter()
    }

    /// The entry of [`RowLine::event`].
    pub(crate) fn entry(&self, line: &RowLine) -> &'a Entry {
        &self.entries_by_event[line.event as usize][line.entry as usize]
    }

    /// The numbers of a line for an event.
    pub(crate) fn weights(&self, line: &RowLine, event: usize) -> Weights {
        let entry = match event.checked_sub(1) {
            None => (line.event == 0).then_some(line.entry),
            Some(other) => {
                self.others[line.place as usize * (self.entries_by_event.len() - 1) + other]
            }
        };
        entry.map_or_else(Weights::default, |entry| {
            self.entries_by_event[event][entry as usize].weights
        })
    }

    /// The numbers of a line for the events of the group except its leader.
    pub(crate) fn other_weights(&self, line: &RowLine) -> Vec<Weights> {
        let events = 1..self.entries_by_event.len();
        events.map(|event| self.weights(line, event)).collect()
    }
}

/// Sort columns of lines.
struct SortColumns<'l, 'a> {
    lines: &'l RowLines<'a>,
    rank: &'l RankTable,
    fields: &'l [ReportField],
    /// The event of a group to sort by first; 0 is its leader.
    event: usize,
}

/// A line as perf compares it if callers have rows (`--children`).
#[derive(Clone, Copy)]
struct ComparedLine {
    /// The rank by the fields before the total.
    before: u32,
    /// The rank by the fields after the total.
    after: u32,
    /// The total of the only event, or of the leader of a group.
    total: u64,
    /// Process and thread of the first sample.
    thread: (u32, u32),
    /// Maximum length of a chain in the leader's call graph; 0 if the leader has no entry in the row.
    depth: u32,
}

impl SortColumns<'_, '_> {
    /// Returns the codes of all lines in the sort columns of the fields with these indices.
    fn codes(&self, fields: std::ops::Range<usize>) -> RankCodes {
        let mut codes = RankCodes::new(self.lines.list.len());
        let keys_before = |at: usize| {
            let fields = self.fields[..at].iter();
            fields.filter(|field| field.key().is_some()).count()
        };
        for at in fields {
            match self.fields[at] {
                ReportField::Number(number) => self.push_number(number, &mut codes),
                ReportField::Key(_) => self.push_key(keys_before(at), &mut codes),
            }
        }
        codes
    }

    /// Adds the sort column of a key; `key` is its index among the keys of all fields.
    fn push_key(&self, key: usize, codes: &mut RankCodes) {
        let appearance = |line: &RowLine| -> (usize, &FirstAppearance) {
            (line.event as usize, &self.lines.entry(line).first)
        };
        self.rank
            .push(key, self.lines.iter().map(appearance), codes);
    }

    /// Adds sort columns of a number, in descending order.
    fn push_number(&self, number: NumberField, codes: &mut RankCodes) {
        for event in number.compared_events(self.event, self.lines.entries_by_event.len()) {
            let lines = self.lines.iter();
            let column = RankColumn::new(
                lines.map(|line| Reverse(number.value_in(&self.lines.weights(line, event)))),
            );
            codes.push(column.ranks.into_iter(), column.count);
        }
    }

    /// The order with `--children`: that of perf's red-black tree, because [`ComparedLine::compare`] is not transitive.
    /// `total_index` is the index of the total among the fields.
    fn order_with_callers(&self, direction: Direction, total_index: usize) -> Vec<u32> {
        let before = self.codes(0..total_index).dense().ranks;
        let after = self.codes(total_index + 1..self.fields.len()).dense().ranks;
        let ranks = before.into_iter().zip(after);
        let candidates = self.lines.iter().zip(ranks).map(|(line, (before, after))| {
            let entry = self.lines.entry(line);
            let thread = entry.first.thread;
            let leader = 0;
            ComparedLine {
                before,
                after,
                total: self.lines.weights(line, leader).total,
                thread: (thread.pid, thread.tid),
                depth: if line.event == 0 { entry.depth } else { 0 },
            }
        });
        order::by_insertion(candidates, |new, old| {
            new.compare(old, direction) == Ordering::Less
        })
    }
}

impl ComparedLine {
    /// Compares in display order. As in perf, lines with equal totals whose first samples are of one thread are ordered by the
    /// depth of their call graphs.
    fn compare(&self, other: &Self, direction: Direction) -> Ordering {
        let totals = other.total.cmp(&self.total);
        let by_total = if totals.is_ne() || self.thread != other.thread {
            totals
        } else {
            match direction {
                Direction::Caller => other.depth.cmp(&self.depth),
                Direction::Callee => self.depth.cmp(&other.depth),
            }
        };
        let before = self.before.cmp(&other.before);
        before.then(by_total).then(self.after.cmp(&other.after))
    }
}
