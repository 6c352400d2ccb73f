//! Reads numbers in the byte order of a jitdump's writer.

/// Reads numbers of one jitdump.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpReader {
    /// Whether numbers are big-endian.
    pub(super) big: bool,
}

impl DumpReader {
    /// Reads 32 bits.
    pub(super) fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes: [u8; 4] = bytes.get(at..)?.get(..4)?.try_into().ok()?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    /// Reads 64 bits.
    pub(super) fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes: [u8; 8] = bytes.get(at..)?.get(..8)?.try_into().ok()?;
        Some(if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    /// Reads a length or count of 64 bits.
    pub(super) fn length(self, bytes: &[u8], at: usize) -> Option<usize> {
        usize::try_from(self.long(bytes, at)?).ok()
    }
}
