//! The fields of kernel records other than samples.

use std::io::{self, Write};

use rperf_perfdata::EventDesc;
use rperf_wire::{Endian, RawRecord, Read, ReadFormat, Record, SampleId};

use super::{AlternateHex, name};
use crate::script::record::{text_poke, write_record};

/// Writes the name and fields of a record. `raw` is the record without its trailer, whose sample id fields are in `trailer`.
/// `event` is the event of the record's sample id; if it is unknown (`None`), only the name is written.
pub(super) fn write(
    out: &mut dyn Write,
    raw: &RawRecord<'_>,
    trailer: &SampleId,
    event: Option<&EventDesc>,
    endian: Endian,
) -> io::Result<()> {
    let name = name(raw.kind);
    let Some(event) = event else {
        return writeln!(out, "PERF_RECORD_{name}");
    };
    let record = match Record::decode(raw, endian) {
        Ok(record) => record,
        Err(error) => return writeln!(out, "PERF_RECORD_{name} cannot be decoded: {error}"),
    };
    let text = match &record {
        // perf does not terminate this line.
        Record::Throttle(_) | Record::Unthrottle(_) => String::new(),
        Record::Lost(lost) => format!(": id:{}: lost:{}\n", lost.id, lost.lost),
        Record::LostSamples(lost) => {
            let id = trailer.id.unwrap_or(u64::MAX);
            format!(": id:{id}: lost samples :{}\n", lost.lost)
        }
        Record::Read(read) => counter(read, event),
        Record::Aux(aux) => {
            // Bits 0 to 2 of the flags: truncated, overwrite, partial.
            let letters = ["T", "O", "P"].iter().enumerate();
            let set = letters.filter(|(bit, _)| aux.flags >> bit & 1 == 1);
            let letters: String = set.map(|(_, letter)| *letter).collect();
            let [offset, size, flags] = [aux.offset, aux.size, aux.flags].map(AlternateHex);
            format!(" offset: {offset} size: {size} flags: {flags} [{letters}]\n")
        }
        Record::ItraceStart(start) => {
            let [pid, tid] = [start.pid, start.tid].map(u32::cast_signed);
            format!(" pid: {pid} tid: {tid}\n")
        }
        Record::AuxOutputHwId(id) => format!(" hw_id: {}\n", AlternateHex(id.hw_id)),
        // The address has no symbol: a dump has no symbol tables.
        Record::TextPoke(poke) => text_poke(poke, None),
        Record::CallchainDeferred(chain) => {
            let (pid, tid) = trailer.pid_tid.unwrap_or((u32::MAX, u32::MAX));
            let [pid, tid] = [pid, tid].map(u32::cast_signed);
            let (misc, cookie) = (raw.misc.0, chain.cookie);
            writeln!(
                out,
                "PERF_RECORD_{name}(IP, {misc:#x}): {pid}/{tid}: {cookie:#x}"
            )?;
            writeln!(out, "... FP chain: nr:{}", chain.ips.len())?;
            return super::sample::chain(out, chain.ips.iter());
        }
        Record::Other(_) => "\n".to_owned(),
        record => {
            let mut name_and_text = Vec::new();
            write_record(record, raw.kind, raw.misc, &mut name_and_text);
            return out.write_all(&name_and_text);
        }
    };
    write!(out, "PERF_RECORD_{name}{text}")
}

/// The count of an event, with its `read_format` fields.
fn counter(read: &Read<'_>, event: &EventDesc) -> String {
    let [pid, tid] = [read.pid, read.tid].map(u32::cast_signed);
    let mut words = read.words.iter();
    let value = words.next().unwrap_or_default();
    let mut text = format!(": {pid} {tid} {} {value}\n", event.name);
    for (field, name) in [
        (ReadFormat::TOTAL_TIME_ENABLED, "time enabled"),
        (ReadFormat::TOTAL_TIME_RUNNING, "time running"),
        (ReadFormat::ID, "id          "),
        (ReadFormat::LOST, "lost        "),
    ] {
        if event.attr.read_format.contains(field)
            && let Some(word) = words.next()
        {
            text += &format!("... {name} : {word}\n");
        }
    }
    text
}
