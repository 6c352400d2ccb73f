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

impl Aggregation {
    /// `enum aggr_mode` of perf 6.1 (`util/stat.h`), used in recordings; without `AGGR_UNSET` (6). Newer versions of
    /// perf insert modes, and so number some differently.
    const NUMBERS: [(u64, Self); 7] = [
        (0, Self::Cpu),
        (1, Self::Global),
        (2, Self::Socket),
        (3, Self::Die),
        (4, Self::Core),
        (5, Self::Thread),
        (7, Self::Node),
    ];

    /// The number in recordings. Modes unknown to perf 6.1 are stored as global.
    #[must_use]
    pub fn number(self) -> u64 {
        const GLOBAL: u64 = 1;
        let mut known = Self::NUMBERS.iter();
        known
            .find_map(|(number, mode)| (*mode == self).then_some(*number))
            .unwrap_or(GLOBAL)
    }

    /// The mode for a number in a recording; global if the number is unknown.
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        let mut known = Self::NUMBERS.iter();
        let found = known.find_map(|(listed, mode)| (*listed == number).then_some(*mode));
        found.unwrap_or_default()
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
        for mode in [Aggregation::Cpu, Aggregation::Thread, Aggregation::Node] {
            assert_eq!(Aggregation::of_number(mode.number()), mode);
        }
        assert_eq!(Aggregation::Cluster.number(), 1);
        // `AGGR_UNSET`.
        assert_eq!(Aggregation::of_number(6), Aggregation::Global);
    }
}
