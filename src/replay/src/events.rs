//! Which event a record belongs to, and how its fields lie.

use rperf_perfdata::EventDesc;
use rperf_wire::{
    AttrFlags, DecodeError, Endian, RawRecord, RecordKind, SampleId, SampleIdLayout, SampleLayout,
    SampleType,
};
use rustc_hash::FxHashMap;

use crate::deferred::Key;
use crate::{EventIndex, Order, Sample, SideRecord};

/// The events of a file, ready for decoding.
#[derive(Debug)]
pub(crate) struct EventTable {
    endian: Endian,
    events: Vec<Event>,
    by_id: FxHashMap<u64, EventIndex>,
    /// Whether records other than samples have a trailer.
    trailers: bool,
}

#[derive(Debug)]
struct Event {
    layout: SampleLayout,
    trailer: SampleIdLayout,
    /// Stands in for a period that samples don't record.
    period: u64,
    /// Whether its samples hold the values of counters.
    holds_values: bool,
    /// Whether the user's part of its callchains may come later.
    defers_callchains: bool,
}

/// What pass 1 wants to know of a sample.
pub(crate) struct Glance {
    pub(crate) event: EventIndex,
    pub(crate) time: Option<u64>,
}

impl EventTable {
    pub(crate) fn new(endian: Endian, events: &[EventDesc]) -> Self {
        let mut by_id = FxHashMap::default();
        for (index, event) in (0..).zip(events) {
            by_id.extend(event.ids.iter().map(|id| (*id, EventIndex(index))));
        }
        let first = events.first();
        Self {
            endian,
            events: events.iter().map(Event::new).collect(),
            by_id,
            trailers: first.is_some_and(|event| {
                let flags = event.attr.flags;
                flags.contains(AttrFlags::SAMPLE_ID_ALL)
            }),
        }
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The event of an id. As in perf, the first one stands in for records that perf made up (id 0).
    #[inline]
    fn of_id(&self, id: u64) -> Option<EventIndex> {
        match self.by_id.get(&id) {
            Some(event) => Some(*event),
            None if id == 0 || !self.trailers => Some(EventIndex(0)),
            None => None,
        }
    }

    /// The event that has this id.
    pub(crate) fn exactly(&self, id: u64) -> Option<EventIndex> {
        self.by_id.get(&id).copied()
    }

    /// Whether samples of an event hold the values of counters (`:S`).
    #[inline]
    pub(crate) fn holds_values(&self, index: EventIndex) -> bool {
        self.event(index).is_some_and(|event| event.holds_values)
    }

    /// Whether samples of any event do.
    pub(crate) fn hold_values(&self) -> bool {
        self.events.iter().any(|event| event.holds_values)
    }

    /// Whether the user's part of callchains may come in records of its own.
    pub(crate) fn defer_callchains(&self) -> bool {
        self.events.iter().any(|event| event.defers_callchains)
    }

    /// The event of a sample; `None` for an id that the header does not know. All events of a file
    /// keep the id at the same place, or it could not be found.
    #[inline]
    fn of_sample(&self, body: &[u8]) -> Option<EventIndex> {
        if self.events.len() == 1 {
            return Some(EventIndex(0));
        }
        match self.events.first()?.layout.id(body, self.endian) {
            Some(id) => self.of_id(id),
            None => Some(EventIndex(0)),
        }
    }

    fn event(&self, index: EventIndex) -> Option<&Event> {
        self.events.get(index.0 as usize)
    }

    /// Where the samples of an event keep their fields.
    pub(crate) fn layout(&self, index: EventIndex) -> Option<&SampleLayout> {
        self.event(index).map(|event| &event.layout)
    }

    /// Event and time of a sample; `None` for an id that the header does not know.
    #[inline]
    pub(crate) fn glance(&self, body: &[u8]) -> Option<Glance> {
        let event = self.of_sample(body)?;
        let time = self.event(event)?.layout.time(body, self.endian);
        Some(Glance {
            event,
            time: time.filter(is_time),
        })
    }

    /// Time of a record that is not a sample.
    pub(crate) fn record_time(&self, raw: &RawRecord<'_>) -> Option<u64> {
        if !self.trailers || raw.kind.0 >= RecordKind::USER_TYPE_START {
            return None;
        }
        let trailer = self.trailer(raw.body)?;
        trailer.time(raw.body, self.endian).filter(is_time)
    }

    /// The fields of a record that is not a sample, and its trailer.
    pub(crate) fn split<'a>(&self, raw: &RawRecord<'a>) -> (&'a [u8], SampleId) {
        match self.trailer(raw.body) {
            Some(trailer) if self.trailers => trailer.split(raw.body, self.endian),
            _ => (raw.body, SampleId::default()),
        }
    }

    /// The trailer's layout: with IDENTIFIER its last word tells the event.
    fn trailer(&self, body: &[u8]) -> Option<&SampleIdLayout> {
        let first = self.events.first()?;
        if self.events.len() == 1 || !first.has(SampleType::IDENTIFIER) {
            return Some(&first.trailer);
        }
        let id = self.endian.u64_at(body, body.len().checked_sub(8)?)?;
        let event = self.event(self.of_id(id)?)?;
        Some(&event.trailer)
    }

    /// Decodes a sample; `None` for an id that the header does not know.
    #[inline]
    pub(crate) fn sample<'a>(
        &self,
        raw: &RawRecord<'a>,
        order: impl FnOnce(Option<u64>) -> Order,
    ) -> Result<Option<Sample<'a>>, DecodeError> {
        let mut sample = Sample::default();
        let known = self.sample_into(raw, order, &mut sample)?;
        Ok(known.then_some(sample))
    }

    /// [`EventTable::sample`] into the place of another sample of this recording; `false` for one of an id that the header
    /// does not know.
    // A call for each sample is 1 % of a report. Whether a hint is followed depends on what else is in the codegen unit.
    #[inline(always)]
    pub(crate) fn sample_into<'a>(
        &self,
        raw: &RawRecord<'a>,
        order: impl FnOnce(Option<u64>) -> Order,
        sample: &mut Sample<'a>,
    ) -> Result<bool, DecodeError> {
        let Some(index) = self.of_sample(raw.body) else {
            return Ok(false);
        };
        let Some(event) = self.event(index) else {
            return Ok(false);
        };
        if sample.event != index {
            // Another event may have other fields.
            *sample = Sample {
                event: index,
                ..Sample::default()
            };
        }
        let wire = &mut sample.wire;
        event.layout.decode_into(raw.body, self.endian, wire)?;
        (sample.pid, sample.tid) = wire.pid_tid.unwrap_or((u32::MAX, u32::MAX));
        sample.order = order(wire.time.filter(is_time));
        sample.misc = raw.misc;
        sample.cpu = wire.cpu.unwrap_or(u32::MAX);
        sample.period = wire.period.unwrap_or(event.period);
        sample.body = raw.body;
        Ok(true)
    }

    /// Which samples a CALLCHAIN_DEFERRED record is for; `None` for one that is not whole.
    pub(crate) fn waited_for(&self, raw: &RawRecord<'_>) -> Option<Key> {
        let (_, tid) = self.split(raw).1.pid_tid?;
        Key::of_record(raw, self.endian, tid)
    }

    /// A record that is no sample, at its place.
    pub(crate) fn side<'a>(&self, raw: RawRecord<'a>, order: Order) -> SideRecord<'a> {
        let id = match raw.kind.is_user() {
            true => SampleId::default(),
            false => self.split(&raw).1,
        };
        let event = match self.events.len() {
            1 => Some(EventIndex(0)),
            _ => self.of_id(id.id.unwrap_or_default()),
        };
        SideRecord {
            event,
            order,
            id,
            raw,
        }
    }
}

impl Event {
    fn new(desc: &EventDesc) -> Self {
        Self {
            layout: SampleLayout::new(&desc.attr),
            trailer: SampleIdLayout::new(desc.attr.sample_type),
            period: desc.attr.sample_period,
            holds_values: desc.attr.sample_type.contains(SampleType::READ),
            defers_callchains: desc.attr.flags.contains(AttrFlags::DEFER_CALLCHAIN),
        }
    }

    fn has(&self, field: SampleType) -> bool {
        self.layout.sample_type().contains(field)
    }
}

/// 0 and ~0 are how records without a time come.
fn is_time(time: &u64) -> bool {
    *time != 0 && *time != u64::MAX
}
