//! AUX area traces: their type, location and errors.

use super::{put_last_name, put_name, take_last_name, take_name};
use crate::{Cursor, DecodeError, Encoder, U64s};

/// `PERF_RECORD_AUXTRACE_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxTraceInfo<'a> {
    /// `PERF_AUXTRACE_*`: 1 Intel PT, 2 Intel BTS, 3 CoreSight, 4 Arm SPE, 5 s390, 6 HiSilicon PTT, 7 PowerPC VPA DTL.
    pub kind: u32,
    /// Parameters for the decoder of that type.
    pub private: U64s<'a>,
}

/// `PERF_RECORD_AUXTRACE`: the header of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxTrace {
    /// Bytes of trace data, which follow the record.
    pub size: u64,
    /// Offset of the trace in the AUX area, in bytes.
    pub offset: u64,
    /// Number by which the recorder identifies the data.
    pub reference: u64,
    /// Index of the ring buffer (`idx`).
    pub index: u32,
    /// Thread id; `u32::MAX` (-1) for any.
    pub tid: u32,
    /// CPU; `u32::MAX` (-1) for any.
    pub cpu: u32,
}

/// `PERF_RECORD_AUXTRACE_ERROR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxTraceError<'a> {
    /// `PERF_AUXTRACE_ERROR_*`: 1 an error in an instruction trace.
    pub kind: u32,
    /// Error code of that kind.
    pub code: u32,
    /// CPU.
    pub cpu: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Address.
    pub ip: u64,
    /// Timestamp in nanoseconds; missing in files of perf before 5.1.
    pub time: Option<u64>,
    /// Message.
    pub message: &'a [u8],
    /// Pid of the virtual machine's process, and the number of the virtual CPU; missing in files of perf before 6.0.
    pub machine: Option<(u32, u32)>,
}

/// Size of an error's message field in bytes: the exact size if other fields follow, otherwise the maximum.
const MESSAGE: usize = 64;

impl<'a> AuxTraceInfo<'a> {
    /// `PERF_AUXTRACE_INTEL_BTS`: traces of Intel's branch trace store.
    pub const INTEL_BTS: u32 = 2;
    /// Bytes per branch in a trace of Intel BTS: three words, source, target and flags.
    pub const BTS_BRANCH: usize = 24;

    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let kind = at.u32("auxtrace type")?;
        at.u32("auxtrace reserved")?;
        let count = at.rest().len() / 8;
        let private = at.u64s(count as u64, "auxtrace priv")?;
        Ok(Self { kind, private })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u32(self.kind);
        to.u32(0);
        self.private.iter().for_each(|word| to.u64(word));
    }
}

impl AuxTrace {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            size: at.u64("auxtrace size")?,
            offset: at.u64("auxtrace offset")?,
            reference: at.u64("auxtrace reference")?,
            index: at.u32("auxtrace idx")?,
            tid: at.u32("auxtrace tid")?,
            cpu: at.u32("auxtrace cpu")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.size);
        to.u64(self.offset);
        to.u64(self.reference);
        to.u32(self.index);
        to.u32(self.tid);
        to.u32(self.cpu);
        // Reserved; readers ignore it.
        to.u32(0);
    }
}

impl<'a> AuxTraceError<'a> {
    /// Decodes the body. Its field `fmt` determines which later fields exist: the time from 1 on, the machine fields from 2 on.
    /// Without the machine fields, the message ends the record.
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let (kind, code) = (at.u32("error type")?, at.u32("error code")?);
        let (cpu, pid, tid) = (
            at.u32("error cpu")?,
            at.u32("error pid")?,
            at.u32("error tid")?,
        );
        let format = at.u32("error fmt")?;
        let ip = at.u64("error ip")?;
        let time = if format >= 1 {
            Some(at.u64("error time")?)
        } else {
            None
        };
        let (message, machine) = if format >= 2 {
            let message = take_name::<MESSAGE>(at, "error msg")?;
            let machine = (at.u32("error machine_pid")?, at.u32("error vcpu")?);
            (message, Some(machine))
        } else {
            (take_last_name::<MESSAGE>(at, "error msg")?, None)
        };
        Ok(Self {
            kind,
            code,
            cpu,
            pid,
            tid,
            ip,
            time,
            message,
            machine,
        })
    }

    /// Appends the body. Omits `machine` if there is no `time`: no `fmt` has the machine fields without the time.
    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        let machine = self.time.and(self.machine);
        let format = u32::from(self.time.is_some()) + u32::from(machine.is_some());
        [self.kind, self.code, self.cpu, self.pid, self.tid]
            .into_iter()
            .for_each(|word| to.u32(word));
        to.u32(format);
        to.u64(self.ip);
        self.time.iter().for_each(|time| to.u64(*time));
        if let Some((pid, vcpu)) = machine {
            put_name::<MESSAGE>(to, self.message);
            to.u32(pid);
            to.u32(vcpu);
        } else {
            put_last_name::<MESSAGE>(to, self.message);
        }
    }
}
