//! Kernel records other than samples.

mod aux;
mod code;
mod mmap;

pub use aux::{Aux, AuxOutputHwId, ItraceStart};
pub use code::{CallchainDeferred, Read, TextPoke};
pub use mmap::{Mmap, Mmap2, MmapId};
use mmap::{encode_mmap_fixed, encode_mmap2, mmap, mmap2};

use crate::{Cursor, DecodeError, Encoder, Endian, Misc, RawRecord, RecordKind, until_nul};

/// `PERF_RECORD_COMM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comm<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// New name without NUL; from the kernel, at most 15 bytes.
    pub comm: &'a [u8],
}

/// `PERF_RECORD_FORK` and `PERF_RECORD_EXIT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Parent process.
    pub ppid: u32,
    /// Thread.
    pub tid: u32,
    /// Parent thread.
    pub ptid: u32,
    /// Timestamp in nanoseconds.
    pub time: u64,
}

/// `PERF_RECORD_LOST`: records were dropped because the ring was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Event id.
    pub id: u64,
    /// Number of records lost.
    pub lost: u64,
}

/// `PERF_RECORD_LOST_SAMPLES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSamples {
    /// Number of samples lost.
    pub lost: u64,
}

/// `PERF_RECORD_THROTTLE` and `PERF_RECORD_UNTHROTTLE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// Timestamp in nanoseconds.
    pub time: u64,
    /// Event id.
    pub id: u64,
    /// Stream id.
    pub stream_id: u64,
}

/// `PERF_RECORD_SWITCH` (no fields) and `PERF_RECORD_SWITCH_CPU_WIDE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Process and thread that run next if [`Misc::SWITCH_OUT`] is set, otherwise those that ran before; `None` for
    /// `PERF_RECORD_SWITCH`.
    pub next_prev: Option<(u32, u32)>,
}

/// `PERF_RECORD_KSYMBOL`: a symbol of generated kernel code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// Address.
    pub addr: u64,
    /// Size in bytes.
    pub len: u32,
    /// `PERF_RECORD_KSYMBOL_TYPE_*`: 1 BPF, 2 out of line code.
    pub ksym_type: u16,
    /// Bit 0: the symbol is unregistered.
    pub flags: u16,
    /// Name without NUL.
    pub name: &'a [u8],
}

/// `PERF_RECORD_BPF_EVENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfEvent {
    /// `PERF_BPF_EVENT_*`: 1 load, 2 unload.
    pub event_type: u16,
    /// Flags.
    pub flags: u16,
    /// Program id.
    pub id: u32,
    /// Program tag.
    pub tag: [u8; 8],
}

/// One namespace of a task: device and inode of its /proc/PID/ns link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub inode: u64,
}

/// `PERF_RECORD_NAMESPACES`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// net, uts, ipc, pid, user, mnt, cgroup, in this order, as far as recorded.
    pub links: Vec<Namespace>,
}

/// `PERF_RECORD_CGROUP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// Cgroup id.
    pub id: u64,
    /// Path without NUL.
    pub path: &'a [u8],
}

/// A decoded kernel record, without the sample id trailer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A mapping.
    Mmap(Mmap<'a>),
    /// A mapping with file identity.
    Mmap2(Mmap2<'a>),
    /// A thread's name.
    Comm(Comm<'a>),
    /// A thread started.
    Fork(Task),
    /// A thread ended.
    Exit(Task),
    /// Records lost.
    Lost(Lost),
    /// Samples lost.
    LostSamples(LostSamples),
    /// Throttled.
    Throttle(Throttle),
    /// No longer throttled.
    Unthrottle(Throttle),
    /// Context switch.
    Switch(Switch),
    /// A kernel symbol.
    Ksymbol(Ksymbol<'a>),
    /// A BPF program.
    BpfEvent(BpfEvent),
    /// Namespaces of a task.
    Namespaces(Namespaces),
    /// A cgroup.
    Cgroup(Cgroup<'a>),
    /// A counter value.
    Read(Read<'a>),
    /// Data in the AUX area.
    Aux(Aux),
    /// An instruction trace started.
    ItraceStart(ItraceStart),
    /// Hardware id of an event in traces.
    AuxOutputHwId(AuxOutputHwId),
    /// Kernel code was modified.
    TextPoke(TextPoke<'a>),
    /// User part of earlier callchains.
    CallchainDeferred(CallchainDeferred<'a>),
    /// Any other type, also a sample; not decoded.
    Other(RecordKind),
}

impl<'a> Record<'a> {
    /// Decodes the body of a record, with or without its trailer.
    ///
    /// # Errors
    /// [`DecodeError`] when the body is too short for the fields of its type, or for a count in it.
    pub fn decode(raw: &RawRecord<'a>, endian: Endian) -> Result<Self, DecodeError> {
        let at = &mut Cursor::new(raw.body, endian);
        Ok(match raw.kind {
            RecordKind::MMAP => Self::Mmap(mmap(at)?),
            RecordKind::MMAP2 => Self::Mmap2(mmap2(at, raw.misc)?),
            RecordKind::COMM => Self::Comm(Comm {
                pid: at.u32("pid")?,
                tid: at.u32("tid")?,
                comm: until_nul(at.rest()),
            }),
            RecordKind::FORK => Self::Fork(task(at)?),
            RecordKind::EXIT => Self::Exit(task(at)?),
            RecordKind::LOST => Self::Lost(Lost {
                id: at.u64("id")?,
                lost: at.u64("lost")?,
            }),
            RecordKind::LOST_SAMPLES => Self::LostSamples(LostSamples {
                lost: at.u64("lost")?,
            }),
            RecordKind::THROTTLE => Self::Throttle(throttle(at)?),
            RecordKind::UNTHROTTLE => Self::Unthrottle(throttle(at)?),
            RecordKind::SWITCH => Self::Switch(Switch { next_prev: None }),
            RecordKind::SWITCH_CPU_WIDE => Self::Switch(Switch {
                next_prev: Some((at.u32("next_prev_pid")?, at.u32("next_prev_tid")?)),
            }),
            RecordKind::KSYMBOL => Self::Ksymbol(Ksymbol {
                addr: at.u64("addr")?,
                len: at.u32("len")?,
                ksym_type: at.u16("ksym_type")?,
                flags: at.u16("flags")?,
                name: until_nul(at.rest()),
            }),
            RecordKind::BPF_EVENT => Self::BpfEvent(BpfEvent {
                event_type: at.u16("type")?,
                flags: at.u16("flags")?,
                id: at.u32("id")?,
                tag: at.array("tag")?,
            }),
            RecordKind::NAMESPACES => Self::Namespaces(namespaces(at)?),
            RecordKind::CGROUP => Self::Cgroup(Cgroup {
                id: at.u64("id")?,
                path: until_nul(at.rest()),
            }),
            kind => Self::decode_remaining(kind, at)?,
        })
    }

    /// Decodes the types that [`Record::decode`] does not name. Samples, unknown types and the
    /// types that only the perf tool writes (such as FINISHED_ROUND) are [`Record::Other`].
    fn decode_remaining(kind: RecordKind, at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(match kind {
            RecordKind::READ => Self::Read(Read::decode(at)?),
            RecordKind::AUX => Self::Aux(Aux::decode(at)?),
            RecordKind::ITRACE_START => Self::ItraceStart(ItraceStart::decode(at)?),
            RecordKind::AUX_OUTPUT_HW_ID => Self::AuxOutputHwId(AuxOutputHwId {
                hw_id: at.u64("hw_id")?,
            }),
            RecordKind::TEXT_POKE => Self::TextPoke(TextPoke::decode(at)?),
            RecordKind::CALLCHAIN_DEFERRED => {
                Self::CallchainDeferred(CallchainDeferred::decode(at)?)
            }
            other => Self::Other(other),
        })
    }

    /// Type of the record header, and its flags as far as the fields imply them ([`Misc::MMAP_BUILD_ID`]); the caller adds the
    /// CPU mode and other flags.
    #[must_use]
    pub fn kind_and_misc(&self) -> (RecordKind, Misc) {
        let kind = match self {
            Self::Mmap(_) => RecordKind::MMAP,
            Self::Mmap2(mmap2) => {
                let build_id = matches!(mmap2.id, MmapId::BuildId { .. });
                let misc = if build_id {
                    Misc::MMAP_BUILD_ID
                } else {
                    Misc(0)
                };
                return (RecordKind::MMAP2, misc);
            }
            Self::Comm(_) => RecordKind::COMM,
            Self::Fork(_) => RecordKind::FORK,
            Self::Exit(_) => RecordKind::EXIT,
            Self::Lost(_) => RecordKind::LOST,
            Self::LostSamples(_) => RecordKind::LOST_SAMPLES,
            Self::Throttle(_) => RecordKind::THROTTLE,
            Self::Unthrottle(_) => RecordKind::UNTHROTTLE,
            Self::Switch(Switch { next_prev: None }) => RecordKind::SWITCH,
            Self::Switch(Switch { next_prev: Some(_) }) => RecordKind::SWITCH_CPU_WIDE,
            Self::Ksymbol(_) => RecordKind::KSYMBOL,
            Self::BpfEvent(_) => RecordKind::BPF_EVENT,
            Self::Namespaces(_) => RecordKind::NAMESPACES,
            Self::Cgroup(_) => RecordKind::CGROUP,
            Self::Read(_) => RecordKind::READ,
            Self::Aux(_) => RecordKind::AUX,
            Self::ItraceStart(_) => RecordKind::ITRACE_START,
            Self::AuxOutputHwId(_) => RecordKind::AUX_OUTPUT_HW_ID,
            Self::TextPoke(_) => RecordKind::TEXT_POKE,
            Self::CallchainDeferred(_) => RecordKind::CALLCHAIN_DEFERRED,
            Self::Other(kind) => *kind,
        };
        (kind, Misc(0))
    }

    /// Appends the body without the trailer; names are padded to a multiple of eight bytes, as in the kernel.
    /// [`Record::Other`] has no fields to write and appends nothing.
    pub fn encode_body(&self, to: &mut Encoder<'_>) {
        match self {
            Self::Mmap(mmap) => {
                encode_mmap_fixed(mmap, to);
                to.padded_str(mmap.filename, 8);
            }
            Self::Mmap2(mmap2) => encode_mmap2(mmap2, to),
            Self::Comm(comm) => {
                to.u32(comm.pid);
                to.u32(comm.tid);
                to.padded_str(comm.comm, 8);
            }
            Self::Fork(task) | Self::Exit(task) => encode_task(task, to),
            Self::Lost(lost) => {
                to.u64(lost.id);
                to.u64(lost.lost);
            }
            Self::LostSamples(lost) => to.u64(lost.lost),
            Self::Throttle(throttle) | Self::Unthrottle(throttle) => {
                to.u64(throttle.time);
                to.u64(throttle.id);
                to.u64(throttle.stream_id);
            }
            Self::Switch(switch) => {
                if let Some((pid, tid)) = switch.next_prev {
                    to.u32(pid);
                    to.u32(tid);
                }
            }
            Self::Ksymbol(ksymbol) => {
                to.u64(ksymbol.addr);
                to.u32(ksymbol.len);
                to.u16(ksymbol.ksym_type);
                to.u16(ksymbol.flags);
                to.padded_str(ksymbol.name, 8);
            }
            Self::BpfEvent(bpf) => {
                to.u16(bpf.event_type);
                to.u16(bpf.flags);
                to.u32(bpf.id);
                to.bytes(&bpf.tag);
            }
            Self::Namespaces(namespaces) => encode_namespaces(namespaces, to),
            Self::Cgroup(cgroup) => {
                to.u64(cgroup.id);
                to.padded_str(cgroup.path, 8);
            }
            Self::Read(read) => read.encode(to),
            Self::Aux(aux) => aux.encode(to),
            Self::ItraceStart(start) => start.encode(to),
            Self::AuxOutputHwId(id) => to.u64(id.hw_id),
            Self::TextPoke(poke) => poke.encode(to),
            Self::CallchainDeferred(deferred) => deferred.encode(to),
            Self::Other(_) => {}
        }
    }
}

fn task(at: &mut Cursor<'_>) -> Result<Task, DecodeError> {
    Ok(Task {
        pid: at.u32("pid")?,
        ppid: at.u32("ppid")?,
        tid: at.u32("tid")?,
        ptid: at.u32("ptid")?,
        time: at.u64("time")?,
    })
}

fn throttle(at: &mut Cursor<'_>) -> Result<Throttle, DecodeError> {
    Ok(Throttle {
        time: at.u64("time")?,
        id: at.u64("id")?,
        stream_id: at.u64("stream_id")?,
    })
}

fn namespaces(at: &mut Cursor<'_>) -> Result<Namespaces, DecodeError> {
    let (pid, tid) = (at.u32("pid")?, at.u32("tid")?);
    let count = at.u64("nr_namespaces")?;
    let numbers = at.u64s(count.saturating_mul(2), "link_info")?;
    let mut links = Vec::with_capacity(numbers.len() / 2);
    let mut numbers = numbers.iter();
    while let (Some(dev), Some(inode)) = (numbers.next(), numbers.next()) {
        links.push(Namespace { dev, inode });
    }
    Ok(Namespaces { pid, tid, links })
}

fn encode_namespaces(namespaces: &Namespaces, to: &mut Encoder<'_>) {
    to.u32(namespaces.pid);
    to.u32(namespaces.tid);
    to.u64(namespaces.links.len() as u64);
    for link in &namespaces.links {
        to.u64(link.dev);
        to.u64(link.inode);
    }
}

fn encode_task(task: &Task, to: &mut Encoder<'_>) {
    to.u32(task.pid);
    to.u32(task.ppid);
    to.u32(task.tid);
    to.u32(task.ptid);
    to.u64(task.time);
}
