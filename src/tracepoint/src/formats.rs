//! The tracepoints of a recording or a running kernel, by id. An [`EventFormat`] is the text of a format, a [`Tracepoint`] what
//! is parsed from it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rperf_wire::{Attr, Endian, EventType};

use crate::{Abi, Error, EventFormat, PrintkFormats, Tracepoint, TracingData};

/// Formats of tracepoints, by id.
///
/// Each format is parsed once, on first use, and then shared by all threads. Callers that read many
/// samples of an event should look up its tracepoint once and keep the [`Arc`].
#[derive(Debug, Clone, Default)]
pub struct Formats {
    descriptions: BTreeMap<u64, Arc<Description>>,
    printk: Arc<Printk>,
    /// In bytes; 0 if unknown.
    page_size: u32,
}

/// The format text of a tracepoint, and the parsed form.
#[derive(Debug)]
struct Description {
    system: String,
    text: Vec<u8>,
    abi: Abi,
    parsed: OnceLock<Result<Arc<Tracepoint>, Error>>,
}

/// The text of `printk_formats`, and the parsed form.
#[derive(Debug, Default)]
struct Printk {
    text: Vec<u8>,
    parsed: OnceLock<PrintkFormats>,
}

impl Formats {
    /// Loads the tracepoints of a recording's TRACING_DATA `section`. The raw data of its samples
    /// have the byte order `endian`.
    ///
    /// # Errors
    /// Those of [`TracingData::parse`]. A format that cannot be parsed is an error only when it is
    /// used.
    pub fn of_recording(section: &[u8], endian: Endian) -> Result<Self, Error> {
        let mut formats = Self::default();
        formats.add(section, endian)?;
        Ok(formats)
    }

    /// Adds the tracepoints of another section: a stream may contain several. A tracepoint with a
    /// different format replaces the earlier one of the same id. The kernel strings and the page
    /// size of the section replace those known so far, even if the section has none.
    ///
    /// # Errors
    /// Those of [`Formats::of_recording`]; then nothing is added.
    pub fn add(&mut self, section: &[u8], endian: Endian) -> Result<(), Error> {
        let data = TracingData::parse(section)?;
        let abi = Abi {
            endian,
            long_size: data.long_size,
        };
        for event in &data.events {
            self.insert(event, abi);
        }
        self.set_printk(data.printk_formats);
        self.page_size = data.page_size;
        Ok(())
    }

    /// Adds one tracepoint of a kernel with this ABI. A format without an id is ignored: no event
    /// can refer to it.
    pub fn insert(&mut self, event: &EventFormat<'_>, abi: Abi) {
        let Some(id) = event.id() else { return };
        // The same format again, as in each section of a stream, keeps what is already parsed.
        let is_same = |known: &Arc<Description>| {
            known.abi == abi && known.system == event.system && known.text == event.text
        };
        if !self.descriptions.get(&id).is_some_and(is_same) {
            let description = Description {
                system: event.system.to_owned(),
                text: event.text.to_vec(),
                abi,
                parsed: OnceLock::new(),
            };
            self.descriptions.insert(id, Arc::new(description));
        }
    }

    /// The page size of the recording kernel, in bytes; `None` if unknown.
    #[must_use]
    pub fn page_size(&self) -> Option<u32> {
        Some(self.page_size).filter(|size| *size > 0)
    }

    /// Sets the text of `printk_formats`: kernel strings by address.
    pub fn set_printk(&mut self, text: &[u8]) {
        if self.printk.text != text {
            self.printk = Arc::new(Printk {
                text: text.to_vec(),
                parsed: OnceLock::new(),
            });
        }
    }

    /// The tracepoint of the event with this attr.
    ///
    /// # Errors
    /// [`Error::NotATracepoint`], [`Error::Undescribed`], or the errors of [`Format::parse`].
    ///
    /// [`Format::parse`]: crate::Format::parse
    pub fn of_event(&self, attr: &Attr) -> Result<&Arc<Tracepoint>, &Error> {
        if attr.kind != EventType::TRACEPOINT {
            return Err(&Error::NotATracepoint);
        }
        let description = self.descriptions.get(&attr.config);
        let description = description.ok_or(&Error::Undescribed)?;
        let parsed = description.parsed.get_or_init(|| {
            let Description {
                system, text, abi, ..
            } = &**description;
            Tracepoint::parse(system, text, *abi).map(Arc::new)
        });
        parsed.as_ref()
    }

    /// The name `system:name` of the tracepoint with this id (`attr.config` of its event), also if
    /// its fields cannot be parsed. `None` if the tracepoint is unknown or its format has no name.
    #[must_use]
    pub fn name(&self, id: u64) -> Option<String> {
        let Description { system, text, .. } = &**self.descriptions.get(&id)?;
        let name = EventFormat { system, text }.name()?;
        Some(format!("{system}:{name}"))
    }

    /// Kernel strings by address.
    #[inline]
    pub fn printk(&self) -> &PrintkFormats {
        let Printk { text, parsed } = &*self.printk;
        parsed.get_or_init(|| PrintkFormats::parse(&String::from_utf8_lossy(text)))
    }
}
