//! The tracepoints of a recording, or of a running kernel, by their numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rperf_wire::{Attr, Endian, EventType};

use crate::{Abi, Error, EventFormat, PrintkFormats, Tracepoint, TracingData};

/// Descriptions of tracepoints: the one place where an event finds its format.
///
/// Each is parsed once, when it is first asked for, whichever thread asks, and is shared from then on. Whoever reads many
/// samples of an event asks once and keeps the [`Arc`].
#[derive(Debug, Clone, Default)]
pub struct Formats {
    described: BTreeMap<u64, Arc<Description>>,
    printk: Arc<Printk>,
}

/// The text that describes a tracepoint, and what was made of it.
#[derive(Debug)]
struct Description {
    system: String,
    text: Vec<u8>,
    abi: Abi,
    parsed: OnceLock<Result<Arc<Tracepoint>, Error>>,
}

/// The text of `printk_formats`, and what was made of it.
#[derive(Debug, Default)]
struct Printk {
    text: Vec<u8>,
    parsed: OnceLock<PrintkFormats>,
}

impl Formats {
    /// The tracepoints that the TRACING_DATA `section` of a recording describes. The raw data of its samples are in the byte
    /// order `endian`.
    ///
    /// # Errors
    /// As [`TracingData::parse`]. A description that cannot be parsed is an error when it is asked for.
    pub fn of_recording(section: &[u8], endian: Endian) -> Result<Self, Error> {
        let mut formats = Self::default();
        formats.add(section, endian)?;
        Ok(formats)
    }

    /// Adds what a further section describes, as streams may bring. A tracepoint that is described anew replaces the one
    /// before, unless nothing about it is new.
    ///
    /// # Errors
    /// As [`Formats::of_recording`]; then nothing is added.
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
        Ok(())
    }

    /// Adds one tracepoint, of this kernel or another. One whose text has no number is left out: no event refers to it.
    pub fn insert(&mut self, event: &EventFormat<'_>, abi: Abi) {
        let Some(id) = event.id() else { return };
        let is_same = |known: &Arc<Description>| {
            known.abi == abi && known.system == event.system && known.text == event.text
        };
        if !self.described.get(&id).is_some_and(is_same) {
            let description = Description {
                system: event.system.to_owned(),
                text: event.text.to_vec(),
                abi,
                parsed: OnceLock::new(),
            };
            self.described.insert(id, Arc::new(description));
        }
    }

    /// Sets the text of `printk_formats`: strings of the kernel by address.
    pub fn set_printk(&mut self, text: &[u8]) {
        if self.printk.text != text {
            self.printk = Arc::new(Printk {
                text: text.to_vec(),
                parsed: OnceLock::new(),
            });
        }
    }

    /// The tracepoint whose samples the event with this attr has.
    ///
    /// # Errors
    /// [`Error::NotATracepoint`], [`Error::Undescribed`], or why its description cannot be parsed: see [`Format::parse`].
    ///
    /// [`Format::parse`]: crate::Format::parse
    pub fn of_event(&self, attr: &Attr) -> Result<&Arc<Tracepoint>, &Error> {
        if attr.kind != EventType::TRACEPOINT {
            return Err(&Error::NotATracepoint);
        }
        let description = self.described.get(&attr.config);
        let description = description.ok_or(&Error::Undescribed)?;
        let parsed = description.parsed.get_or_init(|| {
            let Description {
                system, text, abi, ..
            } = &**description;
            Tracepoint::parse(system, text, *abi).map(Arc::new)
        });
        parsed.as_ref()
    }

    /// The name `system:name` of the tracepoint with that number, `attr.config` of its event. Nothing is parsed for it.
    #[must_use]
    pub fn name(&self, id: u64) -> Option<String> {
        let Description { system, text, .. } = &**self.described.get(&id)?;
        let name = EventFormat { system, text }.name()?;
        Some(format!("{system}:{name}"))
    }

    /// Strings of the kernel by address.
    #[inline]
    pub fn printk(&self) -> &PrintkFormats {
        let Printk { text, parsed } = &*self.printk;
        parsed.get_or_init(|| PrintkFormats::parse(&String::from_utf8_lossy(text)))
    }
}
