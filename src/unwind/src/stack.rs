//! The copy of the top of a stack.

use rperf_wire::Endian;

/// The bytes of a stack from the stack pointer upwards.
#[derive(Debug, Clone, Copy)]
pub struct StackBytes<'a> {
    /// Start address.
    pub start: u64,
    /// The copied bytes.
    pub bytes: &'a [u8],
    /// Whether the copy has its maximum size, so that the stack may continue beyond it.
    pub may_continue: bool,
    /// Byte order of the words.
    pub endian: Endian,
}

/// Assumed maximum size of a frame: an address further beyond the copy is taken to be on another stack, such as the one that a
/// signal handler returns to.
const MAX_FRAME_SIZE: u64 = 1 << 20;

/// Why a word can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The word may be on this stack, beyond the end of the copy.
    BeyondCopy,
    /// The word is not on this stack.
    OtherStack,
}

impl StackBytes<'_> {
    /// An empty copy.
    pub(crate) const EMPTY: Self = Self {
        start: 0,
        bytes: &[],
        may_continue: false,
        endian: Endian::Little,
    };

    /// The word of `size` bytes (1 to 8) at `address`.
    #[inline]
    pub(crate) fn read(&self, address: u64, size: u8) -> Result<u64, Unreadable> {
        let word = address.checked_sub(self.start).and_then(|offset| {
            let from = usize::try_from(offset).ok()?;
            let bytes = self.bytes.get(from..from.checked_add(usize::from(size))?)?;
            Some(match (size, self.endian) {
                (8, Endian::Little) => u64::from_le_bytes(bytes.try_into().ok()?),
                (_, Endian::Little) => number(bytes.iter().rev()),
                (_, Endian::Big) => number(bytes.iter()),
            })
        });
        let end = self.start.saturating_add(self.bytes.len() as u64);
        let reach = self.start..end.saturating_add(MAX_FRAME_SIZE);
        word.ok_or(if reach.contains(&address) && self.may_continue {
            Unreadable::BeyondCopy
        } else {
            Unreadable::OtherStack
        })
    }
}

/// The number with these bytes, most significant first.
fn number<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_byte_orders_are_read_only_within_the_copy() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        let stack = StackBytes {
            start: 0x1000,
            bytes: &bytes,
            may_continue: true,
            endian: Endian::Little,
        };
        assert_eq!(stack.read(0x1001, 8), Ok(0x0908_0706_0504_0302));
        assert_eq!(stack.read(0x1000, 4), Ok(0x0403_0201));
        let big = StackBytes {
            endian: Endian::Big,
            ..stack
        };
        assert_eq!(big.read(0x1001, 2), Ok(0x0203));
        assert_eq!(stack.read(0x1002, 8), Err(Unreadable::BeyondCopy));
        assert_eq!(stack.read(0x10_1008, 8), Err(Unreadable::BeyondCopy));
        assert_eq!(stack.read(0x10_1009, 8), Err(Unreadable::OtherStack));
        assert_eq!(stack.read(u64::MAX, 8), Err(Unreadable::OtherStack));
        assert_eq!(stack.read(0xfff, 8), Err(Unreadable::OtherStack));
        let complete = StackBytes {
            may_continue: false,
            ..stack
        };
        assert_eq!(complete.read(0x1002, 8), Err(Unreadable::OtherStack));
    }
}
