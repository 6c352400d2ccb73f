//! Network addresses, UUIDs and buffers: the `%p` conversions that print the referenced data.

use std::net::Ipv6Addr;

use rperf_wire::Endian;

use super::digits::{put_decimal, put_hex, put_hex_byte};
use super::program::{ByteLocation, PrintFmt};
use crate::Abi;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCKADDR_IN_SIZE: usize = 16;
const SOCKADDR_IN6_SIZE: usize = 28;

/// Format of a network address, a UUID or a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `%pM`, `%pm`.
    Mac {
        separator: Option<u8>,
        is_reversed: bool,
    },
    /// `%pI4`, `%pi4`.
    Ip4 {
        /// Whether each number has three digits.
        is_padded: bool,
        is_reversed: bool,
    },
    /// `%pI6`, `%pi6`.
    Ip6 {
        has_colons: bool,
        /// Whether `::` replaces the longest run of zeros.
        is_compressed: bool,
    },
    /// `%pIS`, `%piS`: a `struct sockaddr`.
    Socket {
        /// Whether it is `%piS`: the numbers of IPv4 addresses have three digits, IPv6 addresses have no colons.
        is_small_i: bool,
        has_port: bool,
        is_compressed: bool,
        /// Whether the bytes of IPv4 addresses are reversed.
        is_reversed: bool,
    },
    /// `%pU`.
    Uuid {
        is_upper: bool,
        /// Whether the first three parts are little-endian.
        is_guid: bool,
    },
    /// `%*ph`: a buffer in hexadecimal digits.
    Bytes { separator: Option<u8> },
}

/// Returns the style selected by the letters after `%p`, the required size of the field (0 for any), and perf's name for the
/// type in messages about fields of another size. `None` for unknown letters.
pub(super) fn style_of(letters: &[u8], abi: Abi) -> Option<(Style, u32, &'static str)> {
    let at = |index: usize| letters.get(index).copied().unwrap_or_default();
    // `i` pads the numbers of IPv4 addresses, and omits the colons of IPv6 addresses.
    let is_small_i = at(0) == b'i';
    Some(match (at(0), at(1)) {
        (b'M' | b'm', second) => {
            let separator = match (at(0), second) {
                (b'm', _) => None,
                (_, b'F') => Some(b'-'),
                _ => Some(b':'),
            };
            let is_reversed = second == b'R';
            let style = Style::Mac {
                separator,
                is_reversed,
            };
            (style, 6, "MAC")
        }
        (b'I' | b'i', b'4') => {
            let style = Style::Ip4 {
                is_padded: is_small_i,
                is_reversed: is_reversed(at(2), abi),
            };
            (style, 4, "IPv4")
        }
        (b'I' | b'i', b'6') => {
            let style = Style::Ip6 {
                has_colons: !is_small_i,
                is_compressed: !is_small_i && at(2) == b'c',
            };
            (style, 16, "IPv6")
        }
        (b'I' | b'i', b'S') => {
            let rest = letters.get(2..).unwrap_or_default();
            (socket(is_small_i, rest, abi), 0, "")
        }
        (b'U', second) => {
            let style = Style::Uuid {
                is_upper: matches!(second, b'L' | b'B'),
                is_guid: matches!(second, b'L' | b'l'),
            };
            (style, 16, "UUID")
        }
        (b'h', second) => {
            let separator = match second {
                b'C' => Some(b':'),
                b'D' => Some(b'-'),
                b'N' => None,
                _ => Some(b' '),
            };
            (Style::Bytes { separator }, 0, "")
        }
        _ => return None,
    })
}

/// Whether this letter selects the reverse of network byte order.
fn is_reversed(letter: u8, abi: Abi) -> bool {
    match letter {
        b'l' => true,
        b'h' => abi.endian == Endian::Little,
        _ => false,
    }
}

/// Parses the letters after `%pIS` or `%piS`. As in perf, `p` and `c` have an effect only after `%pIS`.
fn socket(is_small_i: bool, mut letters: &[u8], abi: Abi) -> Style {
    let mut take = |letter: u8| {
        let is_next = !is_small_i && letters.first() == Some(&letter);
        letters = letters.get(usize::from(is_next)..).unwrap_or_default();
        is_next
    };
    let has_port = take(b'p');
    let is_compressed = take(b'c');
    Style::Socket {
        is_small_i,
        has_port,
        is_compressed,
        is_reversed: is_reversed(letters.first().copied().unwrap_or_default(), abi),
    }
}

impl PrintFmt {
    /// Appends the text of the bytes at `location`. `limit` is the maximum number of bytes printed of a buffer, by default 1.
    pub(super) fn write_pointee(
        &self,
        location: ByteLocation,
        style: Style,
        limit: Option<u64>,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) {
        let endian = self.abi.endian;
        let (start, size) = location.resolve(raw, endian);
        let bytes = raw.get(start..).unwrap_or_default();
        let bytes = bytes.get(..size).unwrap_or_default();
        match style {
            Style::Mac {
                separator,
                is_reversed,
            } => put_mac(out, bytes, separator, is_reversed),
            Style::Ip4 {
                is_padded,
                is_reversed,
            } => put_ip4(out, bytes, is_padded, is_reversed),
            Style::Ip6 {
                has_colons,
                is_compressed,
            } => put_ip6(out, bytes, has_colons, is_compressed),
            Style::Socket { .. } => put_socket(out, bytes, style, endian),
            Style::Uuid { is_upper, is_guid } => put_uuid(out, bytes, is_upper, is_guid),
            Style::Bytes { separator } => {
                // The argument for `*` is an int; nothing is printed if it is negative.
                let limit = limit.map_or(1, |limit| usize::try_from(limit as i32).unwrap_or(0));
                let bytes = bytes.get(..limit).unwrap_or(bytes);
                put_bytes(out, bytes.iter(), separator);
            }
        }
    }
}

fn put_bytes<'a>(out: &mut Vec<u8>, bytes: impl Iterator<Item = &'a u8>, separator: Option<u8>) {
    for (index, byte) in bytes.enumerate() {
        if index > 0 {
            out.extend(separator);
        }
        put_hex_byte(out, *byte);
    }
}

fn put_mac(out: &mut Vec<u8>, bytes: &[u8], separator: Option<u8>, is_reversed: bool) {
    if is_reversed {
        put_bytes(out, bytes.iter().rev(), separator);
    } else {
        put_bytes(out, bytes.iter(), separator);
    }
}

fn put_ip4(out: &mut Vec<u8>, bytes: &[u8], is_padded: bool, is_reversed: bool) {
    let Some(&bytes) = bytes.first_chunk::<4>() else {
        return;
    };
    let value = if is_reversed {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    };
    for (index, byte) in value.to_be_bytes().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        if is_padded {
            out.extend_from_slice(match byte {
                0..10 => b"00",
                10..100 => b"0",
                _ => b"",
            });
        }
        put_decimal(out, byte.into());
    }
}

fn put_ip6(out: &mut Vec<u8>, bytes: &[u8], has_colons: bool, is_compressed: bool) {
    let Some(&bytes) = bytes.first_chunk::<16>() else {
        return;
    };
    let words = Ipv6Addr::from(bytes).segments();
    if is_compressed {
        return put_ip6_compressed(out, words, &bytes);
    }
    for (index, word) in words.into_iter().enumerate() {
        if has_colons && index > 0 {
            out.push(b':');
        }
        let [high, low] = word.to_be_bytes();
        put_hex_byte(out, high);
        put_hex_byte(out, low);
    }
}

/// Appends a compressed IPv6 address: the longest run of two or more zero words becomes `::`;
/// IPv4-mapped and ISATAP addresses end in dotted decimal.
fn put_ip6_compressed(out: &mut Vec<u8>, words: [u16; 8], bytes: &[u8; 16]) {
    let is_mapped = words[..5] == [0; 5] && words[5] == 0xffff;
    let is_isatap = words[4] | 0x0200 == 0x0200 && words[5] == 0x5efe;
    let ends_in_ip4 = is_mapped || is_isatap;
    // Number of words in hexadecimal.
    let count = if ends_in_ip4 { 6 } else { 8 };
    let words = words.get(..count).unwrap_or_default();
    // No gap yet: the start is after the last word, and the length is 1, since a run must be longer than that to be compressed.
    let (mut gap_start, mut gap_length) = (count, 1);
    for start in 0..count {
        let zeros = words[start..].iter().take_while(|word| **word == 0).count();
        if zeros > gap_length {
            (gap_start, gap_length) = (start, zeros);
        }
    }
    let mut needs_colon = false;
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if index == gap_start {
            if needs_colon || index == 0 {
                out.push(b':');
            }
            out.push(b':');
            needs_colon = false;
            index += gap_length;
            continue;
        }
        if needs_colon {
            out.push(b':');
        }
        put_hex(out, (*word).into());
        needs_colon = true;
        index += 1;
    }
    if ends_in_ip4 {
        if needs_colon {
            out.push(b':');
        }
        let (is_padded, is_reversed) = (false, false);
        put_ip4(out, &bytes[12..], is_padded, is_reversed);
    }
}

fn put_socket(out: &mut Vec<u8>, bytes: &[u8], style: Style, endian: Endian) {
    let Style::Socket {
        is_small_i,
        has_port,
        is_compressed,
        is_reversed,
    } = style
    else {
        return;
    };
    let (is_padded, has_colons) = (is_small_i, !is_small_i);
    let word = |offset: usize| bytes.get(offset..).and_then(<[u8]>::first_chunk).copied();
    let port = word(2).map_or(0, u16::from_be_bytes);
    match word(0).map(|family| endian.u16(family)) {
        Some(AF_INET) if bytes.len() < SOCKADDR_IN_SIZE => out.extend_from_slice(b"INVALIDIPv4"),
        Some(AF_INET) => {
            put_ip4(out, &bytes[4..], is_padded, is_reversed);
            if has_port {
                out.push(b':');
                put_decimal(out, port.into());
            }
        }
        Some(AF_INET6) if bytes.len() < SOCKADDR_IN6_SIZE => out.extend_from_slice(b"INVALIDIPv6"),
        Some(AF_INET6) => {
            if has_port {
                out.push(b'[');
            }
            put_ip6(out, &bytes[8..], has_colons, is_compressed);
            if has_port {
                out.extend_from_slice(b"]:");
                put_decimal(out, port.into());
            }
        }
        _ => {}
    }
}

/// The order in which the bytes of a GUID are printed.
const GUID_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

fn put_uuid(out: &mut Vec<u8>, bytes: &[u8], is_upper: bool, is_guid: bool) {
    let start = out.len();
    for (index, guid_index) in GUID_ORDER.into_iter().enumerate() {
        let from = if is_guid { guid_index } else { index };
        put_hex_byte(out, bytes.get(from).copied().unwrap_or(0));
        if matches!(index, 3 | 5 | 7 | 9) {
            out.push(b'-');
        }
    }
    if is_upper && let Some(text) = out.get_mut(start..) {
        text.make_ascii_uppercase();
    }
}
