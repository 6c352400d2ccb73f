//! Counts of `stat record` as Python objects.

use pyo3::prelude::*;
use rperf_wire::{Endian, RawRecord, SampleId, UserRecord};

use crate::records::{Event, derived_event};

/// A count on one CPU or of one thread: STAT.
#[pyclass(extends = Event, frozen, get_all, name = "stat_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct StatEvent {
    id: u64,
    /// -1: any.
    cpu: i32,
    /// Index of the thread among the counted threads.
    thread: u32,
    val: u64,
    /// Nanoseconds that the event was enabled.
    ena: u64,
    /// Nanoseconds that the event was counted.
    run: u64,
}

#[pymethods]
impl StatEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: stat, id: {}, cpu: {}, thread: {}, val: {}, ena: {}, run: {} }}",
            self.id, self.cpu, self.thread, self.val, self.ena, self.run
        )
    }
}

/// The end of an interval or of the whole run: STAT_ROUND.
#[pyclass(extends = Event, frozen, get_all, name = "stat_round_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct StatRoundEvent {
    /// Nanoseconds since the start.
    time: u64,
    /// 0: an interval, 1: the end.
    stat_round_type: u64,
}

#[pymethods]
impl StatRoundEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: stat_round, time: {}, stat_round_type: {} }}",
            self.time, self.stat_round_type
        )
    }
}

/// Returns a STAT or STAT_ROUND record as a Python object, and for STAT the id of the counted event; `None` for other records and
/// if the record cannot be decoded. The fields of `trailer` (`sample_id_all`) are all `None`, as for all records that the kernel
/// does not write (types from 64 on).
pub(crate) fn event_from_stat_record(
    py: Python<'_>,
    raw: &RawRecord<'_>,
    trailer: &SampleId,
    endian: Endian,
) -> PyResult<Option<(Py<PyAny>, Option<u64>)>> {
    let base = PyClassInitializer::from(Event::of_record(raw, trailer));
    Ok(match UserRecord::decode(raw, endian) {
        Ok(UserRecord::Stat(stat)) => {
            let event = StatEvent {
                id: stat.id,
                cpu: stat.cpu.cast_signed(),
                thread: stat.thread,
                val: stat.value,
                ena: stat.enabled,
                run: stat.running,
            };
            Some((derived_event(py, base, event)?, Some(stat.id)))
        }
        Ok(UserRecord::StatRound(round)) => {
            let event = StatRoundEvent {
                time: round.time,
                stat_round_type: round.kind,
            };
            Some((derived_event(py, base, event)?, None))
        }
        _ => None,
    })
}
