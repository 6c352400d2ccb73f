//! AUX areas, into which hardware writes traces in its own format. AUX records in the rings contain
//! the positions of new data.
//!
//! The content of an area is copied to the file after an AUXTRACE record. Areas are drained like
//! rings; in overwrite mode they keep the end of the trace and are copied on request (snapshot).

use rperf_events::TracePmu;
use rperf_perfdata::WriteError;
use rperf_ring::{Memory, drain};
use rperf_sys::{AuxMap, Counter, page_size, timestamp_counter};
use rperf_wire::{AuxTrace, AuxTraceInfo, RecordKind, TimeConv, U64s, UserRecord};

use crate::counted_output::CountedOutput;
use crate::open::{OpenCounter, OpenEvent};
use crate::rings::Ring;
use crate::synthesize::RecordBuffer;
use crate::{Error, RecordRequest, SessionNotice, SessionObserver, SnapshotOptions, TraceOptions};

/// Default size of an area in bytes, for privileged and unprivileged users.
const DEFAULT_SIZE: usize = 4 << 20;
const DEFAULT_SIZE_UNPRIVILEGED: usize = 128 << 10;

/// An AUX area of a ring.
#[derive(Debug)]
pub(crate) struct AuxArea {
    map: AuxMap,
    /// The trace event that writes into it.
    counter: Counter,
    /// Index of its ring.
    index: u32,
    /// The thread, -1 for all.
    tid: i32,
    /// The CPU, -1 for all.
    cpu: i32,
    /// Maximum size of a snapshot in bytes; `None` if the area is not in overwrite mode.
    snapshot_size: Option<usize>,
}

impl AuxArea {
    /// Returns the size of the area in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.map.size() as u64
    }

    /// Whether it is in overwrite mode.
    pub(crate) fn is_in_overwrite_mode(&self) -> bool {
        self.snapshot_size.is_some()
    }

    /// Whether it contains data to drain.
    pub(crate) fn has_data(&self) -> bool {
        self.snapshot_size.is_none() && self.map.tail() < self.map.head()
    }

    /// Writes the new data directly from the area; returns whether there was any.
    pub(crate) fn drain(&mut self, sink: &mut CountedOutput) -> Result<bool, WriteError> {
        if self.snapshot_size.is_some() {
            return Ok(false);
        }
        let mut header = self.part_header();
        let Some(chunk) = drain(&mut self.map) else {
            return Ok(false);
        };
        (header.offset, header.size) = (chunk.start(), chunk.size());
        let [first, second] = chunk.pieces();
        sink.write_trace(header, &[first, second])?;
        Ok(true)
    }

    /// Writes the end of the trace; tracing continues afterwards if `resumes`. Does nothing unless in overwrite mode.
    pub(crate) fn snapshot(
        &mut self,
        resumes: bool,
        sink: &mut CountedOutput,
    ) -> Result<(), Error> {
        let Some(max_len) = self.snapshot_size else {
            return Ok(());
        };
        let refused = Error::system("stop a trace to copy it");
        self.counter.disable().map_err(refused)?;
        let (copy, head) = self.map.copy();
        if resumes {
            self.resume();
        }
        let (first, second) = last_of(&copy, head, max_len);
        let size = (first.len() + second.len()) as u64;
        if size > 0 {
            let header = AuxTrace {
                size,
                offset: (head as u64).saturating_sub(size),
                ..self.part_header()
            };
            let written = sink.write_trace(header, &[first, second]);
            written.map_err(crate::counted_output::write_error)?;
        }
        Ok(())
    }

    /// Enables the trace again, after a snapshot or after the area was drained: tracing stops when an area is full, and as not
    /// all PMUs report that, it is enabled after each drain. If this fails, the data recorded so far are still valid.
    pub(crate) fn resume(&self) {
        let _ = self.counter.enable();
    }

    /// Returns the header of a part of the trace; the caller sets its size and offset. perf orders the parts of
    /// all areas by `reference`, the time of the hardware clock.
    fn part_header(&self) -> AuxTrace {
        AuxTrace {
            size: 0,
            offset: 0,
            reference: timestamp_counter().unwrap_or_default(),
            index: self.index,
            tid: self.tid.cast_unsigned(),
            cpu: self.cpu.cast_unsigned(),
        }
    }
}

/// Returns the last bytes of a trace in overwrite mode, at most `max_len`, oldest first. `head` is the position in `area` of
/// the byte that the hardware writes next. If all bytes from there on are zero, the trace has not wrapped yet.
fn last_of(area: &[u8], head: usize, max_len: usize) -> (&[u8], &[u8]) {
    let (newest, oldest) = area.split_at_checked(head).unwrap_or((area, &[]));
    let has_wrapped = oldest.iter().any(|byte| *byte != 0);
    let oldest = if has_wrapped { oldest } else { &[] };
    // Entries are not split. Intel BTS is the only PMU whose traces are recorded.
    let max_len = max_len - max_len % AuxTraceInfo::BTS_BRANCH;
    let newest = last_bytes(newest, max_len);
    (last_bytes(oldest, max_len - newest.len()), newest)
}

/// The last `max_len` bytes, or all if there are fewer.
fn last_bytes(bytes: &[u8], max_len: usize) -> &[u8] {
    let start = bytes.len().saturating_sub(max_len);
    bytes.get(start..).unwrap_or_default()
}

/// Maps an AUX area for the ring of each counter of the trace event among `events`, if there is one.
pub(crate) fn map_areas(
    request: &RecordRequest,
    events: &[OpenEvent],
    rings: &mut [Ring],
    observer: &mut dyn SessionObserver,
) -> Result<(), Error> {
    let traced = events
        .iter()
        .find(|event| event.event.spec.trace_pmu().is_some());
    let (Some(event), Some(traces)) = (traced, &request.observe.traces) else {
        return Ok(());
    };
    let pages = pages(traces);
    for placed in &event.counters {
        if let Some(ring) = rings.get_mut(placed.ring) {
            let area = area(placed, &ring.map, traces, pages);
            let area = area.map_err(|cause| Error::MapTrace {
                pages,
                event: event.event.spec.name.clone(),
                cause,
            })?;
            ring.area = Some(area);
        }
    }
    observer.on_event(SessionNotice::TraceMapped {
        bytes: pages * page_size(),
    });
    Ok(())
}

fn area(
    open: &OpenCounter,
    ring: &rperf_sys::RingMap,
    traces: &TraceOptions,
    pages: usize,
) -> std::io::Result<AuxArea> {
    let map = AuxMap::new(&open.counter, ring, pages, traces.snapshots.is_some())?;
    let size = map.size();
    let snapshot_size = |snapshots: &SnapshotOptions| snapshots.size.unwrap_or(size).min(size);
    Ok(AuxArea {
        map,
        counter: open.counter.try_clone()?,
        index: u32::try_from(open.ring).unwrap_or(u32::MAX),
        tid: open.tid,
        cpu: open.cpu,
        snapshot_size: traces.snapshots.as_ref().map(snapshot_size),
    })
}

/// Returns the number of pages of an area, rounded up to a power of two: the requested number if given, otherwise enough for a
/// snapshot of the requested size if given, otherwise the default.
fn pages(traces: &TraceOptions) -> usize {
    let snapshot_bytes = traces
        .snapshots
        .as_ref()
        .and_then(|snapshots| snapshots.size);
    let default_bytes = match traces.privileged {
        true => DEFAULT_SIZE,
        false => DEFAULT_SIZE_UNPRIVILEGED,
    };
    let pages_without_request = || {
        let bytes = snapshot_bytes.unwrap_or(default_bytes);
        bytes.div_ceil(page_size())
    };
    let pages = traces.pages.unwrap_or_else(pages_without_request);
    pages.max(1).next_power_of_two()
}

/// Appends TIME_CONV: conversion from the hardware clock to timestamps, if the kernel provides it.
pub(crate) fn time_conversion(to: &mut RecordBuffer, conversion: Option<TimeConv>) {
    if let Some(conversion) = conversion {
        let record = UserRecord::TimeConv(conversion);
        to.user(RecordKind::TIME_CONV, |to| record.encode_body(to));
    }
}

/// Appends AUXTRACE_INFO: parameters for decoding an Intel BTS trace, if one is recorded.
pub(crate) fn trace_info(
    to: &mut RecordBuffer,
    request: &RecordRequest,
    events: &[OpenEvent],
    conversion: Option<TimeConv>,
) {
    let is_bts =
        |event: &OpenEvent| event.event.spec.trace_pmu() == Some(TracePmu::BranchTraceStore);
    let Some(event) = events.iter().find(|event| is_bts(event)) else {
        return;
    };
    let is_snapshot = request.snapshots().is_some();
    // As perf's decoder expects: the PMU's type, the time conversion, whether it is known, and whether the trace is of snapshots.
    let words = [
        u64::from(event.event.attr.kind.0),
        conversion.map_or(0, |conversion| conversion.shift),
        conversion.map_or(0, |conversion| conversion.mult),
        conversion.map_or(0, |conversion| conversion.zero),
        u64::from(conversion.is_some()),
        u64::from(is_snapshot),
    ];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let info = UserRecord::AuxTraceInfo(AuxTraceInfo {
        kind: AuxTraceInfo::INTEL_BTS,
        private: U64s::new(&bytes, rperf_wire::Endian::NATIVE),
    });
    to.user(RecordKind::AUXTRACE_INFO, |to| info.encode_body(to));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthesize::tests::split;
    use rperf_wire::{Endian, HardwareClock};

    #[test]
    fn the_last_trace_entries_are_ordered_and_complete() {
        let mut area = [0_u8; 128];
        assert_eq!(last_of(&area, 0, 128), (&[][..], &[][..]));
        area[..72].fill(1);
        assert_eq!(last_of(&area, 72, 128), (&[][..], &[1; 72][..]));
        assert_eq!(last_of(&area, 72, 60), (&[][..], &[1; 48][..]));
        // It wrapped: data after the head are older.
        area[24..].fill(2);
        assert_eq!(last_of(&area, 24, 128), (&[2; 96][..], &[1; 24][..]));
        assert_eq!(last_of(&area, 24, 49), (&[2; 24][..], &[1; 24][..]));
        assert_eq!(last_of(&area, 24, 0), (&[][..], &[][..]));
        // Full to its end.
        assert_eq!(last_of(&area[..24], 24, 24), (&[][..], &[1; 24][..]));
    }

    #[test]
    fn aux_areas_have_the_requested_or_default_size() {
        let traces = |pages, size: Option<usize>, privileged| TraceOptions {
            pages,
            privileged,
            snapshots: size.map(|size| SnapshotOptions {
                size: Some(size),
                at_end: false,
            }),
        };
        let bytes = |traces| pages(&traces) * page_size();
        assert_eq!(bytes(traces(None, None, true)), 4 << 20);
        assert_eq!(bytes(traces(None, None, false)), 128 << 10);
        assert_eq!(pages(&traces(Some(4), None, true)), 4);
        assert_eq!(bytes(traces(None, Some(1 << 20), false)), 1 << 20);
        let odd = bytes(traces(None, Some((1 << 20) + 1), false));
        assert_eq!(odd, 2 << 20);
        assert_eq!(pages(&traces(Some(64), Some(1), false)), 64);
    }

    #[test]
    fn a_time_conversion_is_written_with_the_clock() {
        let mut records = RecordBuffer::new(0);
        time_conversion(&mut records, None);
        assert!(records.take().is_empty());
        let clock = HardwareClock {
            cycles: 0,
            mask: 0,
            is_zero_valid: true,
            is_short: false,
        };
        let conversion = TimeConv {
            shift: 31,
            mult: 827_182_661,
            zero: 18_446_744_063_506_778_053,
            clock: Some(clock),
        };
        time_conversion(&mut records, Some(conversion));
        let bytes = records.take();
        let [record] = split(&bytes)[..] else {
            panic!()
        };
        assert_eq!(
            (record.kind, record.body.len()),
            (RecordKind::TIME_CONV, 48)
        );
        let decoded = UserRecord::decode(&record, Endian::NATIVE).unwrap();
        assert_eq!(decoded, UserRecord::TimeConv(conversion));
    }
}
