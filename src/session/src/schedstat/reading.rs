//! One reading of `/proc/schedstat`: its text, and the records for it.
//!
//! Source of the text: `show_schedstat` in the kernel's `kernel/sched/stats.c`, `Documentation/scheduler/sched-stats.rst`.

use rperf_perfdata::feature::{CpuDomains, SchedDomain, SchedDomains};
use rperf_sys::CpuList;
use rperf_wire::{
    CpuCounters, DomainCounters, SCHEDSTAT_VERSIONS, Schedstat, SchedstatCpu, SchedstatDomain,
    UserRecord,
};

use crate::synthesize::RecordBuffer;

/// The first version in which domains have names.
const FIRST_WITH_NAMES: u16 = 17;
/// Bits in each group of hexadecimal digits of a CPU mask (`%*pb` of the kernel's printf). Commas separate the groups.
const MASK_GROUP_BITS: u32 = 32;

/// Why the text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchedstatError {
    /// A version whose counters are not known.
    #[error("version {0} is not known (15 to 17 are)")]
    Version(u16),
    /// A line that does not have the format of the text's version.
    #[error("line {line} is malformed: '{text}'")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The version or the time is missing or malformed.
    #[error("it does not begin with a version and a time")]
    Head,
}

/// The counters of all online CPUs at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedstatReading {
    /// The version of the text's format.
    pub version: u16,
    /// The time in jiffies.
    pub timestamp: u64,
    /// The CPUs in the order of the text.
    pub cpus: Vec<CpuReading>,
}

/// The counters of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuReading {
    /// The CPU.
    pub cpu: u32,
    /// Its counters.
    pub counters: CpuCounters,
    /// Its domains, the smallest first.
    pub domains: Vec<DomainReading>,
}

/// The counters of a CPU in one of its domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainReading {
    /// The domain's number, its name if the version has names, and its CPUs.
    pub domain: SchedDomain,
    /// The counters.
    pub counters: DomainCounters,
}

impl SchedstatReading {
    /// Parses the text of `/proc/schedstat`.
    ///
    /// # Errors
    /// A missing or malformed version or time, an unknown version, or a malformed line.
    pub fn parse(text: &str) -> Result<Self, SchedstatError> {
        let mut lines = text.lines().enumerate();
        let mut head = |name: &str| {
            let (_, line) = lines.next()?;
            line.strip_prefix(name)?.trim().parse::<u64>().ok()
        };
        let version = head("version ").ok_or(SchedstatError::Head)?;
        let version = u16::try_from(version).map_err(|_| SchedstatError::Head)?;
        if !SCHEDSTAT_VERSIONS.contains(&version) {
            return Err(SchedstatError::Version(version));
        }
        let timestamp = head("timestamp ").ok_or(SchedstatError::Head)?;
        let mut reading = Self {
            version,
            timestamp,
            cpus: Vec::new(),
        };
        for (index, line) in lines {
            reading.add(line).ok_or_else(|| SchedstatError::Line {
                line: index + 1,
                text: line.to_owned(),
            })?;
        }
        Ok(reading)
    }

    /// Adds the CPU or the domain of a line; `None` if the line is malformed.
    fn add(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("cpu") {
            let mut words = rest.split_ascii_whitespace();
            let cpu = words.next()?.parse().ok()?;
            let words: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
            let counters = CpuCounters::from_line_order(&words?)?;
            self.cpus.push(CpuReading {
                cpu,
                counters,
                domains: Vec::new(),
            });
            return Some(());
        }
        let mut words = line.strip_prefix("domain")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let name = match self.version >= FIRST_WITH_NAMES {
            true => Some(words.next()?.to_owned()),
            false => None,
        };
        let mask = words.next()?.to_owned();
        let list = cpus_of_mask(&mask)?.to_string();
        let words: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
        let counters = DomainCounters::from_line_order(&words?, self.version)?;
        self.cpus.last_mut()?.domains.push(DomainReading {
            domain: SchedDomain {
                number,
                name,
                mask,
                list,
            },
            counters,
        });
        Some(())
    }

    /// Appends the records of the CPUs in `cpus`, or of all CPUs if `None`, to `records`.
    pub(super) fn put(&self, cpus: Option<&CpuList>, records: &mut RecordBuffer) {
        let (version, timestamp) = (self.version, self.timestamp);
        let all = self.cpus.iter();
        for reading in all.filter(|reading| cpus.is_none_or(|cpus| cpus.contains(reading.cpu))) {
            let cpu = reading.cpu;
            append(
                records,
                &UserRecord::SchedstatCpu(SchedstatCpu {
                    timestamp,
                    cpu,
                    version,
                    counters: Schedstat::Known(reading.counters),
                }),
            );
            for DomainReading { domain, counters } in &reading.domains {
                let record = SchedstatDomain {
                    timestamp,
                    cpu,
                    version,
                    // A CPU has only a few domains.
                    domain: u16::try_from(domain.number).unwrap_or(u16::MAX),
                    counters: Schedstat::Known(*counters),
                };
                append(records, &UserRecord::SchedstatDomain(record));
            }
        }
    }

    /// Returns the content of the header's CPU_DOMAIN_INFO: the domains of all CPUs.
    pub(super) fn domains(&self) -> SchedDomains {
        let cpus = self.cpus.iter().map(|reading| CpuDomains {
            cpu: reading.cpu,
            domains: reading
                .domains
                .iter()
                .map(|domain| domain.domain.clone())
                .collect(),
        });
        let most = self.cpus.iter().map(|reading| reading.domains.len()).max();
        SchedDomains {
            version: u32::from(self.version),
            max_domains: u32::try_from(most.unwrap_or_default()).unwrap_or(u32::MAX),
            cpus: cpus.collect(),
        }
    }
}

fn append(records: &mut RecordBuffer, record: &UserRecord<'_>) {
    records.user(record.kind(), |to| record.encode_body(to));
}

/// Returns the CPUs of a mask in hexadecimal digits, such as `00000001,0000000f`; `None` if it is malformed.
fn cpus_of_mask(mask: &str) -> Option<CpuList> {
    let mut cpus = Vec::new();
    for (group, digits) in (0_u32..).zip(mask.rsplit(',')) {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let first = group.checked_mul(MASK_GROUP_BITS)?;
        let set = (0..MASK_GROUP_BITS).filter(|bit| bits >> bit & 1 == 1);
        cpus.extend(set.map(|bit| first + bit));
    }
    Some(cpus.into_iter().collect())
}
