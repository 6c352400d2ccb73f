//! Redacts the raw data of samples.

use rperf_perfdata::EventDesc;
use rperf_tracepoint::{Field, FieldReader, Formats};
use rperf_wire::Endian;

use super::replacements::{NameKind, Replacements};
use crate::addresses::PAGE;

/// Bytes of the common fields: type, flags, preemption count, thread.
const COMMON: usize = 8;

/// Addresses that the kernel chooses for mappings of 64-bit programs, on x86-64 and arm64. A number below this range may be an
/// address, too, but is more likely a number of another kind.
const USER: std::ops::Range<u64> = 0x0000_5000_0000_0000..0x0001_0000_0000_0000;
/// Addresses of the kernel. Negative error numbers are above them.
const KERNEL: std::ops::Range<u64> = 0xffff_0000_0000_0000..0xffff_ffff_ffff_f000;

/// How the raw data of an event's samples are redacted: numbers are kept, addresses and text are replaced, the rest is 0.
/// Without a known format, all is 0.
#[derive(Debug, Default)]
pub(super) struct RawRedaction {
    fields: Vec<RawField>,
    /// Whether the format is known. Then the data begin with the common fields, which are copied.
    is_known: bool,
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
    /// A number of 8 bytes that may be an address.
    MaybeAddress,
    /// A number that is an address by its type or name.
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
            is_known: true,
        }
    }

    /// Whether the data have numbers that may or may not be addresses.
    pub(super) fn is_uncertain(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|field| field.content == Content::MaybeAddress)
    }

    /// Returns the redacted data, which have the same length.
    pub(super) fn apply(
        &self,
        raw: &[u8],
        endian: Endian,
        replacements: &mut Replacements,
    ) -> Vec<u8> {
        let mut to = vec![0; raw.len()];
        if self.is_known {
            copy(raw, &mut to, 0, COMMON);
        }
        for field in &self.fields {
            match field.content {
                Content::Number => copy(raw, &mut to, field.offset, field.size),
                Content::MaybeAddress => {
                    let is_likely = |number| USER.contains(&number) || KERNEL.contains(&number);
                    long_number(raw, &mut to, field.offset, endian, |number| {
                        is_likely(number).then(|| replacements.of_address(number))
                    });
                }
                Content::Address if field.size == size_of::<u32>() => {
                    short_address(raw, &mut to, field.offset, endian, replacements);
                }
                Content::Address => {
                    // The first page is never mapped.
                    let is_valid = |number| (PAGE..KERNEL.end).contains(&number);
                    long_number(raw, &mut to, field.offset, endian, |number| {
                        is_valid(number).then(|| replacements.of_address(number))
                    });
                }
                Content::Text(kind) => text(field, kind, raw, &mut to, replacements),
                Content::DynamicText(kind) => {
                    copy(raw, &mut to, field.offset, field.size);
                    text(field, kind, raw, &mut to, replacements);
                }
            }
        }
        to
    }
}

/// The type of a field's content; `None` for data that become 0.
fn content(field: &Field, reader: &FieldReader) -> Option<Content> {
    let kind = match field.name.contains("comm") {
        true => NameKind::Task,
        false => NameKind::Text,
    };
    match field {
        _ if reader.is_text() && field.is_dynamic => Some(Content::DynamicText(kind)),
        _ if reader.is_text() => Some(Content::Text(kind)),
        Field { size: 4 | 8, .. } if reader.is_number() && is_address(field) => {
            Some(Content::Address)
        }
        Field {
            size: 8,
            is_signed: false,
            ..
        } if reader.is_number() => Some(Content::MaybeAddress),
        _ if reader.is_number() => Some(Content::Number),
        _ => None,
    }
}

/// Whether a field has an address: a pointer, or an unsigned number with a word for addresses in its name.
fn is_address(field: &Field) -> bool {
    /// Words in the names of fields of the kernel's tracepoints, of system calls and of probes.
    const WORDS: [&str; 19] = [
        "addr", "address", "brk", "caller", "callsite", "func", "function", "handler", "ip",
        "newsp", "pc", "pointer", "ptr", "site", "sp", "tls", "uaddr", "uaddr2", "vaddr",
    ];
    let mut words = field.name.split('_');
    field.is_pointer || (!field.is_signed && words.any(|word| WORDS.contains(&word)))
}

fn copy(raw: &[u8], to: &mut [u8], offset: usize, size: usize) {
    let end = offset.saturating_add(size);
    if let (Some(from), Some(to)) = (raw.get(offset..end), to.get_mut(offset..end)) {
        to.copy_from_slice(from);
    }
}

/// Writes the number of 8 bytes at `offset`, or the replacement that `replacement` returns for it.
fn long_number(
    raw: &[u8],
    to: &mut [u8],
    offset: usize,
    endian: Endian,
    replacement: impl FnOnce(u64) -> Option<u64>,
) {
    let Some(number) = endian.u64_at(raw, offset) else {
        return;
    };
    let number = replacement(number).unwrap_or(number);
    let bytes = match endian {
        Endian::Little => number.to_le_bytes(),
        Endian::Big => number.to_be_bytes(),
    };
    put(to, offset, &bytes);
}

/// Writes the replacement of an address of 4 bytes; numbers in the first page and negative error numbers are copied.
fn short_address(
    raw: &[u8],
    to: &mut [u8],
    offset: usize,
    endian: Endian,
    replacements: &Replacements,
) {
    /// All numbers except those of the first page and negative error numbers.
    const ADDRESSES: std::ops::Range<u32> = 0x1000..0xffff_f000;
    let Some(number) = endian.u32_at(raw, offset) else {
        return;
    };
    let number = match ADDRESSES.contains(&number) {
        true => replacements.of_short_address(number),
        false => number,
    };
    let bytes = match endian {
        Endian::Little => number.to_le_bytes(),
        Endian::Big => number.to_be_bytes(),
    };
    put(to, offset, &bytes);
}

fn put(to: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(place) = to.get_mut(offset..offset.saturating_add(bytes.len())) {
        place.copy_from_slice(bytes);
    }
}

/// Writes the replacement of a text to its place, truncated to the room there; a 0 byte follows.
fn text(
    field: &RawField,
    kind: NameKind,
    raw: &[u8],
    to: &mut [u8],
    replacements: &mut Replacements,
) {
    let (Some(text), Some(bytes)) = (field.reader.text(raw), field.reader.bytes(raw)) else {
        return;
    };
    // The offset of the text in the raw data, of which `bytes` is a part.
    let Some(start) = (bytes.as_ptr().addr()).checked_sub(raw.as_ptr().addr()) else {
        return;
    };
    let replacement = replacements.of(kind, text);
    let room = bytes.len().saturating_sub(1);
    let replacement = replacement.as_bytes();
    let fitting = replacement.get(..room).unwrap_or(replacement);
    if let Some(place) = to.get_mut(start..start.saturating_add(fitting.len())) {
        place.copy_from_slice(fitting);
    }
}
