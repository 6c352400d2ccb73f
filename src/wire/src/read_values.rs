//! `PERF_SAMPLE_READ`: values of counters in a sample.

use crate::{Cursor, DecodeError, Encoder, ReadFormat, U64s};

/// The result of reading the counter or its group (`struct read_format`).
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
    /// Event id, if requested.
    pub id: Option<u64>,
    /// Samples lost so far by this event, if requested.
    pub lost: Option<u64>,
}

/// The words that are present. Single counter: value, times, id, lost count. Group: number of members and times, then the
/// value, id and lost count of each.
#[derive(Debug, Clone, Copy)]
struct ReadShape {
    /// Whether the values are those of a group.
    group: bool,
    /// Number of time words.
    times: usize,
    /// Whether each value is followed by its id.
    id: bool,
    /// Whether each value is followed by its lost count.
    lost: bool,
}

impl ReadShape {
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

    /// Number of words at the start: the single value or the number of members, followed by the times.
    fn leading_words(self) -> usize {
        1 + self.times
    }

    /// Number of words that belong to a value and follow it.
    fn words_after_value(self) -> usize {
        usize::from(self.id) + usize::from(self.lost)
    }
}

impl<'a> ReadValues<'a> {
    pub(crate) fn decode(at: &mut Cursor<'a>, format: ReadFormat) -> Result<Self, DecodeError> {
        let shape = ReadShape::new(format);
        let (leading, following) = (
            shape.leading_words() as u64,
            shape.words_after_value() as u64,
        );
        let words = match shape.group {
            true => {
                let members = at.clone().u64("read nr")?;
                // No record has room for 65535 members; the limit prevents an overflow of the product.
                leading + members.min(u64::from(u16::MAX)) * (1 + following)
            }
            false => leading + following,
        };
        Ok(Self {
            format,
            words: at.u64s(words, "read")?,
        })
    }

    /// The values in `words`, the result of reading a counter of this format.
    #[must_use]
    pub fn new(format: ReadFormat, words: U64s<'a>) -> Self {
        Self { format, words }
    }

    /// The undecoded words.
    #[must_use]
    pub fn words(&self) -> U64s<'a> {
        self.words
    }

    /// Time enabled in nanoseconds, if requested.
    #[must_use]
    pub fn time_enabled(&self) -> Option<u64> {
        self.format
            .contains(ReadFormat::TOTAL_TIME_ENABLED)
            .then(|| self.words.get(1))?
    }

    /// Time running in nanoseconds, if requested.
    #[must_use]
    pub fn time_running(&self) -> Option<u64> {
        let index = 1 + usize::from(self.format.contains(ReadFormat::TOTAL_TIME_ENABLED));
        self.format
            .contains(ReadFormat::TOTAL_TIME_RUNNING)
            .then(|| self.words.get(index))?
    }

    /// The values of all group members, or the single value.
    #[must_use]
    pub fn values(&self) -> Vec<ReadValue> {
        let shape = ReadShape::new(self.format);
        let leading = shape.leading_words();
        if !shape.group {
            return vec![self.value(0, leading, shape)];
        }
        let members = (leading..self.words.len()).step_by(1 + shape.words_after_value());
        members
            .map(|index| self.value(index, index + 1, shape))
            .collect()
    }

    /// The value in word `index`, with its optional fields from word `after`.
    fn value(&self, index: usize, after: usize, shape: ReadShape) -> ReadValue {
        let word = |present: bool, index| present.then(|| self.words.get(index)).flatten();
        ReadValue {
            value: self.words.get(index).unwrap_or_default(),
            id: word(shape.id, after),
            lost: word(shape.lost, after + usize::from(shape.id)),
        }
    }

    /// Appends the words; for `None`, zeros for a single counter or an empty group.
    pub(crate) fn encode(read: Option<Self>, format: ReadFormat, to: &mut Encoder<'_>) {
        if let Some(read) = read {
            return read.words.iter().for_each(|word| to.u64(word));
        }
        let shape = ReadShape::new(format);
        let following = if shape.group {
            0
        } else {
            shape.words_after_value()
        };
        to.zeros((shape.leading_words() + following) * 8);
    }
}
