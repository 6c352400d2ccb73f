//! Decompression of files and sections: kernel modules, the small ELF file in `.gnu_debugdata`, and
//! debug sections.

use std::borrow::Cow;
use std::io::{self, Read};

use object::{CompressedData, CompressionFormat};
use rperf_memory::{OutOfMemory, read_to_end, reserve};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// Maximum decompressed size of modules and `.gnu_debugdata` in bytes, against decompression bombs.
const MAX_UNPACKED: u64 = 1 << 30;

/// Maximum plausible compression ratio: about twice the maximum of deflate (1032). xz and zstd exceed it only for almost uniform
/// data.
const MAX_EXPANSION: u64 = 1 << 11;

/// Decompressed size of modules and `.gnu_debugdata` in bytes that is always allowed: small files may be uniform and have a
/// high compression ratio.
const MIN_LIMIT: u64 = 1 << 20;

/// Compression formats, by magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackedFormat {
    Gzip,
    Xz,
    Zstandard,
}

impl PackedFormat {
    /// Returns the format of compressed bytes; `None` if they have no known magic number.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }

    fn decompress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => read_all(flate2::read::MultiGzDecoder::new(bytes), bytes.len()),
            Self::Xz => {
                let allow_multiple_streams = true;
                let reader = lzma_rust2::XzReader::new(bytes, allow_multiple_streams);
                read_all(reader, bytes.len())
            }
            Self::Zstandard => {
                let decoder = StreamingDecoder::new(bytes);
                read_all(decoder.map_err(io::Error::other)?, bytes.len())
            }
        }
    }
}

/// Decompresses `bytes` if they are compressed, otherwise returns them. An error says that they are damaged, that their content
/// is too large, or that memory is lacking.
pub(crate) fn decompressed(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(format) = PackedFormat::of(bytes) else {
        return Ok(Cow::Borrowed(bytes));
    };
    match format.decompress(bytes) {
        Ok(unpacked) => Ok(Cow::Owned(unpacked)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(error.to_string()),
        Err(error) => Err(format!("damaged compressed data: {error}")),
    }
}

/// Reads all decompressed data. More than the limit for `packed` bytes of compressed data is an error.
fn read_all(reader: impl Read, packed: usize) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    let limit = max_decompressed(packed).clamp(MIN_LIMIT, MAX_UNPACKED);
    read_to_end(reader.take(limit + 1), &mut unpacked)?;
    if unpacked.len() as u64 > limit {
        let reason = format!("its decompressed size exceeds {limit} bytes");
        return Err(io::Error::other(reason));
    }
    Ok(unpacked)
}

/// Returns the content of a compressed section. `None` if it is damaged, if its size differs from the size in the section's
/// header, or if the latter is implausible. Exception: zlib content that is larger is truncated to the size in the header.
#[must_use]
pub fn unpack_section(packed: CompressedData<'_>) -> Option<Vec<u8>> {
    if packed.uncompressed_size > max_decompressed(packed.data.len()) {
        return None;
    }
    match packed.format {
        CompressionFormat::Zstandard => {
            let size = usize::try_from(packed.uncompressed_size).ok()?;
            unpack_frames(packed.data, size)
        }
        // `object` decompresses at most the stated size, and rejects content that is smaller.
        _ => packed.decompress().ok().map(Cow::into_owned),
    }
}

/// Checks that memory is available for the content of a compressed section. An implausible size is not an error here;
/// [`unpack_section`] refuses it.
pub(crate) fn check_memory(packed: CompressedData<'_>) -> Result<(), OutOfMemory> {
    let is_plausible = packed.uncompressed_size <= max_decompressed(packed.data.len());
    let size = usize::try_from(packed.uncompressed_size).unwrap_or(usize::MAX);
    match is_plausible {
        true => reserve(&mut Vec::<u8>::new(), size),
        false => Ok(()),
    }
}

/// Maximum plausible size of the content of `packed` bytes of compressed data.
fn max_decompressed(packed: usize) -> u64 {
    (packed as u64).saturating_mul(MAX_EXPANSION)
}

/// Decompresses consecutive zstd frames, `size` bytes in total.
fn unpack_frames(mut packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    content.reserve_exact(size);
    while !packed.is_empty() {
        let decoder = match StreamingDecoder::new(&mut packed) {
            Ok(decoder) => decoder,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                // A skippable frame; its header has been read.
                packed = packed.get(usize::try_from(length).ok()?..)?;
                continue;
            }
            Err(_) => return None,
        };
        let one_too_many = (size - content.len()) as u64 + 1;
        decoder.take(one_too_many).read_to_end(&mut content).ok()?;
        if content.len() > size {
            return None;
        }
    }
    (content.len() == size).then_some(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `hello, hello, hello, hello` and a newline, compressed by gzip, xz and zstd.
    const GZIP: &[u8] = include_bytes!("unpack/hello.gz");
    const XZ: &[u8] = include_bytes!("unpack/hello.xz");
    const ZSTD: &[u8] = include_bytes!("unpack/hello.zst");

    #[test]
    fn all_formats_are_decompressed() {
        let text = b"hello, hello, hello, hello\n";
        for packed in [GZIP, XZ, ZSTD, text] {
            assert_eq!(decompressed(packed).as_deref(), Ok(&text[..]));
        }
        for packed in [GZIP, XZ, ZSTD] {
            assert!(decompressed(&packed[..packed.len() / 2]).is_err());
        }
    }

    /// Unpacks a section whose header states `uncompressed_size`.
    fn unpack_zstd(data: &[u8], uncompressed_size: u64) -> Option<Vec<u8>> {
        unpack_section(CompressedData {
            format: CompressionFormat::Zstandard,
            data,
            uncompressed_size,
        })
    }

    #[test]
    fn sections_have_the_stated_size() {
        // 27 bytes.
        let text = b"hello, hello, hello, hello\n";
        assert_eq!(unpack_zstd(ZSTD, 27).as_deref(), Some(&text[..]));
        let twice = [ZSTD, ZSTD].concat();
        assert_eq!(unpack_zstd(&twice, 54), Some([text, &text[..]].concat()));
        for wrong in [0, 26, 28, 54, 1 << 40] {
            assert_eq!(unpack_zstd(ZSTD, wrong), None, "{wrong}");
        }
        assert_eq!(unpack_zstd(&ZSTD[..20], 27), None);
    }

    /// A frame of `blocks` run-length blocks: 128 KiB each, compressed to four bytes (RFC 8878, 3.1.1.2).
    fn bomb(blocks: u32) -> Vec<u8> {
        // A window of 128 KiB, no size, no checksum.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
        for block in 1..=blocks {
            let header = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
            frame.extend(&header.to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    }

    #[test]
    fn decompression_bombs_are_rejected() {
        // Accepted in spite of the high compression ratio: below `MIN_LIMIT`.
        assert_eq!(
            decompressed(&bomb(1)).map(|bytes| bytes.len()),
            Ok(128 << 10)
        );
        let large = bomb(10_000);
        assert!(decompressed(&large).is_err_and(|error| error.contains("decompressed")));
        // The size in the section header is plausible, but the content is larger.
        assert_eq!(unpack_zstd(&large, 1000), None);
    }

    proptest! {
        #[test]
        fn damaged_data_does_not_panic(which in 0usize..3, at in 0usize..200, byte: u8, len in 0usize..200) {
            let mut packed = [GZIP, XZ, ZSTD][which].to_vec();
            let at = at % packed.len();
            packed[at] = byte;
            // Not shorter than a magic number.
            packed.truncate(len.max(8));
            drop(decompressed(&packed));
        }
    }
}
