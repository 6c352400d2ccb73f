//! The scheduler's statistics between two readings of `/proc/schedstat`, for `sched stats`.

use std::collections::BTreeMap;

use rperf_perfdata::PerfData;
use rperf_wire::{DecodeError, Schedstat, SchedstatCpu, SchedstatDomain, UserRecord};

/// The number of counters of a CPU.
pub const CPU_COUNTERS: usize = 9;

/// Versions of `/proc/schedstat` that are known.
const VERSIONS: std::ops::RangeInclusive<u16> = 15..=17;

/// Why a recording has no statistics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatsError {
    /// A record is damaged.
    #[error("record at offset {offset:#x} is damaged")]
    Damaged {
        /// Offset in the file.
        offset: u64,
        /// The damage.
        source: DecodeError,
    },
    /// The end of the records is damaged or missing.
    #[error("the records end too early")]
    Truncated(#[source] rperf_perfdata::Error),
    /// There are no records of `/proc/schedstat` for the selected CPUs.
    #[error("there are no scheduler statistics")]
    None,
    /// A CPU or one of its domains was read only once, so there is no difference.
    #[error("CPU {cpu} was read only once: the recording ended early")]
    Unfinished {
        /// The CPU.
        cpu: u32,
    },
    /// The records are of an unknown version.
    #[error("version {version} of /proc/schedstat is not known (15 to 17 are)")]
    Version {
        /// The version.
        version: u16,
    },
    /// The records are of different versions.
    #[error("versions {0} and {1} of /proc/schedstat are mixed")]
    Mixed(u16, u16),
}

/// How much the counters of CPUs rose between the first and the last reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedStats {
    /// The version of `/proc/schedstat`, which determines the order of a domain's counters.
    pub version: u16,
    /// Jiffies between the first and the last reading.
    pub elapsed_jiffies: u64,
    /// The counters of each CPU, in order of the CPU numbers.
    pub cpus: Vec<CpuStats>,
}

/// How much the counters of a CPU rose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuStats {
    /// The CPU.
    pub cpu: u32,
    /// The counters in the order of the CPU's line in `/proc/schedstat`.
    pub counters: [u64; CPU_COUNTERS],
    /// The counters of each domain, in order of the domain numbers.
    pub domains: Vec<DomainStats>,
}

/// How much the counters of a CPU rose in one of its domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainStats {
    /// The number of the domain.
    pub number: u16,
    /// The name, if recorded.
    pub name: Option<String>,
    /// Its CPUs as a list (`0-3`), if recorded.
    pub cpus: Option<String>,
    /// The counters in the order of the domain's line in this version of `/proc/schedstat`.
    pub counters: Vec<u64>,
}

/// The counters of the first and of the last reading; `last` is `None` after a single reading.
struct ReadingPair {
    first: Vec<u64>,
    last: Option<Vec<u64>>,
}

impl ReadingPair {
    /// Returns how much each counter rose; `None` without a second reading. `bits` has the width of each counter, at which it
    /// wraps around.
    fn difference(&self, bits: &[u32]) -> Option<Vec<u64>> {
        let pairs = self.last.as_ref()?.iter().zip(&self.first).zip(bits);
        let rise = |((last, first), bits): ((&u64, &u64), &u32)| {
            last.wrapping_sub(*first) & (u64::MAX >> (64 - bits))
        };
        Some(pairs.map(rise).collect())
    }
}

/// The readings of the records so far.
#[derive(Default)]
struct Readings {
    version: Option<u16>,
    /// Times of the first and the last reading in jiffies.
    times: Option<(u64, u64)>,
    cpus: BTreeMap<u32, ReadingPair>,
    /// By CPU and domain number.
    domains: BTreeMap<(u32, u16), ReadingPair>,
}

impl Readings {
    /// Checks the version of a record, and notes its time.
    fn note(&mut self, version: u16, time: u64) -> Result<(), StatsError> {
        if !VERSIONS.contains(&version) {
            return Err(StatsError::Version { version });
        }
        let known = *self.version.get_or_insert(version);
        if known != version {
            return Err(StatsError::Mixed(known, version));
        }
        let (first, _) = self.times.unwrap_or((time, time));
        self.times = Some((first, time));
        Ok(())
    }

    fn cpu(&mut self, record: &SchedstatCpu<'_>) -> Result<(), StatsError> {
        self.note(record.version, record.timestamp)?;
        // Always known: `note` refuses other versions.
        if let Schedstat::Known(counters) = &record.counters {
            add(
                &mut self.cpus,
                record.cpu,
                counters.in_line_order().collect(),
            );
        }
        Ok(())
    }

    fn domain(&mut self, record: &SchedstatDomain<'_>) -> Result<(), StatsError> {
        self.note(record.version, record.timestamp)?;
        // As for a CPU, always known.
        if let Schedstat::Known(counters) = &record.counters {
            let counters = counters.in_line_order(record.version);
            let counters = counters.into_iter().map(u64::from).collect();
            add(&mut self.domains, (record.cpu, record.domain), counters);
        }
        Ok(())
    }
}

/// Adds a reading of the counters of a CPU or domain: the first one, or the last one so far.
fn add<K: Ord>(pairs: &mut BTreeMap<K, ReadingPair>, key: K, counters: Vec<u64>) {
    match pairs.get_mut(&key) {
        Some(pair) => pair.last = Some(counters),
        None => {
            let pair = ReadingPair {
                first: counters,
                last: None,
            };
            pairs.insert(key, pair);
        }
    }
}

impl SchedStats {
    /// Reads the statistics of a recording; only those of `cpus`, if given.
    ///
    /// # Errors
    ///
    /// The recording has no statistics or is damaged, or its statistics are incomplete, of an unknown version or of several
    /// versions.
    pub fn of_recording(data: &PerfData<'_>, cpus: Option<&[u32]>) -> Result<Self, StatsError> {
        let mut readings = Readings::default();
        let is_wanted = |cpu: u32| cpus.is_none_or(|cpus| cpus.contains(&cpu));
        for record in data.records() {
            let record = record.map_err(StatsError::Truncated)?;
            let decoded = UserRecord::decode(&record.raw, data.endian());
            let damaged = |source| StatsError::Damaged {
                offset: record.position,
                source,
            };
            match decoded.map_err(damaged)? {
                UserRecord::SchedstatCpu(record) if is_wanted(record.cpu) => {
                    readings.cpu(&record)?;
                }
                UserRecord::SchedstatDomain(record) if is_wanted(record.cpu) => {
                    readings.domain(&record)?;
                }
                _ => {}
            }
        }
        Self::new(&readings, data)
    }

    fn new(readings: &Readings, data: &PerfData<'_>) -> Result<Self, StatsError> {
        let (Some(version), Some((first, last))) = (readings.version, readings.times) else {
            return Err(StatsError::None);
        };
        let sched_domains = data.features().sched_domains().unwrap_or_default();
        let mut cpus = Vec::new();
        for (cpu, pair) in &readings.cpus {
            let unfinished = StatsError::Unfinished { cpu: *cpu };
            // Six counters of 32 bits (the second is always 0), then two `unsigned long long` and an `unsigned long`, of 64 bits
            // in 64-bit kernels (show_schedstat, kernel/sched/stats.c).
            let bits = [32, 32, 32, 32, 32, 32, 64, 64, 64];
            let counters = pair.difference(&bits).and_then(|all| all.try_into().ok());
            let counters = counters.ok_or(unfinished)?;
            let recorded_cpu = sched_domains.cpus.iter().find(|known| known.cpu == *cpu);
            let recorded_domains = recorded_cpu.map_or(&[][..], |known| &known.domains);
            let mut domains = Vec::new();
            for ((_, number), pair) in readings.domains.range((*cpu, 0)..=(*cpu, u16::MAX)) {
                // All counters of a domain are `unsigned int`.
                let bits = vec![32; pair.first.len()];
                let counters = pair.difference(&bits);
                let mut candidates = recorded_domains.iter();
                let domain = candidates.find(|known| known.number == u32::from(*number));
                domains.push(DomainStats {
                    number: *number,
                    name: domain.and_then(|known| known.name.clone()),
                    cpus: domain.map(|known| known.list.clone()),
                    counters: counters.ok_or(StatsError::Unfinished { cpu: *cpu })?,
                });
            }
            cpus.push(CpuStats {
                cpu: *cpu,
                counters,
                domains,
            });
        }
        match cpus.is_empty() {
            true => Err(StatsError::None),
            false => Ok(Self {
                version,
                elapsed_jiffies: last.saturating_sub(first),
                cpus,
            }),
        }
    }

    /// Returns the averages over all CPUs, rounded down. A domain is averaged over the CPUs that have a domain of its
    /// number; its name and CPU list are those of the first such CPU. The result's `cpu` is 0.
    #[must_use]
    pub fn average(&self) -> CpuStats {
        let mut average = CpuStats {
            cpu: 0,
            counters: [0; CPU_COUNTERS],
            domains: Vec::new(),
        };
        let mut sums: BTreeMap<u16, (DomainStats, u64)> = BTreeMap::new();
        for cpu in &self.cpus {
            add_all(&mut average.counters, &cpu.counters);
            for domain in &cpu.domains {
                match sums.get_mut(&domain.number) {
                    Some((sum, count)) => {
                        add_all(&mut sum.counters, &domain.counters);
                        *count += 1;
                    }
                    None => {
                        sums.insert(domain.number, (domain.clone(), 1));
                    }
                }
            }
        }
        let count = (self.cpus.len() as u64).max(1);
        average.counters.iter_mut().for_each(|sum| *sum /= count);
        for (mut domain, count) in sums.into_values() {
            domain.counters.iter_mut().for_each(|sum| *sum /= count);
            average.domains.push(domain);
        }
        average
    }
}

fn add_all(sums: &mut [u64], counters: &[u64]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum = sum.saturating_add(*counter);
    }
}
