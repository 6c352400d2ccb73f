//! Pages of the kernel's trace ring buffer.
//!
//! ```text
//! page   timestamp u64, commit (a long: bytes of events and flags), events
//! event  type_len 5 bits, time_delta 27 bits; the lower bits first in little-endian files
//!        1..=28  data of type_len words
//!        0       u32 length, which includes itself, and data
//!        29      padding: the rest of the page if time_delta is 0, otherwise a discarded event, with a length as for 0
//!        30      u32 word: time_delta + (word << 27) is added to the time
//!        31      u32 word: time_delta + (word << 27) is the time, without its five upper bits
//! ```
//!
//! Source: `events/header_page` and `events/header_event` in tracefs, and include/linux/ring_buffer.h.

use rperf_wire::Endian;

use crate::Error;

const TIME_DELTA_BITS: u32 = 27;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time in a `TIME_STAMP`; the upper bits are equal to the upper bits of the time before it.
const TIME_STAMP_BITS: u32 = 59;
/// Flag of `commit`: events were overwritten before the page.
const MISSED_EVENTS: u64 = 1 << 31;
/// Flag of `commit`: the number of overwritten events follows the page's events.
const MISSED_STORED: u64 = 1 << 30;
/// Bits of `commit` with the size of the events in bytes.
const LENGTH: u64 = (1 << 27) - 1;

/// The minimum size of a page in bytes. Smaller sizes are ignored: the header must fit, and [`RingEvents`] must advance.
const MIN_PAGE_SIZE: usize = 64;

/// The layout of pages, by `events/header_page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLayout {
    pub(super) endian: Endian,
    /// Size of a page in bytes.
    size: usize,
    /// Offset and size of `commit` in bytes.
    commit: (usize, usize),
    /// Offset of the events.
    data: usize,
}

impl PageLayout {
    /// Parses the text of `header_page`. Missing fields are assumed to be as in 64-bit kernels. If the text does not contain the
    /// size of a page, it is `page_size` bytes, at least [`MIN_PAGE_SIZE`].
    pub(super) fn parse(text: &[u8], endian: Endian, page_size: u32) -> Self {
        let text = String::from_utf8_lossy(text);
        // Offset and size of a field.
        let field = |name: &str| {
            let mut lines = text.lines();
            let line = lines.find(|line| {
                let declared = line.split(';').next().unwrap_or_default();
                declared.rsplit([' ', '\t']).next() == Some(name)
            })?;
            let number = |key: &str| {
                let parts = line.split(';').map(str::trim);
                let mut values = parts.filter_map(|part| part.strip_prefix(key));
                values.next()?.parse::<usize>().ok()
            };
            Some((number("offset:")?, number("size:")?))
        };
        let commit = field("commit").filter(|(_, size)| matches!(size, 4 | 8));
        let data = field("data");
        let size = data.and_then(|(offset, size)| offset.checked_add(size));
        Self {
            endian,
            size: size
                .filter(|size| *size >= MIN_PAGE_SIZE)
                .unwrap_or((page_size as usize).max(MIN_PAGE_SIZE)),
            commit: commit.unwrap_or((8, 8)),
            data: data.map_or(16, |(offset, _)| offset),
        }
    }
}

/// An item in the pages of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingItem<'p> {
    /// An event: its time in nanoseconds of the trace's clock, and its data.
    Event { time: u64, raw: &'p [u8] },
    /// Events were overwritten before this time; `count` is their number, if known.
    Lost { time: u64, count: Option<u64> },
}

/// Iterates over the events and losses in the pages of one CPU.
#[derive(Debug, Clone)]
pub(super) struct RingEvents<'p> {
    layout: PageLayout,
    pages: &'p [u8],
    /// Offset of the pages in the file. In errors, the offset in `pages` is added to it; the sum is inexact if the pages are
    /// compressed in the file.
    origin: u64,
    /// Offset of the current page in `pages`.
    page: usize,
    /// Offset of the page after the current one in `pages`.
    next_page: usize,
    /// Offset in the current page of its next entry: an event, padding or a time.
    at: usize,
    /// End of the entries of the current page.
    end: usize,
    /// Time of the last entry.
    time: u64,
}

impl<'p> RingEvents<'p> {
    pub(super) fn new(layout: PageLayout, pages: &'p [u8], origin: u64) -> Self {
        Self {
            layout,
            pages,
            origin,
            page: 0,
            next_page: 0,
            at: 0,
            end: 0,
            time: 0,
        }
    }

    /// The error for a problem at the offset `at` of the current page.
    fn error(&self, problem: String) -> Error {
        Error::Part {
            offset: self.origin + (self.page + self.at) as u64,
            part: "ring buffer page",
            problem,
        }
    }

    /// Reads the header of the next page; returns the loss before the page, if any.
    fn open_page(&mut self) -> Result<Option<RingItem<'p>>, Error> {
        self.page = self.next_page;
        self.next_page = self.page.saturating_add(self.layout.size);
        let page = self.current_page();
        let PageLayout {
            endian,
            commit: (offset, size),
            data,
            ..
        } = self.layout;
        let word = |at: usize, size: usize| match size {
            4 => endian.u32_at(page, at).map(u64::from),
            _ => endian.u64_at(page, at),
        };
        let header = endian.u64_at(page, 0).zip(word(offset, size));
        let Some((time, commit)) = header else {
            self.at = 0;
            return Err(self.error("the page is truncated".to_owned()));
        };
        let length = usize::try_from(commit & LENGTH).unwrap_or(usize::MAX);
        let end = data.saturating_add(length);
        if end > page.len() {
            self.at = offset;
            return Err(self.error(format!("{length} bytes of events do not fit into the page")));
        }
        (self.at, self.end, self.time) = (data, end, time);
        if commit & MISSED_EVENTS == 0 {
            return Ok(None);
        }
        let stored = commit & MISSED_STORED != 0;
        let count = if stored { word(end, size) } else { None };
        Ok(Some(RingItem::Lost { time, count }))
    }

    fn current_page(&self) -> &'p [u8] {
        let rest = self.pages.get(self.page..).unwrap_or_default();
        rest.get(..self.layout.size).unwrap_or(rest)
    }

    /// Reads the next entry of the page; `None` if it is padding, a discarded event or a time.
    fn entry(&mut self) -> Result<Option<RingItem<'p>>, Error> {
        let events = self.current_page().get(..self.end).unwrap_or_default();
        let endian = self.layout.endian;
        let Some(header) = endian.u32_at(events, self.at) else {
            return Err(self.error("an event is truncated".to_owned()));
        };
        let (kind, delta) = match endian {
            Endian::Little => (header & 31, header >> 5),
            Endian::Big => (
                header >> TIME_DELTA_BITS,
                header & ((1 << TIME_DELTA_BITS) - 1),
            ),
        };
        // The word after the header: a part of a time, a length, or data.
        let word_at = self.at + 4;
        let word = endian.u32_at(events, word_at);
        // For a TIME_STAMP, the time; for a TIME_EXTEND, the difference to the time of the last entry.
        let extended = word.map(|word| (u64::from(word) << TIME_DELTA_BITS) + u64::from(delta));
        let (start, length) = match kind {
            PADDING if delta == 0 => {
                self.at = self.end;
                return Ok(None);
            }
            TIME_EXTEND | TIME_STAMP => {
                let Some(value) = extended else {
                    return Err(self.error("a time is truncated".to_owned()));
                };
                self.time = match kind {
                    TIME_EXTEND => self.time.wrapping_add(value),
                    _ => complete_time(value, self.time),
                };
                self.at = word_at + 4;
                return Ok(None);
            }
            0 | PADDING => {
                let length = word.and_then(|word| word.checked_sub(4));
                (word_at + 4, length.map(|length| length as usize))
            }
            words => (word_at, Some(words as usize * 4)),
        };
        self.time = self.time.wrapping_add(u64::from(delta));
        let raw = length.and_then(|length| events.get(start..)?.get(..length));
        let Some(raw) = raw else {
            return Err(self.error("an event does not fit into the page".to_owned()));
        };
        // Events are aligned to 4 bytes, even if their length is in bytes.
        self.at = start + raw.len().next_multiple_of(4);
        let time = self.time;
        Ok((kind != PADDING).then_some(RingItem::Event { time, raw }))
    }
}

/// Adds the upper bits of the time `before` to the lower bits of an absolute time. Times do not decrease, so a smaller
/// result means that the lower bits overflowed.
fn complete_time(lower: u64, before: u64) -> u64 {
    let upper = before >> TIME_STAMP_BITS << TIME_STAMP_BITS;
    let time = upper | lower & ((1 << TIME_STAMP_BITS) - 1);
    match time < before {
        true => time.wrapping_add(1 << TIME_STAMP_BITS),
        false => time,
    }
}

impl<'p> Iterator for RingEvents<'p> {
    type Item = Result<RingItem<'p>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let result = if self.at < self.end {
                self.entry()
            } else if self.next_page < self.pages.len() {
                self.open_page()
            } else {
                return None;
            };
            match result {
                Ok(None) => {}
                Ok(Some(item)) => return Some(Ok(item)),
                Err(error) => {
                    // No further items.
                    self.next_page = self.pages.len();
                    (self.at, self.end) = (0, 0);
                    return Some(Err(error));
                }
            }
        }
    }
}
