//! AUX areas: hardware writes traces there in forms of its own, beside the rings, whose AUX records tell how far it came.
//!
//! What an area holds goes into the file as it is, behind an AUXTRACE record. Areas are drained as rings are, or written over
//! and copied when that is asked for: then they keep the end of the trace.

use rperf_events::Tracer;
use rperf_perfdata::WriteError;
use rperf_ring::{Memory, drain};
use rperf_sys::{AuxMap, Counter, page_size, timestamp_counter};
use rperf_wire::{AuxTrace, AuxTraceInfo, RecordKind, TimeConv, U64s, UserRecord};

use crate::open::{OpenEvent, Placed};
use crate::rings::Ring;
use crate::sink::Sink;
use crate::synthesize::Records;
use crate::{Error, Happened, Request, Snapshots, Traces, Watch};

/// Bytes of an area where the user doesn't say: what the system's administrator gets, and others.
const DEFAULT_SIZE: usize = 4 << 20;
const DEFAULT_SIZE_OF_OTHERS: usize = 128 << 10;

/// An AUX area as the draining side sees it.
#[derive(Debug)]
pub(crate) struct Area {
    map: AuxMap,
    /// The trace that is written into it.
    counter: Counter,
    /// Number of its ring.
    index: u32,
    tid: i32,
    cpu: i32,
    /// Bytes that a snapshot keeps at most; `None` where the area is drained.
    keeps: Option<usize>,
}

impl Area {
    /// Bytes that fit.
    pub(crate) fn size(&self) -> u64 {
        self.map.size() as u64
    }

    /// Whether it is written over, and copied when that is asked for.
    pub(crate) fn is_written_over(&self) -> bool {
        self.keeps.is_some()
    }

    /// Whether there is something to be drained.
    pub(crate) fn holds_any(&self) -> bool {
        self.keeps.is_none() && self.map.tail() < self.map.head()
    }

    /// Writes what came since the last time, straight out of the area; whether there was any.
    pub(crate) fn drain(&mut self, sink: &mut Sink) -> Result<bool, WriteError> {
        if self.keeps.is_some() {
            return Ok(false);
        }
        let mut trace = self.trace();
        let Some(chunk) = drain(&mut self.map) else {
            return Ok(false);
        };
        (trace.offset, trace.size) = (chunk.start(), chunk.size());
        let (first, second) = chunk.pieces();
        sink.trace(trace, &[first, second])?;
        Ok(true)
    }

    /// Writes the end of the trace, which goes on afterwards where it is to.
    pub(crate) fn snapshot(&mut self, goes_on: bool, sink: &mut Sink) -> Result<(), Error> {
        let Some(most) = self.keeps else {
            return Ok(());
        };
        let refused = Error::system("stop a trace to copy it");
        self.counter.disable().map_err(refused)?;
        let (copy, head) = self.map.copy();
        if goes_on {
            self.resume();
        }
        let (first, second) = last_of(&copy, head, most);
        let size = (first.len() + second.len()) as u64;
        if size > 0 {
            let trace = AuxTrace {
                size,
                offset: (head as u64).saturating_sub(size),
                ..self.trace()
            };
            let written = sink.trace(trace, &[first, second]);
            written.map_err(crate::sink::write_error)?;
        }
        Ok(())
    }

    /// Lets the hardware write again: it stopped where the area was full, which not all units tell. A trace that cannot go
    /// on takes nothing from what was recorded.
    pub(crate) fn resume(&self) {
        let _ = self.counter.enable();
    }

    /// What is told before a part of the trace. Its order among others, in this file and of other threads, is that of the
    /// hardware's clock.
    fn trace(&self) -> AuxTrace {
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

/// The last bytes of a trace that is written round and round, in order, at most so many: `head` is where it would go on in
/// `area`. Where nothing but zeros follows, it never came to the end.
fn last_of(area: &[u8], head: usize, most: usize) -> (&[u8], &[u8]) {
    let (newest, oldest) = area.split_at_checked(head).unwrap_or((area, &[]));
    let has_wrapped = oldest.iter().any(|byte| *byte != 0);
    let oldest = if has_wrapped { oldest } else { &[] };
    // Entries are not cut in two.
    let most = most - most % AuxTraceInfo::BTS_BRANCH;
    let kept = |part: &'_ [u8], most: usize| part.len().saturating_sub(most);
    let newest = newest.get(kept(newest, most)..).unwrap_or_default();
    let oldest = oldest.get(kept(oldest, most - newest.len().min(most))..);
    (oldest.unwrap_or_default(), newest)
}

/// Maps an AUX area for each counter of the trace among `events`, if there is one, beside its ring.
pub(crate) fn map_areas(
    request: &Request,
    events: &[OpenEvent],
    rings: &mut [Ring],
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    let traced = events
        .iter()
        .find(|event| event.event.spec.tracer().is_some());
    let (Some(event), Some(traces)) = (traced, &request.traces) else {
        return Ok(());
    };
    let pages = pages(traces);
    for placed in &event.counters {
        if let Some(ring) = rings.get_mut(placed.ring) {
            let area = area(placed, &ring.map, (traces, pages));
            let area = area.map_err(|cause| Error::MapTrace {
                pages,
                event: event.event.spec.name.clone(),
                cause,
            })?;
            ring.area = Some(area);
        }
    }
    watch.tell(Happened::TraceMapped {
        bytes: pages * page_size(),
    });
    Ok(())
}

fn area(
    placed: &Placed,
    ring: &rperf_sys::RingMap,
    (traces, pages): (&Traces, usize),
) -> std::io::Result<Area> {
    let map = AuxMap::new(&placed.counter, ring, pages, traces.snapshots.is_some())?;
    let size = map.size();
    let keeps = |snapshots: &Snapshots| snapshots.size.unwrap_or(size).min(size);
    Ok(Area {
        map,
        counter: placed.counter.try_clone()?,
        index: u32::try_from(placed.ring).unwrap_or(u32::MAX),
        tid: placed.tid,
        cpu: placed.cpu,
        keeps: traces.snapshots.as_ref().map(keeps),
    })
}

/// Pages of an area, a power of two: as many as are asked for, what a snapshot needs, or the usual.
fn pages(traces: &Traces) -> usize {
    let of_snapshot = traces.snapshots.as_ref().and_then(|asked| asked.size);
    let usual = match traces.privileged {
        true => DEFAULT_SIZE,
        false => DEFAULT_SIZE_OF_OTHERS,
    };
    let wanted = || of_snapshot.unwrap_or(usual).div_ceil(page_size());
    let pages = traces.pages.unwrap_or_else(wanted);
    pages.max(1).next_power_of_two()
}

/// TIME_CONV: how the times of records follow from the hardware's clock, where the kernel says so.
pub(crate) fn time_conversion(to: &mut Records, conversion: Option<TimeConv>) {
    if let Some(conversion) = conversion {
        let record = UserRecord::TimeConv(conversion);
        to.user(RecordKind::TIME_CONV, |to| record.encode_body(to));
    }
}

/// AUXTRACE_INFO: what readers need to know of a trace of Intel's branch trace store.
pub(crate) fn trace_info(
    to: &mut Records,
    request: &Request,
    events: &[OpenEvent],
    conversion: Option<TimeConv>,
) {
    let spec = |event: &OpenEvent| event.event.spec.tracer() == Some(Tracer::BranchTraceStore);
    let Some(event) = events.iter().find(|event| spec(event)) else {
        return;
    };
    let is_snapshot = request.snapshots().is_some();
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
    use rperf_wire::{Endian, ShortClock};

    #[test]
    fn the_end_of_a_trace_is_in_order_and_of_whole_entries() {
        let mut area = [0_u8; 128];
        assert_eq!(last_of(&area, 0, 128), (&[][..], &[][..]));
        area[..72].fill(1);
        assert_eq!(last_of(&area, 72, 128), (&[][..], &[1; 72][..]));
        assert_eq!(last_of(&area, 72, 60), (&[][..], &[1; 48][..]));
        // It wrapped: what follows the head is older.
        area[24..].fill(2);
        assert_eq!(last_of(&area, 24, 128), (&[2; 96][..], &[1; 24][..]));
        assert_eq!(last_of(&area, 24, 49), (&[2; 24][..], &[1; 24][..]));
        // Full to its end.
        assert_eq!(last_of(&area[..24], 24, 24), (&[][..], &[1; 24][..]));
        assert_eq!(last_of(&area, 24, 0), (&[][..], &[][..]));
    }

    #[test]
    fn areas_are_as_large_as_asked_or_usual() {
        let traces = |pages, size: Option<usize>, privileged| Traces {
            pages,
            privileged,
            snapshots: size.map(|size| Snapshots {
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
    fn clocks_are_told_as_readers_expect_them() {
        let mut records = Records::new(0);
        time_conversion(&mut records, None);
        assert!(records.take().is_empty());
        let short = ShortClock {
            cycles: 0,
            mask: 0,
            has_zero: true,
            is_short: false,
        };
        let conversion = TimeConv {
            shift: 31,
            mult: 827_182_661,
            zero: 18_446_744_063_506_778_053,
            short: Some(short),
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
