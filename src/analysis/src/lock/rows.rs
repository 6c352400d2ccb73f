//! The rows of the tables: waits of one caller, thread, lock, owner or cgroup.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::captured::CapturedWaits;
use super::captured_locks::CapturedLock;
use crate::LogHistogram;

/// The frames of a stack without the innermost ones, which are functions of locks. Stacks of context switches and of samples of
/// clocks have all their frames.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LockStack {
    /// The process id, if the stack is one of a user program.
    pub process: Option<u32>,
    /// Addresses, innermost first. Where the functions of locks are left out, the first is their caller. Empty if unknown.
    pub frames: Vec<u64>,
}

/// The data computed from the sample of an event before an [`Observer`](crate::Observer) receives it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockDetail {
    /// The stack that determines the row if waits are grouped by caller.
    pub stack: LockStack,
    /// The addresses of the callchain with the functions of locks, innermost first, up to the maximum number of frames; of waits
    /// for futexes, only the user addresses.
    pub full_stack: Vec<u64>,
    /// Whether the wait is excluded by its stack.
    pub is_excluded: bool,
    /// The captured memory of a sample of [`FUTEX_WAITS`](super::FUTEX_WAITS).
    pub captured: Option<Box<CapturedWaits>>,
    /// The data of a sample of [`LOCK_WAITS`](super::LOCK_WAITS).
    pub captured_lock: Option<Box<CapturedLock>>,
    /// The period in ns of a sample of a clock.
    pub clock_period: Option<u64>,
    /// The cgroup of the waiting thread by its id, if waits are grouped by cgroup.
    pub cgroup: Option<u64>,
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
    /// The threads that held the locks when the waits began.
    Owner,
    /// The cgroups of the waiting threads.
    Cgroup,
}

/// The identity of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// A stack.
    Caller(LockStack),
    /// A thread id.
    Thread(u32),
    /// The thread that held the lock, if known.
    Owner(Option<u32>),
    /// A cgroup by its id, 0 if unknown.
    Cgroup(u64),
    /// The address of a lock.
    Address(u64),
    /// A lock of a user program.
    UserAddress {
        /// The process id.
        pid: u32,
        /// The address in it.
        address: u64,
    },
}

/// The waits of a row; times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRow {
    /// What the waits have in common.
    pub key: LockKey,
    /// Name of the lock's class, not necessarily UTF-8; only of lockdep's events.
    pub class: Option<Vec<u8>>,
    /// Waits that began.
    pub contended: u64,
    /// Waits that ended; of lockdep's events the number of times that locks were taken.
    pub acquired: u64,
    /// The number by which perf divides the sum for the mean.
    pub(super) divisor: MeanDivisor,
    /// Whether its events were in an impossible order at least once.
    pub is_broken: bool,
    /// Sum of the waits.
    pub total: u64,
    /// The longest wait.
    pub max: u64,
    /// The shortest wait; 0 if none ended.
    pub min: u64,
    /// The time of the waits in which the threads could run, but waited for a CPU; 0 if it was not measured.
    pub run_queue: u64,
    /// Whether [`LockRow::add_wait`] subtracts `run_queue` from the waits. False for sums of the kernel, which never include it.
    pub(super) separates_run_queue: bool,
    /// The distribution of the waits; empty if only `waits_by_power` is known.
    pub waits: LogHistogram,
    /// Number of waits by power of two, if they were summed in the kernel: element n has the waits from 2ⁿ ns to below
    /// 2ⁿ⁺¹ ns, element 0 also those of 0 ns.
    pub waits_by_power: Option<Vec<u64>>,
    /// Flags of the first wait: `LCB_F_*` of the kernel's `trace/events/lock.h`, [`FUTEX`](super::FUTEX) or
    /// [`FUTEX_PI`](super::FUTEX_PI).
    pub flags: u64,
    /// The process of the first wait, if the lock is one of a user program.
    pub process: Option<u32>,
    /// Threads that ended waits for locks of user programs, with the number of waits.
    pub wakers: BTreeMap<u32, u64>,
    /// Threads that held the locks when waits for them began, with the number of these waits that ended.
    pub owners: BTreeMap<u32, u64>,
    /// The address of the lock of the first wait.
    pub address: u64,
    /// The name of that lock, if it was recognized while it was waited for.
    pub lock_name: Option<String>,
    /// The address of the caller of the first wait, 0 if unknown.
    pub caller: u64,
    /// The callchain of the first wait, as [`LockDetail::full_stack`].
    pub full_stack: Vec<u64>,
}

/// Waits that were summed in the kernel, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockSums {
    /// The number of waits.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The longest wait.
    pub max: u64,
    /// The shortest wait.
    pub min: u64,
    /// Their number by power of two, as in [`LockRow::waits_by_power`].
    pub waits_by_power: Vec<u64>,
    /// Flags of the first wait.
    pub flags: u64,
    /// The address of the lock of the first wait.
    pub address: u64,
    /// The name of that lock, if it was recognized.
    pub lock_name: Option<String>,
    /// The time in which the threads waited for a CPU, which the other times do not include; 0 if it was not measured.
    pub run_queue: u64,
}

/// The number by which the sum of the waits is divided for the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeanDivisor {
    /// Waits that ended.
    Acquired,
    /// Waits that began.
    Contended,
}

impl LockRow {
    pub(super) fn new(key: LockKey, address: u64, flags: u64, detail: &LockDetail) -> Self {
        let caller = detail.stack.frames.first().copied();
        Self {
            key,
            class: None,
            contended: 0,
            acquired: 0,
            divisor: MeanDivisor::Acquired,
            is_broken: false,
            total: 0,
            max: 0,
            min: 0,
            run_queue: 0,
            separates_run_queue: false,
            waits: LogHistogram::new(),
            waits_by_power: None,
            flags,
            process: detail.stack.process,
            wakers: BTreeMap::new(),
            owners: BTreeMap::new(),
            address,
            lock_name: None,
            caller: caller.unwrap_or_default(),
            full_stack: detail.full_stack.clone(),
        }
    }

    /// Creates the row of a lock, or of a thread, from lockdep's events.
    pub(super) fn of_class(key: LockKey, address: u64, class: &[u8]) -> Self {
        let (no_flags, no_detail) = (0, LockDetail::default());
        Self {
            class: Some(class.to_vec()),
            divisor: MeanDivisor::Contended,
            ..Self::new(key, address, no_flags, &no_detail)
        }
    }

    /// Creates a row with another key and no waits, to which waits of this row are moved.
    pub(super) fn with_key(&self, key: LockKey) -> Self {
        let detail = LockDetail {
            stack: LockStack {
                process: self.process,
                // `Self::new` reads only the first frame.
                frames: vec![self.caller],
            },
            full_stack: self.full_stack.clone(),
            ..LockDetail::default()
        };
        Self::new(key, self.address, self.flags, &detail)
    }

    /// Creates the row of waits that were summed in the kernel.
    #[must_use]
    pub fn of_sums(key: LockKey, sums: LockSums, stack: LockStack, full_stack: Vec<u64>) -> Self {
        let detail = LockDetail {
            stack,
            full_stack,
            ..LockDetail::default()
        };
        Self {
            contended: sums.count,
            acquired: sums.count,
            total: sums.total,
            max: sums.max,
            min: sums.min,
            waits_by_power: Some(sums.waits_by_power),
            lock_name: sums.lock_name,
            run_queue: sums.run_queue,
            ..Self::new(key, sums.address, sums.flags, &detail)
        }
    }

    /// Returns the mean, rounded down, as perf does: the sum divided by the number of waits that ended, or, for
    /// lockdep's events and combined rows, that began. 0 without such waits.
    #[must_use]
    pub fn average(&self) -> u64 {
        let divisor = match self.divisor {
            MeanDivisor::Acquired => self.acquired,
            MeanDivisor::Contended => self.contended,
        };
        self.total.checked_div(divisor).unwrap_or_default()
    }

    /// Adds the waits of another row, such as one of the same class.
    pub fn merge(&mut self, other: &Self) {
        self.contended += other.contended;
        self.acquired += other.acquired;
        self.divisor = MeanDivisor::Contended;
        self.is_broken |= other.is_broken;
        if self.lock_name.is_none() {
            self.lock_name.clone_from(&other.lock_name);
        }
        self.total = self.total.saturating_add(other.total);
        self.run_queue = self.run_queue.saturating_add(other.run_queue);
        self.max = self.max.max(other.max);
        let has_waits = |row: &Self| row.waits.count() > 0 || row.waits_by_power.is_some();
        if has_waits(other) {
            self.min = match has_waits(self) {
                false => other.min,
                true => self.min.min(other.min),
            };
        }
        self.waits.merge(&other.waits);
        if let (Some(own), Some(other)) = (&mut self.waits_by_power, &other.waits_by_power) {
            for (own, other) in own.iter_mut().zip(other) {
                *own += other;
            }
        }
        for (own, other) in [
            (&mut self.wakers, &other.wakers),
            (&mut self.owners, &other.owners),
        ] {
            for (tid, count) in other {
                *own.entry(*tid).or_default() += count;
            }
        }
    }

    /// Adds a wait of `wait` ns. For `queued` ns of these, the thread could run, but waited for a CPU.
    pub(super) fn add_wait(&mut self, wait: u64, queued: u64) {
        self.run_queue = self.run_queue.saturating_add(queued);
        let wait = match self.separates_run_queue {
            true => wait.saturating_sub(queued),
            false => wait,
        };
        self.min = match self.waits.count() {
            0 => wait,
            _ => self.min.min(wait),
        };
        self.waits.add(wait);
        self.total = self.total.saturating_add(wait);
        self.max = self.max.max(wait);
    }

    /// Returns the order of rows with equal values: by caller, then by lock.
    #[must_use]
    pub fn break_tie(&self, other: &Self) -> Ordering {
        let by_caller = self.caller.cmp(&other.caller);
        by_caller.then_with(|| self.address.cmp(&other.address))
    }
}

/// A column of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockColumn {
    /// Waits that ended.
    Acquired,
    /// Waits that began.
    Contended,
    /// The mean of the waits.
    Average,
    /// The sum of the waits.
    Total,
    /// The longest wait.
    Max,
    /// The shortest wait.
    Min,
    /// The time in which waiting threads waited for a CPU.
    RunQueue,
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
            "run_queue" => Self::RunQueue,
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
            Self::RunQueue => row.run_queue,
        }
    }

    /// Whether the column is a time.
    #[must_use]
    pub fn is_time(self) -> bool {
        !matches!(self, Self::Acquired | Self::Contended)
    }
}
