//! Encoding of TRACING_DATA.

use rperf_wire::{Encoder, Endian};

use super::{MAGIC, VERSION};

/// Builds a TRACING_DATA section from texts of tracefs.
#[derive(Debug, Clone)]
pub struct TracingDataBuilder {
    endian: Endian,
    long_size: u8,
    page_size: u32,
    header_page: Vec<u8>,
    header_event: Vec<u8>,
    /// Names of systems with the format texts of their events.
    systems: Vec<(String, Vec<Vec<u8>>)>,
    printk_formats: Vec<u8>,
    saved_cmdlines: Vec<u8>,
}

impl TracingDataBuilder {
    /// Creates a builder of a section without events, for a kernel with this byte order, longs of `long_size` bytes and pages of
    /// `page_size` bytes.
    #[must_use]
    pub fn new(endian: Endian, long_size: u8, page_size: u32) -> Self {
        Self {
            endian,
            long_size,
            page_size,
            header_page: Vec::new(),
            header_event: Vec::new(),
            systems: Vec::new(),
            printk_formats: Vec::new(),
            saved_cmdlines: Vec::new(),
        }
    }

    /// Sets the texts of `events/header_page` and `events/header_event`. `page` must be complete, since perf takes the size
    /// of a `long` from it, not from the section's own field. The first read(2) of `header_page` must have a buffer for the whole
    /// text: the kernel returns nothing to further reads of the open file.
    pub fn headers(&mut self, page: &[u8], event: &[u8]) -> &mut Self {
        self.header_page = page.to_vec();
        self.header_event = event.to_vec();
        self
    }

    /// Adds the `format` text of an event of `system`. Systems are written in the order of their
    /// first event, events in insertion order.
    pub fn event(&mut self, system: &str, format: &[u8]) -> &mut Self {
        let known = self.systems.iter_mut().find(|(name, _)| name == system);
        match known {
            Some((_, formats)) => formats.push(format.to_vec()),
            None => self
                .systems
                .push((system.to_owned(), vec![format.to_vec()])),
        }
        self
    }

    /// Sets the text of `printk_formats`.
    pub fn printk_formats(&mut self, text: &[u8]) -> &mut Self {
        self.printk_formats = text.to_vec();
        self
    }

    /// Sets the text of `saved_cmdlines`.
    pub fn saved_cmdlines(&mut self, text: &[u8]) -> &mut Self {
        self.saved_cmdlines = text.to_vec();
        self
    }

    /// Encodes the section.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = &mut Encoder::new(&mut bytes, self.endian);
        to.bytes(MAGIC);
        put_name(to, VERSION);
        to.bytes(&[u8::from(self.endian == Endian::Big), self.long_size]);
        to.u32(self.page_size);
        put_name(to, "header_page");
        put_u64_text(to, &self.header_page);
        put_name(to, "header_event");
        put_u64_text(to, &self.header_event);
        let no_ftrace = 0;
        to.u32(no_ftrace);
        put_count(to, self.systems.len());
        for (system, formats) in &self.systems {
            put_name(to, system);
            put_count(to, formats.len());
            for format in formats {
                put_u64_text(to, format);
            }
        }
        let no_kallsyms = 0;
        to.u32(no_kallsyms);
        put_u32_text(to, &self.printk_formats);
        put_u64_text(to, &self.saved_cmdlines);
        bytes
    }
}

fn put_name(to: &mut Encoder<'_>, name: &str) {
    to.bytes(name.as_bytes());
    to.zeros(1);
}

fn put_count(to: &mut Encoder<'_>, count: usize) {
    to.u32(u32::try_from(count).unwrap_or(u32::MAX));
}

fn put_u32_text(to: &mut Encoder<'_>, text: &[u8]) {
    put_count(to, text.len());
    to.bytes(text);
}

fn put_u64_text(to: &mut Encoder<'_>, text: &[u8]) {
    to.u64(text.len() as u64);
    to.bytes(text);
}
