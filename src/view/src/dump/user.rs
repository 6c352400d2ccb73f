//! The fields of the recorder's own records.

use std::io::{self, Write};

use rperf_perfdata::{EventUpdate, RecordAt, Update};
use rperf_wire::{Cursor, DecodeError, Endian, RecordKind, until_nul};

use super::{Alternate, cpu_map};

/// What perf says of kinds that `script` does nothing with.
const UNHANDLED: &[u8] = b": unhandled!\n";

/// Writes what follows the name of a record. Some kinds end no line, as in perf.
pub(super) fn write(out: &mut dyn Write, record: &RecordAt<'_>, endian: Endian) -> io::Result<()> {
    let body = record.raw.body;
    let at = &mut Cursor::new(body, endian);
    let text = match record.raw.kind {
        RecordKind::FINISHED_ROUND => Ok("\n".to_owned()),
        RecordKind::FINISHED_INIT => return out.write_all(UNHANDLED),
        RecordKind::ID_INDEX => id_index(at),
        RecordKind::THREAD_MAP => thread_map(at),
        RecordKind::CPU_MAP => {
            cpu_map::decode(at).map(|cpus| format!(": {}\n", cpu_map::text(&cpus)))
        }
        RecordKind::EVENT_UPDATE => event_update(body, endian),
        RecordKind::TIME_CONV => time_conv(at),
        RecordKind::AUXTRACE_INFO => at.u32("type").map(|kind| format!(" type: {kind}\n")),
        RecordKind::AUXTRACE => auxtrace(at),
        RecordKind::AUXTRACE_ERROR => {
            return match auxtrace_error(at) {
                Ok((text, message)) => {
                    out.write_all(text.as_bytes())?;
                    out.write_all(message)?;
                    out.write_all(b"\n")
                }
                Err(error) => undecodable(out, &error),
            };
        }
        RecordKind::HEADER_ATTR
        | RecordKind::HEADER_FEATURE
        | RecordKind::HEADER_TRACING_DATA
        | RecordKind::HEADER_BUILD_ID
        | RecordKind::STAT_CONFIG
        | RecordKind::STAT
        | RecordKind::STAT_ROUND => return Ok(()),
        _ => Ok("\n".to_owned()),
    };
    match text {
        Ok(text) => out.write_all(text.as_bytes()),
        Err(error) => undecodable(out, &error),
    }
}

fn undecodable(out: &mut dyn Write, error: &DecodeError) -> io::Result<()> {
    writeln!(out, " cannot be decoded: {error}")
}

/// Entries, and behind them, in recordings of guests, as many pairs of machine and virtual CPU.
fn id_index(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let count = at.u64("nr")?;
    let entries = at.u64s(count.saturating_mul(4), "entries")?;
    let mut machines = at.u64s(count.saturating_mul(2), "machines").ok();
    let mut text = format!(" nr: {count}\n");
    let mut words = entries.iter();
    let mut pairs = machines.iter_mut().flat_map(|pairs| pairs.iter());
    while let (Some(id), Some(index), Some(cpu), Some(tid)) =
        (words.next(), words.next(), words.next(), words.next())
    {
        let (cpu, tid) = (cpu.cast_signed(), tid.cast_signed());
        text += &format!(" ... id: {id}  idx: {index}  cpu: {cpu}  tid: {tid}");
        if let (Some(machine), Some(vcpu)) = (pairs.next(), pairs.next()) {
            let (machine, vcpu) = (machine.cast_signed(), vcpu.cast_signed());
            text += &format!("  machine_pid: {machine}  vcpu: {vcpu}");
        }
        text.push('\n');
    }
    Ok(text)
}

fn thread_map(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    const COMM: usize = 16;
    let count = at.u64("nr")?;
    let mut pids = Vec::new();
    for _ in 0..count {
        pids.push(at.u64("pid")?.cast_signed().to_string());
        at.take(COMM, "comm")?;
    }
    let plural = if count > 1 { "s" } else { "" };
    Ok(format!(
        " nr: {count} thread{plural}: {}\n",
        pids.join(", ")
    ))
}

fn event_update(body: &[u8], endian: Endian) -> Result<String, DecodeError> {
    /// Bytes before the CPUs: kind and id.
    const HEAD: usize = 16;
    let told = EventUpdate::decode(body, endian)?;
    let what = match told.update {
        Update::Unit(unit) => format!("unit:  {unit}"),
        Update::Scale(scale) => format!("scale: {scale:.6}"),
        Update::Name(name) => format!("name:  {name}"),
        Update::Cpus(_) => {
            let cpus = body.get(HEAD..).unwrap_or_default();
            cpu_map::text(&cpu_map::decode(&mut Cursor::new(cpus, endian))?)
        }
        _ => "unknown type".to_owned(),
    };
    Ok(format!("\n... id:    {}\n... {what}\n", told.id))
}

fn time_conv(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let (shift, multiplier) = (at.u64("time_shift")?, at.u64("time_mult")?);
    let zero = at.u64("time_zero")?;
    let mut text = format!(
        "\n... Time Shift      {shift}\n... Time Muliplier  {multiplier}\n... Time Zero       {zero}\n"
    );
    // Recorders before 5.8 end here.
    if let (Ok(cycles), Ok(mask), Ok([has_zero, is_short])) = (
        at.u64("time_cycles"),
        at.u64("time_mask"),
        at.array("cap_user_time"),
    ) {
        text += &format!(
            "... Time Cycles     {cycles}\n... Time Mask       {}\n... Cap Time Zero   {has_zero}\n\
             ... Cap Time Short  {is_short}\n",
            Alternate(mask)
        );
    }
    Ok(text + ": unhandled!\n")
}

fn auxtrace(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let (size, offset) = (Alternate(at.u64("size")?), Alternate(at.u64("offset")?));
    let reference = Alternate(at.u64("reference")?);
    let (index, tid) = (at.u32("idx")?, at.u32("tid")?.cast_signed());
    let cpu = at.u32("cpu")?.cast_signed();
    Ok(format!(
        " size: {size}  offset: {offset}  ref: {reference}  idx: {index}  tid: {tid}  cpu: {cpu}\n"
    ))
}

/// The text before the message, and the message.
fn auxtrace_error<'a>(at: &mut Cursor<'a>) -> Result<(String, &'a [u8]), DecodeError> {
    const INSTRUCTIONS: u32 = 1;
    const NANOS: u64 = 1_000_000_000;
    let (kind, code) = (at.u32("type")?, at.u32("code")?);
    let (cpu, pid, tid) = (at.u32("cpu")?, at.u32("pid")?, at.u32("tid")?);
    let (cpu, pid, tid) = (cpu.cast_signed(), pid.cast_signed(), tid.cast_signed());
    let format = at.u32("fmt")?;
    let ip = Alternate(at.u64("ip")?);
    // The first format has no time.
    let time = if format > 0 { at.u64("time")? } else { 0 };
    let time = match time {
        0 => "0".to_owned(),
        time => format!("{}.{:09}", time / NANOS, time % NANOS),
    };
    let name = match kind {
        INSTRUCTIONS => "instruction trace",
        _ => "unknown",
    };
    let text = format!(
        " {name} error type {kind} time {time} cpu {cpu} pid {pid} tid {tid} ip {ip} code {code}: "
    );
    Ok((text, until_nul(at.rest())))
}
