//! Which samples are shown.

use rperf_replay::Sample;
use rperf_resolve::{Frame, Place, Resolver};

use crate::Intervals;

/// What is asked of samples; `None` asks nothing.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// When they were taken.
    pub intervals: Option<Intervals>,
    /// The CPUs, ascending. A sample without a CPU passes.
    pub cpus: Option<Vec<u32>>,
    /// Names that the thread may have at the time.
    pub comms: Option<Vec<String>>,
    /// Processes.
    pub pids: Option<Vec<u32>>,
    /// Threads.
    pub tids: Option<Vec<u32>>,
    /// Objects, by file name or path, that the sampled address may lie in.
    pub dsos: Option<Vec<String>>,
    /// Symbols that the sampled address may lie in.
    pub symbols: Option<SymbolNames>,
}

/// Symbols by name or by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SymbolNames {
    names: Vec<String>,
    /// Sampled addresses; words that are hexadecimal numbers.
    addresses: Vec<u64>,
    /// Bytes from each address on that count as well.
    range: u64,
}

impl SymbolNames {
    /// Parts the words of `-S` into names and addresses as perf does: whatever reads as a hexadecimal number is one.
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

    /// Takes samples up to so many bytes behind each address.
    #[must_use]
    pub fn with_range(mut self, bytes: u64) -> Self {
        self.range = bytes;
        self
    }

    fn contain_address(&self, ip: u64) -> bool {
        let mut addresses = self.addresses.iter();
        // The address itself counts whatever the range is.
        addresses.any(|start| ip == *start || ip.wrapping_sub(*start) < self.range)
    }

    fn contain(&self, resolver: &Resolver<'_>, frame: &Frame) -> bool {
        let named = frame.symbol.is_some_and(|symbol| {
            let name = resolver.symbol_name(symbol);
            self.names.iter().any(|wanted| wanted == name)
        });
        named || (frame.mapping.is_some() && self.contain_address(frame.ip))
    }
}

impl Filter {
    /// Whether `sample` is shown.
    #[must_use]
    pub fn accepts(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        self.accepts_place(sample)
            && self.accepts_comm(sample, resolver)
            && self.accepts_address(sample, resolver)
    }

    /// Time, CPU and ids: what the record itself tells.
    fn accepts_place(&self, sample: &Sample<'_>) -> bool {
        let time = sample.wire.time.unwrap_or(u64::MAX);
        let listed =
            |list: &Option<Vec<u32>>, id| list.as_ref().is_none_or(|list| list.contains(&id));
        self.intervals.as_ref().is_none_or(|all| all.contain(time))
            && self.accepts_cpu(sample.cpu)
            && listed(&self.pids, sample.pid)
            && listed(&self.tids, sample.tid)
    }

    /// Whether what happened on this CPU is shown; `u32::MAX` where that is not known.
    #[must_use]
    pub fn accepts_cpu(&self, cpu: u32) -> bool {
        let listed = |cpus: &Vec<u32>| cpu == u32::MAX || cpus.contains(&cpu);
        self.cpus.as_ref().is_none_or(listed)
    }

    fn accepts_comm(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        let Some(comms) = &self.comms else {
            return true;
        };
        let world = resolver.world();
        let comm = world.comm(world.comm_at(sample.pid, sample.tid, sample.order));
        comms.iter().any(|wanted| wanted == comm)
    }

    fn accepts_address(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        if self.dsos.is_none() && self.symbols.is_none() {
            return true;
        }
        let ip = sample.wire.ip.unwrap_or_default();
        let frame = resolver.locate(Place::of(sample), sample.cpu_mode(), ip);
        self.accepts_frame(&frame, resolver)
    }

    /// Whether samples that fell here are shown.
    #[must_use]
    pub fn accepts_frame(&self, frame: &Frame, resolver: &Resolver<'_>) -> bool {
        let dso = frame.dso.map(|dso| resolver.world().dso(dso));
        let named = |names: &Vec<String>| {
            dso.is_some_and(|dso| names.iter().any(|name| dso.is_called(name)))
        };
        self.dsos.as_ref().is_none_or(named)
            && self
                .symbols
                .as_ref()
                .is_none_or(|symbols| symbols.contain(resolver, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_read_as_numbers_are_addresses() {
        let symbols = SymbolNames::new(["main", "0x1f", " add ", "deadbeef", "0x"].into_iter());
        assert_eq!(symbols.names, ["main", "0x"]);
        assert_eq!(symbols.addresses, [0x1f, 0xadd, 0xdead_beef]);
        let found =
            |symbols: &SymbolNames| [0x1e, 0x1f, 0x22, 0x23].map(|ip| symbols.contain_address(ip));
        assert_eq!(found(&symbols), [false, true, false, false]);
        assert_eq!(found(&symbols.with_range(4)), [false, true, true, false]);
    }
}
