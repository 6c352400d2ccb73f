//! Ids, threads and CPUs of the recording, and names, units, scales and CPUs of its events. Layouts as in perf 6.1
//! (tools/lib/perf/include/perf/event.h).

use rperf_events::EventSpec;
use rperf_wire::{CpuMap, RecordKind};

use super::RecordBuffer;
use crate::open::OpenEvent;
use crate::tasks::CpuTasks;

/// Ids per ID_INDEX record: 32 bytes each, in a record of less than 64 KiB.
const IDS_PER_RECORD: usize = 2000;

/// Appends ID_INDEX: the ring, CPU and thread of each counter id.
pub(crate) fn id_index(to: &mut RecordBuffer, events: &[OpenEvent]) {
    let counters: Vec<_> = events.iter().flat_map(|event| &event.counters).collect();
    for part in counters.chunks(IDS_PER_RECORD) {
        to.user(RecordKind::ID_INDEX, |to| {
            to.u64(part.len() as u64);
            for counter in part {
                to.u64(counter.id);
                to.u64(counter.ring as u64);
                to.u64(i64::from(counter.cpu).cast_unsigned());
                to.u64(i64::from(counter.tid).cast_unsigned());
            }
        });
    }
}

/// Appends THREAD_MAP: the observed threads, -1 for all. Names are empty, as in perf.
pub(crate) fn thread_map(to: &mut RecordBuffer, cpu_tasks: &CpuTasks) {
    to.user(RecordKind::THREAD_MAP, |to| {
        to.u64(cpu_tasks.tasks.len() as u64);
        for tid in &cpu_tasks.tasks {
            to.u64(i64::from(*tid).cast_unsigned());
            to.zeros(16);
        }
    });
}

/// `PERF_CPU_MAP__CPUS`: a list of numbers.
const LIST: u16 = 0;
/// `PERF_CPU_MAP__RANGE_CPUS`: first and last.
const RANGE: u16 = 2;

/// Appends CPU_MAP: the observed CPUs; -1 (any) is 0xffff in the record.
pub(crate) fn cpu_map(to: &mut RecordBuffer, cpu_tasks: &CpuTasks) {
    let number = |cpu: i32| u16::try_from(cpu).unwrap_or(u16::MAX);
    let cpus = &cpu_tasks.cpus;
    to.user(RecordKind::CPU_MAP, |to| {
        let (Some(first), Some(last)) = (cpus.first(), cpus.last()) else {
            return;
        };
        let is_range = usize::try_from(last - first).is_ok_and(|span| span + 1 == cpus.len());
        if is_range && *first >= 0 {
            to.u16(RANGE);
            // `any_cpu` and a byte of padding.
            to.u16(0);
            to.u16(number(*first));
            to.u16(number(*last));
            return;
        }
        to.u16(LIST);
        to.u16(u16::try_from(cpus.len()).unwrap_or(u16::MAX));
        for cpu in cpus {
            to.u16(number(*cpu));
        }
        // The record's size must be a multiple of eight. The header has eight bytes, so only the body is counted: type and number
        // of CPUs, then the CPUs.
        let written = 4 + 2 * cpus.len();
        to.zeros(written.next_multiple_of(8) - written);
    });
}

/// `PERF_EVENT_UPDATE__UNIT`, `PERF_EVENT_UPDATE__SCALE` and `PERF_EVENT_UPDATE__NAME`.
const UNIT: u64 = 0;
const SCALE: u64 = 1;
const NAME: u64 = 2;
/// `PERF_EVENT_UPDATE__CPUS`.
const CPUS: u64 = 3;
/// Minimum size in bytes of a unit (including its NUL) or of a scale in the record, including the padding, as in perf.
const VALUE_SIZE: usize = 24;

/// Appends EVENT_UPDATE for unit and scale of each event that has them. With `with_names`, also appends the name of each event:
/// in a pipe, EVENT_DESC may be too large for a record.
pub(crate) fn event_updates(to: &mut RecordBuffer, events: &[OpenEvent], with_names: bool) {
    for event in events {
        let Some(counter) = event.counters.first() else {
            continue;
        };
        let spec = &event.event.spec;
        if with_names {
            name(to, counter.id, &spec.name);
        }
        unit_and_scale(to, counter.id, spec);
    }
}

/// Appends the name of the event with this id.
pub(crate) fn name(to: &mut RecordBuffer, id: u64, name: &str) {
    to.user(RecordKind::EVENT_UPDATE, |to| {
        to.u64(NAME);
        to.u64(id);
        to.padded_str(name.as_bytes(), 8);
    });
}

/// Appends unit and scale of the counts of an event, if it has them. The software clocks count nanoseconds and are shown in
/// milliseconds. A clock that was not parsed from a selector (the fallback of the default event) has neither, as in perf.
pub(crate) fn unit_and_scale(to: &mut RecordBuffer, id: u64, spec: &EventSpec) {
    let is_clock = spec.attr.is_clock();
    // The position is the byte range in the selector.
    let is_parsed = !spec.position.is_empty();
    let (unit, scale) = match &spec.scale {
        Some(scale) => (scale.unit.as_str(), scale.factor),
        None if is_clock && is_parsed => ("msec", 1e-6),
        None => return,
    };
    if !unit.is_empty() {
        to.user(RecordKind::EVENT_UPDATE, |to| {
            to.u64(UNIT);
            to.u64(id);
            to.bytes(unit.as_bytes());
            to.zeros((unit.len() + 1).max(VALUE_SIZE).next_multiple_of(8) - unit.len());
        });
    }
    if scale != 1.0 {
        to.user(RecordKind::EVENT_UPDATE, |to| {
            to.u64(SCALE);
            to.u64(id);
            to.u64(scale.to_bits());
            to.zeros(VALUE_SIZE - size_of::<u64>());
        });
    }
}

/// Appends EVENT_UPDATE for the CPUs of an event.
pub(crate) fn event_cpus(to: &mut RecordBuffer, id: u64, cpus: &[u32]) {
    let cpus = cpus
        .iter()
        .map(|cpu| u16::try_from(*cpu).unwrap_or(u16::MAX));
    let map = CpuMap::List(cpus.collect());
    to.user(RecordKind::EVENT_UPDATE, |to| {
        to.u64(CPUS);
        to.u64(id);
        map.encode(to);
        // Padding as in `cpu_map`: the type of the update and the id, 16 bytes, need not be counted.
        let written = 4 + 2 * map.cpus().len();
        to.zeros(written.next_multiple_of(8) - written);
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::split;
    use super::*;

    fn cpu_map_of(cpus: &[i32]) -> Vec<u8> {
        let mut records = RecordBuffer::new(0);
        cpu_map(
            &mut records,
            &CpuTasks {
                cpus: cpus.to_vec(),
                tasks: vec![-1],
                side_band_cpus: Vec::new(),
            },
        );
        let bytes = records.take();
        split(&bytes)[0].body.to_vec()
    }

    #[test]
    fn cpus_in_a_row_are_a_range_and_others_a_padded_list() {
        assert_eq!(cpu_map_of(&[0, 1]), [2, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(cpu_map_of(&[3]), [2, 0, 0, 0, 3, 0, 3, 0]);
        assert_eq!(
            cpu_map_of(&[0, 2, 5]),
            [0, 0, 3, 0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0]
        );
        // Any CPU, as perf writes it.
        assert_eq!(cpu_map_of(&[-1]), [0, 0, 1, 0, 255, 255, 0, 0]);
    }

    #[test]
    fn the_thread_map_of_all_threads_contains_minus_one() {
        let mut records = RecordBuffer::new(0);
        thread_map(
            &mut records,
            &CpuTasks {
                cpus: vec![0],
                tasks: vec![-1],
                side_band_cpus: Vec::new(),
            },
        );
        let bytes = records.take();
        let body = split(&bytes)[0].body;
        assert_eq!(body.len(), 32);
        assert_eq!(body[8..16], [0xff; 8]);
    }
}
