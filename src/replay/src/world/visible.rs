//! The mappings of a process that are not overridden.

use super::World;
use super::space::{InheritedMappings, SpaceId};
use crate::{Machine, MappingId, Order};

/// A part of a mapping that no later mapping overrides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VisibleMapping {
    /// First address of the part.
    pub start: u64,
    /// End address of the part, exclusive.
    pub end: u64,
    /// The mapping.
    pub id: MappingId,
}

/// Queries for visible mappings.
impl World {
    /// The mappings of process `pid` of the host at the end of the recording, by ascending address.
    #[must_use]
    pub fn mappings_of(&self, pid: u32) -> Vec<VisibleMapping> {
        // The successive address spaces of the process id: each FORK record that creates the process begins a new one.
        let lifetimes = self.processes.get(&(Machine::Host, pid));
        let last = lifetimes.and_then(|lifetimes| lifetimes.last());
        last.map_or(Vec::new(), |life| self.visible_in(life.space))
    }

    /// The final visible mappings of an address space, inherited or its own, by ascending address.
    pub(super) fn visible_in(&self, space: SpaceId) -> Vec<VisibleMapping> {
        let until = Order::MAX;
        // A child forked at the end would inherit exactly the final mappings.
        let borders = self.borders(InheritedMappings { space, until });
        let mut visible: Vec<VisibleMapping> = Vec::new();
        for (start, end) in borders.iter().zip(borders.iter().skip(1)) {
            let (start, end) = (*start, *end);
            // No mapping begins or ends between two adjacent borders: the mapping at the lower one covers the range, or none
            // does.
            let Some((id, ..)) = self.mapping_in(space, until, start) else {
                continue;
            };
            match visible.last_mut() {
                Some(last) if last.id == id && last.end == start => last.end = end,
                _ => visible.push(VisibleMapping { start, end, id }),
            }
        }
        visible
    }
}
