//! Options of a trace.dat, and the sections and pages that they refer to.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rperf_wire::{Cursor, Endian, until_nul};

use super::sections::Sections;
use super::{CpuPages, at, take_text};
use crate::Error;

/// Id of the option that ends a section of options. In version 7, it has the offset of the next such section, and the sections of
/// options have this id, too.
pub(super) const DONE: u16 = 0;
/// Id of the option of an instance: an offset of 8 bytes, then the instance's name. Version 7 has more after it, see `read_cpus`.
pub(super) const BUFFER: u16 = 3;
pub(super) const TRACECLOCK: u16 = 4;
pub(super) const UNAME: u16 = 5;
/// Clocks of tracefs that count nanoseconds.
const NANOSECOND_CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
/// Size in bytes of an entry of the table of CPUs: the CPU, and the offset and size of its pages.
const CPU_ENTRY: usize = 20;
/// Maximum number of sections of options; further sections are ignored.
const MAX_OPTION_SECTIONS: usize = 1000;

/// The options that the conversion uses.
#[derive(Debug)]
pub(super) struct Options {
    endian: Endian,
    /// System, host, release, version and machine, as from uname(2).
    pub(super) uname: Option<String>,
    /// Name of the trace's clock.
    clock: Option<String>,
    /// Names of the instances, without the top instance.
    pub(super) instances: Vec<String>,
    /// The option BUFFER of the top instance: offset of the section that contains the option, and the option's content. Only in
    /// version 7.
    top: Option<(u64, Vec<u8>)>,
    /// Id and first 8 bytes of each option other than BUFFER, TRACECLOCK and UNAME. In options that refer to a section, the bytes
    /// are the section's offset.
    section_offsets: Vec<(u16, u64)>,
    /// Whether the clock's name follows the table of CPUs. Only in version 6.
    has_clock_after_cpus: bool,
}

impl Options {
    pub(super) fn new(endian: Endian) -> Self {
        Self {
            endian,
            uname: None,
            clock: None,
            instances: Vec::new(),
            top: None,
            section_offsets: Vec::new(),
            has_clock_after_cpus: false,
        }
    }

    /// Reads the options of version 6, up to the last one. In this version, the top instance has no option BUFFER: its pages are
    /// in the table of CPUs.
    pub(super) fn read_version_6(&mut self, from: &mut Cursor<'_>) -> Result<(), Error> {
        loop {
            let failed = at(from.offset(), "option");
            let id = from.u16("id").map_err(&failed)?;
            if id == DONE {
                return Ok(());
            }
            let size = from.u32("size").map_err(&failed)?;
            let content = from.take(size as usize, "content").map_err(&failed)?;
            match id {
                BUFFER => {
                    let name = content.get(8..).unwrap_or_default();
                    let name = String::from_utf8_lossy(until_nul(name));
                    self.instances.push(name.into_owned());
                }
                TRACECLOCK => {
                    self.has_clock_after_cpus = true;
                    self.clock = selected_clock(content);
                }
                _ => self.keep_option(id, content),
            }
        }
    }

    /// Reads the clock's name after the table of CPUs in version 6. The name exists only with the option TRACECLOCK; it is
    /// ignored if truncated.
    pub(super) fn read_clock_after_cpus(&mut self, from: &mut Cursor<'_>) {
        if !self.has_clock_after_cpus {
            return;
        }
        let size = from.u64("size of the clock").unwrap_or_default();
        let text = usize::try_from(size).ok();
        let text = text.and_then(|size| from.take(size, "clock").ok());
        if let Some(text) = text {
            self.clock = selected_clock(text);
        }
    }

    /// Reads the options of version 7, from the section at `first` on.
    pub(super) fn read_version_7(sections: &Sections<'_>, first: u64) -> Result<Self, Error> {
        let mut options = Self::new(sections.endian);
        let mut next = first;
        let mut visited = BTreeSet::new();
        while next != 0 && visited.len() < MAX_OPTION_SECTIONS && visited.insert(next) {
            let offset = next;
            let section = sections.read(DONE, offset)?;
            let mut from = Cursor::new(&section, sections.endian);
            next = 0;
            while !from.rest().is_empty() {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let failed = at(start, "option");
                let id = from.u16("id").map_err(&failed)?;
                let size = from.u32("size").map_err(&failed)?;
                let content = from.take(size as usize, "content").map_err(&failed)?;
                match id {
                    DONE => {
                        next = sections.endian.u64_at(content, 0).unwrap_or_default();
                        break;
                    }
                    BUFFER => {
                        let name = content.get(8..).unwrap_or_default();
                        match until_nul(name) {
                            b"" => options.top = Some((offset, content.to_vec())),
                            name => {
                                let name = String::from_utf8_lossy(name);
                                options.instances.push(name.into_owned());
                            }
                        }
                    }
                    TRACECLOCK => options.clock = selected_clock(content),
                    _ => options.keep_option(id, content),
                }
            }
        }
        Ok(options)
    }

    /// Keeps an option other than BUFFER and TRACECLOCK.
    fn keep_option(&mut self, id: u16, content: &[u8]) {
        match id {
            UNAME => {
                let text = String::from_utf8_lossy(until_nul(content));
                self.uname = Some(text.into_owned());
            }
            _ => {
                if let Some(offset) = self.endian.u64_at(content, 0) {
                    self.section_offsets.push((id, offset));
                }
            }
        }
    }

    /// Returns the content of a section of version 7 that describes events; `empty` if no option refers to such a section. `id`
    /// is that of the section and of the option.
    pub(super) fn section<'d>(
        &self,
        sections: &Sections<'d>,
        id: u16,
        empty: &'static [u8],
    ) -> Result<Cow<'d, [u8]>, Error> {
        let section = self.section_offsets.iter().find(|(known, _)| *known == id);
        match section {
            Some((_, offset)) => sections.read(id, *offset),
            None => Ok(Cow::Borrowed(empty)),
        }
    }

    /// Returns the pages of each CPU in the top instance of version 7, and keeps the name of its clock.
    pub(super) fn read_cpus<'d>(
        &mut self,
        sections: &Sections<'d>,
    ) -> Result<Vec<CpuPages<'d>>, Error> {
        let Some((section_offset, content)) = &self.top else {
            return Err(Error::Empty);
        };
        let start = usize::try_from(*section_offset).unwrap_or(usize::MAX);
        let failed = at(start, "option for the events");
        let mut from = Cursor::new(content, self.endian);
        from.u64("offset of the section").map_err(&failed)?;
        take_text(&mut from, "instance").map_err(&failed)?;
        let clock = take_text(&mut from, "clock").map_err(&failed)?;
        check_clock(&clock)?;
        if !clock.is_empty() {
            self.clock = Some(clock);
        }
        // Some versions of trace-cmd write the size of a page before the count: 8 bytes precede the entries instead of 4.
        if from.rest().len() % CPU_ENTRY == 8 {
            from.u32("size of a page").map_err(&failed)?;
        }
        let count = from.u32("count of CPUs").map_err(&failed)?;
        let mut cpus = Vec::new();
        for _ in 0..count {
            let cpu = from.u32("CPU").map_err(&failed)?;
            let offset = from.u64("offset").map_err(&failed)?;
            let size = from.u64("size").map_err(&failed)?;
            cpus.push(CpuPages {
                cpu,
                pages: sections.pages(offset, size)?,
                offset,
            });
        }
        Ok(cpus)
    }

    /// Checks that the clock counts nanoseconds, if its name is known.
    pub(super) fn check_clock(&self) -> Result<(), Error> {
        self.clock.as_deref().map_or(Ok(()), check_clock)
    }

    /// Whether times come from `CLOCK_MONOTONIC`.
    pub(super) fn is_monotonic(&self) -> bool {
        self.clock.as_deref() == Some("mono")
    }
}

fn check_clock(clock: &str) -> Result<(), Error> {
    match clock.is_empty() || NANOSECOND_CLOCKS.contains(&clock) {
        true => Ok(()),
        false => Err(Error::Clock {
            clock: clock.to_owned(),
        }),
    }
}

/// Returns the selected clock in the text of tracefs' `trace_clock` (`local [mono] boot`). A text without brackets is the
/// name; `None` if the name is empty.
fn selected_clock(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(until_nul(text));
    let selected = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let name = selected.map_or(text.trim(), |(name, _)| name);
    (!name.is_empty()).then(|| name.to_owned())
}
