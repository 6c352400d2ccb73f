//! `PERF_SAMPLE_STACK_USER`: the copy of a user stack.

use crate::{Cursor, DecodeError, Encoder};

/// The top of the user stack at the time of the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStack<'a> {
    /// The bytes that were copied, from the stack pointer upwards.
    pub bytes: &'a [u8],
    /// Bytes reserved in the record for the copy, unused ones included.
    pub reserved: usize,
}

impl<'a> UserStack<'a> {
    pub(crate) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let size = at.u64("user stack size")?;
        // After a size of 0, there is no `dyn_size`.
        if size == 0 {
            return Ok(Self {
                bytes: &[],
                reserved: 0,
            });
        }
        let reserved = usize::try_from(size).unwrap_or(usize::MAX);
        let reserved_bytes = at.take(reserved, "user stack")?;
        let copied = at.u64("user stack dyn_size")?;
        let copied = usize::try_from(copied).unwrap_or(usize::MAX).min(reserved);
        Ok(Self {
            bytes: reserved_bytes.get(..copied).unwrap_or(reserved_bytes),
            reserved,
        })
    }

    /// Appends the copy; for `None`, a size of 0.
    pub(crate) fn encode(stack: Option<Self>, to: &mut Encoder<'_>) {
        let Some(stack) = stack else { return to.u64(0) };
        to.u64(stack.reserved as u64);
        if stack.reserved > 0 {
            to.bytes(stack.bytes);
            to.zeros(stack.reserved.saturating_sub(stack.bytes.len()));
            to.u64(stack.bytes.len() as u64);
        }
    }
}
