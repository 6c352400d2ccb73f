//! Mutations of bytes, of numbers in them, and of texts.

use crate::random::Random;

/// A little-endian number in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// Its offset.
    pub(crate) at: usize,
    /// Its width: 1, 2, 4 or 8 bytes.
    pub(crate) width: usize,
}

impl Field {
    pub(crate) fn new(at: usize, width: usize) -> Self {
        Self { at, width }
    }

    /// The numbers of this width in `from..to`, one after the other.
    pub(crate) fn all(from: usize, to: usize, width: usize) -> impl Iterator<Item = Self> {
        let to = to.saturating_sub(width - 1);
        (from..to).step_by(width).map(move |at| Self { at, width })
    }

    pub(crate) fn read(self, bytes: &[u8]) -> u64 {
        number(bytes, self.at, self.width)
    }

    pub(crate) fn write(self, bytes: &mut [u8], value: u64) {
        let end = (self.at + self.width).min(bytes.len());
        if let Some(to) = bytes.get_mut(self.at..end) {
            let value = value.to_le_bytes();
            to.copy_from_slice(&value[..to.len()]);
        }
    }

    /// Sets it to a random value, mostly one that is critical for sizes, counts and offsets.
    pub(crate) fn corrupt(self, bytes: &mut [u8], random: &mut Random) {
        let current = self.read(bytes);
        let max = u64::MAX >> (64 - 8 * self.width);
        let length = bytes.len() as u64;
        let value = match random.below(20) {
            0 => 0,
            1 => 1,
            2 => max,
            3 => max - 1,
            4 => max / 2,
            5 => max / 2 + 1,
            6 => current.wrapping_add(1),
            7 => current.wrapping_sub(1),
            8 => current.wrapping_mul(2),
            9 => current / 2,
            10 => current ^ 1 << random.below(8 * self.width),
            11 => length,
            12 => length.wrapping_sub(self.at as u64),
            13 => 1 << random.below(8 * self.width),
            14 => (1 << random.below(8 * self.width)) - 1,
            15 => max.wrapping_sub(length),
            16 => current.wrapping_neg(),
            17 => current.wrapping_add(8),
            18 => random.next() & 0xff,
            _ => random.next(),
        };
        self.write(bytes, value & max);
    }
}

/// The little-endian number at `at`; bytes beyond the end are 0.
pub(crate) fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut value = [0; 8];
    for (to, from) in value.iter_mut().zip(bytes.iter().skip(at).take(width)) {
        *to = *from;
    }
    u64::from_le_bytes(value)
}

/// Changes, removes or inserts some bytes regardless of their meaning. The new bytes may be copied from `other`.
pub(crate) fn bytes(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len());
    let max = *random.pick(&[1, 4, 16, 64, 1024]);
    let length = (1 + random.below(max)).min(bytes.len() - at);
    match random.below(12) {
        0..=2 => bytes[at] ^= 1 << random.below(8),
        3 => bytes[at] = random.next() as u8,
        4 | 5 => {
            let width = *random.pick(&[1, 2, 4, 8]);
            Field::new(at / width * width, width).corrupt(bytes, random);
        }
        6 => drop(bytes.drain(at..at + length)),
        7 => {
            let from = random.below(bytes.len() - length + 1);
            bytes.copy_within(from..from + length, at);
        }
        8 => bytes[at..at + length].fill(*random.pick(&[0, 0xff, 0x80, 0x41])),
        9 => {
            let repeated = bytes[at..at + length].repeat(1 + random.below(20));
            bytes.splice(at..at, repeated);
        }
        // A piece of `other` is inserted, or overwrites as many bytes.
        10 => {
            let from = random.below(other.len());
            let piece = &other[from..(from + length).min(other.len())];
            let end = (at + random.below(2) * piece.len()).min(bytes.len());
            bytes.splice(at..end, piece.iter().copied());
        }
        // A LEB128 number that does not fit into 64 bits.
        _ => {
            let number = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
            for (to, from) in bytes.iter_mut().skip(at).zip(number) {
                *to = from;
            }
        }
    }
}

/// Truncates the bytes at a random offset.
pub(crate) fn truncate(bytes: &mut Vec<u8>, random: &mut Random) {
    bytes.truncate(random.below(bytes.len()));
}

/// The maximum size in bytes of a text with changed lines. It is small, since the output of a command may be some hundred times
/// larger.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// Words that are critical for text parsers.
const WORDS: [&[u8]; 24] = [
    b"",
    b"0",
    b"-1",
    b"1e999",
    b"0x",
    b"0xffffffffffffffff",
    b"18446744073709551616",
    b"9223372036854775808",
    b"ffffffffffffffffffffff",
    b"../../../../outside/new",
    b"/",
    b"%s%n%99999d",
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\xff\xfe\xc0\x80",
    b"\x1b]0;title\x07\x1b[2J",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"((((((((((((((((((((((((((((((((",
    b"{}",
    b"*",
    b"null",
    b"\0",
];

/// Changes lines and words of a text, or its bytes. Some of the new lines and bytes are copied from `other`.
pub(crate) fn text(text: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let kind = random.below(10);
    if kind == 0 {
        return bytes(text, other, random);
    }
    if kind == 1 {
        return truncate(text, random);
    }
    let mut lines: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').map(Vec::from).collect();
    let (at, from) = (random.below(lines.len()), random.below(lines.len()));
    match kind {
        2 => drop(lines.remove(at)),
        3 => lines.insert(at, lines[from].clone()),
        4 => lines.swap(at, from),
        5 => {
            let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
            lines.insert(at, random.pick(&others).to_vec());
        }
        6 => lines[at] = lines[at].repeat(1 + random.below(5000)),
        7 => {
            let word = random.pick(&WORDS).repeat(1 + random.below(2000));
            lines[at].extend(word);
        }
        _ => word(&mut lines[at], random),
    }
    *text = lines.join(&b'\n');
    text.truncate(MAX_TEXT_BYTES);
}

/// Replaces a word of a line by one of [`WORDS`]; appends one to a line without words.
fn word(line: &mut Vec<u8>, random: &mut Random) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte);
    let starts: Vec<usize> = (0..line.len())
        .filter(|at| is_part(line[*at]) && (*at == 0 || !is_part(line[at - 1])))
        .collect();
    let Some(start) = random.try_pick(&starts).copied() else {
        return line.extend(*random.pick(&WORDS));
    };
    let length = line[start..].iter().take_while(|byte| is_part(**byte));
    let end = start + length.count();
    line.splice(start..end, random.pick(&WORDS).iter().copied());
}

/// The place of a NUL-terminated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPlace {
    /// Its offset.
    pub(crate) start: usize,
    /// Its length with all NULs that follow it.
    pub(crate) room: usize,
}

/// The places of NUL-terminated texts of at least four characters.
pub(crate) fn texts(bytes: &[u8]) -> Vec<TextPlace> {
    let mut places = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b' '..=b'~'))
            .count();
        let room = rest[length..].iter().take_while(|byte| **byte == 0);
        let room = length + room.count();
        if length >= 4 && room > length {
            places.push(TextPlace { start, room });
        }
        start += room.max(1);
    }
    places
}

/// Overwrites a text with another, which is truncated to fit, and fills the rest with NULs; at least one NUL remains.
pub(crate) fn replace_text(bytes: &mut [u8], place: TextPlace, by: &[u8]) {
    let TextPlace { start, room } = place;
    let length = by.len().min(room.saturating_sub(1));
    bytes[start..start + room].fill(0);
    bytes[start..start + length].copy_from_slice(&by[..length]);
}

#[test]
fn texts_are_found_with_their_room() {
    let mut data = b"\x01\x02name\0\0\0\x07ab\0longer one\0".to_vec();
    let places = texts(&data);
    let place = |start, room| TextPlace { start, room };
    assert_eq!(places, [place(2, 7), place(13, 11)]);
    replace_text(&mut data, places[0], b"another");
    assert_eq!(&data[..10], b"\x01\x02anothe\0\x07");
}

#[test]
fn fields_are_little_endian_and_stay_inside() {
    let mut data = vec![0; 6];
    Field::new(4, 4).write(&mut data, 0x0403_0201);
    assert_eq!(data, [0, 0, 0, 0, 1, 2]);
    assert_eq!(number(&data, 4, 4), 0x201);
    assert_eq!(Field::all(0, 6, 4).count(), 1);
}
