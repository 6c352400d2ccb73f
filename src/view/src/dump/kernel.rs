//! The fields of the kernel's records but samples.

use std::io::{self, Write};

use rperf_perfdata::EventDesc;
use rperf_wire::{
    Cursor, DecodeError, Endian, RawRecord, ReadFormat, Record, RecordKind, SampleId,
};

use super::{Alternate, name};
use crate::script::write_record;

/// Bytes of changed code on a line.
const POKED: usize = 16;

/// Writes name and fields of a record whose body has lost its trailer, to the end of its line.
pub(super) fn write(
    out: &mut dyn Write,
    raw: &RawRecord<'_>,
    trailer: &SampleId,
    event: Option<(&EventDesc, Endian)>,
) -> io::Result<()> {
    let Some((event, endian)) = event else {
        return writeln!(out, "PERF_RECORD_{}", name(raw.kind));
    };
    let mut text = Vec::new();
    let result = match raw.kind {
        RecordKind::MMAP
        | RecordKind::MMAP2
        | RecordKind::COMM
        | RecordKind::FORK
        | RecordKind::EXIT
        | RecordKind::SWITCH
        | RecordKind::SWITCH_CPU_WIDE
        | RecordKind::NAMESPACES
        | RecordKind::KSYMBOL
        | RecordKind::BPF_EVENT
        | RecordKind::CGROUP => Record::decode(raw, endian)
            .map_err(Failed::from)
            .map(|record| {
                write_record(&record, raw.kind, raw.misc, &mut text);
            }),
        _ => other(&mut text, raw, trailer, (event, endian)),
    };
    match result {
        Err(Failed::Field(error)) => {
            writeln!(
                out,
                "PERF_RECORD_{} cannot be decoded: {error}",
                name(raw.kind)
            )
        }
        Err(Failed::Write(error)) => Err(error),
        Ok(()) => out.write_all(&text),
    }
}

/// Why a record is not written to its end.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Field(#[from] DecodeError),
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// The kinds that `script` has no option for.
fn other(
    out: &mut Vec<u8>,
    raw: &RawRecord<'_>,
    trailer: &SampleId,
    (event, endian): (&EventDesc, Endian),
) -> Result<(), Failed> {
    write!(out, "PERF_RECORD_{}", name(raw.kind))?;
    let at = &mut Cursor::new(raw.body, endian);
    match raw.kind {
        // perf ends the line nowhere.
        RecordKind::THROTTLE | RecordKind::UNTHROTTLE => {}
        RecordKind::LOST => {
            let (id, lost) = (at.u64("id")?, at.u64("lost")?);
            writeln!(out, ": id:{id}: lost:{lost}")?;
        }
        RecordKind::LOST_SAMPLES => {
            let (id, lost) = (trailer.id.unwrap_or(u64::MAX), at.u64("lost")?);
            writeln!(out, ": id:{id}: lost samples :{lost}")?;
        }
        RecordKind::READ => write_read(out, at, event)?,
        RecordKind::AUX => {
            let (offset, size) = (at.u64("aux_offset")?, at.u64("aux_size")?);
            let flags = at.u64("flags")?;
            let letters = ["T", "O", "P"].iter().enumerate();
            let letters: String = letters
                .filter(|(bit, _)| flags >> bit & 1 == 1)
                .map(|(_, letter)| *letter)
                .collect();
            let (offset, size, flags) = (Alternate(offset), Alternate(size), Alternate(flags));
            writeln!(
                out,
                " offset: {offset} size: {size} flags: {flags} [{letters}]"
            )?;
        }
        RecordKind::ITRACE_START => {
            let (pid, tid) = (signed(at.u32("pid")?), signed(at.u32("tid")?));
            writeln!(out, " pid: {pid} tid: {tid}")?;
        }
        RecordKind::TEXT_POKE => write_text_poke(out, at)?,
        RecordKind::AUX_OUTPUT_HW_ID => writeln!(out, " hw_id: {}", Alternate(at.u64("hw_id")?))?,
        RecordKind::CALLCHAIN_DEFERRED => {
            let (cookie, count) = (at.u64("cookie")?, at.u64("nr")?);
            writeln!(out, " cookie: {cookie:#x} nr:{count}")?;
            super::sample::chain(out, at.u64s(count, "ips")?.iter())?;
        }
        _ => writeln!(out)?,
    }
    Ok(())
}

/// Ids are signed, -1 for none.
fn signed(id: u32) -> i32 {
    id.cast_signed()
}

/// The counter of an event, with what its `read_format` adds.
fn write_read(out: &mut Vec<u8>, at: &mut Cursor<'_>, event: &EventDesc) -> Result<(), Failed> {
    let (pid, tid) = (signed(at.u32("pid")?), signed(at.u32("tid")?));
    let value = at.u64("value")?;
    writeln!(out, ": {pid} {tid} {} {value}", event.name)?;
    for (bit, name) in [
        (ReadFormat::TOTAL_TIME_ENABLED, "time enabled"),
        (ReadFormat::TOTAL_TIME_RUNNING, "time running"),
        (ReadFormat::ID, "id          "),
        (ReadFormat::LOST, "lost        "),
    ] {
        if event.attr.read_format.contains(bit) {
            writeln!(out, "... {name} : {}", at.u64("read")?)?;
        }
    }
    Ok(out.write_all(b": unhandled!\n")?)
}

fn write_text_poke(out: &mut Vec<u8>, at: &mut Cursor<'_>) -> Result<(), Failed> {
    let address = at.u64("addr")?;
    let (old, new) = (at.u16("old_len")?, at.u16("new_len")?);
    writeln!(out, " {address:x}  old len {old} new len {new}")?;
    for (name, length) in [("Old", old), ("New", new)] {
        for bytes in at.take(length.into(), "bytes")?.chunks(POKED) {
            write!(out, "            {name} bytes:")?;
            for byte in bytes {
                write!(out, " {byte:02x}")?;
            }
            out.push(b'\n');
        }
    }
    Ok(())
}
