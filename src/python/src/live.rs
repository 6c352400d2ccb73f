//! The ring buffers of open events, read one record at a time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::sync::Arc;

use pyo3::prelude::*;
use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, EventTable, Order};
use rperf_ring::{RecordWalker, drain};
use rperf_sys::{Counter, RingMap};
use rperf_tracepoint::Tracepoint;
use rperf_wire::{Endian, Misc, RawRecord, RecordKind};

use crate::evsel::Evsel;
use crate::records::{Event, derived_event, event_from_record};
use crate::sample::{OwnedFields, SampleEvent, SampleNames};

/// A ring buffer, and its records that were read but not yet returned.
#[derive(Debug)]
struct LiveRing {
    /// -1 for the ring of a thread on any CPU.
    cpu: i32,
    map: RingMap,
    /// The counter for which the ring was mapped; other counters write to this ring, too.
    owner: Counter,
    waiting: VecDeque<LiveRecord>,
}

/// A record of a ring.
#[derive(Debug)]
pub(crate) struct LiveRecord {
    kind: RecordKind,
    misc: Misc,
    body: Box<[u8]>,
}

/// The mapped rings of a list of events.
pub(crate) struct LiveRings {
    rings: Vec<LiveRing>,
    walker: RecordWalker,
    /// Decodes the records.
    pub(crate) decoder: Arc<LiveDecoder>,
}

/// Decodes records of live events.
pub(crate) struct LiveDecoder {
    table: EventTable,
    /// By event: its Python object and its tracepoint.
    events: Vec<(Py<Evsel>, Option<Arc<Tracepoint>>)>,
}

impl LiveRings {
    /// Maps rings of `pages` data pages: one for each CPU, shared by all events of the CPU, and for events that are not bound to
    /// a CPU (-1) one for each thread.
    ///
    /// # Errors
    /// Errors of the system calls, such as mmap(2).
    pub(crate) fn map(py: Python<'_>, evsels: &[Py<Evsel>], pages: usize) -> io::Result<Self> {
        let mut rings: Vec<LiveRing> = Vec::new();
        // The CPU and thread of each ring.
        let mut places: Vec<(i32, i32)> = Vec::new();
        let mut descriptions = Vec::new();
        for evsel in evsels {
            let evsel = evsel.get();
            let state = evsel.state();
            let mut ids = Vec::new();
            for open in &state.counters {
                ids.push(open.counter.id()?);
                // The ring of a CPU is shared by all threads.
                let place = match open.cpu {
                    -1 => (-1, open.thread),
                    cpu => (cpu, -1),
                };
                let at = places.iter().position(|known| *known == place);
                match at.and_then(|at| rings.get(at)) {
                    Some(ring) => open.counter.set_output(&ring.owner)?,
                    None => {
                        places.push(place);
                        rings.push(LiveRing {
                            cpu: open.cpu,
                            map: RingMap::new(&open.counter, pages)?,
                            owner: open.counter.try_clone()?,
                            waiting: VecDeque::new(),
                        });
                    }
                }
            }
            descriptions.push(EventDesc {
                attr: state.attr.clone(),
                ids,
                name: state.name.clone(),
            });
        }
        let events = evsels.iter();
        let events = events.map(|evsel| (evsel.clone_ref(py), evsel.get().tracepoint()));
        Ok(Self {
            rings,
            walker: RecordWalker::default(),
            decoder: Arc::new(LiveDecoder {
                table: EventTable::new(Endian::NATIVE, &descriptions),
                events: events.collect(),
            }),
        })
    }

    /// The descriptors to poll.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let rings = self.rings.iter();
        rings.map(|ring| ring.owner.as_fd().as_raw_fd()).collect()
    }

    /// Duplicates of the counters to poll, which may be polled without holding the rings.
    pub(crate) fn counters_to_poll(&self) -> io::Result<Vec<Counter>> {
        let rings = self.rings.iter();
        rings.map(|ring| ring.owner.try_clone()).collect()
    }

    /// Whether there are rings of this CPU.
    pub(crate) fn has_cpu(&self, cpu: i32) -> bool {
        self.rings.iter().any(|ring| ring.cpu == cpu)
    }

    /// The next record of a CPU; `None` if its rings are empty.
    pub(crate) fn next_record(&mut self, cpu: i32) -> Option<LiveRecord> {
        let walker = &mut self.walker;
        let mut rings = self.rings.iter_mut().filter(|ring| ring.cpu == cpu);
        rings.find_map(|ring| {
            if ring.waiting.is_empty()
                && let Some(chunk) = drain(&mut ring.map)
            {
                let waiting = &mut ring.waiting;
                walker.walk(chunk.pieces(), |raw| {
                    waiting.push_back(LiveRecord {
                        kind: raw.kind,
                        misc: raw.misc,
                        body: raw.body.into(),
                    });
                });
            }
            ring.waiting.pop_front()
        })
    }
}

impl LiveDecoder {
    /// The Python event object of a record; `None` if the record cannot be decoded, or is a sample of a perf event that is not in
    /// the list.
    pub(crate) fn event(&self, py: Python<'_>, record: &LiveRecord) -> PyResult<Option<Py<PyAny>>> {
        let raw = RawRecord {
            kind: record.kind,
            misc: record.misc,
            body: &record.body,
        };
        if raw.kind != RecordKind::SAMPLE {
            // The `sample_id` trailer of the record.
            let (_, id) = self.table.split(&raw);
            return event_from_record(py, &raw, &id, Endian::NATIVE);
        }
        // The orders are not used: event objects are returned in the order of the ring's records.
        let unused_order = |_time: Option<u64>| Order::default();
        let Ok(Some(sample)) = self.table.sample(&raw, unused_order) else {
            return Ok(None);
        };
        let EventIndex(index) = sample.event;
        let event = self.events.get(index as usize);
        let mut fields = OwnedFields::of(&sample.wire);
        // `OwnedFields::of` leaves the callchain empty.
        fields.chain = sample.wire.callchain.map(|chain| chain.iter().collect());
        let own = SampleEvent {
            evsel: event.map(|(evsel, _)| evsel.clone_ref(py)),
            tracepoint: event.and_then(|(_, tracepoint)| tracepoint.clone()),
            sample_fields: fields,
            names: SampleNames::default(),
        };
        let base = Event::of_sample(&sample.wire, sample.misc.0, sample.period);
        derived_event(py, PyClassInitializer::from(base), own).map(Some)
    }
}
