//! The counts and times of perf's trace scripts, computed without an interpreter for `script report NAME`. The input is
//! samples of tracepoints in time order, except for `PhysicalCounts`, which counts memory samples in any order.
//!
//! ```text
//! samples --FieldDecoder (parallel)--> FieldBlock --ScriptSample, in time order--> the struct of the script
//! ```
//!
//! A `FieldBlock` has the decoded fields of consecutive samples. Each script has a struct with its counts or times, such as
//! `DropLocations`.

mod compaction;
mod decoder;
mod drops;
mod first_seen;
mod futexes;
mod packets;
mod physical;
mod read_write;
mod syscalls;
mod tasks;
mod wakeups;

pub use compaction::{CompactionTimes, CompactionTotals, TaskCompactions, TaskFilter, sum};
pub use decoder::{EventFields, FieldBlock, FieldDecoder, ScriptSample};
pub use drops::DropLocations;
pub use first_seen::FirstSeen;
pub use futexes::{FutexWaits, WaitStatistics};
pub use packets::{
    FollowedCounts, Interrupt, PacketEnd, PacketEndKind, PacketTimes, ReceivedPacket, Reception,
    SentPacket, SoftirqEvent,
};
pub use physical::{MemoryRegion, MemoryRow, PhysicalCounts, PhysicalMemory};
pub use read_write::{FileIo, IoSums, TaskReadWrite};
pub use syscalls::{
    ByTask, FailedByComm, FailedByTask, SyscallCounts, SyscallsByTask, TaskSelection,
};
pub use tasks::{TaskGaps, TaskRun, TaskRuns, TaskSummary, TaskWords, TimeWindow};
pub use wakeups::WakeupLatencies;
