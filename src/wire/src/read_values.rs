//! `PERF_SAMPLE_READ`: values of counters in a sample.

use crate::{Cursor, DecodeError, Encoder, ReadFormat, U64s};

/// What a read of the counter, or of its group, returned (`struct read_format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValues<'a> {
    format: ReadFormat,
    words: U64s<'a>,
}

/// One counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValue {
    /// The count.
    pub value: u64,
    /// Event id.
    pub id: Option<u64>,
    /// Samples lost so far.
    pub lost: Option<u64>,
}

/// Which words there are: `nr` or the value, times, then the values with what belongs to each.
#[derive(Debug, Clone, Copy)]
struct Shape {
    group: bool,
    /// Words of time.
    times: usize,
    /// Whether each value comes with its id, and with what was lost.
    id: bool,
    lost: bool,
}

impl Shape {
    fn new(format: ReadFormat) -> Self {
        let has = |bit| format.contains(bit);
        let times = [
            ReadFormat::TOTAL_TIME_ENABLED,
            ReadFormat::TOTAL_TIME_RUNNING,
        ];
        Self {
            group: has(ReadFormat::GROUP),
            times: times.into_iter().filter(|bit| has(*bit)).count(),
            id: has(ReadFormat::ID),
            lost: has(ReadFormat::LOST),
        }
    }

    /// Words behind each value.
    fn behind(self) -> usize {
        usize::from(self.id) + usize::from(self.lost)
    }
}

impl<'a> ReadValues<'a> {
    pub(crate) fn decode(at: &mut Cursor<'a>, format: ReadFormat) -> Result<Self, DecodeError> {
        let shape = Shape::new(format);
        let (first, behind) = (1 + shape.times as u64, shape.behind() as u64);
        let words = match shape.group {
            true => {
                let members = at.clone().u64("read nr")?;
                first + members.min(u64::from(u16::MAX)) * (1 + behind)
            }
            false => first + behind,
        };
        Ok(Self {
            format,
            words: at.u64s(words, "read")?,
        })
    }

    /// The words as they stand in the file.
    #[must_use]
    pub fn words(&self) -> U64s<'a> {
        self.words
    }

    /// Time enabled in nanoseconds.
    #[must_use]
    pub fn time_enabled(&self) -> Option<u64> {
        self.format
            .contains(ReadFormat::TOTAL_TIME_ENABLED)
            .then(|| self.words.get(1))?
    }

    /// Time running in nanoseconds.
    #[must_use]
    pub fn time_running(&self) -> Option<u64> {
        let index = 1 + usize::from(self.format.contains(ReadFormat::TOTAL_TIME_ENABLED));
        self.format
            .contains(ReadFormat::TOTAL_TIME_RUNNING)
            .then(|| self.words.get(index))?
    }

    /// The value of each member of the group, or the one value.
    #[must_use]
    pub fn values(&self) -> Vec<ReadValue> {
        let shape = Shape::new(self.format);
        let first = 1 + shape.times;
        if !shape.group {
            return vec![self.value(0, first, shape)];
        }
        let members = (first..self.words.len()).step_by(1 + shape.behind());
        members
            .map(|index| self.value(index, index + 1, shape))
            .collect()
    }

    /// The value in one word, with what stands from the word `behind` on.
    fn value(&self, index: usize, behind: usize, shape: Shape) -> ReadValue {
        let word = |present: bool, index| present.then(|| self.words.get(index)).flatten();
        ReadValue {
            value: self.words.get(index).unwrap_or_default(),
            id: word(shape.id, behind),
            lost: word(shape.lost, behind + usize::from(shape.id)),
        }
    }

    /// Appends the words, or zeros for one counter or a group without members.
    pub(crate) fn encode(read: Option<Self>, format: ReadFormat, to: &mut Encoder<'_>) {
        if let Some(read) = read {
            return read.words.iter().for_each(|word| to.u64(word));
        }
        let shape = Shape::new(format);
        let behind = if shape.group { 0 } else { shape.behind() };
        to.zeros((1 + shape.times + behind) * 8);
    }
}
