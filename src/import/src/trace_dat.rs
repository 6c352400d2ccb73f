//! trace.dat, the recordings of trace-cmd, versions 6 and 7.
//!
//! ```text
//! 17 08 44 "tracing" version NUL, byte order u8, bytes of a long u8, page size u32
//! version 6: descriptions of events as in perf.data's TRACING_DATA, u32 count of CPUs,
//!            options, "flyrecord" NUL, for each CPU u64 offset and u64 size of its pages,
//!            with the option TRACECLOCK also u64 size and text of the clock
//! version 7: compression name NUL version NUL, u64 offset of the first section of options;
//!            options give the offsets of the other sections, and of the pages of each CPU
//! ```
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

mod kernel;
mod options;
mod ring;
mod sections;
mod write;

use std::borrow::Cow;

use rperf_tracepoint::TracingData;
use rperf_wire::{Cursor, DecodeError, Endian, until_nul};

use self::options::Options;
use self::ring::PageLayout;
use self::sections::Sections;
use crate::Error;

pub use self::kernel::KernelSymbols;
pub use self::write::Imported;

/// The first bytes of every trace.dat, and of the descriptions of events in a perf.data.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Whether a file begins like a trace.dat.
#[must_use]
pub fn is_trace_dat(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A parsed trace.dat.
#[derive(Debug)]
pub struct TraceDat<'d> {
    /// The descriptions of events, encoded as perf.data's TRACING_DATA.
    descriptions: Vec<u8>,
    layout: PageLayout,
    options: Options,
    cpus: Vec<CpuPages<'d>>,
    endian: Endian,
}

/// The pages of one CPU.
#[derive(Debug)]
struct CpuPages<'d> {
    cpu: u32,
    /// The pages, decompressed.
    pages: Cow<'d, [u8]>,
    /// Offset of the pages in the file.
    offset: u64,
}

/// The part of the header after the version, as far as it is the same in both versions.
#[derive(Debug, Clone, Copy)]
struct Head<'d> {
    endian: Endian,
    /// The bytes of the byte order, the size of a long and the page size.
    machine: &'d [u8],
    page_size: u32,
    /// Offset of the rest of the file.
    end: usize,
}

/// Returns a function that adds the part's name and offset to a decoding error.
fn at(offset: usize, part: &'static str) -> impl Fn(DecodeError) -> Error {
    move |source| Error::Field {
        offset: offset as u64,
        part,
        source,
    }
}

/// Reads text terminated by NUL.
fn take_text(from: &mut Cursor<'_>, field: &'static str) -> Result<String, DecodeError> {
    let text = until_nul(from.rest());
    from.take(text.len() + 1, field)?;
    Ok(String::from_utf8_lossy(text).into_owned())
}

impl<'d> TraceDat<'d> {
    /// Parses a file: descriptions of events, options, and the places of the events of each CPU.
    ///
    /// # Errors
    /// Not a trace.dat, a damaged part, or something that is not supported: the version, the compression, the kind of data, or a
    /// clock that does not count nanoseconds.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        if !is_trace_dat(bytes) {
            return Err(Error::Magic);
        }
        let mut start = Cursor::new(bytes, Endian::Little);
        let header = at(0, "header");
        start.take(MAGIC.len(), "magic").map_err(&header)?;
        let version = take_text(&mut start, "version").map_err(&header)?;
        let head = Head::parse(bytes, start.offset()).map_err(&header)?;
        let parsed = match version.as_str() {
            "6" => Self::version_6(bytes, head)?,
            "7" => Self::version_7(bytes, head)?,
            _ => return Err(Error::Version { version }),
        };
        parsed.options.check_clock()?;
        Ok(parsed)
    }

    fn version_6(bytes: &'d [u8], head: Head<'d>) -> Result<Self, Error> {
        let rest = bytes.get(head.end..).unwrap_or_default();
        let mut descriptions = head.tracing_data_start();
        let prefix_size = descriptions.len();
        // The size of the descriptions is known only after parsing them: until then, the rest of the file follows them here.
        descriptions.extend_from_slice(rest);
        let (data, section_size) =
            TracingData::parse_prefix(&descriptions).map_err(Error::Formats)?;
        let layout = PageLayout::parse(data.header_page, head.endian, head.page_size);
        descriptions.truncate(section_size);
        let descriptions_end = head.end + (section_size - prefix_size);
        let mut from = Cursor::new(bytes, head.endian);
        let failed = at(descriptions_end, "options");
        from.take(descriptions_end, "descriptions")
            .map_err(&failed)?;
        let count = from.u32("count of CPUs").map_err(&failed)?;
        let mut options = Options::new(head.endian);
        let mut kind_at = from.offset();
        let mut kind = take_kind(&mut from)?;
        if kind == "options  " {
            options.read_version_6(&mut from)?;
            kind_at = from.offset();
            kind = take_kind(&mut from)?;
        }
        if kind != "flyrecord" {
            return Err(Error::Part {
                offset: kind_at as u64,
                part: "data of CPUs",
                problem: format!("'{}' is not supported, only flyrecord is", kind.trim_end()),
            });
        }
        let mut cpus = Vec::new();
        for cpu in 0..count {
            let table = at(from.offset(), "table of CPUs");
            let offset = from.u64("offset").map_err(&table)?;
            let size = from.u64("size").map_err(&table)?;
            cpus.push(CpuPages {
                cpu,
                pages: Cow::Borrowed(part(bytes, offset, size, "pages of a CPU")?),
                offset,
            });
        }
        options.read_clock_after_cpus(&mut from);
        Ok(Self {
            descriptions,
            layout,
            options,
            cpus,
            endian: head.endian,
        })
    }

    fn version_7(bytes: &'d [u8], head: Head<'d>) -> Result<Self, Error> {
        let mut from = Cursor::new(bytes, head.endian);
        let header = at(head.end, "header");
        from.take(head.end, "header").map_err(&header)?;
        let compression = take_text(&mut from, "compression").map_err(&header)?;
        take_text(&mut from, "version of the compression").map_err(&header)?;
        let options_offset = from.u64("offset of the options").map_err(&header)?;
        let sections = Sections::new(bytes, head.endian, &compression)?;
        let mut options = Options::read_version_7(&sections, options_offset)?;
        let mut descriptions = head.tracing_data_start();
        // `empty` is the content for a section that the file does not have.
        for (id, empty) in sections::DESCRIPTIONS {
            descriptions.extend_from_slice(&options.section(&sections, id, empty)?);
        }
        let (data, _) = TracingData::parse_prefix(&descriptions).map_err(Error::Formats)?;
        let layout = PageLayout::parse(data.header_page, head.endian, head.page_size);
        let cpus = options.read_cpus(&sections)?;
        Ok(Self {
            descriptions,
            layout,
            options,
            cpus,
            endian: head.endian,
        })
    }

    /// The symbols of the traced kernel, if the trace has them.
    #[must_use]
    pub fn kernel_symbols(&self) -> Option<KernelSymbols<'_>> {
        let data = TracingData::parse(&self.descriptions).ok()?;
        KernelSymbols::new(data.kallsyms)
    }

    /// Names of the instances, whose events are not converted: perf.data has no separate buffers.
    #[must_use]
    pub fn instances(&self) -> &[String] {
        &self.options.instances
    }
}

impl<'d> Head<'d> {
    /// Parses the part of the header after the version. The part begins at `start`.
    fn parse(bytes: &'d [u8], start: usize) -> Result<Self, DecodeError> {
        let mut order = Cursor::new(bytes, Endian::Little);
        order.take(start, "version")?;
        let endian = match order.u8("byte order")? {
            0 => Endian::Little,
            _ => Endian::Big,
        };
        let mut from = Cursor::new(bytes, endian);
        from.take(start, "version")?;
        let machine = from.clone().take(6, "page size")?;
        from.take(2, "size of a long")?;
        let page_size = from.u32("page size")?;
        Ok(Self {
            endian,
            machine,
            page_size,
            end: from.offset(),
        })
    }

    /// The beginning of TRACING_DATA.
    fn tracing_data_start(&self) -> Vec<u8> {
        [MAGIC, b"0.6\0", self.machine].concat()
    }
}

/// Reads the ten bytes that name the next part.
fn take_kind(from: &mut Cursor<'_>) -> Result<String, Error> {
    let failed = at(from.offset(), "data of CPUs");
    let kind = from.take(10, "kind").map_err(failed)?;
    Ok(String::from_utf8_lossy(until_nul(kind)).into_owned())
}

/// Returns `size` bytes at `offset`; `part` names them in the error.
fn part<'d>(
    bytes: &'d [u8],
    offset: u64,
    size: u64,
    part: &'static str,
) -> Result<&'d [u8], Error> {
    let start = usize::try_from(offset).ok();
    let size = usize::try_from(size).ok();
    let found = start
        .zip(size)
        .and_then(|(start, size)| bytes.get(start..)?.get(..size));
    found.ok_or_else(|| Error::Part {
        offset,
        part,
        problem: format!("they end beyond the file, which has {} bytes", bytes.len()),
    })
}

#[cfg(test)]
mod tests;
