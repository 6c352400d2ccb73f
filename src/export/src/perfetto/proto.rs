//! The parts of Perfetto's messages that are written. Interned items of each kind are numbered from 1: `iid`. Other messages
//! refer to them by this number, in fields such as `callstack`, `function` and `path` (in Perfetto, `callstack_iid`,
//! `function_name_id` and `path_string_ids`).

use prost::Message;

/// `Frame.Kind`: compiled code.
pub(super) const KIND_NATIVE: i32 = 1;
/// `Frame.Kind`: kernel code.
pub(super) const KIND_KERNEL: i32 = 2;
/// `Frame.Kind`: JIT-compiled code.
pub(super) const KIND_JIT: i32 = 4;
/// `TrackEvent.Type`: the beginning of a slice.
pub(super) const SLICE_BEGIN: i32 = 1;
/// `TrackEvent.Type`: the end of the latest open slice of the track.
pub(super) const SLICE_END: i32 = 2;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Packet {
    #[prost(message, optional, tag = "1")]
    pub(super) ftrace: Option<FtraceBundle>,
    #[prost(message, optional, tag = "2")]
    pub(super) process_tree: Option<ProcessTree>,
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    /// `trusted_packet_sequence_id`.
    #[prost(uint32, tag = "10")]
    pub(super) sequence: u32,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned: Option<InternedData>,
    /// `sequence_flags`.
    #[prost(uint32, tag = "13")]
    pub(super) flags: u32,
    #[prost(message, optional, tag = "45")]
    pub(super) system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "59")]
    pub(super) defaults: Option<Defaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "66")]
    pub(super) sample: Option<PerfSample>,
}

/// `ProcessTree`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub(super) threads: Vec<Thread>,
}

/// `ProcessTree.Process`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(string, repeated, tag = "3")]
    pub(super) cmdline: Vec<String>,
}

/// `ProcessTree.Thread`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Thread {
    #[prost(int32, tag = "1")]
    pub(super) tid: i32,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) tgid: i32,
}

/// `TracePacketDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Defaults {
    #[prost(message, optional, tag = "12")]
    pub(super) perf_sample: Option<PerfDefaults>,
}

/// `PerfSampleDefaults`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PerfDefaults {
    #[prost(message, optional, tag = "1")]
    pub(super) timebase: Option<Timebase>,
}

/// `PerfEvents.Timebase`: the sampling event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timebase {
    /// The sampling period; written as 1, since [`PerfSample::timebase_count`] counts single events.
    #[prost(uint64, tag = "1")]
    pub(super) period: u64,
    #[prost(string, tag = "10")]
    pub(super) name: String,
}

/// `PerfSample`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(uint32, tag = "2")]
    pub(super) pid: u32,
    #[prost(uint32, tag = "3")]
    pub(super) tid: u32,
    #[prost(uint64, optional, tag = "4")]
    pub(super) callstack: Option<u64>,
    /// The count of the event up to this sample.
    #[prost(uint64, tag = "6")]
    pub(super) timebase_count: u64,
}

/// `InternedData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(super) build_ids: Vec<InternedString>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub(super) source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
}

/// `InternedString`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedString {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) text: Vec<u8>,
}

/// `Mapping`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, optional, tag = "2")]
    pub(super) build_id: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub(super) end: u64,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path: Vec<u64>,
}

/// `Frame`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Frame {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    #[prost(uint64, tag = "2")]
    pub(super) function: u64,
    #[prost(uint64, optional, tag = "3")]
    pub(super) mapping: Option<u64>,
    /// `rel_pc`: the address in the object, as in `ProfileFrame`; the object's mapping starts at 0.
    #[prost(uint64, optional, tag = "4")]
    pub(super) address: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) source: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) line: Option<u32>,
    #[prost(int32, tag = "7")]
    pub(super) kind: i32,
}

/// `Callstack`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, tag = "1")]
    pub(super) iid: u64,
    /// Outermost first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frames: Vec<u64>,
}

/// `SystemInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<Utsname>,
}

/// `Utsname`: fields of uname(2).
#[derive(Clone, PartialEq, Message)]
pub(super) struct Utsname {
    #[prost(string, tag = "1")]
    pub(super) sysname: String,
    #[prost(string, tag = "3")]
    pub(super) release: String,
    #[prost(string, tag = "4")]
    pub(super) machine: String,
}

/// `FtraceEventBundle`: events of one CPU.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) events: Vec<FtraceEvent>,
    /// Whether events before these were lost.
    #[prost(bool, tag = "3")]
    pub(super) lost_events: bool,
}

/// `FtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    /// The thread that was running.
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub(super) switch: Option<SchedSwitch>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) common_flags: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) frequency: Option<CpuState>,
    #[prost(message, optional, tag = "13")]
    pub(super) idle: Option<CpuState>,
    #[prost(message, optional, tag = "20")]
    pub(super) waking: Option<SchedWakeup>,
    #[prost(message, optional, tag = "114")]
    pub(super) wakeup_new: Option<SchedWakeup>,
}

/// `CpuFrequencyFtraceEvent` (kHz) and `CpuIdleFtraceEvent` (the index of the state; `u32::MAX` when the CPU
/// leaves it).
#[derive(Clone, PartialEq, Message)]
pub(super) struct CpuState {
    #[prost(uint32, optional, tag = "1")]
    pub(super) state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) cpu: Option<u32>,
}

/// `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, tag = "1")]
    pub(super) prev_comm: String,
    #[prost(int32, tag = "2")]
    pub(super) prev_pid: i32,
    #[prost(int32, tag = "3")]
    pub(super) prev_prio: i32,
    #[prost(int64, tag = "4")]
    pub(super) prev_state: i64,
    #[prost(string, tag = "5")]
    pub(super) next_comm: String,
    #[prost(int32, tag = "6")]
    pub(super) next_pid: i32,
    #[prost(int32, tag = "7")]
    pub(super) next_prio: i32,
}

/// `SchedWakingFtraceEvent` and `SchedWakeupNewFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedWakeup {
    #[prost(string, tag = "1")]
    pub(super) comm: String,
    #[prost(int32, tag = "2")]
    pub(super) pid: i32,
    #[prost(int32, tag = "3")]
    pub(super) prio: i32,
    #[prost(int32, tag = "4")]
    pub(super) success: i32,
    #[prost(int32, tag = "5")]
    pub(super) target_cpu: i32,
}

/// `TrackDescriptor` of a thread.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    pub(super) uuid: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
}

/// `ThreadDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pub(super) pid: i32,
    #[prost(int32, tag = "2")]
    pub(super) tid: i32,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) annotations: Vec<DebugAnnotation>,
    #[prost(int32, tag = "9")]
    pub(super) kind: i32,
    #[prost(uint64, tag = "11")]
    pub(super) track: u64,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
}

/// `DebugAnnotation`: a named number.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    pub(super) value: Option<i64>,
    #[prost(string, tag = "10")]
    pub(super) name: String,
}
