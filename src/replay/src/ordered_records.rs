//! Iteration over all records of a recording in order.

use std::collections::VecDeque;

use rperf_perfdata::{RecordAt, Records};
use rperf_wire::{DecodeError, RecordKind};

use crate::{NonSampleRecord, Order, Replay, Rounds, Sample};

/// A record in the order of the recording.
#[derive(Debug)]
pub struct OrderedRecord<'a> {
    /// The record.
    pub record: RecordAt<'a>,
    /// Its position in the order.
    pub order: Order,
    /// Its content.
    pub content: RecordContent<'a>,
}

/// Content of a record.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordContent<'a> {
    /// A sample.
    Sample(Box<Sample<'a>>),
    /// A sample of an unknown event.
    UnknownEvent,
    /// A sample that cannot be decoded.
    Broken(DecodeError),
    /// A record of another type of the kernel, even if the recorder synthesized it.
    Kernel {
        /// The fields of the record, without the trailer.
        body: &'a [u8],
        /// Trailer and position.
        record: NonSampleRecord<'a>,
    },
    /// A record of a type that only recorders write.
    User(NonSampleRecord<'a>),
}

/// The records of a file in perf's delivery order. Records of the recorder's types, records without a time and samples of unknown
/// events are returned where they are in the file. All others wait and are sorted by time. A record is returned after the first
/// FINISHED_ROUND that ensures that no older record follows, or at the end of the file. This FINISHED_ROUND is the first or
/// the second after the record (see [`Rounds`]).
///
/// So the records of at most two rounds wait at a time; each uses 16 bytes.
#[derive(Debug)]
pub struct OrderedRecords<'r, 'a> {
    replay: &'r Replay<'a>,
    records: Records<'a>,
    rounds: Rounds,
    /// Records that wait for the end of this round or of the next one.
    waiting: Vec<Order>,
    /// Sorted records to return next.
    ready: VecDeque<Order>,
    /// Whether records are sorted; otherwise they are returned in file order.
    sorted: bool,
}

impl<'a> Replay<'a> {
    /// All records in order. The iteration ends at damage, but does not report it: pass 1, which read all record headers when the
    /// recording was opened, ended there, too, and its [`Replay::diagnostics`] have the damage.
    #[must_use]
    pub fn ordered_records(&self) -> OrderedRecords<'_, 'a> {
        OrderedRecords {
            replay: self,
            records: self.data().records(),
            rounds: Rounds::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            sorted: true,
        }
    }

    /// Decodes a record.
    fn ordered_record(&self, record: RecordAt<'a>, order: Order) -> OrderedRecord<'a> {
        let raw = &record.raw;
        let content = if raw.kind == RecordKind::SAMPLE {
            // `sample` need not compute the order from the sample's time: it is known.
            match self.events.sample(raw, |_| order) {
                Ok(Some(sample)) => RecordContent::Sample(Box::new(sample)),
                Ok(None) => RecordContent::UnknownEvent,
                Err(error) => RecordContent::Broken(error),
            }
        } else {
            let record = self.events.non_sample(*raw, order);
            match raw.kind.is_user() {
                true => RecordContent::User(record),
                false => RecordContent::Kernel {
                    body: self.events.split(raw).0,
                    record,
                },
            }
        };
        OrderedRecord {
            record,
            order,
            content,
        }
    }
}

impl<'a> OrderedRecords<'_, 'a> {
    /// Returns the records in file order instead.
    #[must_use]
    pub fn in_file_order(self) -> Self {
        Self {
            sorted: false,
            ..self
        }
    }

    /// Sorts the waiting records and makes those up to the time `limit` ready; without a limit, all of them.
    fn release(&mut self, limit: Option<u64>) {
        self.waiting.sort_unstable();
        let count = match limit {
            Some(limit) => self.waiting.partition_point(|order| order.time <= limit),
            None => self.waiting.len(),
        };
        self.ready.extend(self.waiting.drain(..count));
    }

    /// The record at a position.
    fn read(&self, order: Order) -> Option<OrderedRecord<'a>> {
        let bytes = self.replay.data_from(order.position);
        let mut records = Records::new(bytes, order.position, self.replay.endian());
        let record = records.next()?.ok()?;
        Some(self.replay.ordered_record(record, order))
    }

    /// The time by which a record is sorted; `None` for a record without a time or of an unknown event, which stays in
    /// file order.
    fn time(&self, record: &RecordAt<'_>) -> Option<u64> {
        let raw = &record.raw;
        if raw.kind == RecordKind::SAMPLE {
            return self.replay.events.sample_head(raw.body)?.time;
        }
        self.replay.events.record_time(raw)
    }
}

impl<'a> Iterator for OrderedRecords<'_, 'a> {
    type Item = OrderedRecord<'a>;

    fn next(&mut self) -> Option<OrderedRecord<'a>> {
        loop {
            if let Some(order) = self.ready.pop_front() {
                return self.read(order);
            }
            let Some(Ok(record)) = self.records.next() else {
                // At the end or at damage: without a limit, all waiting records become ready.
                self.release(None);
                if self.ready.is_empty() {
                    return None;
                }
                continue;
            };
            let time = self.time(&record);
            let order = self.rounds.add_record(time, record.position);
            if time.is_some() && self.sorted {
                self.waiting.push(order);
                continue;
            }
            if record.raw.kind == RecordKind::FINISHED_ROUND {
                self.rounds.finish_round();
                self.release(Some(self.rounds.limit()));
            }
            return Some(self.replay.ordered_record(record, order));
        }
    }
}
