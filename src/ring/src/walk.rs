//! Iteration over the records in a chunk, the content of a ring at one moment. A chunk has two pieces, up to the end of the
//! ring and from its start on; the second may be empty.

use rperf_wire::{Endian, RawRecord, RecordHeader};

/// Iterates over drained records. Keeps a buffer for the one record per chunk that may straddle the
/// two pieces.
#[derive(Debug, Default)]
pub struct RecordWalker {
    straddling: Vec<u8>,
}

/// A chunk split at record boundaries: three runs of complete records, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRuns<'a> {
    /// The records of the first piece.
    pub first: &'a [u8],
    /// The record that straddles the pieces, copied together; usually empty.
    pub straddling: &'a [u8],
    /// The records of the second piece.
    pub second: &'a [u8],
    /// The number of bytes after the three runs: 0 unless the ring's content is damaged, since the head
    /// is always at the end of a complete record.
    pub trailing_bytes: usize,
}

impl RecordWalker {
    /// Calls `each` for the records of the two pieces in order, and stops before the first damaged or incomplete record. Returns
    /// the bytes of the records for which `each` was called.
    pub fn walk<'a>(
        &'a mut self,
        pieces: [&'a [u8]; 2],
        mut each: impl FnMut(RawRecord<'_>),
    ) -> RecordRuns<'a> {
        let [piece, mut second] = pieces;
        let rest = walk_piece(piece, &mut each);
        let first = before(piece, rest);
        self.straddling.clear();
        if !rest.is_empty() {
            let missing = straddling_size(rest, second).map(|size| size - rest.len());
            let end = missing.and_then(|missing| second.split_at_checked(missing));
            let Some((end, after)) = end else {
                let trailing_bytes = rest.len() + second.len();
                return RecordRuns {
                    first,
                    straddling: &[],
                    second: &[],
                    trailing_bytes,
                };
            };
            self.straddling.extend_from_slice(rest);
            self.straddling.extend_from_slice(end);
            walk_piece(&self.straddling, &mut each);
            second = after;
        }
        let rest = walk_piece(second, &mut each);
        RecordRuns {
            first,
            straddling: &self.straddling,
            second: before(second, rest),
            trailing_bytes: rest.len(),
        }
    }
}

/// The part of `piece` before `rest`, its end.
fn before<'a>(piece: &'a [u8], rest: &[u8]) -> &'a [u8] {
    piece.get(..piece.len() - rest.len()).unwrap_or_default()
}

/// Iterates over complete records; returns the remaining bytes.
fn walk_piece<'a>(mut piece: &'a [u8], each: &mut impl FnMut(RawRecord<'a>)) -> &'a [u8] {
    while let Some((record, size)) = RawRecord::split(piece, Endian::NATIVE) {
        each(record);
        piece = piece.get(size..).unwrap_or_default();
    }
    piece
}

/// Size of the record that begins with `rest` and continues in `second`; `None` if the size is impossible. Missing bytes of the
/// header count as 0.
fn straddling_size(rest: &[u8], second: &[u8]) -> Option<usize> {
    let mut header = [0; RecordHeader::SIZE];
    for (to, from) in header.iter_mut().zip(rest.iter().chain(second)) {
        *to = *from;
    }
    let header = RecordHeader::decode(&header, Endian::NATIVE).ok()?;
    let size = header.record_size();
    (size > rest.len() && size >= RecordHeader::SIZE).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_wire::{Encoder, Misc, RecordKind};

    /// Encodes records of these kinds and body sizes; each byte of a body is the number of the kind.
    fn records(shapes: &[(u32, usize)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, body) in shapes {
            let size = u16::try_from(RecordHeader::SIZE + body).unwrap();
            let header = RecordHeader {
                kind: RecordKind(*kind),
                misc: Misc(2),
                size,
            };
            let mut to = Encoder::new(&mut bytes, Endian::NATIVE);
            header.encode(&mut to);
            to.bytes(&vec![u8::try_from(*kind).unwrap(); *body]);
        }
        bytes
    }

    /// Returns the kinds and body sizes of the records, and the number of bytes after them.
    fn walked(first: &[u8], second: &[u8]) -> (Vec<(u32, usize)>, usize) {
        let mut seen = Vec::new();
        let mut walker = RecordWalker::default();
        let runs = walker.walk([first, second], |record| {
            assert!(
                record
                    .body
                    .iter()
                    .all(|&byte| u32::from(byte) == record.kind.0)
            );
            seen.push((record.kind.0, record.body.len()));
        });
        let walked_bytes = [runs.first, runs.straddling, runs.second].concat();
        let all = [first, second].concat();
        assert_eq!(
            walked_bytes,
            all[..all.len() - runs.trailing_bytes],
            "nothing is lost or moved"
        );
        (seen, runs.trailing_bytes)
    }

    #[test]
    fn all_records_are_walked_wherever_the_pieces_are_split() {
        let (sample, lost) = (RecordKind::SAMPLE.0, RecordKind::LOST.0);
        let shapes = [(sample, 16), (lost, 16), (sample, 8), (lost, 16)];
        let bytes = records(&shapes);
        for middle in 0..=bytes.len() {
            assert_eq!(
                walked(&bytes[..middle], &bytes[middle..]),
                (shapes.to_vec(), 0),
                "split at {middle}"
            );
        }
    }

    #[test]
    fn damaged_and_incomplete_records_end_the_walk() {
        let mut bytes = records(&[(9, 8), (9, 8)]);
        // The size of the second record: too small even for its header.
        bytes[22] = 3;
        assert_eq!(walked(&bytes, &[]), (vec![(9, 8)], 16));
        assert_eq!(walked(&bytes[..16], &bytes[16..24]), (vec![(9, 8)], 8));
        let bytes = records(&[(9, 64)]);
        assert_eq!(
            walked(&bytes[..32], &bytes[32..40]),
            (vec![], 40),
            "the record is incomplete"
        );
    }

    #[test]
    fn a_straddling_size_may_have_an_upper_half() {
        let mut bytes = [0; 40];
        // A record of simpleperf, whose size has its upper half in `misc`.
        bytes[..8].copy_from_slice(&[0, 0, 0, 1, 0, 1, 16, 0]);
        let mut walker = RecordWalker::default();
        let runs = walker.walk([&bytes[..1], &bytes[1..]], |_| {});
        assert_eq!(runs.trailing_bytes, 40, "the record has more than 16 MiB");
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), middle in 0_usize..200) {
            let middle = middle.min(bytes.len());
            let mut walked_size = 0;
            let mut walker = RecordWalker::default();
            let runs = walker.walk([&bytes[..middle], &bytes[middle..]], |record| {
                walked_size += RecordHeader::SIZE + record.body.len();
            });
            prop_assert_eq!(walked_size + runs.trailing_bytes, bytes.len());
        }
    }
}
