//! Metadata of BPF programs.

use super::{put_name, take_name};
use crate::{Cursor, DecodeError, Encoder};

/// `PERF_RECORD_BPF_METADATA`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfMetadata<'a> {
    /// Name of the program.
    pub program: &'a [u8],
    /// Keys and values.
    pub entries: Vec<(&'a [u8], &'a [u8])>,
}

/// Size of the field for a program's name, in bytes.
const PROGRAM: usize = 16;
/// Size of the field for a key, in bytes.
const KEY: usize = 64;
/// Size of the field for a value, in bytes.
const VALUE: usize = 256;

impl<'a> BpfMetadata<'a> {
    pub(super) fn decode(at: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let program = take_name::<PROGRAM>(at, "prog_name")?;
        let count = at.u64("nr_entries")?;
        let entries = (0..count).map(|_| {
            Ok((
                take_name::<KEY>(at, "metadata key")?,
                take_name::<VALUE>(at, "metadata value")?,
            ))
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Self { program, entries })
    }

    pub(super) fn encode(&self, to: &mut Encoder<'_>) {
        put_name::<PROGRAM>(to, self.program);
        to.u64(self.entries.len() as u64);
        for (key, value) in &self.entries {
            put_name::<KEY>(to, key);
            put_name::<VALUE>(to, value);
        }
    }
}
