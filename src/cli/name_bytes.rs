//! Restores bytes of names that are not UTF-8: text encodes them as characters ([`rperf_wire::name_text`]), output contains the
//! bytes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use rperf_wire::restored_byte;

/// The first byte of the UTF-8 form of a character that encodes a byte.
const LEAD_BYTE: u8 = 0xf4;
/// The length of that form in bytes.
const LENGTH: usize = 4;

/// A writer to `inner` that decodes the characters that encode bytes.
pub(crate) struct NameBytes<W> {
    inner: W,
    /// The start of an incomplete character.
    started: Vec<u8>,
    /// If this flag is set, nothing is decoded.
    verbatim: Option<&'static AtomicBool>,
}

impl<W: Write> NameBytes<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            started: Vec::new(),
            verbatim: None,
        }
    }

    /// Passes everything unchanged once `verbatim` is set: binary data may happen to contain the UTF-8 form of such a character.
    pub(crate) fn unless(mut self, verbatim: &'static AtomicBool) -> Self {
        self.verbatim = Some(verbatim);
        self
    }

    /// Writes `bytes` with decoded characters. An incomplete character at the end is kept in `started`.
    fn restore(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(at) = memchr::memchr(LEAD_BYTE, bytes) {
            let (before, rest) = bytes.split_at(at);
            self.inner.write_all(before)?;
            // `bytes` is UTF-8: the three bytes after this lead byte belong to its character.
            let Some(character) = rest.first_chunk::<LENGTH>() else {
                self.started.extend_from_slice(rest);
                return Ok(());
            };
            match restored_byte(*character) {
                Some(byte) => self.inner.write_all(&[byte])?,
                None => self.inner.write_all(character)?,
            }
            bytes = rest.get(LENGTH..).unwrap_or_default();
        }
        self.inner.write_all(bytes)
    }
}

impl<W: Write> Write for NameBytes<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let verbatim = self.verbatim;
        if verbatim.is_some_and(|verbatim| verbatim.load(Ordering::Relaxed)) {
            // An incomplete character before the binary data is written as it is.
            let started = std::mem::take(&mut self.started);
            self.inner.write_all(&started)?;
            return self.inner.write(bytes);
        }
        if self.started.is_empty() {
            self.restore(bytes)?;
        } else {
            let mut joined = std::mem::take(&mut self.started);
            joined.extend_from_slice(bytes);
            self.restore(&joined)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // An incomplete character is written as it is.
        let started = std::mem::take(&mut self.started);
        self.inner.write_all(&started)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rperf_wire::name_text;

    use super::*;

    proptest! {
        #[test]
        fn streams_get_the_bytes_for_any_chunk_size(
            bytes in prop::collection::vec(prop_oneof![Just(b'a'), Just(0xf4), Just(0xe9), any::<u8>()], 0..40),
            size in 1..9_usize,
        ) {
            let text = name_text(&bytes).into_owned();
            let mut out = NameBytes::new(Vec::new());
            for part in text.as_bytes().chunks(size) {
                out.write_all(part).expect("a vector takes all");
            }
            out.flush().expect("a vector takes all");
            prop_assert_eq!(out.inner, bytes);
        }
    }
}
