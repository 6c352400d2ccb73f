//! Iteration over records.

use rperf_wire::{Endian, RawRecord, RecordHeader, RecordKind};

use crate::Error;

/// A record and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordAt<'a> {
    /// Offset of the record header from the start of the file or stream.
    pub position: u64,
    /// The undecoded record.
    pub raw: RawRecord<'a>,
    /// The data after the record that belong to it: the trace of an AUXTRACE record, the formats of
    /// a HEADER_TRACING_DATA record.
    pub payload: &'a [u8],
}

impl<'a> RecordAt<'a> {
    /// The tracepoint formats of this record: its payload if perf wrote it, a part of its body if simpleperf did. `None` if the
    /// record has no formats.
    pub(crate) fn tracing_data(&self, endian: Endian) -> Option<&'a [u8]> {
        if self.raw.kind == RecordKind::HEADER_TRACING_DATA && !self.payload.is_empty() {
            return Some(self.payload);
        }
        tracing_data_in_body(&self.raw, endian)
    }
}

/// The tracepoint formats in the body of a simpleperf record: a 32-bit size, then the formats. `None` for other records, also for
/// those of perf: their body has the size, but not as many bytes after it.
fn tracing_data_in_body<'a>(raw: &RawRecord<'a>, endian: Endian) -> Option<&'a [u8]> {
    let kinds = [
        RecordKind::HEADER_TRACING_DATA,
        RecordKind::SIMPLEPERF_TRACING_DATA,
    ];
    if !kinds.contains(&raw.kind) {
        return None;
    }
    let size = endian.u32_at(raw.body, 0)?;
    let data = raw.body.get(size_of::<u32>()..)?;
    data.get(..usize::try_from(size).ok()?)
}

/// The records of a range of the file, in file order. Iteration ends after an error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    position: u64,
    endian: Endian,
}

impl<'a> Records<'a> {
    /// Iterates over `bytes`, which start at `position` of the file.
    #[must_use]
    pub fn new(bytes: &'a [u8], position: u64, endian: Endian) -> Self {
        Self {
            rest: bytes,
            position,
            endian,
        }
    }

    /// Offset of the next record from the start of the file.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Byte order of the records.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the next record if it is complete and valid, otherwise `None`; [`Iterator::next`] then returns the error, if any.
    /// For loops over millions of records.
    // Inlined, because calls for each record would take a tenth of the time of a report of tracepoints.
    #[inline(always)]
    pub fn next_valid(&mut self) -> Option<RecordAt<'a>> {
        let (raw, size) = RawRecord::split(self.rest, self.endian)?;
        let position = self.position;
        let mut payload: &[u8] = &[];
        if has_payload(raw.kind) {
            let after;
            (payload, after) = self.clone().next_payload()?;
            (self.rest, self.position) = (after.rest, after.position);
        } else {
            self.advance(size);
        }
        Some(RecordAt {
            position,
            raw,
            payload,
        })
    }

    /// Returns the next record if it is a complete sample, otherwise `None`: for loops that read other records with
    /// [`Records::next_valid`].
    #[inline(always)]
    pub fn next_sample(&mut self) -> Option<RecordAt<'a>> {
        let (raw, size) = RawRecord::split_sample(self.rest, self.endian)?;
        let position = self.position;
        self.advance(size);
        Some(RecordAt {
            position,
            raw,
            payload: &[],
        })
    }

    /// The payload of the next record, if both are complete, and the records after it. By value: a loop can then keep
    /// the iterator in registers.
    #[cold]
    fn next_payload(mut self) -> Option<(&'a [u8], Self)> {
        let record = self.next()?.ok()?;
        Some((record.payload, self))
    }

    #[inline]
    fn advance(&mut self, size: usize) {
        self.rest = self.rest.get(size..).unwrap_or_default();
        self.position += size as u64;
    }

    /// Ends the iteration at an invalid record, and returns its error.
    #[cold]
    fn fail(&mut self) -> Error {
        let (offset, have) = (self.position, self.rest.len() as u64);
        let header = RecordHeader::decode(self.rest, self.endian);
        self.rest = &[];
        match header {
            Ok(header) if header.record_size() < RecordHeader::SIZE => Error::RecordSize {
                offset,
                size: header.size,
            },
            Ok(header) => Error::Truncated {
                offset,
                need: header.record_size() as u64,
                have,
            },
            Err(_) => Error::Truncated {
                offset,
                need: RecordHeader::SIZE as u64,
                have,
            },
        }
    }

    /// Splits off the payload of `raw`. Precondition: `raw` is the record that was split off last, so that `rest` begins with the
    /// payload.
    #[cold]
    fn payload(&mut self, raw: &RawRecord<'a>) -> Result<&'a [u8], Error> {
        let need = payload_size(raw, self.endian);
        let size = usize::try_from(need).unwrap_or(usize::MAX);
        let Some(payload) = self.rest.get(..size) else {
            // The error is that of the record with its payload.
            let record_size = (RecordHeader::SIZE + raw.body.len()) as u64;
            let error = Error::Truncated {
                offset: self.position - record_size,
                need: need.saturating_add(record_size),
                have: self.rest.len() as u64 + record_size,
            };
            self.rest = &[];
            return Err(error);
        };
        self.advance(size);
        Ok(payload)
    }
}

/// Whether records of this type may have a payload.
#[inline]
pub(crate) fn has_payload(kind: RecordKind) -> bool {
    kind == RecordKind::AUXTRACE || kind == RecordKind::HEADER_TRACING_DATA
}

/// Size of the record's payload in bytes, from its first field; 0 if it has none.
pub(crate) fn payload_size(raw: &RawRecord<'_>, endian: Endian) -> u64 {
    let size = match raw.kind {
        RecordKind::AUXTRACE => endian.u64_at(raw.body, 0),
        // simpleperf writes the formats into the body, and no payload.
        RecordKind::HEADER_TRACING_DATA if tracing_data_in_body(raw, endian).is_none() => {
            endian.u32_at(raw.body, 0).map(u64::from)
        }
        _ => None,
    };
    size.unwrap_or(0)
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordAt<'a>, Error>;

    // Always inlined: a call for each record takes 2 % of the time of a report, and the compiler ignores a plain
    // `inline` in some codegen units.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((raw, size)) = RawRecord::split(self.rest, self.endian) else {
            return Some(Err(self.fail()));
        };
        let position = self.position;
        self.advance(size);
        let mut payload: &[u8] = &[];
        if has_payload(raw.kind) {
            match self.payload(&raw) {
                Ok(bytes) => payload = bytes,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(RecordAt {
            position,
            raw,
            payload,
        }))
    }
}
