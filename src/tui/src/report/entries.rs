//! The lines of a report: rows that pass the filters, and below those that are unfolded their call graphs or parts.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Field, Histogram, Number, Row};
use rustc_hash::{FxHashMap, FxHashSet};

use super::chain::{self, ChainLine, Form, Key};

/// The rows of one event and what is unfolded of them.
pub(super) struct Entries {
    /// Rows in their order; with levels, each before its parts.
    steps: Vec<Item>,
    /// Which of them are seen, and the first line of each.
    seen: Vec<Seen>,
    len: usize,
    form: Form,
    /// By row, what is unfolded of it; the row's own key among them.
    open: FxHashMap<Key, FxHashSet<Key>>,
    /// By step, the lines of its call graph, for steps that are seen and open.
    chains: FxHashMap<usize, Vec<ChainLine>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    step: usize,
    line: usize,
}

/// A row; with levels, one sort key's part of a row.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) level: usize,
    pub(super) row: Arc<Row>,
}

/// A line.
#[derive(Clone, Copy)]
pub(super) enum Entry<'e> {
    /// A row, and whether it is unfolded; None where there is nothing below it.
    Row(&'e Item, Option<bool>),
    /// A line of a row's call graph.
    Chain(&'e Item, &'e ChainLine),
}

impl Entries {
    /// The lines of rows, of which those that were `open` in the entries before stay so.
    pub(super) fn new(steps: Vec<Item>, form: Form, before: Option<Self>) -> Self {
        let mut entries = Self {
            steps,
            seen: Vec::new(),
            len: 0,
            form,
            open: before.map(|before| before.open).unwrap_or_default(),
            chains: FxHashMap::default(),
        };
        entries.lay_out();
        entries
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A line.
    pub(super) fn get(&self, line: usize) -> Option<Entry<'_>> {
        let (step, below) = self.find(line)?;
        let found = self.steps.get(step)?;
        match below.checked_sub(1) {
            None => Some(Entry::Row(found, self.state(step))),
            Some(below) => {
                let chain = self.chains.get(&step)?.get(below)?;
                Some(Entry::Chain(found, chain))
            }
        }
    }

    /// The row that a line belongs to.
    pub(super) fn row(&self, line: usize) -> Option<&Row> {
        let (step, _) = self.find(line)?;
        self.steps.get(step).map(|item| &*item.row)
    }

    /// The line of the row that is told apart from others by this key.
    pub(super) fn line_of(&self, key: Key) -> Option<usize> {
        let found = self.seen.iter().find(|seen| {
            let step = self.steps.get(seen.step);
            step.is_some_and(|step| row_key(step) == key)
        });
        found.map(|seen| seen.line)
    }

    /// What tells the row of a line apart from others.
    pub(super) fn key_of(&self, line: usize) -> Option<Key> {
        let (step, _) = self.find(line)?;
        self.steps.get(step).map(row_key)
    }

    /// Unfolds or folds a line by one level; whether there was anything to do.
    pub(super) fn toggle(&mut self, line: usize) -> bool {
        let Some((step, below)) = self.find(line) else {
            return false;
        };
        let row = self.steps.get(step).map(row_key).unwrap_or_default();
        let key = match below.checked_sub(1) {
            None => self.state(step).map(|_| row),
            Some(below) => {
                let chain = self.chains.get(&step).and_then(|lines| lines.get(below));
                chain
                    .filter(|line| line.is_open.is_some())
                    .map(|line| line.key)
            }
        };
        let Some(key) = key else {
            return false;
        };
        let open = self.open.entry(row).or_default();
        if !open.remove(&key) {
            open.insert(key);
        }
        self.lay_out();
        true
    }

    /// Unfolds or folds all below the row of a line, and returns the row's line.
    pub(super) fn set_whole(&mut self, line: usize, is_open: bool) -> Option<usize> {
        let (step, below) = self.find(line)?;
        self.set(step, is_open);
        // Parts of a row are rows too.
        let level = self.steps.get(step)?.level;
        let mut parts = step + 1;
        while self.steps.get(parts).is_some_and(|part| part.level > level) {
            self.set(parts, is_open);
            parts += 1;
        }
        self.lay_out();
        Some(line - below)
    }

    /// Whether anything below the row of a line is seen.
    pub(super) fn is_open(&self, line: usize) -> bool {
        let step = self.find(line).map(|(step, _)| step);
        step.and_then(|step| self.state(step)) == Some(true)
    }

    /// Unfolds or folds all rows.
    pub(super) fn set_all(&mut self, is_open: bool) {
        self.open.clear();
        if is_open {
            (0..self.steps.len()).for_each(|step| self.set(step, true));
        }
        self.lay_out();
    }

    fn set(&mut self, step: usize, is_open: bool) {
        let Some(found) = self.steps.get(step) else {
            return;
        };
        let row = row_key(found);
        if is_open {
            let mut keys = chain::keys(&found.row);
            keys.insert(row);
            self.open.insert(row, keys);
        } else {
            self.open.remove(&row);
        }
    }

    /// The step that a line belongs to, and how many lines it is below it.
    fn find(&self, line: usize) -> Option<(usize, usize)> {
        if line >= self.len {
            return None;
        }
        let behind = self.seen.partition_point(|seen| seen.line <= line);
        let seen = self.seen.get(behind.checked_sub(1)?)?;
        Some((seen.step, line - seen.line))
    }

    /// Whether a step is unfolded; None where there is nothing below it.
    fn state(&self, step: usize) -> Option<bool> {
        let found = self.steps.get(step)?;
        let has_parts = self
            .steps
            .get(step + 1)
            .is_some_and(|next| next.level > found.level);
        let folds = has_parts || !found.row.graph.is_empty();
        let row = row_key(found);
        folds.then(|| self.open.get(&row).is_some_and(|open| open.contains(&row)))
    }

    /// Numbers the lines.
    fn lay_out(&mut self) {
        self.seen.clear();
        self.chains.clear();
        let mut line = 0;
        // Parts of what is folded are deeper than that.
        let mut folded: Option<usize> = None;
        for step in 0..self.steps.len() {
            let Some(found) = self.steps.get(step) else {
                break;
            };
            if folded.is_some_and(|level| found.level > level) {
                continue;
            }
            let state = match self.open.is_empty() {
                // Nothing is unfolded: rows needn't be looked up.
                true => Some(false),
                false => self.state(step),
            };
            folded = (state == Some(false)).then_some(found.level);
            self.seen.push(Seen { step, line });
            line += 1;
            if state == Some(true) {
                let open = self.open.get(&row_key(found));
                let none = FxHashSet::default();
                let chain = chain::lines(&found.row, self.form, open.unwrap_or(&none));
                line += chain.len();
                self.chains.insert(step, chain);
            }
        }
        self.len = line;
    }
}

/// What tells a row apart from others, in every state of a recording that is still being read.
fn row_key(step: &Item) -> Key {
    let mut hasher = DefaultHasher::new();
    (step.level, &step.row.cells).hash(&mut hasher);
    hasher.finish()
}

/// The `rows` of `histogram` that `passes` lets through, with levels if these are wanted, ordered by event `by` of a group.
pub(super) fn items(
    (histogram, rows): (&Histogram, &[Arc<Row>]),
    has_levels: bool,
    by: usize,
    passes: impl Fn(&Row) -> bool,
) -> Vec<Item> {
    let mut rows: Vec<Arc<Row>> = rows.iter().filter(|row| passes(row)).cloned().collect();
    let numbers = histogram.columns.iter().filter_map(|field| match field {
        Field::Number(number) => Some(*number),
        Field::Key(_) => None,
    });
    if by > 0 {
        let number = numbers.into_iter().next().unwrap_or(Number::Own);
        rows.sort_by_key(|row| Reverse(row.numbers(number).nth(by)));
    }
    if has_levels {
        let part = Histogram {
            rows: rows.into_iter().map(Arc::unwrap_or_clone).collect(),
            columns: histogram.columns.clone(),
            ..Histogram::default()
        };
        let items = part.hierarchy().into_iter().map(|step| Item {
            level: step.level,
            row: Arc::new(step.row),
        });
        return items.collect();
    }
    rows.into_iter().map(|row| Item { level: 0, row }).collect()
}
