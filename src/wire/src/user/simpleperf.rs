//! Records of Android's simpleperf.
//!
//! Source of the layouts: `simpleperf/record.h` and `record.cpp` of Android's `platform/system/extras`.

use crate::{Cursor, DecodeError, Encoder, RecordKind, Regs, RegsAbi, U64s, UserStack};

/// Texts are padded to a multiple of this many bytes: names, debug messages and the list of kernel symbols.
const ALIGN: usize = 8;
/// The descriptions of tracepoints are padded to a multiple of this many bytes.
const TRACING_ALIGN: usize = 64;

/// A record of one of simpleperf's own types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Simpleperf<'a> {
    /// The kernel's symbols.
    KernelSymbols {
        /// Text as in `/proc/kallsyms`.
        kallsyms: &'a [u8],
    },
    /// A shared object.
    Dso {
        /// Type: 0 the kernel, 1 a module of it, 2 an ELF file, 3 a dex file, 4 a symbol map, 5 unknown.
        kind: u64,
        /// Its id.
        id: u64,
        /// Lowest address of its code.
        min_vaddr: u64,
        /// Its path.
        name: &'a [u8],
    },
    /// A symbol.
    Symbol {
        /// Virtual address in the file.
        address: u64,
        /// Size in bytes.
        len: u64,
        /// Id of the shared object.
        dso: u64,
        /// Name of the symbol.
        name: &'a [u8],
    },
    /// Part of a record longer than 65535 bytes.
    Split(&'a [u8]),
    /// End of a split record.
    SplitEnd,
    /// Pairs of an event's index in the file and one of its ids.
    EventIds(Vec<(u64, u64)>),
    /// A callchain that was unwound after recording, or joined: extended by the frames of another one that overlaps it.
    Callchain {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Origin: 0 unwound after recording, 1 unwound by another process; 2 and 3 are joined callchains of the origins 0 and 1.
        kind: u64,
        /// Time of the sample in nanoseconds.
        time: u64,
        /// Addresses and stack pointers, innermost first.
        chain: SimpleperfChain<'a>,
    },
    /// Result of unwinding a stack.
    UnwindingResult(UnwindingResult<'a>),
    /// Descriptions of tracepoints.
    TracingData(&'a [u8]),
    /// A debug message.
    Debug {
        /// Time in nanoseconds.
        time: u64,
        /// The message.
        text: &'a [u8],
    },
}

/// Frames with their stack pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleperfChain<'a> {
    /// Code addresses.
    pub ips: U64s<'a>,
    /// The stack pointer of each frame.
    pub sps: U64s<'a>,
}

/// `SIMPLE_PERF_RECORD_UNWINDING_RESULT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwindingResult<'a> {
    /// Time of the sample in nanoseconds.
    pub time: u64,
    /// Duration of unwinding in nanoseconds.
    pub used_time: u64,
    /// Error code; 0 for success.
    pub error_code: u64,
    /// Address of the error.
    pub error_addr: u64,
    /// Start of the copied stack.
    pub stack_start: u64,
    /// End of the copied stack.
    pub stack_end: u64,
    /// The input of the unwinder and the resulting frames, in newer files.
    pub details: Option<UnwindingDetails<'a>>,
}

/// Input and resulting frames of an unwinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwindingDetails<'a> {
    /// Registers.
    pub regs: Regs<'a>,
    /// The copy of the stack.
    pub stack: UserStack<'a>,
    /// The resulting frames, in the newest files.
    pub chain: Option<SimpleperfChain<'a>>,
}

impl<'a> Simpleperf<'a> {
    /// Decodes the body; `None` for an unknown type.
    pub(super) fn decode(
        kind: RecordKind,
        at: &mut Cursor<'a>,
    ) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match kind {
            RecordKind::SIMPLEPERF_KERNEL_SYMBOL => {
                let size = at.u32("kallsyms size")?;
                let kallsyms = at.take(size as usize, "kallsyms")?;
                Self::KernelSymbols { kallsyms }
            }
            RecordKind::SIMPLEPERF_DSO => Self::Dso {
                kind: at.u64("dso type")?,
                id: at.u64("dso id")?,
                min_vaddr: at.u64("dso min_vaddr")?,
                name: crate::until_nul(at.rest()),
            },
            RecordKind::SIMPLEPERF_SYMBOL => Self::Symbol {
                address: at.u64("symbol addr")?,
                len: at.u64("symbol len")?,
                dso: at.u64("symbol dso id")?,
                name: crate::until_nul(at.rest()),
            },
            RecordKind::SIMPLEPERF_SPLIT => Self::Split(at.rest()),
            RecordKind::SIMPLEPERF_SPLIT_END => Self::SplitEnd,
            RecordKind::SIMPLEPERF_EVENT_ID => {
                let count = at.u64("event id count")?;
                let ids = (0..count).map(|_| Ok((at.u64("attr id")?, at.u64("event id")?)));
                Self::EventIds(ids.collect::<Result<_, _>>()?)
            }
            RecordKind::SIMPLEPERF_CALLCHAIN => Self::Callchain {
                pid: at.u32("callchain pid")?,
                tid: at.u32("callchain tid")?,
                kind: at.u64("callchain type")?,
                time: at.u64("callchain time")?,
                chain: SimpleperfChain::decode(at)?,
            },
            RecordKind::SIMPLEPERF_UNWINDING_RESULT => {
                Self::UnwindingResult(UnwindingResult::decode(at)?)
            }
            RecordKind::SIMPLEPERF_TRACING_DATA => {
                let size = at.u32("tracing data size")?;
                Self::TracingData(at.take(size as usize, "tracing data")?)
            }
            RecordKind::SIMPLEPERF_DEBUG => Self::Debug {
                time: at.u64("debug time")?,
                text: crate::until_nul(at.rest()),
            },
            _ => return Ok(None),
        }))
    }

    /// Type of the record.
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::KernelSymbols { .. } => RecordKind::SIMPLEPERF_KERNEL_SYMBOL,
            Self::Dso { .. } => RecordKind::SIMPLEPERF_DSO,
            Self::Symbol { .. } => RecordKind::SIMPLEPERF_SYMBOL,
            Self::Split(_) => RecordKind::SIMPLEPERF_SPLIT,
            Self::SplitEnd => RecordKind::SIMPLEPERF_SPLIT_END,
            Self::EventIds(_) => RecordKind::SIMPLEPERF_EVENT_ID,
            Self::Callchain { .. } => RecordKind::SIMPLEPERF_CALLCHAIN,
            Self::UnwindingResult(_) => RecordKind::SIMPLEPERF_UNWINDING_RESULT,
            Self::TracingData(_) => RecordKind::SIMPLEPERF_TRACING_DATA,
            Self::Debug { .. } => RecordKind::SIMPLEPERF_DEBUG,
        }
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        match self {
            Self::KernelSymbols { kallsyms } => put_sized(kallsyms, ALIGN, to),
            Self::Dso {
                kind: a,
                id: b,
                min_vaddr: c,
                name,
            }
            | Self::Symbol {
                address: a,
                len: b,
                dso: c,
                name,
            } => {
                [a, b, c].into_iter().for_each(|word| to.u64(*word));
                to.padded_str(name, ALIGN);
            }
            Self::Split(part) => to.bytes(part),
            Self::SplitEnd => {}
            Self::EventIds(ids) => {
                to.u64(ids.len() as u64);
                let words = ids.iter().flat_map(|(event, id)| [*event, *id]);
                words.for_each(|word| to.u64(word));
            }
            Self::Callchain {
                pid,
                tid,
                kind,
                time,
                chain,
            } => {
                to.u32(*pid);
                to.u32(*tid);
                to.u64(*kind);
                to.u64(*time);
                chain.encode(to);
            }
            Self::UnwindingResult(unwound) => unwound.encode(to),
            Self::TracingData(data) => put_sized(data, TRACING_ALIGN, to),
            Self::Debug { time, text } => {
                to.u64(*time);
                to.padded_str(text, ALIGN);
            }
        }
    }
}

impl<'a> SimpleperfChain<'a> {
    fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let count = at.u64("ip count")?;
        Ok(Self {
            ips: at.u64s(count, "ips")?,
            sps: at.u64s(count, "sps")?,
        })
    }

    fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.ips.len() as u64);
        let words = self.ips.iter().chain(self.sps.iter());
        words.for_each(|word| to.u64(word));
    }
}

impl<'a> UnwindingResult<'a> {
    fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            time: at.u64("unwinding time")?,
            used_time: at.u64("unwinding used_time")?,
            error_code: at.u64("unwinding error_code")?,
            error_addr: at.u64("unwinding error_addr")?,
            stack_start: at.u64("unwinding stack_start")?,
            stack_end: at.u64("unwinding stack_end")?,
            details: match at.rest() {
                [] => None,
                _ => Some(UnwindingDetails::decode(at)?),
            },
        })
    }

    fn encode(&self, to: &mut Encoder<'_>) {
        let words = [
            self.time,
            self.used_time,
            self.error_code,
            self.error_addr,
            self.stack_start,
            self.stack_end,
        ];
        words.iter().for_each(|word| to.u64(*word));
        if let Some(details) = &self.details {
            details.encode(to);
        }
    }
}

impl<'a> UnwindingDetails<'a> {
    fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let abi = RegsAbi::from_raw(at.u64("unwinding abi")?);
        let mask = at.u64("unwinding reg_mask")?;
        // Unlike in samples, the registers of the mask are present even if the ABI is `RegsAbi::None`.
        let values = at.u64s(mask.count_ones().into(), "unwinding regs")?;
        Ok(Self {
            regs: Regs { abi, mask, values },
            stack: UserStack::decode(at)?,
            chain: match at.rest() {
                [] => None,
                _ => Some(SimpleperfChain::decode(at)?),
            },
        })
    }

    fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.regs.abi.raw());
        to.u64(self.regs.mask);
        self.regs.values.iter().for_each(|word| to.u64(word));
        UserStack::encode(Some(self.stack), to);
        if let Some(chain) = &self.chain {
            chain.encode(to);
        }
    }
}

/// Appends the number of bytes as a 32-bit size, then the bytes, padded with zeros to a multiple of `align`.
fn put_sized(bytes: &[u8], align: usize, to: &mut Encoder<'_>) {
    to.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    to.bytes(bytes);
    to.zeros(bytes.len().next_multiple_of(align) - bytes.len());
}
