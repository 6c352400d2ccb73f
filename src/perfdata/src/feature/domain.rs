//! CPU_DOMAIN_INFO: the scheduler's domains, from `/proc/schedstat`.

use rperf_wire::{Cursor, DecodeError, Encoder};

use super::text;

/// From this version of `/proc/schedstat` on, domains have names.
const VERSION_WITH_NAMES: u32 = 17;

/// Size in bytes of a CPU's header: its number and the number of its domains. Fewer bytes at the end of a section
/// are padding of pipe mode.
const CPU_HEADER_SIZE: usize = 8;

/// The domains of all CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchedDomains {
    /// Version of `/proc/schedstat`.
    pub version: u32,
    /// Maximum number of domains of a CPU.
    pub max_domains: u32,
    /// CPUs with domains, by number.
    pub cpus: Vec<CpuDomains>,
}

/// The domains of one CPU, smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuDomains {
    /// Number of the CPU.
    pub cpu: u32,
    /// Its domains.
    pub domains: Vec<SchedDomain>,
}

/// A set of CPUs between which tasks are balanced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedDomain {
    /// Number of the domain, from 0.
    pub number: u32,
    /// Name of the domain (`SMT`, `MC`, `PKG`); `None` before version 17 of `/proc/schedstat`.
    pub name: Option<String>,
    /// CPU mask in hexadecimal digits.
    pub mask: String,
    /// CPU list, `0-3`.
    pub list: String,
}

impl SchedDomains {
    pub(crate) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let version = at.u32("schedstat version")?;
        let max_domains = at.u32("most domains")?;
        let mut cpus = Vec::new();
        while at.rest().len() >= CPU_HEADER_SIZE {
            let cpu = at.u32("domain cpu")?;
            let count = at.u32("domain count")?;
            let domains = (0..count).map(|_| SchedDomain::decode(at, version));
            let domains = domains.collect::<Result<_, _>>()?;
            cpus.push(CpuDomains { cpu, domains });
        }
        Ok(Self {
            version,
            max_domains,
            cpus,
        })
    }

    pub(crate) fn encode(&self, to: &mut Encoder<'_>) {
        to.u32(self.version);
        to.u32(self.max_domains);
        for CpuDomains { cpu, domains } in &self.cpus {
            to.u32(*cpu);
            text::put_count(to, domains.len());
            for domain in domains {
                domain.encode(to, self.version);
            }
        }
    }
}

impl SchedDomain {
    fn decode(at: &mut Cursor<'_>, version: u32) -> Result<Self, DecodeError> {
        Ok(Self {
            number: at.u32("domain number")?,
            name: (version >= VERSION_WITH_NAMES)
                .then(|| text::take(at))
                .transpose()?,
            mask: text::take(at)?,
            list: text::take(at)?,
        })
    }

    fn encode(&self, to: &mut Encoder<'_>, version: u32) {
        to.u32(self.number);
        if version >= VERSION_WITH_NAMES {
            text::put(to, self.name.as_deref().unwrap_or_default());
        }
        text::put(to, &self.mask);
        text::put(to, &self.list);
    }
}
