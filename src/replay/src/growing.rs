//! The World of a recording that is being made, and its samples as soon as all is known that came before them.
//!
//! ```text
//! note:     round 1 | round 2 | round 3 ...
//! samples:            round 1 | round 2 ...     what round 2 tells of the time of round 1 is known by then
//! ```

use rperf_perfdata::EventDesc;
use rperf_wire::{DecodeError, Endian, RawRecord, Record, RecordKind, SampleLayout};

use crate::events::EventTable;
use crate::rounds::take_up_to;
use crate::{EventIndex, Order, Rounds, Sample, World, WorldBuilder};

/// A World that grows round by round. Records get positions in the order in which they are noted, from 0 on.
#[derive(Debug)]
pub struct Growing {
    endian: Endian,
    builder: WorldBuilder,
    events: EventTable,
    order: Rounds,
    /// Records that change the World and are not in it yet.
    state: Vec<(Order, Vec<u8>)>,
    /// Threads that have ended, and when.
    ended: Vec<(Order, u32)>,
    /// Up to where the World was complete one time before: no sample to come is older.
    settled: u64,
    /// Up to where it is complete.
    completed: u64,
    /// What was left of the World when it last forgot something.
    kept: usize,
    position: u64,
}

/// A World of less than this many threads and mappings need not forget anything.
const SMALL: usize = 1 << 14;

impl Growing {
    /// Nothing was noted of a recording of these events.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc]) -> Self {
        Self {
            endian,
            builder: WorldBuilder::live(endian),
            events: EventTable::new(endian, events),
            order: Rounds::new(),
            state: Vec::new(),
            ended: Vec::new(),
            settled: 0,
            completed: 0,
            kept: 0,
            position: 0,
        }
    }

    /// Takes note of whole records. Those that change the World wait for [`Growing::complete`].
    pub fn note(&mut self, records: &[u8]) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            self.record(&raw, record);
            self.position += record.len() as u64;
        }
    }

    /// What follows is of the next round: as a FINISHED_ROUND record says it.
    pub fn end_round(&mut self) {
        self.order.finish_round();
    }

    fn record(&mut self, raw: &RawRecord<'_>, bytes: &[u8]) {
        match raw.kind {
            RecordKind::FINISHED_ROUND => self.order.finish_round(),
            RecordKind::SAMPLE => {
                let time = self.events.glance(raw.body).and_then(|glance| glance.time);
                self.order.order(time, self.position);
            }
            kind => {
                let order = self
                    .order
                    .order(self.events.record_time(raw), self.position);
                if WorldBuilder::wants(kind) {
                    self.state.push((order, bytes.to_vec()));
                }
                if kind == RecordKind::EXIT
                    && let Ok(Record::Exit(task)) = Record::decode(raw, self.endian)
                {
                    self.ended.push((order, task.tid));
                }
            }
        }
    }

    /// Brings the World up to where nothing older can follow: the end of the round before the last one that was noted whole.
    pub fn complete(&mut self) {
        let limit = self.order.limit();
        self.settled = std::mem::replace(&mut self.completed, limit);
        for (order, bytes) in take_up_to(&mut self.state, limit, |(order, _)| *order) {
            if let Some((raw, _)) = RawRecord::split(&bytes, self.endian) {
                // A damaged record changes nothing, as for who reads the file.
                let _: Result<(), DecodeError> = self.builder.push(order, &raw);
            }
        }
    }

    /// Has a World that has grown to twice its size forget what no later sample can ask for; whether it did. Ids of mappings
    /// and epochs from before mean nothing then. To be called when all samples up to here have been looked at.
    pub fn forget(&mut self) -> bool {
        let size = self.builder.world().size();
        if size + self.ended.len() < 2 * self.kept + SMALL {
            return false;
        }
        let over = take_up_to(&mut self.ended, self.settled, |(order, _)| *order);
        self.builder.forget(&over);
        self.kept = self.builder.world().size();
        true
    }

    /// Brings the World up to all that was noted.
    pub fn complete_all(&mut self) {
        self.order.finish_all();
        self.complete();
    }

    /// The World as far as it is complete.
    #[must_use]
    pub fn world(&self) -> &World {
        self.builder.world()
    }

    /// Byte order of the records.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Decodes the sample that was noted at a position; `None` for one of an event that is none of the recording's.
    ///
    /// # Errors
    /// [`DecodeError`] for one whose fields are not whole.
    pub fn sample<'a>(
        &self,
        raw: &RawRecord<'a>,
        position: u64,
    ) -> Result<Option<Sample<'a>>, DecodeError> {
        let limit = self.order.limit();
        self.events.sample(raw, |time| Order {
            time: time.unwrap_or(limit),
            position,
        })
    }

    /// Where the samples of an event keep their fields.
    #[must_use]
    pub fn layout(&self, event: EventIndex) -> Option<&SampleLayout> {
        self.events.layout(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{
        Attr, AttrFlags, CpuMode, Encoder, Misc, Mmap, Record, RecordHeader, SampleType,
    };

    use crate::Machine;

    fn events() -> Vec<EventDesc> {
        let attr = Attr {
            sample_type: SampleType::TID | SampleType::TIME,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let event = EventDesc {
            attr,
            ids: vec![1],
            name: "cycles".to_owned(),
        };
        vec![event]
    }

    fn record(kind: RecordKind, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = (&mut bytes, Endian::NATIVE);
        assert!(RecordHeader::encode_record(kind, Misc(2), to, body));
        bytes
    }

    fn mapped(time: u64) -> Vec<u8> {
        let mmap = Record::Mmap(Mmap {
            pid: 7,
            tid: 7,
            start: 0x1000,
            len: 0x1000,
            pgoff: 0,
            filename: b"/bin/x",
        });
        record(RecordKind::MMAP, |to| {
            mmap.encode_body(to);
            to.u32(7);
            to.u32(7);
            to.u64(time);
        })
    }

    fn sample(time: u64) -> Vec<u8> {
        record(RecordKind::SAMPLE, |to| {
            to.u32(7);
            to.u32(7);
            to.u64(time);
        })
    }

    /// What a sample sees at 0x1800.
    fn sees(growing: &Growing, record: &[u8], position: u64) -> bool {
        let (raw, _) = RawRecord::split(record, Endian::NATIVE).unwrap();
        let sample = growing.sample(&raw, position).unwrap().unwrap();
        let world = growing.world();
        let found = world.lookup(
            Machine::Host,
            CpuMode::User,
            sample.pid,
            sample.order,
            0x1800,
        );
        found.is_some()
    }

    #[test]
    fn a_round_sees_what_the_next_tells_of_its_time() {
        let mark = record(RecordKind::FINISHED_ROUND, |_| {});
        let mut growing = Growing::new(Endian::NATIVE, &events());
        let (early, late) = (sample(10), sample(30));
        growing.note(&[&early[..], &late, &mark].concat());
        growing.complete();
        assert!(!sees(&growing, &late, 24));
        // Another processor's record, which came a round later.
        growing.note(&[&mapped(20)[..], &sample(40), &mark].concat());
        growing.complete();
        assert!(!sees(&growing, &early, 0));
        assert!(sees(&growing, &late, 24));
        // Of the last round nothing is in the World before its end is known.
        growing.note(&mapped(50));
        growing.complete();
        assert_eq!(growing.world().mappings().len(), 1);
        growing.complete_all();
        assert_eq!(growing.world().mappings().len(), 2);
    }

    #[test]
    fn damaged_records_change_nothing() {
        let mut growing = Growing::new(Endian::NATIVE, &events());
        let whole = mapped(20);
        growing.note(&record(RecordKind::MMAP, |to| to.u32(1)));
        for end in 0..whole.len() {
            growing.note(&whole[..end]);
        }
        growing.complete_all();
        assert_eq!(growing.world().mappings().len(), 0);
    }
}
