//! Records written by perf's user space (`PERF_RECORD_USER_TYPE_START` and up). They have no
//! [`SampleId`](crate::SampleId) trailer.
//!
//! Source of the layouts, unless a module names another one: the kernel's
//! `tools/lib/perf/include/perf/event.h`.

mod auxtrace;
mod bpf;
mod header;
mod map;
mod schedstat;
mod simpleperf;
mod stat;

pub use auxtrace::{AuxTrace, AuxTraceError, AuxTraceInfo};
pub use bpf::BpfMetadata;
pub use header::{EventTypeName, FeatureData, HardwareClock, IdIndex, IdIndexEntry, TimeConv};
pub use map::{CpuMap, ThreadMap, ThreadMapEntry};
pub use schedstat::{
    CpuCounters, DomainCounters, Imbalance, LoadBalance, Moves, SCHEDSTAT_VERSIONS, Schedstat,
    SchedstatCpu, SchedstatDomain,
};
pub use simpleperf::{Simpleperf, SimpleperfChain, UnwindingDetails, UnwindingResult};
pub use stat::{Stat, StatConfig, StatRound};

use crate::{Cursor, DecodeError, Encoder, Endian, RawRecord, RecordKind};

/// A decoded record of perf's user space. Attrs, build-ids, event updates and compressed records are [`UserRecord::Other`]
/// here: the readers of files decode them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserRecord<'a> {
    /// Name of an event type, in very old files.
    EventType(EventTypeName<'a>),
    /// Number of bytes of tracing data that follow the record.
    TracingData(u32),
    /// A feature section.
    Feature(FeatureData<'a>),
    /// End of a round, one pass over all ring buffers: no later record is older than the newest record of the round before this
    /// one.
    FinishedRound,
    /// End of the synthesized records at the start.
    FinishedInit,
    /// Ring, CPU and thread of each event id.
    IdIndex(IdIndex),
    /// Type and parameters of AUX traces.
    AuxTraceInfo(AuxTraceInfo<'a>),
    /// Header of an AUX trace, whose data follow the record.
    AuxTrace(AuxTrace),
    /// Error in an AUX trace.
    AuxTraceError(AuxTraceError<'a>),
    /// The observed threads.
    ThreadMap(ThreadMap),
    /// The observed CPUs.
    CpuMap(CpuMap),
    /// Settings of stat.
    StatConfig(StatConfig),
    /// A counter's value.
    Stat(Stat),
    /// End of an interval of stat, or of the whole measurement.
    StatRound(StatRound),
    /// Parameters to convert hardware time to the clock of timestamps.
    TimeConv(TimeConv),
    /// Metadata of BPF programs.
    BpfMetadata(BpfMetadata<'a>),
    /// Scheduler statistics of a CPU.
    SchedstatCpu(SchedstatCpu<'a>),
    /// Scheduler statistics of a CPU's domain.
    SchedstatDomain(SchedstatDomain<'a>),
    /// A record of simpleperf.
    Simpleperf(Simpleperf<'a>),
    /// Any other type; not decoded.
    Other(RecordKind),
}

impl<'a> UserRecord<'a> {
    /// Decodes the body of a record.
    ///
    /// # Errors
    /// [`DecodeError`] when the body is too short for the fields of its type.
    pub fn decode(raw: &RawRecord<'a>, endian: Endian) -> Result<Self, DecodeError> {
        let at = &mut Cursor::new(raw.body, endian);
        Ok(match raw.kind {
            RecordKind::HEADER_EVENT_TYPE => Self::EventType(EventTypeName::decode(at)?),
            RecordKind::HEADER_TRACING_DATA => Self::TracingData(at.u32("tracing data size")?),
            RecordKind::HEADER_FEATURE => Self::Feature(FeatureData::decode(at)?),
            RecordKind::FINISHED_ROUND => Self::FinishedRound,
            RecordKind::FINISHED_INIT => Self::FinishedInit,
            RecordKind::ID_INDEX => Self::IdIndex(IdIndex::decode(at)?),
            RecordKind::AUXTRACE_INFO => Self::AuxTraceInfo(AuxTraceInfo::decode(at)?),
            RecordKind::AUXTRACE => Self::AuxTrace(AuxTrace::decode(at)?),
            RecordKind::AUXTRACE_ERROR => Self::AuxTraceError(AuxTraceError::decode(at)?),
            RecordKind::THREAD_MAP => Self::ThreadMap(ThreadMap::decode(at)?),
            RecordKind::CPU_MAP => Self::CpuMap(CpuMap::decode(at)?),
            RecordKind::STAT_CONFIG => Self::StatConfig(StatConfig::decode(at)?),
            RecordKind::STAT => Self::Stat(Stat::decode(at)?),
            RecordKind::STAT_ROUND => Self::StatRound(StatRound::decode(at)?),
            RecordKind::TIME_CONV => Self::TimeConv(TimeConv::decode(at)?),
            RecordKind::BPF_METADATA => Self::BpfMetadata(BpfMetadata::decode(at)?),
            RecordKind::SCHEDSTAT_CPU => Self::SchedstatCpu(SchedstatCpu::decode(at)?),
            RecordKind::SCHEDSTAT_DOMAIN => Self::SchedstatDomain(SchedstatDomain::decode(at)?),
            other => match Simpleperf::decode(other, at)? {
                Some(record) => Self::Simpleperf(record),
                None => Self::Other(other),
            },
        })
    }

    /// Type of the record.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::EventType(_) => RecordKind::HEADER_EVENT_TYPE,
            Self::TracingData(_) => RecordKind::HEADER_TRACING_DATA,
            Self::Feature(_) => RecordKind::HEADER_FEATURE,
            Self::FinishedRound => RecordKind::FINISHED_ROUND,
            Self::FinishedInit => RecordKind::FINISHED_INIT,
            Self::IdIndex(_) => RecordKind::ID_INDEX,
            Self::AuxTraceInfo(_) => RecordKind::AUXTRACE_INFO,
            Self::AuxTrace(_) => RecordKind::AUXTRACE,
            Self::AuxTraceError(_) => RecordKind::AUXTRACE_ERROR,
            Self::ThreadMap(_) => RecordKind::THREAD_MAP,
            Self::CpuMap(_) => RecordKind::CPU_MAP,
            Self::StatConfig(_) => RecordKind::STAT_CONFIG,
            Self::Stat(_) => RecordKind::STAT,
            Self::StatRound(_) => RecordKind::STAT_ROUND,
            Self::TimeConv(_) => RecordKind::TIME_CONV,
            Self::BpfMetadata(_) => RecordKind::BPF_METADATA,
            Self::SchedstatCpu(_) => RecordKind::SCHEDSTAT_CPU,
            Self::SchedstatDomain(_) => RecordKind::SCHEDSTAT_DOMAIN,
            Self::Simpleperf(record) => record.kind(),
            Self::Other(kind) => *kind,
        }
    }

    /// Appends the body. [`UserRecord::Other`] has no fields to write and appends nothing.
    pub fn encode_body(&self, to: &mut Encoder<'_>) {
        match self {
            Self::EventType(name) => name.encode(to),
            Self::TracingData(size) => to.u32(*size),
            Self::Feature(feature) => feature.encode(to),
            Self::FinishedRound | Self::FinishedInit | Self::Other(_) => {}
            Self::IdIndex(index) => index.encode(to),
            Self::AuxTraceInfo(info) => info.encode(to),
            Self::AuxTrace(trace) => trace.encode(to),
            Self::AuxTraceError(error) => error.encode(to),
            Self::ThreadMap(map) => map.encode(to),
            Self::CpuMap(map) => map.encode(to),
            Self::StatConfig(config) => config.encode(to),
            Self::Stat(stat) => stat.encode(to),
            Self::StatRound(round) => round.encode(to),
            Self::TimeConv(conv) => conv.encode(to),
            Self::BpfMetadata(metadata) => metadata.encode(to),
            Self::SchedstatCpu(counted) => counted.encode(to),
            Self::SchedstatDomain(counted) => counted.encode(to),
            Self::Simpleperf(record) => record.encode(to),
        }
    }
}

/// Reads a name from a field of `N` bytes.
fn take_name<'a, const N: usize>(
    at: &mut Cursor<'a>,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    Ok(crate::until_nul(at.take(N, field)?))
}

/// Reads a name at the end of a record, from a field of at most `N` bytes: recorders omit unused
/// bytes.
fn take_last_name<'a, const N: usize>(
    at: &mut Cursor<'a>,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let room = at.rest().len().min(N);
    Ok(crate::until_nul(at.take(room, field)?))
}

/// Appends a name at the end of a record, with a NUL and padded to a multiple of eight bytes. The field has at most `N`
/// bytes: a longer name is truncated, and a name that fills the field has no NUL.
fn put_last_name<const N: usize>(to: &mut Encoder<'_>, name: &[u8]) {
    let name = name.get(..N).unwrap_or(name);
    to.bytes(name);
    to.zeros((name.len() + 1).next_multiple_of(8).min(N) - name.len());
}

/// Appends a name in a field of `N` bytes, truncated to fit. A name that fills the field has no
/// NUL.
fn put_name<const N: usize>(to: &mut Encoder<'_>, name: &[u8]) {
    let name = name.get(..N).unwrap_or(name);
    to.bytes(name);
    to.zeros(N - name.len());
}
