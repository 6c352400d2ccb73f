//! Fields of event classes: names, types, and the encoding of their values.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rperf_replay::Sample;
use rperf_tracepoint::{Field, FieldReader, Value};
use rperf_wire::{Endian, U64s};

/// Keywords of TSDL, and the type aliases `timestamp_t` and `utf8`; [`is_alias`] recognizes the other type aliases.
const RESERVED: [&str; 30] = [
    "align",
    "callsite",
    "char",
    "clock",
    "const",
    "double",
    "enum",
    "env",
    "event",
    "float",
    "floating_point",
    "int",
    "integer",
    "long",
    "short",
    "signed",
    "stream",
    "string",
    "struct",
    "trace",
    "typealias",
    "typedef",
    "unsigned",
    "timestamp_t",
    "utf8",
    "variant",
    "void",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CtfType {
    /// A number of 1, 2, 4 or 8 bytes.
    Number {
        size: u8,
        is_signed: bool,
        is_hex: bool,
    },
    /// UTF-8 up to a NUL.
    Text,
    /// A 32-bit count, then that many unsigned numbers of `size` bytes.
    Sequence { size: u8, is_hex: bool },
}

impl CtfType {
    pub(super) const U64: Self = Self::Number {
        size: 8,
        is_signed: false,
        is_hex: false,
    };
    pub(super) const HEX64: Self = Self::Number {
        size: 8,
        is_signed: false,
        is_hex: true,
    };
    pub(super) const HEX32: Self = Self::Number {
        size: 4,
        is_signed: false,
        is_hex: true,
    };
    pub(super) const S32: Self = Self::Number {
        size: 4,
        is_signed: true,
        is_hex: false,
    };

    pub(super) const fn hex_sequence(size: u8) -> Self {
        Self::Sequence { size, is_hex: true }
    }

    fn of_tracepoint(field: &Field, reader: FieldReader) -> Self {
        if reader.is_text() {
            return Self::Text;
        }
        // Always fits: `bytes` is 1, 2, 4 or 8.
        let size = |bytes: usize| u8::try_from(bytes).unwrap_or(1);
        if reader.is_number() {
            return Self::Number {
                size: size(field.size),
                is_signed: field.is_signed && !field.is_pointer,
                is_hex: field.is_pointer,
            };
        }
        match field.element_size {
            element @ (1 | 2 | 4 | 8) if field.is_array => Self::Sequence {
                size: size(element),
                is_hex: false,
            },
            _ => Self::hex_sequence(1),
        }
    }
}

/// Where the value of a field comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleField {
    Ip,
    Pid,
    Tid,
    Id,
    StreamId,
    Period,
    Addr,
    Weight,
    DataSource,
    Transaction,
    PhysAddr,
    Callchain,
    Raw,
    Tracepoint(FieldReader),
}

/// A field of an event class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CtfField {
    /// Its name, unique in the class.
    pub(super) name: String,
    /// The name of a sequence's count, unique in the class; not used for other types.
    pub(super) count_name: String,
    pub(super) kind: CtfType,
    source: SampleField,
}

impl CtfField {
    pub(super) fn new(name: &str, kind: CtfType, source: SampleField) -> Self {
        Self {
            name: name.to_owned(),
            count_name: match name {
                // perf's names of the counts.
                "perf_callchain" => "perf_callchain_size".to_owned(),
                "raw_data" => "raw_len".to_owned(),
                _ => format!("{name}_length"),
            },
            kind,
            source,
        }
    }

    pub(super) fn of_tracepoint(field: &Field, endian: Endian) -> Self {
        let reader = field.reader(endian);
        let kind = CtfType::of_tracepoint(field, reader);
        Self::new(&field.name, kind, SampleField::Tracepoint(reader))
    }

    /// Makes the field's names unique in its class.
    pub(super) fn name_uniquely(&mut self, names: &mut FieldNames) {
        self.name = names.unique(&self.name);
        if matches!(self.kind, CtfType::Sequence { .. }) {
            self.count_name = names.unique(&self.count_name);
        }
    }

    /// Appends the field's value. A missing value is 0 or empty. `chain` is the unwound or recorded callchain.
    pub(super) fn encode(&self, sample: &Sample<'_>, chain: Option<U64s<'_>>, out: &mut Vec<u8>) {
        let wire = &sample.wire;
        let number = match self.source {
            SampleField::Ip => wire.ip,
            SampleField::Pid => Some(sample.pid.into()),
            SampleField::Tid => Some(sample.tid.into()),
            SampleField::Id => wire.id,
            SampleField::StreamId => wire.stream_id,
            SampleField::Period => Some(sample.period),
            SampleField::Addr => wire.addr,
            SampleField::Weight => wire.weight,
            SampleField::DataSource => wire.data_src,
            SampleField::Transaction => wire.transaction,
            SampleField::PhysAddr => wire.phys_addr,
            SampleField::Callchain => {
                return put_sequence(out, 8, chain.iter().flat_map(U64s::iter));
            }
            SampleField::Raw => return put_words(out, wire.raw.unwrap_or_default()),
            SampleField::Tracepoint(reader) => {
                return self.encode_value(reader.value(wire.raw.unwrap_or_default()), out);
            }
        };
        self.put_number(number.unwrap_or_default(), out);
    }

    fn encode_value(&self, value: Option<Value<'_>>, out: &mut Vec<u8>) {
        match (self.kind, value) {
            (CtfType::Number { .. }, Some(Value::Unsigned(number))) => self.put_number(number, out),
            (CtfType::Number { .. }, Some(Value::Signed(number))) => {
                self.put_number(number.cast_unsigned(), out);
            }
            (CtfType::Number { .. }, _) => self.put_number(0, out),
            (CtfType::Text, Some(Value::Str(text))) => put_text(out, text),
            (CtfType::Text, _) => put_text(out, b""),
            (CtfType::Sequence { size, .. }, Some(Value::Array(elements))) => {
                put_sequence(out, size, elements.iter());
            }
            (CtfType::Sequence { size, .. }, Some(Value::Bytes(bytes))) => {
                put_sequence(out, size, bytes.iter().map(|byte| u64::from(*byte)));
            }
            (CtfType::Sequence { size, .. }, _) => put_sequence(out, size, std::iter::empty()),
        }
    }

    fn put_number(&self, number: u64, out: &mut Vec<u8>) {
        if let CtfType::Number { size, .. } = self.kind {
            put_low_bytes(out, number, size);
        }
    }
}

/// Appends the `size` low bytes of a number in little endian, the byte order of all traces.
fn put_low_bytes(out: &mut Vec<u8>, number: u64, size: u8) {
    let bytes = number.to_le_bytes();
    out.extend_from_slice(bytes.get(..size.into()).unwrap_or(&bytes));
}

/// Appends text up to its first NUL, and a NUL. Invalid UTF-8 is replaced, since readers reject it.
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    out.extend_from_slice(String::from_utf8_lossy(text).as_bytes());
    out.push(0);
}

/// Appends the 32-bit count of the numbers, and the `size` low bytes of each.
fn put_sequence(out: &mut Vec<u8>, size: u8, numbers: impl Iterator<Item = u64>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count = 0_u32;
    for number in numbers {
        put_low_bytes(out, number, size);
        count += 1;
    }
    if let Some(field) = out.get_mut(start..start + 4) {
        field.copy_from_slice(&count.to_le_bytes());
    }
}

/// Appends raw data as a sequence of 32-bit words. Their bytes stay in order; the last word is padded with zeros.
fn put_words(out: &mut Vec<u8>, bytes: &[u8]) {
    let words = bytes.chunks(4).map(|chunk| {
        let reversed = chunk.iter().rev();
        reversed.fold(0, |word, byte| word << 8 | u64::from(*byte))
    });
    put_sequence(out, 4, words);
}

/// The names of a class's fields.
#[derive(Debug, Default)]
pub(super) struct FieldNames {
    taken: BTreeSet<String>,
}

impl FieldNames {
    /// Returns `name` as an identifier that the class does not have yet: characters other than ASCII letters, digits and
    /// underscores become underscores, and a repeated name gets a number. Keywords, type aliases, and names that do not begin
    /// with a letter get a leading underscore: readers remove one.
    fn unique(&mut self, name: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let mut name: String = name
            .chars()
            .map(|letter| if is_plain(letter) { letter } else { '_' })
            .collect();
        let starts_with_letter = name.starts_with(|first: char| first.is_ascii_alphabetic());
        if !starts_with_letter || RESERVED.contains(&name.as_str()) || is_alias(&name) {
            name.insert(0, '_');
        }
        let length = name.len();
        for number in 1.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name.truncate(length);
            // Writing to memory does not fail.
            let _ = write!(name, "_dupl_{number}");
        }
        name
    }
}

/// Whether the metadata declare an integer type of this name: `u`, `s` or `x`, and the number of bits.
fn is_alias(name: &str) -> bool {
    let rest = name.strip_prefix(['u', 's', 'x']);
    rest.is_some_and(|bits| matches!(bits, "8" | "16" | "32" | "64"))
}

impl CtfType {
    /// The name of the type in the metadata; for a sequence, the name of the element type.
    pub(super) fn alias(self) -> String {
        match self {
            Self::Number {
                size, is_hex: true, ..
            }
            | Self::Sequence { size, is_hex: true } => format!("x{}", 8 * size),
            Self::Number {
                size,
                is_signed: true,
                ..
            } => format!("s{}", 8 * size),
            Self::Number { size, .. } | Self::Sequence { size, .. } => format!("u{}", 8 * size),
            Self::Text => "utf8".to_owned(),
        }
    }
}
