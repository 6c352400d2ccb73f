//! CPU topology.

use std::collections::BTreeMap;

use crate::{Aggregation, AggregationUnit};

/// Position of a CPU in the machine; unknown numbers are -1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuLocation {
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
    /// Its data and unified caches: level, and the first CPU that shares the cache.
    pub caches: Vec<(u8, i32)>,
}

impl Default for CpuLocation {
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

/// Positions of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    cpus: BTreeMap<u32, CpuLocation>,
}

impl Topology {
    /// The unit of aggregation that contains a CPU; [`AggregationUnit::All`] for aggregations that do not divide the
    /// CPUs. Unknown numbers in it are -1.
    #[must_use]
    pub fn unit(&self, by: Aggregation, cpu: u32) -> AggregationUnit {
        let unknown = CpuLocation::default();
        let location = self.cpus.get(&cpu).unwrap_or(&unknown);
        let (socket, die) = (location.socket, location.die);
        match by {
            Aggregation::Global | Aggregation::Thread => AggregationUnit::All,
            Aggregation::Cpu => AggregationUnit::Cpu(cpu),
            Aggregation::Core => AggregationUnit::Core {
                socket,
                die,
                core: location.core,
            },
            Aggregation::Cluster => AggregationUnit::Cluster {
                socket,
                die,
                cluster: location.cluster,
            },
            Aggregation::Cache(level) => {
                let cache = location.caches.iter().find(|(known, _)| *known == level);
                AggregationUnit::Cache {
                    socket,
                    die,
                    level,
                    first: cache.map_or(-1, |(_, first)| *first),
                }
            }
            Aggregation::Die => AggregationUnit::Die { socket, die },
            Aggregation::Socket => AggregationUnit::Socket(socket),
            Aggregation::Node => AggregationUnit::Node(location.node),
        }
    }

    /// Positions by CPU.
    #[must_use]
    pub fn cpus(&self) -> &BTreeMap<u32, CpuLocation> {
        &self.cpus
    }
}

impl FromIterator<(u32, CpuLocation)> for Topology {
    fn from_iter<I: IntoIterator<Item = (u32, CpuLocation)>>(cpus: I) -> Self {
        Self {
            cpus: cpus.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_counts_for_its_units() {
        let location = CpuLocation {
            socket: 1,
            die: 0,
            cluster: 8,
            core: 3,
            node: 2,
            caches: vec![(1, 6), (3, 4)],
        };
        let topology: Topology = [(7, location)].into_iter().collect();
        let unit = |by| topology.unit(by, 7);
        let (socket, die) = (1, 0);
        assert_eq!(unit(Aggregation::Global), AggregationUnit::All);
        assert_eq!(unit(Aggregation::Cpu), AggregationUnit::Cpu(7));
        assert_eq!(
            unit(Aggregation::Core),
            AggregationUnit::Core {
                socket,
                die,
                core: 3
            }
        );
        assert_eq!(unit(Aggregation::Node), AggregationUnit::Node(2));
        let cache = |level, first| AggregationUnit::Cache {
            socket,
            die,
            level,
            first,
        };
        assert_eq!(unit(Aggregation::Cache(3)), cache(3, 4));
        // The CPU has no known cache of level 2.
        assert_eq!(unit(Aggregation::Cache(2)), cache(2, -1));
        assert_eq!(
            topology.unit(Aggregation::Socket, 9),
            AggregationUnit::Socket(-1),
            "a CPU that is not in the topology"
        );
    }
}
