//! Lossless conversion of names to text.
//!
//! Paths, comms and cgroup names are bytes (path_resolution(7), prctl(2)); nearly all are UTF-8. To
//! sort, compare and print them as text, each byte that isn't valid UTF-8 becomes a character of
//! the last private plane: byte `0x80 + n` is U+10FF80 + n. Characters of that range in a name are
//! treated as invalid UTF-8, so that different names have different texts.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// Code point of the private character of a byte, minus the byte.
const BASE: u32 = 0x10_ff00;
/// First UTF-8 byte of all characters from U+100000 on, including the private characters.
const LEAD_BYTE: u8 = 0xf4;

/// Converts a name to text.
#[must_use]
pub fn name_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&LEAD_BYTE) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match byte_of(letter) {
                None => text.push(letter),
                Some(_) => push_bytes(letter.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
            }
        }
        push_bytes(chunk.invalid(), &mut text);
    }
    text
}

/// Appends bytes above 0x7f as private characters.
fn push_bytes(bytes: &[u8], text: &mut String) {
    let letters = bytes
        .iter()
        .map(|byte| char::from_u32(BASE + u32::from(*byte)));
    text.extend(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)));
}

/// The byte that a private character represents; `None` for other characters.
fn byte_of(letter: char) -> Option<u8> {
    let byte = u32::from(letter).checked_sub(BASE)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

/// Converts text back to the bytes of the name.
#[must_use]
pub fn name_bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.as_bytes().contains(&LEAD_BYTE) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match byte_of(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Converts text back to a path.
#[must_use]
pub fn name_path(text: &str) -> Cow<'_, Path> {
    match name_bytes(text) {
        Cow::Borrowed(_) => Cow::Borrowed(Path::new(text)),
        Cow::Owned(bytes) => Cow::Owned(OsString::from_vec(bytes).into()),
    }
}

/// The byte that a private character represents, given the UTF-8 of the character; `None` for other bytes.
#[must_use]
pub fn restored_byte(utf8: [u8; 4]) -> Option<u8> {
    let text = std::str::from_utf8(&utf8).ok()?;
    byte_of(text.chars().next()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_in_utf8_are_unchanged() {
        for name in ["", "/bin/ls", "/tmp/caf\u{e9}", "\u{1f980}"] {
            assert!(matches!(name_text(name.as_bytes()), Cow::Borrowed(text) if text == name));
            assert_eq!(name_bytes(name), name.as_bytes());
        }
    }

    #[test]
    fn invalid_utf8_is_preserved() {
        let text = name_text(b"caf\xe9");
        assert_eq!(text, "caf\u{10ffe9}");
        assert_eq!(name_bytes(&text), &b"caf\xe9"[..]);
        assert_eq!(restored_byte(*b"\xf4\x8f\xbf\xa9"), Some(0xe9));
        // U+10FF69: no private character represents 0x69, which is ASCII.
        assert_eq!(restored_byte(*b"\xf4\x8f\xbd\xa9"), None);
        assert_eq!(restored_byte(*b"abcd"), None);
    }

    proptest! {
        #[test]
        fn names_round_trip(bytes in prop::collection::vec(
            prop_oneof![Just(0xf4), Just(0x8f), Just(0xbe), Just(0xbf), any::<u8>()], 0..20)) {
            let text = name_text(&bytes).into_owned();
            prop_assert_eq!(&*name_bytes(&text), &bytes[..]);
        }

        #[test]
        fn different_names_have_different_texts(one in any::<Vec<u8>>(), other in any::<Vec<u8>>()) {
            prop_assert_eq!(name_text(&one) == name_text(&other), one == other);
        }
    }
}
