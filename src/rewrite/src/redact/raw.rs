//! Redacts the raw data of tracepoints.

use rperf_perfdata::EventDesc;
use rperf_tracepoint::{Field, FieldReader, Formats};
use rperf_wire::Endian;

use super::replacements::{NameKind, Replacements};

/// Bytes of the common fields: type, flags, preemption, process.
const COMMON: usize = 8;

/// How the raw data of an event's samples are redacted: the common fields and numbers of tracepoints are kept, addresses and text
/// are replaced, the rest is 0.
#[derive(Debug, Default)]
pub(super) struct RawRedaction {
    fields: Vec<RawField>,
    /// Whether the data begin with the common fields.
    is_tracepoint: bool,
}

#[derive(Debug)]
struct RawField {
    reader: FieldReader,
    offset: usize,
    size: usize,
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Number,
    /// A number that may be an address.
    Address,
    Text(NameKind),
    /// Text at the offset that the field contains.
    DynamicText(NameKind),
}

impl RawRedaction {
    /// The redaction of an event's raw data.
    pub(super) fn new(event: &EventDesc, formats: &Formats) -> Self {
        let Ok(format) = formats.of_event(&event.attr) else {
            return Self::default();
        };
        let fields = format.fields().filter_map(|(field, reader)| {
            Some(RawField {
                reader: *reader,
                offset: field.offset,
                size: field.size,
                content: content(field, reader)?,
            })
        });
        Self {
            fields: fields.collect(),
            is_tracepoint: true,
        }
    }

    /// Returns the redacted data, which have the same length.
    pub(super) fn apply(&self, raw: &[u8], endian: Endian, names: &mut Replacements) -> Vec<u8> {
        let mut to = vec![0; raw.len()];
        if self.is_tracepoint {
            copy(raw, &mut to, 0, COMMON);
        }
        for field in &self.fields {
            match field.content {
                Content::Number => copy(raw, &mut to, field.offset, field.size),
                Content::Address => address(raw, &mut to, field.offset, endian, names),
                Content::Text(kind) => text(field, kind, raw, &mut to, names),
                Content::DynamicText(kind) => {
                    copy(raw, &mut to, field.offset, field.size);
                    text(field, kind, raw, &mut to, names);
                }
            }
        }
        to
    }
}

/// The type of a field's content; `None` for data that are not kept.
fn content(field: &Field, reader: &FieldReader) -> Option<Content> {
    let kind = match field.name.contains("comm") {
        true => NameKind::Task,
        false => NameKind::Text,
    };
    match field {
        _ if reader.is_text() && field.is_dynamic => Some(Content::DynamicText(kind)),
        _ if reader.is_text() => Some(Content::Text(kind)),
        Field {
            size: 8,
            is_signed: false,
            ..
        } if reader.is_number() => Some(Content::Address),
        _ if reader.is_number() => Some(Content::Number),
        _ => None,
    }
}

fn copy(raw: &[u8], to: &mut [u8], offset: usize, size: usize) {
    let end = offset.saturating_add(size);
    if let (Some(from), Some(to)) = (raw.get(offset..end), to.get_mut(offset..end)) {
        to.copy_from_slice(from);
    }
}

/// Copies a number, or the replacement of an address.
fn address(raw: &[u8], to: &mut [u8], offset: usize, endian: Endian, names: &Replacements) {
    /// Usual addresses of position-independent 64-bit programs, libraries and stacks.
    const USER: std::ops::Range<u64> = 0x0000_5000_0000_0000..0x0000_8000_0000_0000;
    /// Addresses of the kernel. Negative error numbers are above them.
    const KERNEL: std::ops::Range<u64> = 0xffff_0000_0000_0000..0xffff_ffff_ffff_f000;
    let Some(number) = endian.u64_at(raw, offset) else {
        return;
    };
    let is_address = USER.contains(&number) || KERNEL.contains(&number);
    let number = if is_address {
        names.of_address(number)
    } else {
        number
    };
    let bytes = match endian {
        Endian::Little => number.to_le_bytes(),
        Endian::Big => number.to_be_bytes(),
    };
    if let Some(place) = to.get_mut(offset..offset + size_of::<u64>()) {
        place.copy_from_slice(&bytes);
    }
}

/// Writes the replacement of a text to its place, as far as there is room.
fn text(field: &RawField, kind: NameKind, raw: &[u8], to: &mut [u8], names: &mut Replacements) {
    let (Some(text), Some(bytes)) = (field.reader.text(raw), field.reader.bytes(raw)) else {
        return;
    };
    let Some(start) = (bytes.as_ptr().addr()).checked_sub(raw.as_ptr().addr()) else {
        return;
    };
    let replacement = names.of(kind, text);
    let room = bytes.len().saturating_sub(1);
    let replacement = replacement.as_bytes();
    let fitting = replacement.get(..room).unwrap_or(replacement);
    if let Some(place) = to.get_mut(start..start.saturating_add(fitting.len())) {
        place.copy_from_slice(fitting);
    }
}
