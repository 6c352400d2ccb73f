//! Waits for locks of the kernel, for `lock`: from `lock:contention_begin` to `lock:contention_end` of a thread and a lock.

use std::cmp::Ordering;

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use crate::sched::LostStretches;
use crate::{EventContext, Loss, Observer, RepeatedStart, Spans};

/// The tracepoints of a wait, `system:name`.
pub const CONTENTION_EVENTS: [&str; 2] = ["lock:contention_begin", "lock:contention_end"];

/// The frames of a stack from the caller of the lock's functions on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LockStack {
    /// Addresses, innermost first; the first is the caller. Empty if unknown.
    pub frames: Vec<u64>,
}

/// The stack of the event at which a wait begins, evaluated before the event is observed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockDetail {
    /// The stack to show, without the functions of locks.
    pub stack: LockStack,
    /// All recorded frames, innermost first.
    pub full_stack: Vec<u64>,
    /// Whether the wait is excluded by its stack.
    pub is_excluded: bool,
}

/// How waits are grouped into the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAggregation {
    /// Stacks without the functions of locks.
    Caller,
    /// Threads.
    Thread,
    /// Addresses of locks.
    Address,
}

/// The identity of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// A stack.
    Caller(LockStack),
    /// A thread id.
    Thread(u32),
    /// The address of a lock.
    Address(u64),
}

/// The waits of a row; times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRow {
    /// The caller, thread or lock.
    pub key: LockKey,
    /// Waits that began.
    pub contended: u64,
    /// Waits that ended.
    pub acquired: u64,
    /// Sum of the waits.
    pub total: u64,
    /// The longest.
    pub max: u64,
    /// The shortest; 0 if none ended.
    pub min: u64,
    /// Flags of the first wait: `LCB_F_*` of the kernel's `trace/events/lock.h`.
    pub flags: u64,
    /// The address of the lock of the first wait.
    pub address: u64,
    /// The first caller, 0 if unknown.
    pub caller: u64,
    /// All recorded frames of the first wait.
    pub full_stack: Vec<u64>,
}

impl LockRow {
    fn new(key: LockKey, address: u64, flags: u64, detail: &LockDetail) -> Self {
        let caller = detail.stack.frames.first().copied();
        Self {
            key,
            contended: 0,
            acquired: 0,
            total: 0,
            max: 0,
            min: 0,
            flags,
            address,
            caller: caller.unwrap_or_default(),
            full_stack: detail.full_stack.clone(),
        }
    }

    /// Returns the sum of the waits divided by the number of waits that began, rounded down, as perf does.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.total.checked_div(self.contended).unwrap_or_default()
    }

    fn end(&mut self, wait: u64) {
        self.min = match self.acquired {
            0 => wait,
            _ => self.min.min(wait),
        };
        self.acquired += 1;
        self.total = self.total.saturating_add(wait);
        self.max = self.max.max(wait);
    }
}

/// A column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockColumn {
    /// Waits that ended.
    Acquired,
    /// Waits that began.
    Contended,
    /// The mean.
    Average,
    /// The sum.
    Total,
    /// The longest.
    Max,
    /// The shortest.
    Min,
}

impl LockColumn {
    /// Returns the column of this name, as in `-k` and `-F`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "acquired" => Self::Acquired,
            "contended" => Self::Contended,
            "avg_wait" => Self::Average,
            "wait_total" => Self::Total,
            "wait_max" => Self::Max,
            "wait_min" => Self::Min,
            _ => return None,
        })
    }

    /// Returns the value of the column in a row: a count, or nanoseconds.
    #[must_use]
    pub fn value(self, row: &LockRow) -> u64 {
        match self {
            Self::Acquired => row.acquired,
            Self::Contended => row.contended,
            Self::Average => row.average(),
            Self::Total => row.total,
            Self::Max => row.max,
            Self::Min => row.min,
        }
    }

    /// Whether it is a time.
    #[must_use]
    pub fn is_time(self) -> bool {
        !matches!(self, Self::Acquired | Self::Contended)
    }
}

/// Which waits are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockSelection {
    /// Only these flags; all if `None`.
    pub flags: Option<Vec<u64>>,
    /// Only locks at these addresses; all if `None`.
    pub addresses: Option<Vec<u64>>,
}

impl LockSelection {
    fn accepts(&self, address: u64, flags: u64) -> bool {
        let addresses = self.addresses.as_ref();
        let kinds = self.flags.as_ref();
        addresses.is_none_or(|known| known.contains(&address))
            && kinds.is_none_or(|known| known.contains(&flags))
    }
}

/// Sums waits. A begin while the thread already waits for the lock continues the wait: a mutex reports spinning and sleeping as two begins.
#[derive(Debug)]
pub struct LockContention {
    aggregation: LockAggregation,
    selection: LockSelection,
    rows: Vec<LockRow>,
    by_key: FxHashMap<LockKey, usize>,
    /// Row of each wait, by thread and lock.
    waits: Spans<(u32, u64), usize>,
    /// Where records were lost.
    pub losses: LostStretches,
}

impl LockContention {
    /// Creates an analysis that has no waits yet.
    #[must_use]
    pub fn new(aggregation: LockAggregation, selection: LockSelection) -> Self {
        Self {
            aggregation,
            selection,
            rows: Vec::new(),
            by_key: FxHashMap::default(),
            waits: Spans::new(RepeatedStart::Continues),
            losses: LostStretches::default(),
        }
    }

    /// Returns the rows, highest value of `column` first, then by address and caller.
    #[must_use]
    pub fn rows(&self, column: LockColumn) -> Vec<LockRow> {
        let mut rows = self.rows.clone();
        rows.sort_by(|left, right| {
            let order = column.value(right).cmp(&column.value(left));
            order.then_with(|| tie(left, right))
        });
        rows
    }

    fn begin(&mut self, at: &EventContext, address: u64, flags: u64, detail: &LockDetail) {
        let wait = (at.task.tid, address);
        let is_selected = self.selection.accepts(address, flags) && !detail.is_excluded;
        if !is_selected || self.waits.get(&wait).is_some() {
            return;
        }
        let key = match self.aggregation {
            LockAggregation::Caller => LockKey::Caller(detail.stack.clone()),
            LockAggregation::Thread => LockKey::Thread(at.task.tid),
            LockAggregation::Address => LockKey::Address(address),
        };
        let rows = &mut self.rows;
        let index = *self.by_key.entry(key.clone()).or_insert_with(|| {
            rows.push(LockRow::new(key, address, flags, detail));
            rows.len() - 1
        });
        if let Some(row) = self.rows.get_mut(index) {
            row.contended += 1;
        }
        self.waits.begin(wait, at.time(), index);
    }

    fn end(&mut self, at: &EventContext, address: u64) {
        let span = self.waits.end(&(at.task.tid, address), at.time());
        if let Some(span) = span
            && let Some(row) = self.rows.get_mut(span.data)
        {
            row.end(span.duration());
        }
    }
}

fn tie(left: &LockRow, right: &LockRow) -> Ordering {
    let address = left.caller.cmp(&right.caller);
    address.then_with(|| left.address.cmp(&right.address))
}

impl Observer<LockDetail> for LockContention {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: LockDetail) {
        if !self.losses.usable_event(at) {
            return;
        }
        match event {
            TypedEvent::ContentionBegin(event) => {
                self.begin(at, event.lock_addr(), event.flags().value, &detail);
            }
            TypedEvent::ContentionEnd(event) => self.end(at, event.lock_addr()),
            _ => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        self.waits.lost();
    }
}
