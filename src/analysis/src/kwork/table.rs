//! Sums of delays or run times of each piece of work, for `kwork report` and `kwork latency`.

use std::cmp::Ordering;

use rperf_replay::FoldControl;

use super::{Kwork, KworkClass, KworkRuns, KworkSink, KworkSpan};
use crate::LogHistogram;
use crate::sched::LostStretches;

/// Events without a counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedEvents {
    /// Raises without an entry.
    pub raise: u64,
    /// Entries without a raise if delays are measured, otherwise without an exit.
    pub entry: u64,
    /// Exits without an entry.
    pub exit: u64,
}

impl SkippedEvents {
    /// Returns the number of events without a counterpart.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.raise + self.entry + self.exit
    }
}

/// A summary of the delays or runs of one piece of work, with times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KworkTimes {
    /// The number of delays or runs.
    pub count: u64,
    /// The sum of their durations.
    pub total: u64,
    /// The longest duration.
    pub max: u64,
    /// When the longest delay or run began (the first of several equal ones); 0 if `max` is 0.
    pub max_start: u64,
    /// When that delay or run ended; 0 if `max` is 0.
    pub max_end: u64,
    /// The number of delays or runs during which records were lost.
    pub doubtful: u64,
    /// The distribution of their durations; empty unless requested.
    pub distribution: LogHistogram,
}

impl KworkTimes {
    /// Returns the mean duration, rounded down; 0 if `count` is 0.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.count).unwrap_or_default()
    }

    fn add(&mut self, span: &KworkSpan, with_distribution: bool) {
        let duration = span.duration();
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.doubtful += u64::from(span.is_doubtful);
        if duration > self.max {
            self.max = duration;
            self.max_start = span.begin;
            self.max_end = span.end;
        }
        if with_distribution {
            self.distribution.add(duration);
        }
    }
}

/// A piece of work with its delays or run times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KworkRow {
    /// The work.
    pub work: Kwork,
    /// Its delays or run times.
    pub times: KworkTimes,
}

/// A column to sort by, the highest value first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KworkSortKey {
    /// [`KworkTimes::total`].
    Total,
    /// [`KworkTimes::average`].
    Average,
    /// [`KworkTimes::max`].
    Maximum,
    /// [`KworkTimes::count`].
    Count,
}

impl KworkSortKey {
    fn compare(self, left: &KworkTimes, right: &KworkTimes) -> Ordering {
        match self {
            Self::Total => right.total.cmp(&left.total),
            Self::Average => right.average().cmp(&left.average()),
            Self::Maximum => right.max.cmp(&left.max),
            Self::Count => right.count.cmp(&left.count),
        }
    }
}

/// Sums up delays or run times by work.
#[derive(Debug, Default)]
pub struct KworkTotals {
    rows: Vec<KworkRow>,
    with_distributions: bool,
}

impl KworkTotals {
    /// Creates totals without rows; `with_distributions` keeps the distribution of each piece of work.
    #[must_use]
    pub fn new(with_distributions: bool) -> Self {
        Self {
            rows: Vec::new(),
            with_distributions,
        }
    }
}

impl KworkSink for KworkTotals {
    fn span(&mut self, index: usize, work: &Kwork, span: KworkSpan) -> FoldControl {
        // Works are numbered at their entry events, but spans arrive in order of their end. So rows may be added here for works
        // without a span so far: they hold a wrong `work`, which their first span replaces.
        while self.rows.len() <= index {
            self.rows.push(KworkRow {
                work: work.clone(),
                times: KworkTimes::default(),
            });
        }
        if let Some(row) = self.rows.get_mut(index) {
            if row.times.count == 0 {
                row.work = work.clone();
            }
            row.times.add(&span, self.with_distributions);
        }
        FoldControl::Continue
    }
}

/// The result: sums by work.
#[derive(Debug)]
pub struct KworkTable {
    /// The pieces of work with at least one delay or run, sorted.
    pub rows: Vec<KworkRow>,
    /// Events without a counterpart.
    pub skipped: SkippedEvents,
    /// Nanoseconds from the first to the last measured event.
    pub measured_time: u64,
    /// Where records were lost.
    pub losses: LostStretches,
}

impl KworkRuns<KworkTotals> {
    /// Returns the table. Rows that are equal by all `keys` are in order of `classes`, of descending CPUs and ids, and of names.
    #[must_use]
    pub fn into_table(mut self, keys: &[KworkSortKey], classes: &[KworkClass]) -> KworkTable {
        // Adds the raises and entries that are still without a counterpart to `skipped`.
        self.skip_open();
        let mut rows = self.sink.rows;
        rows.retain(|row| row.times.count > 0);
        let rank = |class: KworkClass| classes.iter().position(|listed| *listed == class);
        let by_work = |left: &Kwork, right: &Kwork| {
            let by_class = rank(left.class).cmp(&rank(right.class));
            let by_cpu = right.cpu.cmp(&left.cpu);
            let by_id = right.id.cmp(&left.id);
            let by_name = left.name.cmp(&right.name);
            by_class.then(by_cpu).then(by_id).then(by_name)
        };
        rows.sort_by(|left, right| {
            let orders = keys
                .iter()
                .map(|key| key.compare(&left.times, &right.times));
            let order = orders.fold(Ordering::Equal, Ordering::then);
            order.then_with(|| by_work(&left.work, &right.work))
        });
        // Totals of the events, unlike `KworkTotals`, the totals of each work.
        let event_totals = self.totals;
        let first = event_totals.first.unwrap_or_default();
        KworkTable {
            rows,
            skipped: event_totals.skipped,
            measured_time: event_totals.last.saturating_sub(first),
            losses: self.losses,
        }
    }
}
