//! One tracepoint of a kernel.

use std::sync::OnceLock;

use crate::{Abi, Error, Field, FieldReader, Format, PrintFmt};

/// A tracepoint with the format of the kernel that recorded its samples.
#[derive(Debug)]
pub struct Tracepoint {
    /// Its system, such as `sched`.
    pub system: String,
    /// Its fields and its `print fmt`.
    pub format: Format,
    /// Byte order and size of `long` of the kernel.
    pub abi: Abi,
    /// Readers of the event's own fields (not of the common ones), in the order of `format.fields`.
    readers: Vec<FieldReader>,
    print_fmt: OnceLock<PrintFmt>,
}

impl Tracepoint {
    /// Parses `text`, the content of the `format` file of a tracepoint of `system`. Invalid UTF-8
    /// is replaced.
    ///
    /// # Errors
    /// As [`Format::parse`].
    pub fn parse(system: &str, text: &[u8], abi: Abi) -> Result<Self, Error> {
        let text = String::from_utf8_lossy(text);
        let format = Format::parse(&text, abi.long_size.into())?;
        let fields = format.fields.iter();
        Ok(Self {
            system: system.to_owned(),
            readers: fields.map(|field| field.reader(abi.endian)).collect(),
            format,
            abi,
            print_fmt: OnceLock::new(),
        })
    }

    /// The full name, `system:name`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.system, self.format.name)
    }

    /// The event's own fields, without the common ones, each with its reader.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &FieldReader)> {
        self.format.fields.iter().zip(&self.readers)
    }

    /// A reader of the field of this name, which may be a common field; `None` if there is no such field.
    #[must_use]
    pub fn reader(&self, name: &str) -> Option<FieldReader> {
        Some(self.format.field(name)?.reader(self.abi.endian))
    }

    /// The `print fmt`, compiled on first use.
    #[inline]
    pub fn print_fmt(&self) -> &PrintFmt {
        self.print_fmt
            .get_or_init(|| PrintFmt::compile(&self.format, self.abi))
    }
}
