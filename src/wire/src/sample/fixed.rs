//! The fields at the front of a sample, IDENTIFIER to PERIOD: eight bytes each, so that the event's `sample_type` alone says
//! where they stand.

use super::Sample;
use crate::{DecodeError, Endian, SampleType};

/// The fields in the order in which the kernel writes them.
const FIELDS: [(SampleType, &str); 9] = [
    (SampleType::IDENTIFIER, "identifier"),
    (SampleType::IP, "ip"),
    (SampleType::TID, "pid and tid"),
    (SampleType::TIME, "time"),
    (SampleType::ADDR, "addr"),
    (SampleType::ID, "id"),
    (SampleType::STREAM_ID, "stream_id"),
    (SampleType::CPU, "cpu"),
    (SampleType::PERIOD, "period"),
];
/// Bytes of a field.
const SIZE: usize = 8;

/// Offsets of the fields that samples have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixedFields {
    /// Of IDENTIFIER, or of ID, which says the same.
    pub(super) id: Option<usize>,
    ip: Option<usize>,
    pid_tid: Option<usize>,
    pub(super) time: Option<usize>,
    addr: Option<usize>,
    stream_id: Option<usize>,
    cpu: Option<usize>,
    period: Option<usize>,
    /// Bytes of them all.
    pub(super) size: usize,
}

impl FixedFields {
    pub(super) fn new(sample_type: SampleType) -> Self {
        let before = |field: SampleType| {
            let fields = FIELDS.iter().take_while(|(other, _)| *other != field);
            fields
                .filter(|(other, _)| sample_type.contains(*other))
                .count()
                * SIZE
        };
        let offset = |field| sample_type.contains(field).then(|| before(field));
        let present = FIELDS
            .iter()
            .filter(|(field, _)| sample_type.contains(*field));
        Self {
            id: offset(SampleType::IDENTIFIER).or_else(|| offset(SampleType::ID)),
            ip: offset(SampleType::IP),
            pid_tid: offset(SampleType::TID),
            time: offset(SampleType::TIME),
            addr: offset(SampleType::ADDR),
            stream_id: offset(SampleType::STREAM_ID),
            cpu: offset(SampleType::CPU),
            period: offset(SampleType::PERIOD),
            size: present.count() * SIZE,
        }
    }

    /// Reads them all. Fields that samples of this event lack are left alone.
    ///
    /// # Errors
    /// [`DecodeError::Short`] for the first one that the body does not hold.
    #[inline]
    pub(super) fn decode_into(
        &self,
        sample_type: SampleType,
        body: &[u8],
        endian: Endian,
        sample: &mut Sample<'_>,
    ) -> Result<(), DecodeError> {
        if body.len() < self.size {
            return Err(short(sample_type, body.len()));
        }
        let word = |offset: usize| endian.u64_at(body, offset);
        let half = |offset: usize| endian.u32_at(body, offset);
        if let Some(at) = self.id {
            sample.id = word(at);
        }
        if let Some(at) = self.ip {
            sample.ip = word(at);
        }
        if let Some(at) = self.pid_tid {
            sample.pid_tid = half(at).zip(half(at + 4));
        }
        if let Some(at) = self.time {
            sample.time = word(at);
        }
        if let Some(at) = self.addr {
            sample.addr = word(at);
        }
        if let Some(at) = self.stream_id {
            sample.stream_id = word(at);
        }
        if let Some(at) = self.cpu {
            sample.cpu = half(at);
        }
        if let Some(at) = self.period {
            sample.period = word(at);
        }
        Ok(())
    }
}

#[cold]
fn short(sample_type: SampleType, have: usize) -> DecodeError {
    let mut present = FIELDS
        .iter()
        .filter(|(field, _)| sample_type.contains(*field));
    DecodeError::Short {
        field: present.nth(have / SIZE).map_or("period", |(_, name)| name),
        offset: have / SIZE * SIZE,
        need: SIZE,
        have: have % SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_that_is_cut_off_is_named() {
        let sample_type = SampleType::IP | SampleType::TID | SampleType::CPU;
        let fields = FixedFields::new(sample_type);
        let mut sample = Sample::default();
        let mut cut =
            |len| fields.decode_into(sample_type, &[0; 24][..len], Endian::Little, &mut sample);
        for (len, name, have) in [
            (0, "ip", 0),
            (8, "pid and tid", 0),
            (13, "pid and tid", 5),
            (23, "cpu", 7),
        ] {
            let expected = DecodeError::Short {
                field: name,
                offset: len - have,
                need: 8,
                have,
            };
            assert_eq!(cut(len), Err(expected));
        }
        assert_eq!(cut(24), Ok(()));
    }
}
