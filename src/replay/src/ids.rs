//! Ids of parts of a recording, and the order of records.

use rperf_wire::CpuMode;

/// Position of a record in the total order of its file: by time, and for equal times by file
/// position. A record without a time gets the flush limit at its position: the time up to which perf has delivered records by
/// then (see [`crate::Rounds`]). So it precedes everything not delivered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Order {
    /// Nanoseconds of the recording's clock.
    pub time: u64,
    /// Offset of the record from the start of the file, or any ascending number for live records.
    pub position: u64,
}

impl Order {
    /// After every record.
    pub const MAX: Self = Self {
        time: u64::MAX,
        position: u64::MAX,
    };

    /// A number with the same order, which is compared without branches.
    #[inline(always)]
    #[must_use]
    pub const fn rank(self) -> u128 {
        (self.time as u128) << 64 | self.position as u128
    }
}

/// Index of an event in [`rperf_perfdata::PerfData::events`], or in the events of a stream or live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventIndex(pub u32);

/// Index of a DSO in [`crate::World::dsos`]. The World has the processes, mappings and DSOs of a recording at each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DsoId(pub u32);

/// Index of a mapping in [`crate::World::mappings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MappingId(pub u32);

/// A thread's name; [`crate::World::comm`] returns the text. Equal ids mean equal names, unless names were removed from a live
/// World in between: their ids are reused. Ids are not ordered by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommId(pub u32);

/// The machine of a kernel or process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Machine {
    /// The machine that recorded.
    #[default]
    Host,
    /// A virtual machine, by the pid of its process on the host.
    Guest(u32),
}

impl Machine {
    /// The machine of a record with this mode and process id. In guest modes, `pid` is the virtual machine's process on the host.
    #[must_use]
    pub fn of(mode: CpuMode, pid: u32) -> Self {
        match mode {
            CpuMode::GuestKernel | CpuMode::GuestUser => Self::Guest(pid),
            _ => Self::Host,
        }
    }
}
