//! The World of a recording in progress (its processes and mappings at a time). Records of round 2 may be older than samples
//! of round 1, so the World is complete for these samples when round 2 has ended; only then may callers process them:
//!
//! ```text
//! add:      round 1 | round 2 | round 3 | round 4 ...
//! samples:                      round 1 | round 2 ...
//! ```

use rperf_perfdata::EventDesc;
use rperf_wire::{DecodeError, Endian, RawRecord, Record, RecordKind, SampleLayout};

use crate::events::EventTable;
use crate::rounds::take_up_to;
use crate::{EventIndex, NonSampleRecord, Order, Rounds, Sample, World, WorldBuilder};

/// A World that grows round by round. The position of a record is the number of bytes of the records
/// that were added before it.
#[derive(Debug)]
pub struct LiveWorld {
    endian: Endian,
    builder: WorldBuilder,
    events: EventTable,
    /// The rounds so far. They give each record its [`Order`] (time, then position), and the flush limit: the time before which
    /// no further records can arrive.
    order: Rounds,
    /// Records that change the World and have not been applied yet.
    unapplied: Vec<(Order, Vec<u8>)>,
    /// Threads that exited and have not been pruned yet, with the time of exit.
    ended: Vec<(Order, u32)>,
    /// Previous value of `completed`. Samples that are still to be processed may be older than `completed`, but not older than
    /// this.
    settled: u64,
    /// Time up to which the World is complete.
    completed: u64,
    /// Size of the World after it was last pruned.
    pruned_size: usize,
    /// Position of the next record.
    position: u64,
}

/// The World is pruned when its entries ([`World::size`]) and the exited threads are this many more than twice the entries
/// left by the last pruning.
const MIN_GROWTH: usize = 1 << 14;

impl LiveWorld {
    /// Creates an empty World for a recording with these events.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc]) -> Self {
        Self {
            endian,
            builder: WorldBuilder::live(endian),
            events: EventTable::new(endian, events),
            order: Rounds::new(),
            unapplied: Vec::new(),
            ended: Vec::new(),
            settled: 0,
            completed: 0,
            pruned_size: 0,
            position: 0,
        }
    }

    /// Adds complete records. Those that change the World are applied by [`LiveWorld::apply_complete`].
    pub fn add(&mut self, records: &[u8]) {
        self.add_each(records, |_, _| {});
    }

    /// Like [`LiveWorld::add`]; calls `each` with every record and its [`Order`].
    pub fn add_each(&mut self, records: &[u8], mut each: impl FnMut(Order, &RawRecord<'_>)) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            let order = self.record(&raw, record);
            each(order, &raw);
            self.position += record.len() as u64;
        }
    }

    /// Ends a round, like a FINISHED_ROUND record.
    pub fn end_round(&mut self) {
        self.order.finish_round();
    }

    /// Returns the [`Order`] of the next record, and keeps what [`LiveWorld::apply_complete`] and
    /// [`LiveWorld::forget`] need of the record.
    fn record(&mut self, raw: &RawRecord<'_>, bytes: &[u8]) -> Order {
        let position = self.position;
        match raw.kind {
            RecordKind::FINISHED_ROUND => {
                self.order.finish_round();
                self.order.add_record(None, position)
            }
            RecordKind::SAMPLE => {
                let time = self.events.sample_head(raw.body).and_then(|head| head.time);
                self.order.add_record(time, position)
            }
            kind => {
                let order = self
                    .order
                    .add_record(self.events.record_time(raw), position);
                if WorldBuilder::changes_world(kind) {
                    self.unapplied.push((order, bytes.to_vec()));
                }
                if kind == RecordKind::EXIT
                    && let Ok(Record::Exit(task)) = Record::decode(raw, self.endian)
                {
                    self.ended.push((order, task.tid));
                }
                order
            }
        }
    }

    /// Applies the records up to the flush limit, the time before which no further records can arrive: the highest time of all
    /// records that were added before the last complete round.
    pub fn apply_complete(&mut self) {
        let limit = self.order.limit();
        self.settled = std::mem::replace(&mut self.completed, limit);
        for (order, bytes) in take_up_to(&mut self.unapplied, limit, |(order, _)| *order) {
            if let Some((raw, _)) = RawRecord::split(&bytes, self.endian) {
                // A damaged record is ignored.
                let _: Result<(), DecodeError> = self.builder.push(order, &raw);
            }
        }
    }

    /// Prunes data that later samples can't need, if the World has grown enough since it was last pruned; returns whether it was
    /// pruned. Pruning invalidates all ids of mappings, all epochs (numbers of states of the mappings), and the ids of removed
    /// DSOs and of names no longer in use. May be called only when all samples of the complete rounds except the last one have
    /// been processed.
    pub fn forget(&mut self) -> bool {
        let size = self.builder.world().size();
        if size + self.ended.len() < 2 * self.pruned_size + MIN_GROWTH {
            return false;
        }
        let exited = take_up_to(&mut self.ended, self.settled, |(order, _)| *order);
        self.builder.forget(&exited);
        self.pruned_size = self.builder.world().size();
        true
    }

    /// Applies all records added so far.
    pub fn apply_all(&mut self) {
        self.order.finish_all();
        self.apply_complete();
    }

    /// The World up to the completed time.
    #[must_use]
    pub fn world(&self) -> &World {
        self.builder.world()
    }

    /// Byte order of the records.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Decodes a sample; `None` if its event is unknown. A sample without a time gets the current flush limit as its time.
    ///
    /// # Errors
    /// [`DecodeError`] for a truncated sample.
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

    /// The current flush limit, used as the time of records that have no time.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.order.limit()
    }

    /// Decodes a sample with the `order` passed by [`LiveWorld::add_each`]; `None` if its event is unknown.
    ///
    /// # Errors
    /// [`DecodeError`] for a truncated sample.
    pub fn sample_at<'a>(
        &self,
        raw: &RawRecord<'a>,
        order: Order,
    ) -> Result<Option<Sample<'a>>, DecodeError> {
        self.events.sample(raw, |_| order)
    }

    /// Decodes the trailer of a record other than a sample with the `order` passed by [`LiveWorld::add_each`].
    #[must_use]
    pub fn non_sample<'a>(&self, raw: RawRecord<'a>, order: Order) -> NonSampleRecord<'a> {
        self.events.non_sample(raw, order)
    }

    /// The fields of a record other than a sample, without its trailer.
    #[must_use]
    pub fn fields<'a>(&self, raw: &RawRecord<'a>) -> &'a [u8] {
        self.events.split(raw).0
    }

    /// The sample layout of an event.
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
        assert!(RecordHeader::encode_record(
            kind,
            // PERF_RECORD_MISC_USER.
            Misc(2),
            &mut bytes,
            Endian::NATIVE,
            body
        ));
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

    /// Whether a sample's process has a mapping at 0x1800 at the time of the sample.
    fn has_mapping(live: &LiveWorld, record: &[u8], position: u64) -> bool {
        let (raw, _) = RawRecord::split(record, Endian::NATIVE).unwrap();
        let sample = live.sample(&raw, position).unwrap().unwrap();
        let world = live.world();
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
    fn samples_see_earlier_records_of_the_next_round() {
        let mark = record(RecordKind::FINISHED_ROUND, |_| {});
        let mut live = LiveWorld::new(Endian::NATIVE, &events());
        let (early, late) = (sample(10), sample(30));
        let late_position = early.len() as u64;
        live.add(&[&early[..], &late, &mark].concat());
        live.apply_complete();
        assert!(!has_mapping(&live, &late, late_position));
        // A record of another CPU, which arrived a round later.
        live.add(&[&mapped(20)[..], &sample(40), &mark].concat());
        live.apply_complete();
        assert!(!has_mapping(&live, &early, 0));
        assert!(has_mapping(&live, &late, late_position));
        // A record after the flush limit, which is 30 now, is applied only by `apply_all`.
        live.add(&mapped(50));
        live.apply_complete();
        assert_eq!(live.world().mappings().len(), 1);
        live.apply_all();
        assert_eq!(live.world().mappings().len(), 2);
    }

    #[test]
    fn damaged_records_change_nothing() {
        let mut live = LiveWorld::new(Endian::NATIVE, &events());
        let complete = mapped(20);
        live.add(&record(RecordKind::MMAP, |to| to.u32(1)));
        for end in 0..complete.len() {
            live.add(&complete[..end]);
        }
        live.apply_all();
        assert_eq!(live.world().mappings().len(), 0);
    }
}
