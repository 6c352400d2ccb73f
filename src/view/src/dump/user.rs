//! The fields of records written by the recorder.

use std::io::{self, Write};

use rperf_perfdata::{EventProperty, EventUpdate, RecordAt};
use rperf_wire::{
    AuxTrace, AuxTraceError, CpuMap, DecodeError, Endian, IdIndex, RecordKind, Schedstat,
    SchedstatCpu, SchedstatDomain, StatConfig, ThreadMap, TimeConv, UserRecord,
};

use super::{AlternateHex, simpleperf};

/// perf's marker for records of types that the running command does not handle. [`write()`] appends it to some types for every
/// command.
pub(super) const UNHANDLED: &str = ": unhandled!\n";

/// `PERF_STAT_ROUND_TYPE__FINAL`.
const FINAL_ROUND: u64 = 1;

/// Writes the text after a record's name. As in perf, that of some types does not end the line.
pub(super) fn write(out: &mut dyn Write, record: &RecordAt<'_>, endian: Endian) -> io::Result<()> {
    match text(record, endian) {
        Ok(text) => out.write_all(&text),
        Err(error) => writeln!(out, " cannot be decoded: {error}"),
    }
}

/// Like [`write()`], for types that the command does not handle: writes the fields of STAT, STAT_ROUND and STAT_CONFIG,
/// but not those of AUXTRACE_ERROR and ID_INDEX, as perf does. The caller appends [`UNHANDLED`].
pub(super) fn write_unhandled(
    out: &mut dyn Write,
    record: &RecordAt<'_>,
    endian: Endian,
) -> io::Result<()> {
    match UserRecord::decode(&record.raw, endian) {
        Ok(UserRecord::Stat(stat)) => {
            let (cpu, thread) = (stat.cpu.cast_signed(), stat.thread.cast_signed());
            writeln!(out, "\n... id {}, cpu {cpu}, thread {thread}", stat.id)?;
            let (enabled, running) = (stat.enabled, stat.running);
            writeln!(
                out,
                "... value {}, enabled {enabled}, running {running}",
                stat.value
            )
        }
        Ok(UserRecord::StatRound(round)) => {
            let kind = if round.kind == FINAL_ROUND {
                "FINAL"
            } else {
                "INTERVAL"
            };
            writeln!(out, "\n... time {}, type {kind}", round.time)
        }
        Ok(UserRecord::StatConfig(config)) => {
            writeln!(out)?;
            let terms = [
                (StatConfig::AGGREGATION, "aggr_mode"),
                (StatConfig::SCALE, "scale"),
                (StatConfig::INTERVAL, "interval"),
            ];
            for (term, name) in terms {
                let value = config.term(term).unwrap_or_default();
                writeln!(out, "... {name:<9} {value}")?;
            }
            Ok(())
        }
        Ok(UserRecord::AuxTraceError(_) | UserRecord::IdIndex(_)) => Ok(()),
        _ => write(out, record, endian),
    }
}

fn text(record: &RecordAt<'_>, endian: Endian) -> Result<Vec<u8>, DecodeError> {
    let raw = &record.raw;
    if raw.kind == RecordKind::EVENT_UPDATE {
        return Ok(event_update(&EventUpdate::decode(raw.body, endian)?).into());
    }
    let text = match UserRecord::decode(raw, endian)? {
        UserRecord::FinishedInit => UNHANDLED.to_owned(),
        UserRecord::IdIndex(index) => id_index(&index),
        UserRecord::ThreadMap(threads) => thread_map(&threads),
        UserRecord::CpuMap(cpus) => format!(": {}\n", cpu_map(&cpus)),
        UserRecord::TimeConv(conversion) => time_conv(&conversion),
        UserRecord::AuxTraceInfo(info) => super::trace::info(&info),
        UserRecord::AuxTrace(trace) => auxtrace(&trace),
        UserRecord::AuxTraceError(error) => return Ok(auxtrace_error(&error)),
        UserRecord::SchedstatCpu(record) => schedstat_cpu(&record),
        UserRecord::SchedstatDomain(record) => schedstat_domain(&record),
        UserRecord::Simpleperf(record) => simpleperf::text(&record),
        UserRecord::Feature(_)
        | UserRecord::TracingData(_)
        | UserRecord::StatConfig(_)
        | UserRecord::Stat(_)
        | UserRecord::StatRound(_)
        | UserRecord::Other(RecordKind::HEADER_ATTR | RecordKind::HEADER_BUILD_ID) => String::new(),
        _ => "\n".to_owned(),
    };
    Ok(text.into())
}

fn id_index(index: &IdIndex) -> String {
    let mut text = format!(" nr: {}\n", index.entries.len());
    for entry in &index.entries {
        let (id, index) = (entry.id, entry.index);
        let (cpu, tid) = (entry.cpu.cast_signed(), entry.tid.cast_signed());
        text += &format!(" ... id: {id}  idx: {index}  cpu: {cpu}  tid: {tid}");
        if let Some((machine_pid, vcpu)) = entry.machine {
            let (machine_pid, vcpu) = (machine_pid.cast_signed(), vcpu.cast_signed());
            text += &format!("  machine_pid: {machine_pid}  vcpu: {vcpu}");
        }
        text.push('\n');
    }
    text
}

fn thread_map(map: &ThreadMap) -> String {
    let pids = map.threads.iter();
    let pids: Vec<String> = pids
        .map(|thread| thread.pid.cast_signed().to_string())
        .collect();
    let plural = if pids.len() > 1 { "s" } else { "" };
    format!(" nr: {} thread{plural}: {}\n", pids.len(), pids.join(", "))
}

/// Formats a map: `-1` if it includes "any CPU" (`u16::MAX` in a list), then the ranges of CPU numbers.
fn cpu_map(map: &CpuMap) -> String {
    let any = match map {
        CpuMap::List(cpus) => cpus.contains(&u16::MAX),
        CpuMap::Range { any, .. } => *any,
        _ => false,
    };
    let any = any.then(|| "-1".to_owned()).into_iter();
    let ranges = ranges(&map.cpus());
    let parts: Vec<String> = any.chain((!ranges.is_empty()).then_some(ranges)).collect();
    parts.join(",")
}

/// Formats ascending CPU numbers as `0-1,5`.
fn ranges(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let runs = runs.filter_map(|run| match run {
        [first, .., last] => Some(format!("{first}-{last}")),
        [one] => Some(one.to_string()),
        [] => None,
    });
    runs.collect::<Vec<_>>().join(",")
}

fn event_update(event: &EventUpdate) -> String {
    let property = match &event.property {
        EventProperty::Unit(unit) => format!("unit:  {unit}"),
        EventProperty::Scale(scale) => format!("scale: {scale:.6}"),
        EventProperty::Name(name) => format!("name:  {name}"),
        EventProperty::Cpus(cpus) => ranges(cpus),
        _ => "unknown type".to_owned(),
    };
    format!("\n... id:    {}\n... {property}\n", event.id)
}

fn time_conv(conversion: &TimeConv) -> String {
    let (shift, multiplier) = (conversion.shift, conversion.mult);
    let zero = conversion.zero;
    // The misspelled word is perf's.
    let mut text = format!(
        "\n... Time Shift      {shift}\n... Time Muliplier  {multiplier}\n... Time Zero       {zero}\n"
    );
    if let Some(clock) = &conversion.clock {
        let (cycles, mask) = (clock.cycles, AlternateHex(clock.mask));
        let (is_zero_valid, is_short) = (u8::from(clock.is_zero_valid), u8::from(clock.is_short));
        text += &format!(
            "... Time Cycles     {cycles}\n... Time Mask       {mask}\n... Cap Time Zero   {is_zero_valid}\n\
             ... Cap Time Short  {is_short}\n"
        );
    }
    text + UNHANDLED
}

fn schedstat_cpu(record: &SchedstatCpu<'_>) -> String {
    let counters = match &record.counters {
        Schedstat::Known(counters) => Some(counters.in_line_order()),
        Schedstat::Other(_) => None,
    };
    format!("\ncpu{} ", record.cpu) + &schedstat(counters, record.version)
}

fn schedstat_domain(record: &SchedstatDomain<'_>) -> String {
    let counters = match &record.counters {
        Schedstat::Known(counters) => Some(counters.in_line_order(record.version)),
        Schedstat::Other(_) => None,
    };
    format!("\ndomain{} ", record.domain) + &schedstat(counters, record.version)
}

fn schedstat(
    counters: Option<impl IntoIterator<Item = impl std::fmt::Display>>,
    version: u16,
) -> String {
    let text = match counters {
        Some(counters) => counters
            .into_iter()
            .map(|count| format!("{count} "))
            .collect(),
        None => format!("Unsupported /proc/schedstat version {version}.\n"),
    };
    text + UNHANDLED
}

fn auxtrace(trace: &AuxTrace) -> String {
    let (size, offset) = (AlternateHex(trace.size), AlternateHex(trace.offset));
    let (reference, index) = (AlternateHex(trace.reference), trace.index);
    let (tid, cpu) = (trace.tid.cast_signed(), trace.cpu.cast_signed());
    format!(
        " size: {size}  offset: {offset}  ref: {reference}  idx: {index}  tid: {tid}  cpu: {cpu}\n"
    )
}

fn auxtrace_error(error: &AuxTraceError<'_>) -> Vec<u8> {
    /// `PERF_AUXTRACE_ERROR_ITRACE`.
    const INSTRUCTIONS: u32 = 1;
    const NANOS: u64 = 1_000_000_000;
    let time = match error.time.unwrap_or_default() {
        0 => "0".to_owned(),
        time => format!("{}.{:09}", time / NANOS, time % NANOS),
    };
    let name = match error.kind {
        INSTRUCTIONS => "instruction trace",
        _ => "unknown",
    };
    let [cpu, pid, tid] = [error.cpu, error.pid, error.tid].map(u32::cast_signed);
    let (kind, code, ip) = (error.kind, error.code, AlternateHex(error.ip));
    let mut text = format!(" {name} error type {kind} time {time}").into_bytes();
    // For a guest: the process id of the virtual machine on the host, and the virtual CPU.
    if let Some((machine_pid, vcpu)) = error.machine {
        let (machine_pid, vcpu) = (machine_pid.cast_signed(), vcpu.cast_signed());
        text.extend(format!(" machine_pid {machine_pid} vcpu {vcpu}").bytes());
    }
    text.extend(format!(" cpu {cpu} pid {pid} tid {tid} ip {ip} code {code}: ").bytes());
    text.extend_from_slice(error.message);
    text.push(b'\n');
    text
}
