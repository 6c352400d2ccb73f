//! Which samples an analysis takes: the one filter of all commands.

use rperf_replay::{Sample, World};

use crate::{Frame, Intervals, Place, Resolver};

/// What is asked of samples; `None` asks nothing.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// When they were taken. A sample without a time counts as taken after all others, as in perf.
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
    /// `None` if nothing is asked, so that nothing need be checked.
    #[must_use]
    pub fn non_empty(self) -> Option<Self> {
        let asks = self.intervals.is_some()
            || self.cpus.is_some()
            || self.comms.is_some()
            || self.pids.is_some()
            || self.tids.is_some()
            || self.dsos.is_some()
            || self.symbols.is_some();
        asks.then_some(self)
    }

    /// Whether `sample` is taken.
    #[must_use]
    pub fn accepts(&self, sample: &Sample<'_>, resolver: &Resolver<'_>) -> bool {
        self.accepts_moment(sample)
            && self.accepts_task(sample, resolver.world())
            && self.accepts_address(sample, resolver)
    }

    /// Whether time and CPU are those that are asked for.
    #[must_use]
    pub fn accepts_moment(&self, sample: &Sample<'_>) -> bool {
        let time = sample.wire.time.unwrap_or(u64::MAX);
        let in_time = self.intervals.as_ref().is_none_or(|all| all.contain(time));
        in_time && self.accepts_cpu(sample.cpu)
    }

    /// Whether what happened on this CPU is taken; `u32::MAX` if that is not known.
    #[must_use]
    pub fn accepts_cpu(&self, cpu: u32) -> bool {
        cpu == u32::MAX || is_listed(self.cpus.as_deref(), cpu)
    }

    /// Whether process, thread and the thread's name at the time are those that are asked for.
    #[must_use]
    pub fn accepts_task(&self, sample: &Sample<'_>, world: &World) -> bool {
        let named = |comms: &Vec<String>| {
            let comm = world.comm(world.comm_at(sample.pid, sample.tid, sample.order));
            comms.iter().any(|wanted| wanted == comm)
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

fn is_listed(list: Option<&[u32]>, id: u32) -> bool {
    list.is_none_or(|list| list.contains(&id))
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
