//! Values in Python's `marshal` format, which the interpreter reads in C.
//!
//! Only type codes that every Python from 3.4 on reads are written (`Python/marshal.c` of CPython; the format is not
//! documented, but compiled modules depend on it).

use rustc_hash::FxHashMap;

/// Marks an object that later ones may refer to.
const FLAG_REF: u8 = 0x80;
/// Maximum length in bytes of short texts, which are written once and then referred to by number. Longer texts are written each
/// time: they are not worth a look-up.
const MAX_SHARED: usize = 64;

/// A writer of values. Repeated short texts are written once.
#[derive(Debug, Default)]
pub struct MarshalWriter {
    bytes: Vec<u8>,
    /// The short texts (up to [`MAX_SHARED`] bytes) written so far, with their numbers: 0 for the first text with [`FLAG_REF`] in
    /// the output, and so on.
    shared: FxHashMap<Vec<u8>, u32>,
    /// The encoded short texts, if they are kept separately from the values that refer to them.
    texts: Option<Vec<u8>>,
}

impl MarshalWriter {
    /// Removes all values, but keeps the memory for the next ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.shared.clear();
        if let Some(texts) = &mut self.texts {
            texts.clear();
        }
    }

    /// Keeps short texts apart: values refer to them by their position among all short texts.
    #[inline]
    pub(crate) fn keep_texts_separate(&mut self) {
        self.texts.get_or_insert_default();
    }

    /// The number of different short texts.
    pub(crate) fn text_count(&self) -> usize {
        self.shared.len()
    }

    /// Appends the texts that another writer keeps separately. All texts written to this writer before must be plain
    /// ([`MarshalWriter::plain_text`]): a short text would take the number of an appended one. Those written later must be plain,
    /// too: this writer does not count the appended texts.
    pub(crate) fn append_texts(&mut self, other: &Self) {
        let texts = other.texts.as_deref().unwrap_or_default();
        self.bytes.extend_from_slice(texts);
    }

    /// Appends encoded values. Texts that they refer to must have been appended by [`MarshalWriter::append_texts`].
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Calls `write`, but appends its values to `to` instead of to this writer. They refer to this writer's texts.
    pub(crate) fn write_to(&mut self, to: &mut Vec<u8>, write: impl FnOnce(&mut Self)) {
        std::mem::swap(&mut self.bytes, to);
        write(self);
        std::mem::swap(&mut self.bytes, to);
    }

    /// The bytes of all values, without texts that are kept separately.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Like [`MarshalWriter::bytes`].
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes `None`.
    #[inline]
    pub fn none(&mut self) {
        self.bytes.push(b'N');
    }

    /// Writes a bool.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { b'T' } else { b'F' });
    }

    /// Writes an int from an unsigned value.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        match i32::try_from(value) {
            Ok(small) => self.small(small),
            Err(_) => {
                let is_negative = false;
                self.long(value, is_negative);
            }
        }
    }

    /// Writes an int from a signed value.
    #[inline]
    pub fn signed(&mut self, value: i64) {
        match i32::try_from(value) {
            Ok(small) => self.small(small),
            Err(_) => self.long(value.unsigned_abs(), value < 0),
        }
    }

    fn small(&mut self, value: i32) {
        self.bytes.push(b'i');
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes digits of 15 bits after their count, which is negative for a negative value.
    fn long(&mut self, value: u64, is_negative: bool) {
        let digits = (u64::BITS - value.leading_zeros())
            .div_ceil(15)
            .cast_signed();
        let count = if is_negative { -digits } else { digits };
        self.bytes.push(b'l');
        self.bytes.extend_from_slice(&count.to_le_bytes());
        for digit in 0..digits {
            let bits = (value >> (15 * digit)) as u16 & 0x7fff;
            self.bytes.extend_from_slice(&bits.to_le_bytes());
        }
    }

    /// Writes a str. Invalid UTF-8 is replaced.
    pub fn text(&mut self, text: &[u8]) {
        if text.len() > MAX_SHARED {
            return self.plain_text(text);
        }
        if let Some(number) = self.shared.get(text) {
            self.bytes.push(b'r');
            self.bytes.extend_from_slice(&number.to_le_bytes());
            return;
        }
        let number = u32::try_from(self.shared.len()).unwrap_or(u32::MAX);
        self.shared.insert(text.to_vec(), number);
        let Some(mut texts) = self.texts.take() else {
            return self.flagged_text(text, FLAG_REF);
        };
        self.write_to(&mut texts, |to| to.flagged_text(text, FLAG_REF));
        self.texts = Some(texts);
        self.bytes.push(b'r');
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a str in full; later ones do not refer to it.
    pub fn plain_text(&mut self, text: &[u8]) {
        let no_flag = 0;
        self.flagged_text(text, no_flag);
    }

    fn flagged_text(&mut self, text: &[u8], flag: u8) {
        if let (true, Ok(length)) = (text.is_ascii(), u8::try_from(text.len())) {
            self.bytes.extend_from_slice(&[b'z' | flag, length]);
            return self.bytes.extend_from_slice(text);
        }
        let valid = String::from_utf8_lossy(text);
        self.bytes.push(b'u' | flag);
        self.length(valid.len());
        self.bytes.extend_from_slice(valid.as_bytes());
    }

    /// Writes bytes.
    pub fn byte_string(&mut self, bytes: &[u8]) {
        self.bytes.push(b's');
        self.length(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins a tuple of `count` values, which must follow.
    #[inline]
    pub fn tuple(&mut self, count: usize) {
        match u8::try_from(count) {
            Ok(count) => self.bytes.extend_from_slice(&[b')', count]),
            Err(_) => {
                self.bytes.push(b'(');
                self.length(count);
            }
        }
    }

    /// Begins a list of `count` values, which must follow.
    pub fn list(&mut self, count: usize) {
        self.bytes.push(b'[');
        self.length(count);
    }

    /// Begins a list, and returns the position for [`MarshalWriter::set_length`].
    #[must_use]
    pub fn open_list(&mut self) -> usize {
        self.list(0);
        self.bytes.len() - 4
    }

    /// Sets the number of values of the list that `open_list` began at `position`.
    pub fn set_length(&mut self, position: usize, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        if let Some(bytes) = self.bytes.get_mut(position..position + 4) {
            bytes.copy_from_slice(&count);
        }
    }

    /// Appends the values of `other`. They refer to short texts by the numbers that `other` gave them. So either `other` has no
    /// short texts, or it keeps them separately and `append_texts` was called with it before.
    pub fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Begins a dict: keys and values follow in turn.
    pub fn dict(&mut self) {
        self.bytes.push(b'{');
    }

    /// Ends a dict.
    pub fn end_dict(&mut self) {
        self.bytes.push(b'0');
    }

    fn length(&mut self, length: usize) {
        // A record has less than 64 KB, and a block (the calls for about a thousand records) less than 4 GB.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the bytes as Python prints them.
    fn python(writer: &MarshalWriter) -> String {
        let code = "import marshal,sys;print(repr(marshal.loads(sys.stdin.buffer.read())))";
        let mut child = std::process::Command::new("python3")
            .args(["-c", code])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), writer.bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn python_reads_the_written_values() {
        let mut writer = MarshalWriter::default();
        let list = writer.open_list();
        writer.tuple(2);
        writer.text(b"comm");
        writer.text("\u{e9}".as_bytes());
        writer.text(b"comm");
        writer.text(b"\xff");
        for value in [0, 1 << 31, u64::MAX, i64::MAX.cast_unsigned(), 1 << 45] {
            writer.unsigned(value);
        }
        for value in [-1, i64::MIN, i64::from(i32::MIN) - 1] {
            writer.signed(value);
        }
        writer.dict();
        writer.text(b"comm");
        writer.byte_string(b"\0\x01");
        writer.end_dict();
        writer.none();
        writer.boolean(true);
        writer.set_length(list, 14);
        assert_eq!(
            python(&writer),
            "[('comm', 'é'), 'comm', '\u{fffd}', 0, 2147483648, 18446744073709551615, 9223372036854775807, \
             35184372088832, -1, -9223372036854775808, -2147483649, {'comm': b'\\x00\\x01'}, None, True]"
        );
    }
}
