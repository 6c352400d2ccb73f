//! How the CPUs lie.

use std::collections::BTreeMap;

use crate::{Aggregation, Unit};

/// Where a CPU is; -1 for what is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPlace {
    /// Its socket.
    pub socket: i32,
    /// Its die in the socket.
    pub die: i32,
    /// Its cluster in the die.
    pub cluster: i32,
    /// Its core in the die.
    pub core: i32,
    /// Its NUMA node.
    pub node: i32,
    /// Levels of its caches, each with the first CPU that uses the same one.
    pub caches: Vec<(u8, i32)>,
}

impl Default for CpuPlace {
    fn default() -> Self {
        Self {
            socket: -1,
            die: -1,
            cluster: -1,
            core: -1,
            node: -1,
            caches: Vec::new(),
        }
    }
}

/// The places of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    places: BTreeMap<u32, CpuPlace>,
}

impl Topology {
    /// The unit that a CPU counts for.
    #[must_use]
    pub fn unit(&self, by: Aggregation, cpu: u32) -> Unit {
        let nowhere = CpuPlace::default();
        let place = self.places.get(&cpu).unwrap_or(&nowhere);
        let (socket, die) = (place.socket, place.die);
        match by {
            Aggregation::Global | Aggregation::Thread => Unit::All,
            Aggregation::Cpu => Unit::Cpu(cpu),
            Aggregation::Core => Unit::Core {
                socket,
                die,
                core: place.core,
            },
            Aggregation::Cluster => Unit::Cluster {
                socket,
                die,
                cluster: place.cluster,
            },
            Aggregation::Cache(level) => {
                let cache = place.caches.iter().find(|(known, _)| *known == level);
                Unit::Cache {
                    socket,
                    die,
                    level,
                    first: cache.map_or(-1, |(_, first)| *first),
                }
            }
            Aggregation::Die => Unit::Die { socket, die },
            Aggregation::Socket => Unit::Socket(socket),
            Aggregation::Node => Unit::Node(place.node),
        }
    }

    /// The places by CPU.
    #[must_use]
    pub fn places(&self) -> &BTreeMap<u32, CpuPlace> {
        &self.places
    }
}

impl FromIterator<(u32, CpuPlace)> for Topology {
    fn from_iter<I: IntoIterator<Item = (u32, CpuPlace)>>(places: I) -> Self {
        Self {
            places: places.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_counts_for_the_units_it_lies_in() {
        let place = CpuPlace {
            socket: 1,
            die: 0,
            cluster: 8,
            core: 3,
            node: 2,
            caches: vec![(1, 6), (3, 4)],
        };
        let topology: Topology = [(7, place)].into_iter().collect();
        let unit = |by| topology.unit(by, 7);
        let (socket, die) = (1, 0);
        assert_eq!(unit(Aggregation::Global), Unit::All);
        assert_eq!(unit(Aggregation::Cpu), Unit::Cpu(7));
        assert_eq!(
            unit(Aggregation::Core),
            Unit::Core {
                socket,
                die,
                core: 3
            }
        );
        assert_eq!(unit(Aggregation::Node), Unit::Node(2));
        let cache = |level, first| Unit::Cache {
            socket,
            die,
            level,
            first,
        };
        assert_eq!(unit(Aggregation::Cache(3)), cache(3, 4));
        assert_eq!(unit(Aggregation::Cache(2)), cache(2, -1));
        assert_eq!(
            topology.unit(Aggregation::Socket, 9),
            Unit::Socket(-1),
            "a CPU nobody described"
        );
    }
}
