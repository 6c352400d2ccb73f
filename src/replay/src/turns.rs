//! Every record of a recording, at its turn.

use std::collections::VecDeque;

use rperf_perfdata::{RecordAt, Records};
use rperf_wire::{DecodeError, RecordKind};

use crate::{Order, Replay, Rounds, Sample, SideRecord};

/// A record at its turn.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The record.
    pub record: RecordAt<'a>,
    /// Its place in the order of the recording.
    pub order: Order,
    /// What it is.
    pub what: What<'a>,
}

/// What a record tells of itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum What<'a> {
    /// A sample.
    Sample(Box<Sample<'a>>),
    /// A sample of an event that the recording does not describe.
    Stranger,
    /// A sample that cannot be decoded.
    Broken(DecodeError),
    /// Another record of the kernel.
    Kernel {
        /// The fields of its kind, without the trailer.
        body: &'a [u8],
        /// Who, when and where.
        side: SideRecord<'a>,
    },
    /// A record of the recorder.
    User(SideRecord<'a>),
}

/// The records of a file in the order in which perf delivers them: the recorder's own ones and those without
/// a time where they stand, all others sorted as soon as a FINISHED_ROUND says that nothing older follows.
///
/// Holds 16 bytes for each record of two rounds.
#[derive(Debug)]
pub struct Turns<'r, 'a> {
    replay: &'r Replay<'a>,
    records: Records<'a>,
    rounds: Rounds,
    waiting: Vec<Order>,
    ready: VecDeque<Order>,
    sorted: bool,
}

impl<'a> Replay<'a> {
    /// All records, one after the other. What ended pass 1 ends this walk, too.
    #[must_use]
    pub fn turns(&self) -> Turns<'_, 'a> {
        Turns {
            replay: self,
            records: self.data().records(),
            rounds: Rounds::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            sorted: true,
        }
    }

    fn turn(&self, record: RecordAt<'a>, order: Order) -> Turn<'a> {
        let raw = &record.raw;
        let what = if raw.kind == RecordKind::SAMPLE {
            match self.events.sample(raw, |_| order) {
                Ok(Some(sample)) => What::Sample(Box::new(sample)),
                Ok(None) => What::Stranger,
                Err(error) => What::Broken(error),
            }
        } else {
            let side = self.events.side(*raw, order);
            match raw.kind.is_user() {
                true => What::User(side),
                false => What::Kernel {
                    body: self.events.split(raw).0,
                    side,
                },
            }
        };
        Turn {
            record,
            order,
            what,
        }
    }
}

impl<'a> Turns<'_, 'a> {
    /// The same in the order of the file.
    #[must_use]
    pub fn as_they_stand(self) -> Self {
        Self {
            sorted: false,
            ..self
        }
    }

    /// Sorts what waits and makes ready what comes before `limit`, or all of it.
    fn release(&mut self, limit: Option<u64>) {
        self.waiting.sort_unstable();
        let count = match limit {
            Some(limit) => self.waiting.partition_point(|order| order.time <= limit),
            None => self.waiting.len(),
        };
        self.ready.extend(self.waiting.drain(..count));
    }

    /// The record that starts at the place of `order`.
    fn read(&self, order: Order) -> Option<Turn<'a>> {
        let bytes = self.replay.from(order.position);
        let mut records = Records::new(bytes, order.position, self.replay.endian());
        let record = records.next()?.ok()?;
        Some(self.replay.turn(record, order))
    }

    /// The time of a record that is sorted by it.
    fn time(&self, record: &RecordAt<'_>) -> Option<u64> {
        let raw = &record.raw;
        if raw.kind == RecordKind::SAMPLE {
            return self.replay.events.glance(raw.body)?.time;
        }
        self.replay.events.record_time(raw)
    }
}

impl<'a> Iterator for Turns<'_, 'a> {
    type Item = Turn<'a>;

    fn next(&mut self) -> Option<Turn<'a>> {
        loop {
            if let Some(order) = self.ready.pop_front() {
                return self.read(order);
            }
            let Some(Ok(record)) = self.records.next() else {
                self.release(None);
                if self.ready.is_empty() {
                    return None;
                }
                continue;
            };
            let time = self.time(&record);
            let order = self.rounds.order(time, record.position);
            if time.is_some() && self.sorted {
                self.waiting.push(order);
                continue;
            }
            if record.raw.kind == RecordKind::FINISHED_ROUND {
                self.rounds.finish_round();
                self.release(Some(self.rounds.limit()));
            }
            return Some(self.replay.turn(record, order));
        }
    }
}
