//! The fixed fields, which are at the start of a sample: IDENTIFIER to PERIOD. Each has eight bytes, so the event's
//! `sample_type` determines their offsets.

use super::SampleRecord;
use crate::{DecodeError, Endian, SampleType};

/// The fixed fields in the kernel's order.
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

/// Index of a field that is not decoded: the sample does not have it, or the caller does not need it.
const NOT_DECODED: u8 = u8::MAX;

/// The indices of the fixed fields in a sample, counting only present fields, and the total size of the present fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FixedFields {
    /// Index of IDENTIFIER, otherwise of ID, which has the same value. Like `time`, also set if the field is not decoded:
    /// [`FixedFields::word`] reads it alone.
    pub(super) id: Option<usize>,
    /// Index of TIME.
    pub(super) time: Option<usize>,
    /// Total size of the present fields in bytes.
    pub(super) size: usize,
    decoded: FieldIndices,
}

/// The index of each field that is decoded, otherwise [`NOT_DECODED`].
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldIndices {
    id: u8,
    ip: u8,
    task: u8,
    time: u8,
    cpu: u8,
    period: u8,
    /// Whether `addr` or `stream_id` is decoded. Few events have them; one check skips both.
    any_rare: bool,
    addr: u8,
    stream_id: u8,
}

impl FixedFields {
    /// The fields of samples with `sample_type`. Of these, only those in `reads`, which the caller needs, are decoded.
    pub(super) fn new(sample_type: SampleType, reads: SampleType) -> Self {
        let present = FIELDS
            .iter()
            .filter(|(field, _)| sample_type.contains(*field));
        let index = |field: SampleType| present.clone().position(|(other, _)| *other == field);
        let id = index(SampleType::IDENTIFIER).or_else(|| index(SampleType::ID));
        let narrow = |index: Option<usize>| {
            let index = index.and_then(|index| u8::try_from(index).ok());
            index.unwrap_or(NOT_DECODED)
        };
        let decoded = |field: SampleType| match reads.contains(field) {
            true => narrow(index(field)),
            false => NOT_DECODED,
        };
        let reads_id = reads.intersects(SampleType::IDENTIFIER | SampleType::ID);
        let (addr, stream_id) = (decoded(SampleType::ADDR), decoded(SampleType::STREAM_ID));
        Self {
            decoded: FieldIndices {
                id: narrow(id.filter(|_| reads_id)),
                ip: decoded(SampleType::IP),
                task: decoded(SampleType::TID),
                time: decoded(SampleType::TIME),
                cpu: decoded(SampleType::CPU),
                period: decoded(SampleType::PERIOD),
                any_rare: addr != NOT_DECODED || stream_id != NOT_DECODED,
                addr,
                stream_id,
            },
            id,
            time: index(SampleType::TIME),
            size: present.count() * SIZE,
        }
    }

    /// The value of the field at index `index`; `None` if `body` is too short.
    #[inline]
    pub(super) fn word(body: &[u8], index: usize, endian: Endian) -> Option<u64> {
        let word = body.as_chunks::<SIZE>().0.get(index)?;
        Some(endian.u64(*word))
    }

    /// Decodes the fields in `reads` (see [`Self::new`]), and leaves the other fields of `sample` unchanged. Returns the bytes
    /// after all fixed fields; `None` if the body is too short for them.
    #[inline(always)]
    pub(super) fn decode_into<'a>(
        &self,
        body: &'a [u8],
        endian: Endian,
        sample: &mut SampleRecord<'_>,
    ) -> Option<&'a [u8]> {
        let (fields, rest) = body.split_at_checked(self.size)?;
        self.decoded.decode(fields, endian, sample);
        Some(rest)
    }
}

impl FieldIndices {
    /// Decodes the fields that have an index other than [`NOT_DECODED`]. `fields` must hold the fixed fields and
    /// nothing after them, so that [`NOT_DECODED`] is beyond its end.
    #[inline(always)]
    fn decode(&self, fields: &[u8], endian: Endian, sample: &mut SampleRecord<'_>) {
        let words = fields.as_chunks::<SIZE>().0;
        let word = |index: u8| words.get(usize::from(index)).copied();
        if let Some(id) = word(self.id) {
            sample.id = Some(endian.u64(id));
        }
        if let Some(ip) = word(self.ip) {
            sample.ip = Some(endian.u64(ip));
        }
        if let Some(task) = word(self.task) {
            sample.pid_tid = Some(halves(task, endian));
        }
        if let Some(time) = word(self.time) {
            sample.time = Some(endian.u64(time));
        }
        if let Some(cpu) = word(self.cpu) {
            sample.cpu = Some(halves(cpu, endian).0);
        }
        if let Some(period) = word(self.period) {
            sample.period = Some(endian.u64(period));
        }
        if self.any_rare {
            if let Some(addr) = word(self.addr) {
                sample.addr = Some(endian.u64(addr));
            }
            if let Some(stream_id) = word(self.stream_id) {
                sample.stream_id = Some(endian.u64(stream_id));
            }
        }
    }
}

/// The two numbers of a field of two 32-bit words, in the order of the field.
#[inline(always)]
fn halves(field: [u8; SIZE], endian: Endian) -> (u32, u32) {
    // One load of eight bytes; the compiler would not join two loads of four bytes.
    let word = endian.u64(field);
    let (low, high) = (word as u32, (word >> 32) as u32);
    match endian {
        Endian::Little => (low, high),
        Endian::Big => (high, low),
    }
}

/// The error for a body that is too short for the fixed fields. The error names the first field that does not fit.
#[cold]
pub(super) fn short(sample_type: SampleType, body_len: usize) -> DecodeError {
    let mut present = FIELDS
        .iter()
        .filter(|(field, _)| sample_type.contains(*field));
    DecodeError::Short {
        // Always found, because the body is too short; the default is never used.
        field: present
            .nth(body_len / SIZE)
            .map_or("period", |(_, name)| name),
        offset: body_len / SIZE * SIZE,
        need: SIZE,
        have: body_len % SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attr, SampleLayout};

    #[test]
    fn the_first_truncated_field_is_named() {
        let attr = Attr {
            sample_type: SampleType::IP | SampleType::TID | SampleType::CPU,
            ..Attr::default()
        };
        let layout = SampleLayout::new(&attr);
        let decode = |len| {
            let sample = layout.decode(&[0; 24][..len], Endian::Little);
            sample.map(drop)
        };
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
            assert_eq!(decode(len), Err(expected));
        }
        assert_eq!(decode(24), Ok(()));
    }
}
