//! Whole files and sections that are compressed: kernel modules, and the small symbol table in `.gnu_debugdata`.

use std::borrow::Cow;
use std::io::{self, Read};

/// No module and no symbol table is longer than that unpacked; a stream that is, is a bomb.
const MAX_UNPACKED: u64 = 1 << 30;

/// How bytes are compressed, as their first ones tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Xz,
    Zstandard,
}

impl Packing {
    /// `None` for bytes that are not compressed in a way we know.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }

    fn unpack(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => read_all(flate2::read::MultiGzDecoder::new(bytes)),
            Self::Xz => read_all(lzma_rust2::XzReader::new(bytes, true)),
            Self::Zstandard => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
                read_all(decoder.map_err(io::Error::other)?)
            }
        }
    }
}

/// `bytes`, unpacked if they are compressed. `Err` says what is wrong with them.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(packing) = Packing::of(bytes) else {
        return Ok(Cow::Borrowed(bytes));
    };
    match packing.unpack(bytes) {
        Ok(unpacked) => Ok(Cow::Owned(unpacked)),
        Err(error) => Err(format!("damaged compressed data: {error}")),
    }
}

fn read_all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    reader.take(MAX_UNPACKED + 1).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 > MAX_UNPACKED {
        return Err(io::Error::other("it is longer than a gigabyte unpacked"));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `hello, hello, hello, hello\n` as gzip, xz and zstd write it.
    const GZIP: &[u8] = include_bytes!("unpack/hello.gz");
    const XZ: &[u8] = include_bytes!("unpack/hello.xz");
    const ZSTD: &[u8] = include_bytes!("unpack/hello.zst");

    #[test]
    fn three_ways_of_packing() {
        let text = b"hello, hello, hello, hello\n";
        for packed in [GZIP, XZ, ZSTD, text] {
            assert_eq!(unpacked(packed).as_deref(), Ok(&text[..]));
        }
        for packed in [GZIP, XZ, ZSTD] {
            assert!(unpacked(&packed[..packed.len() / 2]).is_err());
        }
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_other_bytes(which in 0usize..3, at in 0usize..200, byte: u8, len in 0usize..200) {
            let mut packed = [GZIP, XZ, ZSTD][which].to_vec();
            let at = at % packed.len();
            packed[at] = byte;
            packed.truncate(len.max(8));
            drop(unpacked(&packed));
        }
    }
}
