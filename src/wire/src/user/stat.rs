//! Records of `stat record`.

use crate::{Cursor, DecodeError, Encoder};

/// `PERF_RECORD_STAT_CONFIG`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatConfig {
    /// Each setting's number (`PERF_STAT_CONFIG_TERM__*`) and value.
    pub terms: Vec<(u64, u64)>,
}

impl StatConfig {
    /// `PERF_STAT_CONFIG_TERM__AGGR_MODE`: how counts are aggregated.
    pub const AGGREGATION: u64 = 0;
    /// `PERF_STAT_CONFIG_TERM__INTERVAL`: interval of printing in milliseconds, 0 for none.
    pub const INTERVAL: u64 = 1;
    /// `PERF_STAT_CONFIG_TERM__SCALE`: whether counts of multiplexed events are scaled.
    pub const SCALE: u64 = 2;
    /// `PERF_STAT_CONFIG_TERM__AGGR_LEVEL`: the level of caches by which counts are aggregated; 5, one above the highest, for the
    /// last level. Since perf 6.5, and recorded with every mode of aggregation.
    pub const CACHE_LEVEL: u64 = 3;

    /// The value of a setting, the last one if it is repeated; `None` if it is missing.
    #[must_use]
    pub fn term(&self, number: u64) -> Option<u64> {
        let mut terms = self.terms.iter().rev();
        terms.find_map(|(term, value)| (*term == number).then_some(*value))
    }
}

/// `PERF_RECORD_STAT`: a counter's value on one CPU or in one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Event id.
    pub id: u64,
    /// The CPU, all bits set for any. (Before perf 5.17: its index among the counted CPUs.)
    pub cpu: u32,
    /// Index of the thread among the counted threads.
    pub thread: u32,
    /// The count.
    pub value: u64,
    /// Time enabled in nanoseconds.
    pub enabled: u64,
    /// Time running in nanoseconds.
    pub running: u64,
}

/// `PERF_RECORD_STAT_ROUND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatRound {
    /// `PERF_STAT_ROUND_TYPE__*`: 0 the end of an interval, 1 the end of the measurement.
    pub kind: u64,
    /// Nanoseconds since the start.
    pub time: u64,
}

impl StatConfig {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let count = at.u64("stat config nr")?;
        let terms =
            (0..count).map(|_| Ok((at.u64("stat config tag")?, at.u64("stat config val")?)));
        let terms = terms.collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        to.u64(self.terms.len() as u64);
        for (term, value) in &self.terms {
            to.u64(*term);
            to.u64(*value);
        }
    }
}

impl Stat {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: at.u64("stat id")?,
            cpu: at.u32("stat cpu")?,
            thread: at.u32("stat thread")?,
            value: at.u64("stat val")?,
            enabled: at.u64("stat ena")?,
            running: at.u64("stat run")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.id);
        to.u32(self.cpu);
        to.u32(self.thread);
        to.u64(self.value);
        to.u64(self.enabled);
        to.u64(self.running);
    }
}

impl StatRound {
    pub(super) fn decode(at: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            kind: at.u64("stat round type")?,
            time: at.u64("stat round time")?,
        })
    }

    pub(super) fn encode(self, to: &mut Encoder<'_>) {
        to.u64(self.kind);
        to.u64(self.time);
    }
}
