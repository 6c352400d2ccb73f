//! Sections of trace.dat version 7, and their compression.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use rperf_wire::{Cursor, DecodeError, Endian};
use ruzstd::decoding::StreamingDecoder;

use super::at;
use crate::Error;

/// The sections that describe the events; together they have the layout of perf.data's TRACING_DATA, in its order. For each, its
/// id, which is also the id of the option that holds its offset, and the content assumed if the section is missing. (The field
/// `description` of a section is something else: the offset of its name.)
pub(super) const DESCRIPTIONS: [(u16, &[u8]); 6] = [
    // HEADER_INFO: `header_page` and `header_event`. Every file has it: there is no valid empty content.
    (16, b""),
    // FTRACE_EVENTS.
    (17, &[0; 4]),
    // EVENT_FORMATS.
    (18, &[0; 4]),
    // KALLSYMS.
    (19, &[0; 4]),
    // PRINTK.
    (20, &[0; 4]),
    // CMDLINES.
    (21, &[0; 8]),
];
/// Flag of a compressed section.
const COMPRESSED: u16 = 1;
/// Maximum size of a decompressed section, or of a CPU's decompressed pages, in bytes.
const MAX_SIZE: u64 = 4 << 30;
/// Maximum ratio of uncompressed to compressed size. A chunk above it is taken as damaged.
const MAX_RATIO: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Zlib,
    Zstd,
}

/// Reads sections of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sections<'d> {
    bytes: &'d [u8],
    pub(super) endian: Endian,
    compression: Compression,
}

impl<'d> Sections<'d> {
    /// `compression` is the name in the file's header.
    pub(super) fn new(bytes: &'d [u8], endian: Endian, compression: &str) -> Result<Self, Error> {
        let compression = match compression {
            "none" => Compression::None,
            "zlib" => Compression::Zlib,
            "zstd" => Compression::Zstd,
            _ => {
                return Err(Error::Part {
                    offset: 0,
                    part: "header",
                    problem: format!("compression '{compression}' is unknown"),
                });
            }
        };
        Ok(Self {
            bytes,
            endian,
            compression,
        })
    }

    /// The rest of the file from an offset.
    fn cursor_at(&self, offset: u64) -> Cursor<'d> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        Cursor::new(self.bytes.get(start..).unwrap_or_default(), self.endian)
    }

    /// Returns the content of the section `id` at an offset, decompressed.
    pub(super) fn read(&self, id: u16, offset: u64) -> Result<Cow<'d, [u8]>, Error> {
        let failed = |source: DecodeError| Error::Field {
            offset,
            part: "section",
            source,
        };
        let mut from = self.cursor_at(offset);
        let stored_id = from.u16("id").map_err(failed)?;
        if stored_id != id {
            return Err(Error::Part {
                offset,
                part: "section",
                problem: format!("its id is {stored_id}, expected {id}"),
            });
        }
        let flags = from.u16("flags").map_err(failed)?;
        // Not needed: the offset of the section's name.
        from.u32("description").map_err(failed)?;
        let size = from.u64("size").map_err(failed)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let content = from.take(size, "content").map_err(failed)?;
        if flags & COMPRESSED == 0 {
            return Ok(Cow::Borrowed(content));
        }
        let mut from = Cursor::new(content, self.endian);
        let mut unpacked = Vec::new();
        self.unpack(&mut from, offset, &mut unpacked)?;
        Ok(Cow::Owned(unpacked))
    }

    /// Returns the pages of a CPU. In a compressed file, they are decompressed chunk by chunk.
    pub(super) fn pages(&self, offset: u64, size: u64) -> Result<Cow<'d, [u8]>, Error> {
        let stored = super::part(self.bytes, offset, size, "pages of a CPU")?;
        if self.compression == Compression::None || stored.is_empty() {
            return Ok(Cow::Borrowed(stored));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let failed = at(start, "compressed pages of a CPU");
        // The size in the file's table of CPUs does not include the count of chunks: the last chunk ends 4 bytes after `stored`.
        let mut from = self.cursor_at(offset);
        let count = from.u32("count of chunks").map_err(failed)?;
        let mut pages = Vec::new();
        for _ in 0..count {
            self.unpack(&mut from, offset, &mut pages)?;
        }
        Ok(Cow::Owned(pages))
    }

    /// Reads a chunk (its sizes, then its data), and appends its decompressed data to `unpacked`. `offset` is that of the section
    /// or pages, for errors.
    fn unpack(
        &self,
        from: &mut Cursor<'_>,
        offset: u64,
        unpacked: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let failed = |source: DecodeError| Error::Field {
            offset,
            part: "compressed data",
            source,
        };
        let stored = from.u32("compressed size").map_err(failed)?;
        let size = from.u32("uncompressed size").map_err(failed)?;
        // From here on, `stored` is the compressed data.
        let stored = from.take(stored as usize, "data").map_err(failed)?;
        let problem = |problem: String| Error::Part {
            offset,
            part: "compressed data",
            problem,
        };
        let before = unpacked.len();
        let is_plausible = u64::from(size) <= MAX_RATIO * stored.len() as u64;
        if !is_plausible || before as u64 + u64::from(size) > MAX_SIZE {
            let problem_text = format!(
                "{} bytes become {size}, which is not plausible",
                stored.len()
            );
            return Err(problem(problem_text));
        }
        // One more byte shows that the data exceed the stated size.
        let limit = u64::from(size) + 1;
        let read = match self.compression {
            Compression::Zlib => ZlibDecoder::new(stored).take(limit).read_to_end(unpacked),
            Compression::Zstd => StreamingDecoder::new(stored)
                .map_err(std::io::Error::other)
                .and_then(|decoder| decoder.take(limit).read_to_end(unpacked)),
            Compression::None => Err(std::io::Error::other("the file has no compression")),
        };
        read.map_err(|error| problem(error.to_string()))?;
        match unpacked.len() - before == size as usize {
            true => Ok(()),
            false => Err(problem(format!(
                "the decompressed data do not have {size} bytes"
            ))),
        }
    }
}
