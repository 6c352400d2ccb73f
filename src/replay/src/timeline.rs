//! The order index: where the samples are, in order of time, a window at a time.

use std::iter::Peekable;

use rperf_memory::push;
use rperf_perfdata::Records;
use rperf_wire::RecordKind;

use crate::ahead::Ahead;
use crate::scan::Round;
use crate::{Error, Order, Replay};

/// Walks the file and gives out blocks of samples in order. What a FINISHED_ROUND completes is
/// sorted and given out, so memory is bounded by the rounds, at 16 bytes for a sample. Pass 1 knows
/// of records that come late; what they come before waits for them.
pub(crate) struct Timeline<'r, 'a> {
    replay: &'r Replay<'a>,
    wanted: &'r [RecordKind],
    records: Records<'a>,
    ahead: Ahead<'a>,
    rounds: Peekable<std::slice::Iter<'r, Round>>,
    /// Samples read and not given out; sorted up to `complete`.
    window: Vec<Order>,
    /// Samples at the front of the window that can be given out.
    complete: usize,
    given: usize,
    /// Samples of a block.
    block: usize,
    ended: bool,
    /// Why it ended before the file.
    failed: Option<Error>,
}

/// What is kept, for errors.
pub(crate) const PLACES: &str = "the places of samples";

/// Most samples of a block.
const MOST: usize = 1024;
/// Bytes of records that a block should have: as text they are still in a core's cache when they are written.
const BLOCK_BYTES: u64 = 24 << 10;

/// Samples of a block.
fn block_size(replay: &Replay<'_>) -> usize {
    let samples: u64 = replay.sample_counts().iter().sum();
    let average = (replay.data().data().len() as u64).checked_div(samples);
    let fitting = BLOCK_BYTES / average.unwrap_or(1).max(1);
    usize::try_from(fitting).map_or(MOST, |fitting| fitting.clamp(MOST / 32, MOST))
}

impl<'r, 'a> Timeline<'r, 'a> {
    /// The samples of `replay`, and its records of the kinds that are `wanted` beside them.
    pub(crate) fn new(replay: &'r Replay<'a>, wanted: &'r [RecordKind]) -> Self {
        let data = replay.data();
        Self {
            replay,
            wanted,
            records: data.records(),
            ahead: Ahead::new(data.data(), data.data_offset(), &replay.walked),
            rounds: replay.scan.rounds.iter().peekable(),
            window: Vec::new(),
            complete: 0,
            given: 0,
            block: block_size(replay),
            ended: false,
            failed: None,
        }
    }

    /// Whether all samples were given out.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]: not all could be sorted.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Reads up to the next point where something is complete.
    fn refill(&mut self) -> Result<(), Error> {
        self.window.drain(..self.given);
        self.given = 0;
        let mut complete = 0;
        // Small rounds are gathered: a block should be worth handing over, and what is left over is sorted again.
        let enough = MOST.max(2 * self.window.len());
        let in_file_order = self.wanted.contains(&RecordKind::FINISHED_ROUND);
        loop {
            self.ahead.reach(self.records.position());
            let Some(record) = self.records.next_whole() else {
                self.ended = true;
                break;
            };
            if self.wanted.contains(&record.raw.kind) {
                let order = self.replay.order_of(&record);
                push(&mut self.window, order).map_err(Error::no_room(PLACES))?;
            }
            if record.raw.kind == RecordKind::SAMPLE {
                if let Some(glance) = self.replay.events.glance(record.raw.body) {
                    let position = record.position;
                    let time = glance.time.unwrap_or_else(|| self.replay.limit(position));
                    let order = Order { time, position };
                    push(&mut self.window, order).map_err(Error::no_room(PLACES))?;
                }
            } else if record.raw.kind == RecordKind::FINISHED_ROUND {
                let here = |round: &&Round| round.position == record.position;
                let Some(round) = self.rounds.next_if(here) else {
                    continue;
                };
                complete = round.complete;
                if self.window.len() >= enough {
                    break;
                }
            }
        }
        if in_file_order {
            self.complete = self.window.len();
            return Ok(());
        }
        self.window.sort();
        self.complete = if self.ended {
            self.window.len()
        } else {
            let is_complete = |order: &Order| order.time <= complete;
            self.window.partition_point(is_complete)
        };
        Ok(())
    }
}

impl Iterator for Timeline<'_, '_> {
    type Item = Vec<Order>;

    fn next(&mut self) -> Option<Vec<Order>> {
        while self.given == self.complete && !self.ended {
            if let Err(error) = self.refill() {
                (self.complete, self.ended) = (self.given, true);
                self.failed = Some(error);
            }
        }
        let end = self.complete.min(self.given + self.block);
        let block = self.window.get(self.given..end).unwrap_or_default();
        self.given = end;
        (!block.is_empty()).then(|| block.to_vec())
    }
}
