//! Small numbers that stand for things of a recording.

use rperf_wire::CpuMode;

/// Place of a record in the total order of its file: by time, and where times are equal (or absent)
/// by position. Records without a time take the flush limit at their position for theirs: they come
/// before everything that was not delivered yet (see [`crate::Rounds`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Order {
    /// Nanoseconds of the event's clock.
    pub time: u64,
    /// Offset of the record from the file's start, or any rising number for live records.
    pub position: u64,
}

impl Order {
    /// Behind every record.
    pub const MAX: Self = Self {
        time: u64::MAX,
        position: u64::MAX,
    };
}

/// Index of an event in [`rperf_perfdata::PerfData::events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventIndex(pub u32);

/// Index of a file in [`crate::World::dsos`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DsoId(pub u32);

/// Index of a mapping in [`crate::World::mappings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MappingId(pub u32);

/// A thread's name; [`crate::World::comm`] has the text. Equal ids mean equal names. The order of
/// ids says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommId(pub u32);

/// Whose kernel and processes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Machine {
    /// The machine that recorded.
    #[default]
    Host,
    /// A virtual machine, by the pid of its process on the host.
    Guest(u32),
}

impl Machine {
    /// The machine of a record taken in `mode` with this process id.
    #[must_use]
    pub fn of(mode: CpuMode, pid: u32) -> Self {
        match mode {
            CpuMode::GuestKernel | CpuMode::GuestUser => Self::Guest(pid),
            _ => Self::Host,
        }
    }
}
