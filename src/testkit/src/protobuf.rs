//! Protocol buffers, decoded by field numbers alone: an implementation that shares nothing with the one under test.

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtoField<'b> {
    /// A varint or a number of eight bytes.
    Number(u64),
    /// A length-delimited value: text, a message, or packed numbers.
    Bytes(&'b [u8]),
}

/// Reads a varint at the start of `bytes`, and removes it from them.
fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a varint");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Returns the numbers and values of a message's fields.
///
/// # Panics
/// If a field is truncated, or is neither a varint nor eight bytes nor length-delimited.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, ProtoField<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => ProtoField::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                ProtoField::Number(u64::from_le_bytes(*word))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                ProtoField::Bytes(field)
            }
            wire_type => panic!("wire type {wire_type}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// Returns the values of a numeric field that is not packed.
///
/// # Panics
/// Those of [`fields`].
pub fn numbers(message: &[u8], field_number: u64) -> Vec<u64> {
    let values = fields(message).into_iter();
    let values = values.filter_map(|(number, field)| match field {
        ProtoField::Number(value) if number == field_number => Some(value),
        _ => None,
    });
    values.collect()
}

/// Returns the last value of a numeric field; 0 if absent.
///
/// # Panics
/// Those of [`fields`].
pub fn number(message: &[u8], field_number: u64) -> u64 {
    numbers(message, field_number)
        .last()
        .copied()
        .unwrap_or_default()
}

/// Returns the last value of a text field; empty if absent.
///
/// # Panics
/// Those of [`fields`].
pub fn text(message: &[u8], field_number: u64) -> String {
    let last = messages(message, field_number).last().copied();
    String::from_utf8_lossy(last.unwrap_or_default()).into_owned()
}

/// Returns the values of a length-delimited field: messages, texts, or packed numbers.
///
/// # Panics
/// Those of [`fields`].
pub fn messages(message: &[u8], field_number: u64) -> Vec<&[u8]> {
    let values = fields(message).into_iter();
    let values = values.filter_map(|(number, field)| match field {
        ProtoField::Bytes(value) if number == field_number => Some(value),
        _ => None,
    });
    values.collect()
}

/// Returns the values of a packed numeric field whose elements are varints.
///
/// # Panics
/// Those of [`fields`], or if the last element is truncated.
pub fn packed(message: &[u8], field_number: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for mut rest in messages(message, field_number) {
        while !rest.is_empty() {
            numbers.push(varint(&mut rest));
        }
    }
    numbers
}

/// Returns the values of a packed numeric field whose elements have eight bytes.
///
/// # Panics
/// Those of [`fields`], or if the length of the field is not a multiple of eight.
pub fn packed_fixed(message: &[u8], field_number: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for bytes in messages(message, field_number) {
        let (words, rest) = bytes.as_chunks();
        assert!(rest.is_empty(), "{bytes:?}");
        numbers.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    }
    numbers
}
