//! Rows before they have text: the entries of an event, or those that the events of a group have in one place, in order.

use std::cmp::{Ordering, Reverse};

use crate::codes::{Codes, Column};
use crate::entries::{Entry, First};
use crate::fields::{Field, Number};
use crate::histogram::Weights;
use crate::options::{Direction, Options};
use crate::order;
use crate::ranks::Ranks;

/// A row before it has text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// The first event that has such an entry, and the entry's number there.
    pub(crate) event: u32,
    pub(crate) entry: u32,
    /// Where the numbers of the others stand.
    place: u32,
}

/// All rows of a report.
pub(crate) struct Lines<'a> {
    /// The entries of each event.
    lists: Vec<&'a [Entry]>,
    list: Vec<Line>,
    /// For each line in the order in which they were made, its entry's number in each event behind the first.
    others: Vec<Option<u32>>,
}

impl<'a> Lines<'a> {
    /// The lines of the events with these entries, ordered by what tells them apart.
    pub(crate) fn new(lists: Vec<&'a [Entry]>, identity: &Ranks) -> Self {
        let entries = lists.iter().zip(0u32..).flat_map(|(list, event)| {
            let numbers = 0..list.len() as u32;
            numbers.map(move |entry| (event, entry))
        });
        let entries: Vec<(u32, u32)> = entries.collect();
        let first = |(event, entry): &(u32, u32)| -> (usize, &First) {
            (
                *event as usize,
                &lists[*event as usize][*entry as usize].first,
            )
        };
        let sorted = identity.codes(entries.iter().map(first)).sorted();
        let more = lists.len().saturating_sub(1);
        let mut list = Vec::with_capacity(sorted.len());
        let mut others = Vec::new();
        for (run, place) in sorted.chunk_by(|this, next| this.0 == next.0).zip(0..) {
            let mut members = run.iter().map(|(_, at)| entries[*at as usize]).peekable();
            let Some(&(event, entry)) = members.peek() else {
                continue;
            };
            list.push(Line {
                event,
                entry,
                place,
            });
            let start = others.len();
            others.resize(start + more, None);
            for (event, entry) in members.filter(|(event, _)| *event > 0) {
                others[start + event as usize - 1] = Some(entry);
            }
        }
        Self {
            lists,
            list,
            others,
        }
    }

    /// The same lines in the order in which they are shown. `callers` is which way call graphs go, where rows of
    /// callers stand beside those of their callees.
    pub(crate) fn ordered(
        mut self,
        rank: &Ranks,
        options: &Options,
        callers: Option<Direction>,
    ) -> Self {
        let fields = &options.order_by;
        let event = match options.sort_event {
            event if event < self.lists.len() => event,
            _ => 0,
        };
        let columns = Columns {
            lines: &self,
            rank,
            fields,
            event,
        };
        let total = fields
            .iter()
            .position(|field| *field == Field::Number(Number::Total));
        let order = match callers.zip(total) {
            Some((callers, total)) => columns.with_callers(callers, total),
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

    /// From the first to the last.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Line> + Clone {
        self.list.iter()
    }

    /// The first event's entry.
    pub(crate) fn entry(&self, line: &Line) -> &'a Entry {
        &self.lists[line.event as usize][line.entry as usize]
    }

    /// Its numbers of an event.
    pub(crate) fn weights(&self, line: &Line, event: usize) -> Weights {
        let entry = match event.checked_sub(1) {
            None => (line.event == 0).then_some(line.entry),
            Some(other) => self.others[line.place as usize * (self.lists.len() - 1) + other],
        };
        entry.map_or_else(Weights::default, |entry| {
            self.lists[event][entry as usize].weights
        })
    }

    /// Its numbers of the events behind the first.
    pub(crate) fn others(&self, line: &Line) -> Vec<Weights> {
        let events = 1..self.lists.len();
        events.map(|event| self.weights(line, event)).collect()
    }
}

/// What lines are ordered by.
struct Columns<'l, 'a> {
    lines: &'l Lines<'a>,
    rank: &'l Ranks,
    fields: &'l [Field],
    /// The event of a group that counts before the others, if not its leader.
    event: usize,
}

/// A line as perf compares it where callers are shown with their callees.
#[derive(Clone, Copy)]
struct Candidate {
    /// Its place by the fields before the total, and by those behind it.
    before: u32,
    after: u32,
    total: u64,
    thread: (u32, u32),
    /// Length of the longest chain in its call graph.
    depth: u32,
}

impl Columns<'_, '_> {
    fn codes(&self, fields: std::ops::Range<usize>) -> Codes {
        let mut codes = Codes::new(self.lines.list.len());
        let keys_before = |at: usize| {
            let fields = self.fields[..at].iter();
            fields.filter(|field| field.key().is_some()).count()
        };
        for at in fields {
            match self.fields[at] {
                Field::Number(number) => self.push_number(number, &mut codes),
                Field::Key(_) => self.push_key(keys_before(at), &mut codes),
            }
        }
        codes
    }

    fn push_key(&self, key: usize, codes: &mut Codes) {
        let first = |line: &Line| -> (usize, &First) {
            (line.event as usize, &self.lines.entry(line).first)
        };
        self.rank.push(key, self.lines.iter().map(first), codes);
    }

    /// Larger numbers come first. The leader of a group does not count where another event is to, as in perf; nor does
    /// any other event's total.
    fn push_number(&self, number: Number, codes: &mut Codes) {
        let others = 1..self.lines.lists.len();
        let events: Vec<usize> = match (number, self.event) {
            (Number::Total | Number::TotalLatency, _) => vec![0],
            (_, 0) => (0..others.end).collect(),
            (_, event) => std::iter::once(event)
                .chain(others.filter(|other| *other != event))
                .collect(),
        };
        for event in events {
            let lines = self.lines.iter();
            let column =
                Column::new(lines.map(|line| Reverse(number.of(&self.lines.weights(line, event)))));
            codes.push(column.ranks.into_iter(), column.count);
        }
    }

    /// The order where callers are shown with their callees: that of perf's tree. `total` is the total's place among the fields.
    fn with_callers(&self, callers: Direction, total: usize) -> Vec<u32> {
        let before = self.codes(0..total).dense().ranks;
        let after = self.codes(total + 1..self.fields.len()).dense().ranks;
        let places = before.into_iter().zip(after);
        let candidates = self
            .lines
            .iter()
            .zip(places)
            .map(|(line, (before, after))| {
                let entry = self.lines.entry(line);
                let thread = entry.first.thread;
                Candidate {
                    before,
                    after,
                    total: self.lines.weights(line, 0).total,
                    thread: (thread.pid, thread.tid),
                    depth: if line.event == 0 { entry.depth } else { 0 },
                }
            });
        order::by_insertion(candidates, |new, old| {
            new.compare(old, callers) == Ordering::Less
        })
    }
}

impl Candidate {
    /// Of one thread and of equal weight, callers first.
    fn compare(&self, other: &Self, callers: Direction) -> Ordering {
        let weights = other.total.cmp(&self.total);
        let by_total = if weights.is_ne() || self.thread != other.thread {
            weights
        } else {
            match callers {
                Direction::Caller => other.depth.cmp(&self.depth),
                Direction::Callee => self.depth.cmp(&other.depth),
            }
        };
        let before = self.before.cmp(&other.before);
        before.then(by_total).then(self.after.cmp(&other.after))
    }
}
