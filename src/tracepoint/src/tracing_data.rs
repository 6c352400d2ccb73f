//! TRACING_DATA: the formats of the recording kernel's tracepoints, in the file format of
//! trace-cmd.
//!
//! ```text
//! 0x17 0x08 0x44 "tracing" version NUL       version "0.6"; up to "0.5" without saved_cmdlines
//! endian u8 (1: big), long size u8, page size u32
//! "header_page" NUL, u64 size, text           fields of a ring buffer page
//! "header_event" NUL, u64 size, text
//! u32 count, { u64 size, text }               formats of ftrace's own events
//! u32 count, { system NUL, u32 count, { u64 size, text } }
//! u32 size, text                              kallsyms; empty since Linux 3.17
//! u32 size, text                              printk_formats
//! u64 size, text                              saved_cmdlines
//! ```

use std::borrow::Cow;

mod builder;

use rperf_wire::{Cursor, DecodeError, Endian, until_nul};

use crate::Error;

pub use builder::TracingDataBuilder;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The version written by perf 6.1.
const VERSION: &str = "0.6";

/// The content of a TRACING_DATA section, borrowed from the section's bytes: the formats of the recorded tracepoints, and texts
/// for printing their samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracingData<'a> {
    /// Version of the layout, such as `0.6`.
    pub version: &'a str,
    /// Byte order of the recording machine and of all numbers in the section.
    pub endian: Endian,
    /// Size of a `long` of the recording kernel in bytes.
    pub long_size: u8,
    /// Page size of the recording kernel in bytes.
    pub page_size: u32,
    /// Text of `events/header_page`.
    pub header_page: &'a [u8],
    /// Text of `events/header_event`.
    pub header_event: &'a [u8],
    /// Texts of the format files of ftrace's own events; usually none.
    pub ftrace: Vec<&'a [u8]>,
    /// Tracepoints in file order.
    pub events: Vec<EventFormat<'a>>,
    /// Text of `/proc/kallsyms`; empty in sections written by perf since Linux 3.17.
    pub kallsyms: &'a [u8],
    /// Text of `printk_formats`: kernel strings by address.
    pub printk_formats: &'a [u8],
    /// Text of `saved_cmdlines`: command names by thread.
    pub saved_cmdlines: &'a [u8],
}

/// The format of one tracepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventFormat<'a> {
    /// Its system, such as `sched`.
    pub system: &'a str,
    /// Text of its `format` file.
    pub text: &'a [u8],
}

impl<'a> EventFormat<'a> {
    /// The text of the format file; invalid UTF-8 is replaced.
    #[must_use]
    pub fn to_str(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.text)
    }

    /// The name in the format, without the system. `None` without a valid `name:` line.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.line("name:")
    }

    /// The id in the format: `attr.config` of the event. `None` without a valid `ID:` line.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        self.line("ID:")?.parse().ok()
    }

    /// The text after `key` in the first line that begins with it, trimmed; `None` if it is not UTF-8.
    fn line(&self, key: &str) -> Option<&'a str> {
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(key.as_bytes()))?;
        str::from_utf8(value).ok().map(str::trim)
    }
}

/// Reads text terminated by NUL; empty if it is not UTF-8.
fn take_name<'a>(at: &mut Cursor<'a>, field: &'static str) -> Result<&'a str, DecodeError> {
    let have = at.rest().len();
    let name = until_nul(at.rest());
    let text = str::from_utf8(name).unwrap_or_default();
    let has_no_nul = name.len() == have;
    if has_no_nul {
        let offset = at.offset();
        let need = have + 1;
        return Err(DecodeError::Short {
            field,
            offset,
            need,
            have,
        });
    }
    at.take(name.len() + 1, field)?;
    Ok(text)
}

/// Reads `size` bytes.
fn take_text<'a>(
    at: &mut Cursor<'a>,
    size: u64,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    at.take(usize::try_from(size).unwrap_or(usize::MAX), field)
}

fn take_u64_text<'a>(at: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let size = at.u64(field)?;
    take_text(at, size, field)
}

fn take_u32_text<'a>(at: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8], DecodeError> {
    let size = at.u32(field)?;
    take_text(at, size.into(), field)
}

impl<'a> TracingData<'a> {
    /// Parses the section. Bytes after its end are ignored.
    ///
    /// # Errors
    /// [`Error::Magic`] if the bytes don't begin like tracing data, [`Error::Section`] if they are
    /// truncated; the offset in the error counts from the start of the section.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::parse_prefix(bytes).map(|(data, _)| data)
    }

    /// Parses like [`TracingData::parse`], and also returns the size of the section in bytes: in a trace.dat file of
    /// trace-cmd (version 6), other data follow the same content.
    ///
    /// # Errors
    /// Those of [`TracingData::parse`].
    pub fn parse_prefix(bytes: &'a [u8]) -> Result<(Self, usize), Error> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::Magic);
        }
        Self::decode(bytes).map_err(|source| Error::Section { source })
    }

    fn decode(bytes: &'a [u8]) -> Result<(Self, usize), DecodeError> {
        let mut start = Cursor::new(bytes, Endian::Little);
        start.take(MAGIC.len(), "magic")?;
        let version = take_name(&mut start, "version")?;
        let endian = match start.u8("byte order")? {
            0 => Endian::Little,
            _ => Endian::Big,
        };
        // The following numbers are in the byte order that was just read. The new cursor skips what `start` has read.
        let at = &mut Cursor::new(bytes, endian);
        at.take(start.offset(), "magic")?;
        let long_size = at.u8("size of long")?;
        let page_size = at.u32("page size")?;
        take_name(at, "header_page")?;
        let header_page = take_u64_text(at, "header_page")?;
        take_name(at, "header_event")?;
        let header_event = take_u64_text(at, "header_event")?;
        let data = Self {
            version,
            endian,
            long_size,
            page_size,
            header_page,
            header_event,
            ftrace: take_ftrace(at)?,
            events: take_events(at)?,
            kallsyms: take_u32_text(at, "kallsyms")?,
            printk_formats: take_u32_text(at, "printk_formats")?,
            saved_cmdlines: match version {
                "0.1" | "0.2" | "0.3" | "0.4" | "0.5" => &[],
                _ => take_u64_text(at, "saved_cmdlines")?,
            },
        };
        Ok((data, at.offset()))
    }
}

fn take_ftrace<'a>(at: &mut Cursor<'a>) -> Result<Vec<&'a [u8]>, DecodeError> {
    let count = at.u32("count of ftrace formats")?;
    (0..count)
        .map(|_| take_u64_text(at, "ftrace format"))
        .collect()
}

fn take_events<'a>(at: &mut Cursor<'a>) -> Result<Vec<EventFormat<'a>>, DecodeError> {
    let mut events = Vec::new();
    for _ in 0..at.u32("count of systems")? {
        let system = take_name(at, "system")?;
        for _ in 0..at.u32("count of formats")? {
            let text = take_u64_text(at, "event format")?;
            events.push(EventFormat { system, text });
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &[u8] = b"name: sched_switch\nID: 372\nformat:\n";
    const WAKEUP: &[u8] = b"name: sched_wakeup\nID: 374\nformat:\n";
    const SOFTIRQ: &[u8] = b"name: softirq_entry\nID: 223\nformat:\n";

    fn builder(endian: Endian) -> TracingDataBuilder {
        let (long_size, page_size) = (8, 4096);
        let mut builder = TracingDataBuilder::new(endian, long_size, page_size);
        builder
            .headers(b"page", b"event")
            .event("sched", SWITCH)
            .event("irq", SOFTIRQ)
            .event("sched", WAKEUP)
            .printk_formats(b"0xffffffff81000000 : \"text\\n\"\n")
            .saved_cmdlines(b"1 init\n");
        builder
    }

    #[test]
    fn encoded_tracing_data_is_parsed() {
        for endian in [Endian::Little, Endian::Big] {
            let bytes = builder(endian).encode();
            let data = TracingData::parse(&bytes).expect("own section");
            assert_eq!((data.version, data.endian), ("0.6", endian));
            assert_eq!((data.long_size, data.page_size), (8, 4096));
            assert_eq!(
                (data.header_page, data.header_event),
                (&b"page"[..], &b"event"[..])
            );
            let events = data.events.iter().map(|event| (event.system, event.text));
            let events: Vec<_> = events.collect();
            // The builder writes the events of one system together.
            assert_eq!(
                events,
                [("sched", SWITCH), ("sched", WAKEUP), ("irq", SOFTIRQ)]
            );
            assert!(data.printk_formats.ends_with(b"\"text\\n\"\n"));
            assert_eq!(data.saved_cmdlines, b"1 init\n");
        }
    }

    #[test]
    fn the_old_version_has_no_command_lines() {
        let mut bytes = builder(Endian::Little).saved_cmdlines(b"").encode();
        // Without the size of the empty text, and with 5 as the last digit of the version.
        bytes.truncate(bytes.len() - 8);
        bytes[MAGIC.len() + 2] = b'5';
        let data = TracingData::parse(&bytes).expect("version 0.5");
        assert_eq!((data.version, data.saved_cmdlines), ("0.5", &b""[..]));
    }

    #[test]
    fn truncated_tracing_data_is_an_error_at_every_length() {
        let bytes = builder(Endian::Little).encode();
        for length in 0..bytes.len() {
            let error = TracingData::parse(&bytes[..length]).expect_err("truncated");
            let is_in_magic = length < MAGIC.len();
            assert_eq!(
                matches!(error, Error::Magic),
                is_in_magic,
                "{length}: {error}"
            );
        }
    }
}
