//! The fields of a sample.

use std::io::{self, Write};

use rperf_wire::{
    Attr, BranchSampleType, Encoder, Endian, Misc, PERF_CONTEXT_USER, PERF_CONTEXT_USER_DEFERRED,
    ReadFormat, ReadValues, RecordHeader, Regs, RegsAbi, SampleLayout, SampleRecord, SampleType,
};

use super::{AlternateHex, branches};
use crate::header::features::size_with_unit;
use crate::script::Architecture;

/// A sample with the properties of its event.
#[derive(Debug)]
pub struct SampleDump<'a> {
    /// The recorded fields, as in the file.
    pub wire: &'a SampleRecord<'a>,
    /// The attr of its event.
    pub attr: &'a Attr,
    /// The number of events that the sample represents.
    pub period: u64,
    /// The comm of its thread.
    pub comm: &'a str,
    /// The path of the object at the sample's IP, or the text that perf prints if there is none, such as `<not found>`.
    pub object: &'a str,
}

/// The copy of the user stack and the fields after it.
const STACK_AND_LATER_FIELDS: [SampleType; 11] = [
    SampleType::STACK_USER,
    SampleType::WEIGHT,
    SampleType::WEIGHT_STRUCT,
    SampleType::DATA_SRC,
    SampleType::TRANSACTION,
    SampleType::REGS_INTR,
    SampleType::PHYS_ADDR,
    SampleType::AUX,
    SampleType::CGROUP,
    SampleType::DATA_PAGE_SIZE,
    SampleType::CODE_PAGE_SIZE,
];

/// Writes the fields after the record's name.
pub(super) fn write(
    out: &mut dyn Write,
    sample: &SampleDump<'_>,
    misc: Misc,
    architecture: Architecture,
) -> io::Result<()> {
    let wire = sample.wire;
    let (pid, tid) = wire.pid_tid.unwrap_or((u32::MAX, u32::MAX));
    let (pid, tid) = (pid.cast_signed(), tid.cast_signed());
    // `%#x` in perf: 0 has no `0x`.
    let ip = AlternateHex(wire.ip.unwrap_or_default());
    let address = AlternateHex(wire.addr.unwrap_or_default());
    let (misc, period) = (misc.0, sample.period);
    writeln!(
        out,
        "(IP, 0x{misc:x}): {pid}/{tid}: {ip} period: {period} addr: {address}"
    )?;
    write_stacks(out, sample)?;
    for (kind, regs) in [("user", wire.regs_user), ("intr", wire.regs_intr)] {
        if let Some(regs) = regs {
            write_regs(out, kind, &regs, architecture)?;
        }
    }
    if let Some(stack) = wire.stack_user {
        let (size, offset) = (stack.bytes.len(), stack_offset(sample));
        writeln!(out, "... ustack: size {size}, offset {offset:#x}")?;
    }
    write_memory(out, sample)?;
    if let Some(read) = &wire.read {
        write_read(out, read, sample.attr.read_format)?;
    }
    Ok(())
}

/// Writes the thread and the object of a sample. They follow the other fields, once for each event whose value the sample
/// contains (`PERF_SAMPLE_READ` of a group).
///
/// # Errors
/// Errors of `out`.
pub fn write_thread(out: &mut dyn Write, sample: &SampleDump<'_>) -> io::Result<()> {
    let (_, tid) = sample.wire.pid_tid.unwrap_or((u32::MAX, u32::MAX));
    let tid = tid.cast_signed();
    writeln!(out, " ... thread: {}:{tid}", sample.comm)?;
    writeln!(out, " ...... dso: {}", sample.object)
}

/// Writes the callchain and the branch stack.
fn write_stacks(out: &mut dyn Write, sample: &SampleDump<'_>) -> io::Result<()> {
    let wire = sample.wire;
    let requested = sample.attr.branch_sample_type;
    let is_call_stack = requested.contains(BranchSampleType::CALL_STACK);
    // The LBR call stack: branches that are calls not returned from.
    let calls = wire.branch_stack.filter(|_| is_call_stack);
    if let Some(callchain) = wire.callchain {
        if let Some(calls) = &calls {
            let user_marker = callchain.iter().position(|ip| ip == PERF_CONTEXT_USER);
            if let Some(user_marker) = user_marker.filter(|_| !calls.is_empty()) {
                let kernel_and_marker = callchain.iter().take(user_marker + 1);
                let joined: Vec<u64> = kernel_and_marker.chain(branches::callers(calls)).collect();
                writeln!(out, "... LBR call chain: nr:{}", joined.len())?;
                chain(out, joined.into_iter())?;
            }
        }
        writeln!(out, "... FP chain: nr:{}", callchain.len())?;
        chain(out, callchain.iter())?;
        // In a deferred callchain, the marker is followed by a cookie, which is the last entry.
        let last_but_one = callchain.len().checked_sub(2);
        if last_but_one.and_then(|index| callchain.get(index)) == Some(PERF_CONTEXT_USER_DEFERRED) {
            writeln!(out, "...... (deferred)")?;
        }
    }
    match (calls, wire.branch_stack) {
        (Some(calls), _) => {
            let callers: Vec<u64> = branches::callers(&calls).collect();
            writeln!(out, "... branch callstack: nr:{}", callers.len())?;
            chain(out, callers.into_iter())
        }
        (None, Some(stack)) => branches::write(out, &stack),
        (None, None) => Ok(()),
    }
}

/// Writes addresses, one per line.
pub(super) fn chain(out: &mut dyn Write, ips: impl Iterator<Item = u64>) -> io::Result<()> {
    for (index, ip) in ips.enumerate() {
        writeln!(out, "..... {index:2}: {ip:016x}")?;
    }
    Ok(())
}

/// Writes the weight, the fields of a memory access, and the transaction.
fn write_memory(out: &mut dyn Write, sample: &SampleDump<'_>) -> io::Result<()> {
    let wire = sample.wire;
    if let Some(weight) = wire.weight {
        if sample.attr.sample_type.contains(SampleType::WEIGHT_STRUCT) {
            // `var1_dw` has the low 32 bits, `var2_w` the next 16; perf decodes `var3_w` on powerpc only.
            let latency = weight >> 32 & u64::from(u16::MAX);
            writeln!(
                out,
                "... weight: {},0x{latency:x},0x0",
                weight & u64::from(u32::MAX)
            )?;
        } else {
            writeln!(out, "... weight: {weight}")?;
        }
    }
    if let Some(source) = wire.data_src {
        writeln!(out, " . data_src: 0x{source:x}")?;
    }
    if let Some(address) = wire.phys_addr {
        writeln!(out, " .. phys_addr: 0x{address:x}")?;
    }
    for (kind, size) in [("data", wire.data_page_size), ("code", wire.code_page_size)] {
        match size {
            Some(0) => writeln!(out, " .. {kind} page size: N/A")?,
            Some(size) => writeln!(out, " .. {kind} page size: {}", size_with_unit(size))?,
            None => {}
        }
    }
    if let Some(transaction) = wire.transaction {
        writeln!(out, "... transaction: {transaction:x}")?;
    }
    Ok(())
}

fn write_regs(
    out: &mut dyn Write,
    kind: &str,
    regs: &Regs<'_>,
    architecture: Architecture,
) -> io::Result<()> {
    let abi = match regs.abi {
        RegsAbi::None => return Ok(()),
        RegsAbi::Bits32 => "32-bit",
        RegsAbi::Bits64 => "64-bit",
        RegsAbi::Other(_) => "unknown",
    };
    writeln!(
        out,
        "... {kind} regs: mask {} ABI {abi}",
        AlternateHex(regs.mask)
    )?;
    let numbers = (0..u64::BITS).filter(|number| regs.mask >> number & 1 == 1);
    for (number, value) in numbers.zip(regs.values.iter()) {
        let name = architecture.register(number);
        writeln!(out, ".... {name:5} 0x{value:016x}")?;
    }
    Ok(())
}

/// Offset, in the record, of the field that holds the user stack's size: the length of a record that has only the fields before
/// it.
fn stack_offset(sample: &SampleDump<'_>) -> usize {
    let mut attr = sample.attr.clone();
    for field in STACK_AND_LATER_FIELDS {
        attr.sample_type = attr.sample_type.with(field, false);
    }
    let mut before = Vec::new();
    // Only the length is used, so any byte order will do.
    let to = &mut Encoder::new(&mut before, Endian::NATIVE);
    SampleLayout::new(&attr).encode(sample.wire, to);
    RecordHeader::SIZE + before.len()
}

fn write_read(out: &mut dyn Write, read: &ReadValues<'_>, format: ReadFormat) -> io::Result<()> {
    writeln!(out, "... sample_read:")?;
    if let Some(time) = read.time_enabled() {
        writeln!(out, "...... time enabled {time:016x}")?;
    }
    if let Some(time) = read.time_running() {
        writeln!(out, "...... time running {time:016x}")?;
    }
    let values = read.values();
    if format.contains(ReadFormat::GROUP) {
        writeln!(out, ".... group nr {}", values.len())?;
    }
    for value in values {
        let id = value.id.unwrap_or_default();
        write!(out, "..... id {id:016x}, value {:016x}", value.value)?;
        if let Some(lost) = value.lost {
            write!(out, ", lost {lost}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
