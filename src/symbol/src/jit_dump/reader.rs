//! Numbers in the byte order of who wrote a dump.

/// Reads numbers of one dump.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) big: bool,
}

impl Reader {
    pub(super) fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes: [u8; 4] = bytes.get(at..)?.get(..4)?.try_into().ok()?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    pub(super) fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes: [u8; 8] = bytes.get(at..)?.get(..8)?.try_into().ok()?;
        Some(if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    }

    /// A number that counts bytes or records in memory.
    pub(super) fn length(self, bytes: &[u8], at: usize) -> Option<usize> {
        usize::try_from(self.long(bytes, at)?).ok()
    }
}
