//! Lookup of the event of a record, and decoding of samples and trailers.

use std::sync::Arc;

use crate::deferred::DeferredKey;
use crate::event_ids::EventIds;
use crate::{EventIndex, NonSampleRecord, Order, Rounds, Sample};
use rperf_perfdata::EventDesc;
use rperf_wire::{
    AttrFlags, DecodeError, Endian, RawRecord, SampleId, SampleIdLayout, SampleLayout, SampleType,
};

/// The events of a file with their layouts.
#[derive(Debug)]
pub struct EventTable {
    endian: Endian,
    events: Vec<EventEntry>,
    by_id: Arc<EventIds>,
    /// Index of the id among the 8-byte fields at the start of a sample, if there are several events. All events must have it
    /// at the same position: the event is not known before its id is read.
    id_index: Option<usize>,
    /// Whether kernel records other than samples end in a trailer, which has their event and time: SAMPLE_ID_ALL of the first
    /// event.
    trailers: bool,
    /// Whether a ring was written backward (`--overwrite`).
    backward: bool,
}

#[derive(Debug, Clone)]
struct EventEntry {
    layout: SampleLayout,
    trailer: SampleIdLayout,
    /// Period of samples that don't record it.
    period: u64,
    /// Whether its samples contain counter values.
    holds_values: bool,
    /// Whether the user part of its callchains may be deferred.
    defers_callchains: bool,
    /// The first event with the same layout.
    same_as: EventIndex,
}

/// Event and time of a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleHead {
    /// The event that the sample belongs to.
    pub event: EventIndex,
    /// Nanoseconds; `None` for a sample without a time.
    pub time: Option<u64>,
}

impl EventTable {
    /// Creates the table for a recording with these events.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc]) -> Self {
        let numbered = (0..).map(EventIndex).zip(events);
        let ids = numbered.flat_map(|(index, event)| event.ids.iter().map(move |id| (*id, index)));
        let by_id = Arc::new(EventIds::new(ids));
        let first = events.first();
        let mut entries: Vec<EventEntry> = Vec::with_capacity(events.len());
        for (index, event) in (0..).map(EventIndex).zip(events) {
            let mut entry = EventEntry::new(event, index);
            let same = entries.iter().find(|known| known.layout == entry.layout);
            entry.same_as = same.map_or(index, |known| known.same_as);
            entries.push(entry);
        }
        Self {
            endian,
            id_index: match entries.as_slice() {
                [first, _, ..] => first.layout.id_index(),
                _ => None,
            },
            events: entries,
            by_id,
            backward: events
                .iter()
                .any(|event| event.attr.flags.contains(AttrFlags::WRITE_BACKWARD)),
            trailers: first.is_some_and(|event| {
                let flags = event.attr.flags;
                flags.contains(AttrFlags::SAMPLE_ID_ALL)
            }),
        }
    }

    /// The same table for a consumer that reads only these fields of samples, besides task, time and period. Whether other
    /// fields are decoded is not defined.
    pub(crate) fn reading(&self, fields: SampleType) -> Self {
        let fields = fields | SampleType::TID | SampleType::TIME | SampleType::PERIOD;
        let restricted = |event: &EventEntry| EventEntry {
            layout: event.layout.reading(fields),
            ..event.clone()
        };
        Self {
            events: self.events.iter().map(restricted).collect(),
            by_id: Arc::clone(&self.by_id),
            ..*self
        }
    }

    pub(crate) fn endian(&self) -> Endian {
        self.endian
    }

    /// The number of late records (see [`Rounds::late`]). 0 if a ring was written backward: as in perf, the order of its records
    /// is no reason to warn.
    pub(crate) fn out_of_order(&self, rounds: &Rounds) -> u64 {
        match self.backward {
            true => 0,
            false => rounds.late(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The event with this id. As in perf, the first event is used for synthesized records (id 0), and for unknown ids in
    /// recordings without trailers.
    #[inline]
    fn of_id(&self, id: u64) -> Option<EventIndex> {
        match self.by_id.get(id) {
            Some(event) => Some(event),
            None if id == 0 || !self.trailers => Some(EventIndex(0)),
            None => None,
        }
    }

    /// The event with exactly this id; `None` for an unknown id, 0 included.
    pub(crate) fn exactly(&self, id: u64) -> Option<EventIndex> {
        self.by_id.get(id)
    }

    /// Whether samples of an event contain counter values (`:S`).
    #[inline]
    pub(crate) fn holds_values(&self, index: EventIndex) -> bool {
        self.event(index).is_some_and(|event| event.holds_values)
    }

    /// Whether samples of any event contain counter values.
    pub(crate) fn any_holds_values(&self) -> bool {
        self.events.iter().any(|event| event.holds_values)
    }

    /// Whether the user part of callchains may be in separate records.
    pub(crate) fn may_defer_callchains(&self) -> bool {
        self.events.iter().any(|event| event.defers_callchains)
    }

    /// The event of a sample; `None` for an unknown id. The first event if it is the only one, if samples have no id, or if the
    /// sample is too short for its id: decoding it then fails.
    #[inline(always)]
    fn event_of_sample(&self, body: &[u8], endian: Endian) -> Option<EventIndex> {
        let id = self.id_index.and_then(|index| {
            let word = body.as_chunks::<{ size_of::<u64>() }>().0.get(index)?;
            Some(endian.u64(*word))
        });
        match id {
            Some(id) => self.of_id(id),
            None => Some(EventIndex(0)),
        }
    }

    #[inline]
    fn event(&self, index: EventIndex) -> Option<&EventEntry> {
        self.events.get(index.0 as usize)
    }

    /// The sample layout of an event.
    #[must_use]
    pub fn layout(&self, index: EventIndex) -> Option<&SampleLayout> {
        self.event(index).map(|event| &event.layout)
    }

    /// Event and time of a sample; `None` for an unknown id.
    #[must_use]
    #[inline]
    pub fn sample_head(&self, body: &[u8]) -> Option<SampleHead> {
        self.sample_head_in(body, self.endian)
    }

    /// Like [`EventTable::sample_head`], for loops that are compiled once for each byte order.
    #[inline(always)]
    pub(crate) fn sample_head_in(&self, body: &[u8], endian: Endian) -> Option<SampleHead> {
        let event = self.event_of_sample(body, endian)?;
        let time = self.event(event)?.layout.time(body, endian);
        Some(SampleHead {
            event,
            time: time.filter(is_time),
        })
    }

    /// Time in nanoseconds of a record that is not a sample; `None` without a time, as for all records of the recorder's own
    /// types.
    #[must_use]
    pub fn record_time(&self, raw: &RawRecord<'_>) -> Option<u64> {
        if !self.trailers || raw.kind.is_user() {
            return None;
        }
        let trailer = self.trailer(raw.body)?;
        trailer.time(raw.body, self.endian).filter(is_time)
    }

    /// The fields of a kernel record other than a sample, and its trailer. If the recording has no trailers, or the record's
    /// event is unknown, the trailer is empty, and the fields are the whole body.
    #[must_use]
    pub fn split<'a>(&self, raw: &RawRecord<'a>) -> (&'a [u8], SampleId) {
        match self.trailer(raw.body) {
            Some(trailer) if self.trailers => trailer.split(raw.body, self.endian),
            _ => (raw.body, SampleId::default()),
        }
    }

    /// The layout of a record's trailer. With several events and IDENTIFIER, it is the layout of the event whose id is the last
    /// word of the body (`None` if the id is unknown); otherwise all trailers have the first event's layout.
    fn trailer(&self, body: &[u8]) -> Option<&SampleIdLayout> {
        let first = self.events.first()?;
        if self.events.len() == 1 || !first.has(SampleType::IDENTIFIER) {
            return Some(&first.trailer);
        }
        let id = self.endian.u64_at(body, body.len().checked_sub(8)?)?;
        let event = self.event(self.of_id(id)?)?;
        Some(&event.trailer)
    }

    /// Decodes a sample; `None` for an unknown id. `order` computes the sample's position in the order
    /// from the sample's time.
    ///
    /// # Errors
    /// [`DecodeError`] for a body shorter than its fields.
    #[inline]
    pub fn sample<'a>(
        &self,
        raw: &RawRecord<'a>,
        order: impl FnOnce(Option<u64>) -> Order,
    ) -> Result<Option<Sample<'a>>, DecodeError> {
        let mut sample = Sample::default();
        let is_known = self.sample_into(raw, self.endian, order, &mut sample)?;
        Ok(is_known.then_some(sample))
    }

    /// Like [`EventTable::sample`], but reuses another sample of this recording; `false` for an unknown id. `endian` is the
    /// table's byte order; if it is a constant, fields are decoded without checking the byte order.
    // Always inlined: a call for each sample takes 1 % of the time of a report, and the compiler ignores a plain `inline`
    // in some codegen units.
    #[inline(always)]
    pub(crate) fn sample_into<'a>(
        &self,
        raw: &RawRecord<'a>,
        endian: Endian,
        order: impl FnOnce(Option<u64>) -> Order,
        sample: &mut Sample<'a>,
    ) -> Result<bool, DecodeError> {
        let Some(index) = self.event_of_sample(raw.body, endian) else {
            return Ok(false);
        };
        let Some(event) = self.event(index) else {
            return Ok(false);
        };
        if sample.event != index {
            let before = self.event(sample.event);
            // With another layout, fields that this event does not have would keep the values of the previous event.
            if before.is_none_or(|before| before.same_as != event.same_as) {
                *sample = Sample::default();
            }
            sample.event = index;
        }
        let wire = &mut sample.wire;
        // `decode_simple` does not decode all kinds of samples; `decode_into` decodes the others, or returns the error.
        if !event.layout.decode_simple(raw.body, endian, wire) {
            event.layout.decode_into(raw.body, endian, wire)?;
        }
        (sample.pid, sample.tid) = wire.pid_tid.unwrap_or((u32::MAX, u32::MAX));
        sample.order = order(wire.time.filter(is_time));
        sample.misc = raw.misc;
        sample.cpu = wire.cpu.unwrap_or(u32::MAX);
        sample.period = wire.period.unwrap_or(event.period);
        sample.body = raw.body;
        Ok(true)
    }

    /// The key of a CALLCHAIN_DEFERRED record; `None` if the record cannot be decoded or its trailer has no thread.
    pub(crate) fn deferred_key(&self, raw: &RawRecord<'_>) -> Option<DeferredKey> {
        let (_, tid) = self.split(raw).1.pid_tid?;
        DeferredKey::of_record(raw, self.endian, tid)
    }

    /// Decodes the trailer of a record other than a sample.
    pub(crate) fn non_sample<'a>(&self, raw: RawRecord<'a>, order: Order) -> NonSampleRecord<'a> {
        let id = match raw.kind.is_user() {
            true => SampleId::default(),
            false => self.split(&raw).1,
        };
        let event = match self.events.len() {
            1 => Some(EventIndex(0)),
            _ => self.of_id(id.id.unwrap_or_default()),
        };
        NonSampleRecord {
            event,
            order,
            id,
            raw,
        }
    }
}

impl EventEntry {
    fn new(desc: &EventDesc, index: EventIndex) -> Self {
        Self {
            same_as: index,
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

/// Whether `time` is a time: 0 and ~0 mean that the record has none.
#[inline]
fn is_time(time: &u64) -> bool {
    *time != 0 && *time != u64::MAX
}
