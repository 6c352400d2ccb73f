//! Records of `sched stats record`: the lines of `/proc/schedstat`.
//!
//! Source of the layouts: `schedstat-v15.h`, `-v16.h` and `-v17.h` in the kernel's
//! `tools/lib/perf/include/perf`; meaning of the fields: `Documentation/scheduler/sched-stats.rst`.

use crate::{Cursor, DecodeError, Encoder, Endian};

/// The versions of `/proc/schedstat` whose counters are known.
pub const SCHEDSTAT_VERSIONS: std::ops::RangeInclusive<u16> = 15..=17;

/// From this version on, the counters for busy CPUs precede those for idle ones.
const BUSY_FIRST: u16 = 16;

/// From this version on, imbalance is split by kind.
const IMBALANCE_BY_KIND: u16 = 17;

/// Bytes of counters in a domain record of any version: the 180 bytes of version 17, which has the most, rounded up to a multiple
/// of 8.
const DOMAIN_SIZE: usize = 184;

/// `PERF_RECORD_SCHEDSTAT_CPU`: scheduler statistics of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedstatCpu<'a> {
    /// Time of the reading in jiffies.
    pub timestamp: u64,
    /// Number of the CPU.
    pub cpu: u32,
    /// Version of `/proc/schedstat`.
    pub version: u16,
    /// The counters of that version.
    pub counters: Schedstat<'a, CpuCounters>,
}

/// `PERF_RECORD_SCHEDSTAT_DOMAIN`: scheduler statistics of a CPU for one of its domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedstatDomain<'a> {
    /// Time of the reading in jiffies.
    pub timestamp: u64,
    /// Number of the CPU.
    pub cpu: u32,
    /// Version of `/proc/schedstat`.
    pub version: u16,
    /// Number of the domain, 0 for the smallest domain.
    pub domain: u16,
    /// The counters of that version.
    pub counters: Schedstat<'a, DomainCounters>,
}

/// Counters of a known version, or the bytes of an unknown one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedstat<'a, T> {
    /// Of version 15, 16 or 17.
    Known(T),
    /// The undecoded bytes.
    Other(&'a [u8]),
}

/// Counters of a CPU since boot, the same in all known versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuCounters {
    /// Calls of sched_yield(2).
    pub yld_count: u32,
    /// Always 0.
    pub array_exp: u32,
    /// Calls of `schedule()`.
    pub sched_count: u32,
    /// How many of these calls left the CPU idle.
    pub sched_goidle: u32,
    /// Calls of `try_to_wake_up()`.
    pub ttwu_count: u32,
    /// How many of these calls woke up a task on the same CPU.
    pub ttwu_local: u32,
    /// Nanoseconds that tasks ran.
    pub rq_cpu_time: u64,
    /// Nanoseconds that tasks waited to run.
    pub run_delay: u64,
    /// Time slices that were run.
    pub pcount: u64,
}

/// Counters of a CPU in one domain since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainCounters {
    /// Load balancing while the CPU was busy.
    pub busy: LoadBalance,
    /// Load balancing while the CPU was idle.
    pub idle: LoadBalance,
    /// Load balancing while the CPU was about to become idle.
    pub newidle: LoadBalance,
    /// Active balancing, balancing at exec and fork, and wake-ups.
    pub moves: Moves,
}

/// Load balancing while the CPU was busy, idle, or about to become idle (`*_lb_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBalance {
    /// Calls of `load_balance()`, which is `sched_balance_rq()` from Linux 6.10 on.
    pub count: u32,
    /// Number of calls that found the domain balanced.
    pub balanced: u32,
    /// Number of calls that failed to move a task.
    pub failed: u32,
    /// Sum of the imbalance found.
    pub imbalance: Imbalance,
    /// Number of tasks pulled to this CPU.
    pub gained: u32,
    /// Number of those tasks that were cache-hot on their previous CPU.
    pub hot_gained: u32,
    /// Calls that found no busier queue.
    pub nobusyq: u32,
    /// Calls that found no busier group.
    pub nobusyg: u32,
}

/// Sums of the imbalance found by load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imbalance {
    /// Sum over all kinds, up to version 16.
    Sum(u32),
    /// By kind, from version 17 on.
    ByKind {
        /// Imbalance of load.
        load: u32,
        /// Imbalance of utilisation.
        util: u32,
        /// Imbalance of the number of tasks.
        task: u32,
        /// Imbalance of tasks that don't fit their CPU.
        misfit: u32,
    },
}

/// Moves of tasks to other CPUs by active balancing, at exec, at fork and at wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    /// Calls of `active_load_balance()`, how many of them failed, and how many moved a task (`alb_*`).
    pub active: [u32; 3],
    /// Count, balanced and pushed of `exec` (`sbe_*`); not in use.
    pub exec: [u32; 3],
    /// Count, balanced and pushed of `fork` (`sbf_*`); not in use.
    pub fork: [u32; 3],
    /// Tasks woken on a CPU other than the previous one.
    pub ttwu_wake_remote: u32,
    /// Tasks moved to the waking CPU because they were not cache-hot on their previous CPU.
    pub ttwu_move_affine: u32,
    /// Wake-ups that started passive balancing.
    pub ttwu_move_balance: u32,
}

impl<'a> SchedstatCpu<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let timestamp = at.u64("schedstat timestamp")?;
        let cpu = at.u32("schedstat cpu")?;
        let version = at.u16("schedstat version")?;
        at.u16("schedstat padding")?;
        Ok(Self {
            timestamp,
            cpu,
            version,
            counters: match SCHEDSTAT_VERSIONS.contains(&version) {
                true => Schedstat::Known(CpuCounters::decode(at)?),
                false => Schedstat::Other(at.rest()),
            },
        })
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.timestamp);
        to.u32(self.cpu);
        to.u16(self.version);
        to.u16(0);
        match &self.counters {
            Schedstat::Known(counters) => counters.encode(to),
            Schedstat::Other(bytes) => to.bytes(bytes),
        }
    }
}

impl CpuCounters {
    fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            yld_count: at.u32("yld_count")?,
            array_exp: at.u32("array_exp")?,
            sched_count: at.u32("sched_count")?,
            sched_goidle: at.u32("sched_goidle")?,
            ttwu_count: at.u32("ttwu_count")?,
            ttwu_local: at.u32("ttwu_local")?,
            rq_cpu_time: at.u64("rq_cpu_time")?,
            run_delay: at.u64("run_delay")?,
            pcount: at.u64("pcount")?,
        })
    }

    /// Returns the counters from the numbers of a line of `/proc/schedstat`, in its order; `None` if there are not nine, or if
    /// one of the first six exceeds 32 bits.
    #[must_use]
    pub fn from_line_order(words: &[u64]) -> Option<Self> {
        let [first_six @ .., rq_cpu_time, run_delay, pcount] = words else {
            return None;
        };
        let narrow: Result<Vec<u32>, _> =
            first_six.iter().map(|word| u32::try_from(*word)).collect();
        let narrow: [u32; 6] = narrow.ok()?.try_into().ok()?;
        let [
            yld_count,
            array_exp,
            sched_count,
            sched_goidle,
            ttwu_count,
            ttwu_local,
        ] = narrow;
        Some(Self {
            yld_count,
            array_exp,
            sched_count,
            sched_goidle,
            ttwu_count,
            ttwu_local,
            rq_cpu_time: *rq_cpu_time,
            run_delay: *run_delay,
            pcount: *pcount,
        })
    }

    fn encode(&self, to: &mut Encoder<'_>) {
        self.narrow().iter().for_each(|word| to.u32(*word));
        self.wide().iter().for_each(|word| to.u64(*word));
    }

    /// Returns the counters in the order of a line of `/proc/schedstat`.
    pub fn in_line_order(&self) -> impl Iterator<Item = u64> {
        self.narrow().map(u64::from).into_iter().chain(self.wide())
    }

    /// The counters of 32 bits, in order.
    fn narrow(&self) -> [u32; 6] {
        [
            self.yld_count,
            self.array_exp,
            self.sched_count,
            self.sched_goidle,
            self.ttwu_count,
            self.ttwu_local,
        ]
    }

    /// The counters of 64 bits, in order; they follow those of 32 bits.
    fn wide(&self) -> [u64; 3] {
        [self.rq_cpu_time, self.run_delay, self.pcount]
    }
}

impl<'a> SchedstatDomain<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let timestamp = at.u64("schedstat timestamp")?;
        let cpu = at.u32("schedstat cpu")?;
        let version = at.u16("schedstat version")?;
        Ok(Self {
            timestamp,
            cpu,
            version,
            domain: at.u16("schedstat domain")?,
            counters: match SCHEDSTAT_VERSIONS.contains(&version) {
                true => Schedstat::Known(DomainCounters::decode(at, version)?),
                false => Schedstat::Other(at.rest()),
            },
        })
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.timestamp);
        to.u32(self.cpu);
        to.u16(self.version);
        to.u16(self.domain);
        let start = to.len();
        match &self.counters {
            Schedstat::Known(counters) => {
                let words = counters.in_line_order(self.version);
                words.iter().for_each(|word| to.u32(*word));
                to.zeros(DOMAIN_SIZE.saturating_sub(to.len() - start));
            }
            Schedstat::Other(bytes) => to.bytes(bytes),
        }
    }
}

impl DomainCounters {
    fn decode(at: &mut Cursor<'_>, version: u16) -> Result<Self, DecodeError> {
        let first = LoadBalance::decode(at, version)?;
        let second = LoadBalance::decode(at, version)?;
        let (busy, idle) = match version >= BUSY_FIRST {
            true => (first, second),
            false => (second, first),
        };
        Ok(Self {
            busy,
            idle,
            newidle: LoadBalance::decode(at, version)?,
            moves: Moves::decode(at)?,
        })
    }

    /// Returns the counters from the numbers of a line of `/proc/schedstat`, in its order in that version; `None` if the version
    /// is unknown or has another number of counters.
    #[must_use]
    pub fn from_line_order(words: &[u32], version: u16) -> Option<Self> {
        if !SCHEDSTAT_VERSIONS.contains(&version) {
            return None;
        }
        // A line has the counters in the order of a record: the numbers are encoded, then decoded as a record's.
        let mut bytes = Vec::with_capacity(DOMAIN_SIZE);
        let mut to = Encoder::new(&mut bytes, Endian::NATIVE);
        words.iter().for_each(|word| to.u32(*word));
        let mut at = Cursor::new(&bytes, Endian::NATIVE);
        let counters = Self::decode(&mut at, version).ok()?;
        at.rest().is_empty().then_some(counters)
    }

    /// Returns the counters in the order of a line of `/proc/schedstat` in that version.
    #[must_use]
    pub fn in_line_order(&self, version: u16) -> Vec<u32> {
        let (first, second) = match version >= BUSY_FIRST {
            true => (&self.busy, &self.idle),
            false => (&self.idle, &self.busy),
        };
        let mut words = Vec::with_capacity(DOMAIN_SIZE / 4);
        for balance in [first, second, &self.newidle] {
            balance.put(&mut words);
        }
        self.moves.put(&mut words);
        words
    }
}

impl LoadBalance {
    fn decode(at: &mut Cursor<'_>, version: u16) -> Result<Self, DecodeError> {
        Ok(Self {
            count: at.u32("lb_count")?,
            balanced: at.u32("lb_balanced")?,
            failed: at.u32("lb_failed")?,
            imbalance: Imbalance::decode(at, version)?,
            gained: at.u32("lb_gained")?,
            hot_gained: at.u32("lb_hot_gained")?,
            nobusyq: at.u32("lb_nobusyq")?,
            nobusyg: at.u32("lb_nobusyg")?,
        })
    }

    fn put(&self, words: &mut Vec<u32>) {
        words.extend([self.count, self.balanced, self.failed]);
        match self.imbalance {
            Imbalance::Sum(sum) => words.push(sum),
            Imbalance::ByKind {
                load,
                util,
                task,
                misfit,
            } => words.extend([load, util, task, misfit]),
        }
        words.extend([self.gained, self.hot_gained, self.nobusyq, self.nobusyg]);
    }
}

impl Imbalance {
    fn decode(at: &mut Cursor<'_>, version: u16) -> Result<Self, DecodeError> {
        if version < IMBALANCE_BY_KIND {
            return at.u32("lb_imbalance").map(Self::Sum);
        }
        Ok(Self::ByKind {
            load: at.u32("lb_imbalance_load")?,
            util: at.u32("lb_imbalance_util")?,
            task: at.u32("lb_imbalance_task")?,
            misfit: at.u32("lb_imbalance_misfit")?,
        })
    }
}

impl Moves {
    fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let mut three = |field: &'static str| Ok([at.u32(field)?, at.u32(field)?, at.u32(field)?]);
        Ok(Self {
            active: three("alb")?,
            exec: three("sbe")?,
            fork: three("sbf")?,
            ttwu_wake_remote: at.u32("ttwu_wake_remote")?,
            ttwu_move_affine: at.u32("ttwu_move_affine")?,
            ttwu_move_balance: at.u32("ttwu_move_balance")?,
        })
    }

    fn put(&self, words: &mut Vec<u32>) {
        words.extend([self.active, self.exec, self.fork].concat());
        words.extend([
            self.ttwu_wake_remote,
            self.ttwu_move_affine,
            self.ttwu_move_balance,
        ]);
    }
}
