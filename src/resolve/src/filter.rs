//! Sample filters.

use rperf_replay::{Sample, World};

use crate::{AddressContext, Frame, Resolver, TimeIntervals};

/// Criteria for samples. A criterion that is `None` accepts all samples.
#[derive(Debug, Clone, Default)]
pub struct SampleCriteria {
    /// Time intervals. A sample without a time is treated as later than all others, as in perf.
    pub intervals: Option<TimeIntervals>,
    /// CPUs. A sample without a CPU is accepted.
    pub cpus: Option<Vec<u32>>,
    /// Names of the thread at the time of the sample.
    pub comms: Option<Vec<String>>,
    /// Processes.
    pub pids: Option<Vec<u32>>,
    /// Threads.
    pub tids: Option<Vec<u32>>,
    /// Objects of the sampled address, by file name or path.
    pub dsos: Option<Vec<String>>,
    /// Symbols of the sampled address.
    pub symbols: Option<SymbolNames>,
}

/// Symbols by name or by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolNames {
    names: Vec<String>,
    /// Sampled addresses, from the words that are hexadecimal numbers.
    addresses: Vec<u64>,
    /// Number of bytes that match from each address on; the address itself always matches.
    range: u64,
}

impl SymbolNames {
    /// Splits the words of `-S` into names and addresses like perf: any hexadecimal number is an
    /// address.
    pub fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut symbols = Self::default();
        for word in words {
            let digits = word.trim().trim_start_matches("0x");
            match u64::from_str_radix(digits, 16) {
                Ok(address) => symbols.addresses.push(address),
                Err(_) => symbols.names.push(word.to_owned()),
            }
        }
        symbols
    }

    /// Accepts samples in the range of this many bytes that begins at each address.
    #[must_use]
    pub fn with_range(mut self, bytes: u64) -> Self {
        self.range = bytes;
        self
    }

    fn contain_address(&self, ip: u64) -> bool {
        let mut addresses = self.addresses.iter();
        // The address itself matches even if the range is 0.
        addresses.any(|start| ip == *start || ip.wrapping_sub(*start) < self.range)
    }

    fn contain(&self, resolver: &Resolver<'_>, frame: &Frame) -> bool {
        let named = frame.symbol.is_some_and(|symbol| {
            let name = resolver.symbol_name(symbol);
            self.names.iter().any(|other| other == name)
        });
        // As in perf, addresses outside of all mappings are not compared.
        named || (frame.mapping.is_some() && self.contain_address(frame.ip))
    }
}

impl SampleCriteria {
    /// `None` if there are no criteria, so that checks can be skipped.
    #[must_use]
    pub fn non_empty(self) -> Option<Self> {
        (!self.accepts_all()).then_some(self)
    }

    /// Whether there are no criteria.
    #[must_use]
    pub fn accepts_all(&self) -> bool {
        self.intervals.is_none()
            && self.cpus.is_none()
            && self.comms.is_none()
            && self.pids.is_none()
            && self.tids.is_none()
            && self.dsos.is_none()
            && self.symbols.is_none()
    }

    /// Whether `sample` is accepted.
    #[must_use]
    pub fn accepts(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        self.accepts_time_and_cpu(sample)
            && self.accepts_task(sample, resolver.world())
            && self.accepts_address(sample, resolver)
    }

    /// Whether time and CPU are accepted.
    #[must_use]
    pub fn accepts_time_and_cpu(&self, sample: &Sample<'_>) -> bool {
        let time = sample.wire.time.unwrap_or(u64::MAX);
        let in_time = self.intervals.as_ref().is_none_or(|all| all.contain(time));
        in_time && self.accepts_cpu(sample.cpu)
    }

    /// Whether this CPU is accepted. An unknown CPU, `u32::MAX`, is always accepted.
    #[must_use]
    pub fn accepts_cpu(&self, cpu: u32) -> bool {
        cpu == u32::MAX || is_listed(self.cpus.as_deref(), cpu)
    }

    /// Whether process, thread and the thread's name are accepted.
    #[must_use]
    pub fn accepts_task(&self, sample: &Sample<'_>, world: &World) -> bool {
        let named = |comms: &Vec<String>| {
            let comm = world.comm(world.comm_at(sample.tid, sample.order));
            comms.iter().any(|other| other == comm)
        };
        is_listed(self.pids.as_deref(), sample.pid)
            && is_listed(self.tids.as_deref(), sample.tid)
            && self.comms.as_ref().is_none_or(named)
    }

    fn accepts_address(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        if self.dsos.is_none() && self.symbols.is_none() {
            return true;
        }
        let ip = sample.wire.ip.unwrap_or_default();
        let frame = resolver.locate(AddressContext::of(sample), sample.cpu_mode(), ip);
        self.accepts_frame(&frame, resolver)
    }

    /// Whether the object and the symbol of this frame are accepted.
    #[must_use]
    pub fn accepts_frame(&self, frame: &Frame, resolver: &Resolver<'_>) -> bool {
        let dso = frame.dso.map(|dso| resolver.world().dso(dso));
        let named = |names: &Vec<String>| {
            dso.is_some_and(|dso| names.iter().any(|name| dso.has_name(name)))
        };
        self.dsos.as_ref().is_none_or(named)
            && self
                .symbols
                .as_ref()
                .is_none_or(|symbols| symbols.contain(resolver, frame))
    }
}

fn is_listed(list: Option<&[u32]>, id: u32) -> bool {
    list.is_none_or(|list| list.contains(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_words_are_addresses_where_a_range_may_begin() {
        let symbols = SymbolNames::new(["main", "0x1f", " add ", "deadbeef", "0x"].into_iter());
        assert_eq!(symbols.names, ["main", "0x"]);
        assert_eq!(symbols.addresses, [0x1f, 0xadd, 0xdead_beef]);
        let matches =
            |symbols: &SymbolNames| [0x1e, 0x1f, 0x22, 0x23].map(|ip| symbols.contain_address(ip));
        assert_eq!(matches(&symbols), [false, true, false, false]);
        assert_eq!(matches(&symbols.with_range(4)), [false, true, true, false]);
    }
}
