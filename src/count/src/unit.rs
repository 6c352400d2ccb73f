//! Units of aggregation.

/// Aggregation modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// One sum over everything.
    #[default]
    Global,
    /// Each CPU (`-A`).
    Cpu,
    /// Each physical core (`--per-core`).
    Core,
    /// CPUs that share a cluster (`--per-cluster`).
    Cluster,
    /// CPUs that share a cache of this level (`--per-cache`).
    Cache(u8),
    /// Each die (`--per-die`).
    Die,
    /// Each socket (`--per-socket`).
    Socket,
    /// Each NUMA node (`--per-node`).
    Node,
    /// Each thread (`--per-thread`).
    Thread,
}

/// The numbers of aggregation modes in recordings (`enum aggr_mode` of perf's `util/stat.h`): newer versions inserted modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeNumbers {
    /// Up to perf 6.4, and of rperf.
    Perf6_1,
    /// perf 6.5 to 6.8: with caches.
    Perf6_5,
    /// perf 6.9 and later: with caches and clusters.
    Perf6_9,
}

impl Aggregation {
    /// The modes of all versions, in the order of their numbers from 0.
    const FIRST_MODES: [Self; 4] = [Self::Cpu, Self::Global, Self::Socket, Self::Die];
    /// The modes that follow, of which older versions lack the first or the first two.
    const MORE_MODES: [Self; 6] = [
        Self::Cluster,
        Self::Cache(0),
        Self::Core,
        Self::Thread,
        // `AGGR_UNSET`.
        Self::Global,
        Self::Node,
    ];

    fn numbered(numbers: ModeNumbers) -> impl Iterator<Item = Self> {
        let missing = match numbers {
            ModeNumbers::Perf6_1 => 2,
            ModeNumbers::Perf6_5 => 1,
            ModeNumbers::Perf6_9 => 0,
        };
        let more = Self::MORE_MODES.into_iter().skip(missing);
        Self::FIRST_MODES.into_iter().chain(more)
    }

    /// The number in recordings of rperf. Modes unknown to perf 6.1 are stored as global.
    #[must_use]
    pub fn number(self) -> u64 {
        const GLOBAL: u64 = 1;
        let mut numbered = (0..).zip(Self::numbered(ModeNumbers::Perf6_1));
        let found = numbered.find_map(|(number, mode)| (mode == self).then_some(number));
        found.unwrap_or(GLOBAL)
    }

    /// The mode for a number in a recording; global if the number is unknown. The level of a cache is recorded separately, and 0
    /// here.
    #[must_use]
    pub fn of_number(number: u64, numbers: ModeNumbers) -> Self {
        let index = usize::try_from(number).ok();
        index
            .and_then(|index| Self::numbered(numbers).nth(index))
            .unwrap_or_default()
    }
}

/// A unit of aggregation: what one sum is for. Unknown numbers are -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AggregationUnit {
    /// Everything that was counted.
    All,
    /// A CPU.
    Cpu(u32),
    /// A core, by its number in its die.
    Core {
        /// Its socket.
        socket: i32,
        /// Its die.
        die: i32,
        /// The core.
        core: i32,
    },
    /// A cluster, by its number in its die.
    Cluster {
        /// Its socket.
        socket: i32,
        /// Its die.
        die: i32,
        /// The cluster.
        cluster: i32,
    },
    /// A cache, by the first CPU that shares it.
    Cache {
        /// Its socket.
        socket: i32,
        /// Its die.
        die: i32,
        /// Cache level, 1 is closest.
        level: u8,
        /// The first CPU that shares it.
        first: i32,
    },
    /// A die, by its number in its socket.
    Die {
        /// Its socket.
        socket: i32,
        /// The die.
        die: i32,
    },
    /// A socket.
    Socket(i32),
    /// A NUMA node.
    Node(i32),
    /// A thread, by its tid.
    Thread(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_perf_survive_a_recording_and_others_become_global() {
        let numbers = ModeNumbers::Perf6_1;
        for mode in [Aggregation::Cpu, Aggregation::Thread, Aggregation::Node] {
            assert_eq!(Aggregation::of_number(mode.number(), numbers), mode);
        }
        assert_eq!(Aggregation::Cluster.number(), 1);
        // `AGGR_UNSET`.
        assert_eq!(Aggregation::of_number(6, numbers), Aggregation::Global);
        assert_eq!(
            Aggregation::of_number(u64::MAX, numbers),
            Aggregation::Global
        );
    }

    #[test]
    fn numbers_depend_on_the_version() {
        let [core, thread, node] = [Aggregation::Core, Aggregation::Thread, Aggregation::Node];
        for (numbers, expected) in [
            (ModeNumbers::Perf6_1, [(4, core), (5, thread), (7, node)]),
            (ModeNumbers::Perf6_5, [(5, core), (6, thread), (8, node)]),
            // As recorded by perf 6.12 and 7.2.
            (ModeNumbers::Perf6_9, [(6, core), (7, thread), (9, node)]),
        ] {
            for (number, mode) in expected {
                assert_eq!(Aggregation::of_number(number, numbers), mode);
            }
        }
    }
}
