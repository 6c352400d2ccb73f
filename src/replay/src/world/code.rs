//! JIT-compiled functions in anonymous memory, by time.
//!
//! Runtimes reuse the memory of functions, and perf has no record for that. The functions in jitdump files are therefore a
//! separate layer over the mappings of the process, used if a lookup ends in memory without a file. A function that is the
//! first at all of its addresses is visible from the beginning, so that only reused addresses create new epochs (numbers
//! of the states of a process's mappings, see [`crate::Epoch`]).

use rperf_wire::PROT_EXEC;

use super::World;
use super::space::{MappingSpace, SpaceId};
use crate::{DsoId, DsoKind, Machine, Mapping, MappingId, Order};

/// A JIT-compiled function at one place: moving it creates another entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeFunction {
    /// Time from which it exists, by the recording's clock, in nanoseconds.
    pub time: u64,
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Its number in its symbol table.
    pub number: u32,
    /// Its start address in that table, which differs from `start` if it was moved.
    pub listed_at: u64,
}

impl World {
    /// The process whose `/tmp/perf-PID.map` has the symbols of `dso`, if `dso` is the executable
    /// anonymous memory of a process.
    #[must_use]
    pub fn perf_map_process(&self, dso: DsoId) -> Option<u32> {
        match self.dsos().get(dso.0 as usize)?.kind {
            DsoKind::PerfMap(pid) => Some(pid),
            _ => None,
        }
    }

    /// The order (time and position) of the first mapping of `dso` by the host's process `pid`; `None` if there is none. Mappings
    /// inherited at fork do not count.
    #[must_use]
    pub fn first_mapped(&self, pid: u32, dso: DsoId) -> Option<Order> {
        let lifetimes = self.processes.get(&(Machine::Host, pid))?;
        let spaces = lifetimes
            .iter()
            .filter_map(|life| self.spaces.get(life.space.0 as usize));
        let inserted = spaces.flat_map(MappingSpace::inserted);
        let mut of_dso = inserted.filter(|(_, id)| self.mapping(*id).dso == dso);
        of_dso.next().map(|(order, _)| order)
    }

    /// Adds `functions`, which must be in order of time, to the anonymous memory of `dso`'s process: each overrides older ones at
    /// its addresses. Must be called at most once for a DSO, before samples are processed. Does nothing if `dso`
    /// is not the executable anonymous memory of a process (see [`World::perf_map_process`]).
    pub fn add_functions(&mut self, dso: DsoId, functions: &[RuntimeFunction]) {
        let Some(lifetimes) = self
            .perf_map_process(dso)
            .and_then(|pid| self.processes.get(&(Machine::Host, pid)))
        else {
            return;
        };
        let lifetimes = lifetimes.clone();
        for (index, life) in lifetimes.iter().enumerate() {
            // Functions from before the first record of the process are in its first address space.
            let since = if index == 0 { 0 } else { life.since.time };
            let until = lifetimes.get(index + 1).map(|next| next.since.time);
            let in_lifetime = functions.iter().filter(|function| {
                function.time >= since && until.is_none_or(|until| function.time < until)
            });
            let in_lifetime: Vec<RuntimeFunction> = in_lifetime.copied().collect();
            self.add_to_space(life.space, dso, &in_lifetime);
        }
        self.version += 1;
    }

    fn add_to_space(&mut self, space: SpaceId, dso: DsoId, functions: &[RuntimeFunction]) {
        let (first, overlapping) = first_and_overlapping(functions);
        let mut layer = self.code.remove(&space).unwrap_or_default();
        // Time 0: visible from the beginning, see the documentation of the module.
        let times = first
            .iter()
            .map(|_| 0)
            .chain(overlapping.iter().map(|f| f.time));
        for (time, function) in times.zip(first.iter().chain(&overlapping)) {
            let id = MappingId(u32::try_from(self.mappings.len()).unwrap_or(u32::MAX));
            self.mappings.push(Mapping {
                start: function.start,
                end: function.end,
                // An address is looked up at its offset in the function plus this, due to `identity: false`.
                pgoff: function.listed_at,
                dso,
                prot: PROT_EXEC,
                flags: 0,
                inode: 0,
                identity: false,
                function: Some(function.number),
            });
            let order = Order { time, position: 0 };
            layer.insert(order, function.start..function.end, Some(id));
        }
        layer.reindex();
        self.code.insert(space, layer);
        if let Some(dso) = self.dsos.get_mut(dso) {
            dso.has_functions = true;
        }
    }

    /// The mapping of the function at `address` if there is one, and it belongs to the DSO of `mapping`; otherwise `mapping`.
    pub(super) fn function_in(
        &self,
        space: SpaceId,
        order: Order,
        address: u64,
        mapping: MappingId,
    ) -> MappingId {
        let function = self.code.get(&space).and_then(|layer| {
            let function = layer.lookup(order, address)??;
            (self.mapping(function).dso == self.mapping(mapping).dso).then_some(function)
        });
        function.unwrap_or(mapping)
    }
}

/// Splits functions into those that are the first at all of their addresses, and those that overlap
/// earlier ones.
fn first_and_overlapping(
    functions: &[RuntimeFunction],
) -> (Vec<RuntimeFunction>, Vec<RuntimeFunction>) {
    // Start and end of the addresses in use so far, without overlaps.
    let mut covered = std::collections::BTreeMap::<u64, u64>::new();
    functions.iter().partition(|function| {
        let below = covered.range(..function.end).next_back();
        let is_first = below.is_none_or(|(_, &end)| end <= function.start);
        let (mut start, mut end) = (function.start, function.end);
        while let Some((&at, &until)) = covered.range(..=end).next_back()
            && until >= start
        {
            covered.remove(&at);
            (start, end) = (start.min(at), end.max(until));
        }
        covered.insert(start, end);
        is_first
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rperf_wire::CpuMode;

    use super::*;

    const PID: u32 = 7;

    /// A process with anonymous code from 0x1000 to 0x2000, which is mapped again at the times `again` (as after mprotect(2)),
    /// and with a file from 0x2000 to 0x3000.
    fn world(again: &[u64]) -> (World, DsoId) {
        let mut world = World::default();
        let dso = world.dsos.find_or_add_user(
            Machine::Host,
            DsoKind::PerfMap(PID),
            "/tmp/perf-7.map",
            None,
        );
        let file = world
            .dsos
            .find_or_add_user(Machine::Host, DsoKind::User, "/a", None);
        let mut space = MappingSpace::default();
        for (time, start, end, dso) in [(1, 0x1000, 0x2000, dso), (1, 0x2000, 0x3000, file)]
            .into_iter()
            .chain(again.iter().map(|&time| (time, 0x1000, 0x2000, dso)))
        {
            let id = MappingId(world.mappings.len() as u32);
            world.mappings.push(Mapping {
                start,
                end,
                pgoff: 0,
                dso,
                prot: PROT_EXEC,
                flags: 0,
                inode: 0,
                identity: true,
                function: None,
            });
            space.insert(Order { time, position: 0 }, start..end, Some(id));
        }
        world.spaces.push(space);
        let life = super::super::Lifetime {
            since: Order::default(),
            space: SpaceId(0),
        };
        world.processes.insert((Machine::Host, PID), vec![life]);
        (world, dso)
    }

    /// An order after the mappings and functions of this time, which have position 0.
    fn just_after(time: u64) -> Order {
        Order { time, position: 9 }
    }

    /// The number of the function at `address` just after `time`.
    fn function_at(world: &World, time: u64, address: u64) -> Option<u32> {
        let order = just_after(time);
        let mapping = world.lookup(Machine::Host, CpuMode::User, PID, order, address);
        world.mapping(mapping.expect("a mapping")).function
    }

    fn function((number, (time, start, len)): (usize, (u64, u64, u64))) -> RuntimeFunction {
        RuntimeFunction {
            time,
            start,
            end: start + len,
            number: number as u32,
            listed_at: start,
        }
    }

    #[test]
    fn epochs_change_when_addresses_are_reused() {
        let (mut world, dso) = world(&[]);
        // The last function extends into the file.
        let functions = [
            (5, 0x1000, 16),
            (9, 0x1010, 16),
            (20, 0x1008, 16),
            (20, 0x1ff8, 16),
        ];
        let functions: Vec<_> = functions.into_iter().enumerate().map(function).collect();
        world.add_functions(dso, &functions);
        let epoch = |time| {
            let order = just_after(time);
            world.epoch(Machine::Host, PID, order).user
        };
        assert_eq!(
            epoch(2),
            epoch(19),
            "the first functions at their addresses"
        );
        assert_ne!(epoch(19), epoch(20));
        assert_eq!(function_at(&world, 19, 0x1008), Some(0));
        assert_eq!(function_at(&world, 20, 0x1008), Some(2));
        assert_eq!(
            function_at(&world, 20, 0x1007),
            Some(0),
            "the part that is not overwritten"
        );
        assert_eq!(function_at(&world, 20, 0x1ffc), Some(3));
        assert_eq!(
            function_at(&world, 20, 0x2004),
            None,
            "functions are only added to anonymous memory"
        );
        assert_eq!(
            world.first_mapped(PID, dso).map(|order| order.time),
            Some(1)
        );
    }

    proptest! {
        #[test]
        fn the_last_function_before_a_sample_is_found(
            mut loads in proptest::collection::vec((1u64..50, 0x1000u64..0x1040, 1u64..20), 0..20),
            mut again in proptest::collection::vec(2u64..50, 0..3),
            time in 1u64..60,
        ) {
            again.sort_unstable();
            loads.sort_by_key(|load| load.0);
            let functions: Vec<_> = loads.into_iter().enumerate().map(function).collect();
            let (mut world, dso) = world(&again);
            world.add_functions(dso, &functions);
            for address in 0x1000..0x1060 {
                let covers = |f: &&RuntimeFunction| (f.start..f.end).contains(&address);
                let before = functions.iter().rev().find(|f| covers(f) && f.time <= time);
                // Code isn't sampled before it exists: any function is acceptable.
                if let Some(expected) = before {
                    prop_assert_eq!(function_at(&world, time, address), Some(expected.number));
                }
            }
        }
    }
}
