//! The binary interface of the kernel and of perf.data files: `perf_event_attr`, record headers,
//! records and samples, decoded from and encoded to bytes.
//!
//! No I/O and no unsafe code. Byte order is a value ([`Endian`]) because a file may come from
//! another machine. Decoders take any byte string without a panic; a [`DecodeError`] names
//! the field and its offset.
//!
//! Source of the layouts, unless a module names another one: the kernel's
//! `include/uapi/linux/perf_event.h`.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod attr;
mod attr_text;
mod bits;
mod branch;
mod bytes;
mod data_source;
mod error;
mod event_name;
mod filter_field;
mod header;
mod kind;
mod memory_map;
mod name_text;
mod read_values;
mod record;
mod regs;
mod sample;
mod sample_id;
mod user;
mod user_stack;

pub use attr::{Attr, EventType};
pub use attr_text::{AttrText, attr_fields};
pub use bits::{AttrFlags, BranchSampleType, ReadFormat, SampleType};
pub use branch::{BranchEntry, BranchStack};
pub use bytes::{Cursor, Encoder, Endian, U64s, until_nul};
pub use data_source::DataSource;
pub use error::DecodeError;
pub use event_name::{CACHE_NAMES, HARDWARE_NAMES, SOFTWARE_NAMES, event_name};
pub use filter_field::FilterField;
pub use header::{CpuMode, Misc, RawRecord, RecordHeader};
pub use kind::RecordKind;
pub use memory_map::{MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
pub use name_text::{name_bytes, name_path, name_text, restored_byte};
pub use read_values::{ReadValue, ReadValues};
pub use record::{
    Aux, AuxOutputHwId, BpfEvent, CallchainDeferred, Cgroup, Comm, ItraceStart, Ksymbol, Lost,
    LostSamples, Mmap, Mmap2, MmapId, Namespace, Namespaces, Read, Record, Switch, Task, TextPoke,
    Throttle,
};
pub use regs::{Regs, RegsAbi};
pub use sample::{SampleLayout, SampleRecord};
pub use sample_id::{SampleId, SampleIdLayout};
pub use user::{
    AuxTrace, AuxTraceError, AuxTraceInfo, BpfMetadata, CpuCounters, CpuMap, DomainCounters,
    EventTypeName, FeatureData, HardwareClock, IdIndex, IdIndexEntry, Imbalance, LoadBalance,
    Moves, SCHEDSTAT_VERSIONS, Schedstat, SchedstatCpu, SchedstatDomain, Simpleperf,
    SimpleperfChain, Stat, StatConfig, StatRound, ThreadMap, ThreadMapEntry, TimeConv,
    UnwindingDetails, UnwindingResult, UserRecord,
};
pub use user_stack::UserStack;

/// The lowest value of a context marker in a callchain (`PERF_CONTEXT_MAX`): values from here on are not addresses.
pub const PERF_CONTEXT_MAX: u64 = (-4095_i64).cast_unsigned();
/// Callchain marker: the following entries are hypervisor addresses (`PERF_CONTEXT_HV`).
pub const PERF_CONTEXT_HV: u64 = (-32_i64).cast_unsigned();
/// Callchain marker: the following entries are kernel addresses (`PERF_CONTEXT_KERNEL`).
pub const PERF_CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
/// Callchain marker: the following entries are user addresses (`PERF_CONTEXT_USER`).
pub const PERF_CONTEXT_USER: u64 = (-512_i64).cast_unsigned();
/// Callchain marker: the next entry is the cookie of a [`CallchainDeferred`] record with the user addresses
/// (`PERF_CONTEXT_USER_DEFERRED`).
pub const PERF_CONTEXT_USER_DEFERRED: u64 = (-640_i64).cast_unsigned();
/// Callchain marker: the following entries belong to a guest (`PERF_CONTEXT_GUEST`).
pub const PERF_CONTEXT_GUEST: u64 = (-2048_i64).cast_unsigned();
/// Callchain marker: guest kernel addresses follow (`PERF_CONTEXT_GUEST_KERNEL`).
pub const PERF_CONTEXT_GUEST_KERNEL: u64 = (-2176_i64).cast_unsigned();
/// Callchain marker: guest user addresses follow (`PERF_CONTEXT_GUEST_USER`).
pub const PERF_CONTEXT_GUEST_USER: u64 = (-2560_i64).cast_unsigned();
