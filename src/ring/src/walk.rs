//! From record to record through the pieces of a chunk.

use rperf_wire::{Endian, RawRecord, RecordHeader};

/// Walks the headers of drained records. Keeps a buffer for the one record per chunk that may
/// straddle the two pieces.
#[derive(Debug, Default)]
pub struct Walker {
    straddling: Vec<u8>,
}

impl Walker {
    /// Calls `each` for every record of the two pieces, in order, and returns the bytes left over: 0
    /// unless the ring's content is damaged, as the kernel only ever publishes whole records.
    pub fn walk(&mut self, pieces: (&[u8], &[u8]), mut each: impl FnMut(RawRecord<'_>)) -> usize {
        let (first, mut second) = pieces;
        let rest = walk_piece(first, &mut each);
        if !rest.is_empty() {
            let Some(size) = straddling_size(rest, second) else {
                return rest.len() + second.len();
            };
            let Some((head, behind)) = second.split_at_checked(size.saturating_sub(rest.len()))
            else {
                return rest.len() + second.len();
            };
            self.straddling.clear();
            self.straddling.extend_from_slice(rest);
            self.straddling.extend_from_slice(head);
            if !walk_piece(&self.straddling, &mut each).is_empty() {
                return rest.len() + second.len();
            }
            second = behind;
        }
        walk_piece(second, &mut each).len()
    }
}

/// Walks whole records; returns what is left.
fn walk_piece<'a>(mut piece: &'a [u8], each: &mut impl FnMut(RawRecord<'a>)) -> &'a [u8] {
    while let Some((record, size)) = RawRecord::split(piece, Endian::NATIVE) {
        each(record);
        piece = piece.get(size..).unwrap_or_default();
    }
    piece
}

/// Size of the record that begins with `rest` and goes on in `second`.
fn straddling_size(rest: &[u8], second: &[u8]) -> Option<usize> {
    let mut header = [0; RecordHeader::SIZE];
    for (to, from) in header.iter_mut().zip(rest.iter().chain(second)) {
        *to = *from;
    }
    let header = RecordHeader::decode(&header, Endian::NATIVE).ok()?;
    let size = usize::from(header.size);
    (size > rest.len() && size >= RecordHeader::SIZE).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_wire::{Encoder, Misc, RecordKind};

    /// Records of the kinds and body sizes given; a body repeats its kind's number.
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

    fn walked(first: &[u8], second: &[u8]) -> (Vec<(u32, usize)>, usize) {
        let mut seen = Vec::new();
        let left = Walker::default().walk((first, second), |record| {
            assert!(
                record
                    .body
                    .iter()
                    .all(|&byte| u32::from(byte) == record.kind.0)
            );
            seen.push((record.kind.0, record.body.len()));
        });
        (seen, left)
    }

    #[test]
    fn lost_records_are_seen_on_either_side_of_the_wrap() {
        let lost = RecordKind::LOST.0;
        let shapes = [(9, 16), (lost, 16), (9, 8), (lost, 16)];
        let bytes = records(&shapes);
        for cut in 0..=bytes.len() {
            assert_eq!(
                walked(&bytes[..cut], &bytes[cut..]),
                (shapes.to_vec(), 0),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn damaged_records_end_the_walk() {
        let mut bytes = records(&[(9, 8), (9, 8)]);
        bytes[22] = 3;
        assert_eq!(walked(&bytes, &[]), (vec![(9, 8)], 16));
        assert_eq!(walked(&bytes[..16], &bytes[16..24]), (vec![(9, 8)], 8));
        let bytes = records(&[(9, 64)]);
        assert_eq!(
            walked(&bytes[..32], &bytes[32..40]),
            (vec![], 40),
            "the record is not whole"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            let cut = cut.min(bytes.len());
            let mut seen = 0;
            let left = Walker::default().walk((&bytes[..cut], &bytes[cut..]), |record| seen += 8 + record.body.len());
            prop_assert_eq!(seen + left, bytes.len());
        }
    }
}
