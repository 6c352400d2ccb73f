//! Formatting of integers and padded text like printf, without temporary allocations.

use super::spec::{Base, IntegerSpec, StarArgument, TextSpec};

/// The numbers 0 to 99 as two decimal digits each.
const PAIRS: &[u8; 200] =
    b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
40414243444546474849505152535455565758596061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Room for the 22 octal digits of 64 bits, rounded up to whole 8-byte words: [`put_start`] copies all of it.
const MAX_DIGITS: usize = 24;

/// Appends the first `length` of `bytes`. Copying a fixed number of bytes and truncating is
/// faster than a copy of variable length.
#[inline]
pub(super) fn put_start<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], length: usize) {
    let end = out.len() + length.min(N);
    out.extend_from_slice(bytes);
    out.truncate(end);
}

/// The digits of a number, at the start of a small buffer.
struct Digits {
    buffer: [u8; MAX_DIGITS],
    length: usize,
}

impl Digits {
    #[inline]
    fn decimal(mut value: u64) -> Self {
        let length = value.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut buffer = [b'0'; MAX_DIGITS];
        let mut at = length;
        while value >= 100 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            at -= 2;
            buffer[at] = PAIRS[pair];
            buffer[at + 1] = PAIRS[pair + 1];
        }
        let pair = value as usize * 2;
        buffer[at - 1] = PAIRS[pair + 1];
        if value >= 10 {
            buffer[at - 2] = PAIRS[pair];
        }
        Self { buffer, length }
    }

    #[inline]
    fn hex(value: u64) -> Self {
        let length = 16 - (value | 1).leading_zeros() as usize / 4;
        let high = u128::from(hex_word((value >> 32) as u32));
        let digits = high << 64 | u128::from(hex_word(value as u32));
        let mut buffer = [b'0'; MAX_DIGITS];
        buffer[..16].copy_from_slice(&(digits << (8 * (16 - length))).to_be_bytes());
        Self { buffer, length }
    }

    fn octal(mut value: u64) -> Self {
        let length = (64 - (value | 1).leading_zeros() as usize).div_ceil(3);
        let mut buffer = [b'0'; MAX_DIGITS];
        for digit in buffer.iter_mut().take(length).rev() {
            *digit = b'0' + (value & 7) as u8;
            value >>= 3;
        }
        Self { buffer, length }
    }

    fn as_bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or(&self.buffer)
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put_start(out, &self.buffer, self.length);
    }
}

/// The eight hexadecimal digits of `value` packed into a word, the first in the high byte.
#[inline]
fn hex_word(value: u32) -> u64 {
    const LOW_NIBBLES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let value = u64::from(value);
    let value = (value << 16 | value) & 0x0000_ffff_0000_ffff;
    let value = (value << 8 | value) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (value << 4 | value) & LOW_NIBBLES;
    // Nibbles above 9 become letters: 10 would be `:`, and `a` is 39 positions after it.
    let letters = (nibbles + 6 * ONES) >> 4 & ONES;
    nibbles + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'0' - 10)
}

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends `value` in decimal.
#[inline]
pub(super) fn put_decimal(out: &mut Vec<u8>, value: u64) {
    Digits::decimal(value).put(out);
}

/// Appends `value` in decimal, with a minus sign if it is negative.
#[inline]
pub(super) fn put_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_decimal(out, value.unsigned_abs());
}

/// Appends `value` in hexadecimal, without a prefix.
#[inline]
pub(super) fn put_hex(out: &mut Vec<u8>, value: u64) {
    Digits::hex(value).put(out);
}

/// Appends `0x` and `value` in hexadecimal.
#[inline]
pub(super) fn put_prefixed_hex(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(b"0x");
    put_hex(out, value);
}

/// Appends a byte as two hexadecimal digits.
#[inline]
pub(super) fn put_hex_byte(out: &mut Vec<u8>, byte: u8) {
    let digits = [
        HEX_DIGITS[usize::from(byte >> 4)],
        HEX_DIGITS[usize::from(byte & 15)],
    ];
    out.extend_from_slice(&digits);
}

/// Appends `text`, which is usually short. `memory` begins with `text`: if `memory` has at least 16 bytes, a short `text`
/// is copied faster.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, text: &[u8], memory: &[u8]) {
    match memory.first_chunk::<16>() {
        Some(chunk) if text.len() <= 16 => put_start(out, chunk, text.len()),
        _ => out.extend_from_slice(text),
    }
}

/// Appends the lower `spec.bits` bits of `value`, formatted by `spec`; `star` is the argument of a `*`.
#[inline]
pub(super) fn put_integer(out: &mut Vec<u8>, value: u64, spec: &IntegerSpec, star: Option<u64>) {
    let unused = 64 - u32::from(spec.bits);
    match spec.base {
        Base::Signed if spec.is_plain => put_signed(out, value.cast_signed() << unused >> unused),
        Base::Unsigned if spec.is_plain => put_decimal(out, value << unused >> unused),
        Base::Hex if spec.is_plain => put_hex(out, value << unused >> unused),
        _ => put_padded(out, value, spec, star),
    }
}

/// Returns width, precision and whether the number is left-aligned, if the argument of the `*` in `spec` is `star`.
#[cold]
fn resolve_star(spec: &IntegerSpec, star: u64) -> (usize, Option<usize>, bool) {
    let star = star as i32;
    let precision = spec.precision.map(usize::from);
    let magnitude = star.unsigned_abs() as usize;
    match spec.star {
        Some(StarArgument::Width) => (magnitude, precision, spec.is_left_aligned || star < 0),
        // A negative precision is ignored.
        _ if star < 0 => (spec.width.into(), precision, spec.is_left_aligned),
        _ => (spec.width.into(), Some(magnitude), spec.is_left_aligned),
    }
}

/// Maximum width and precision in bytes: the value of a `*` in a record may be any number.
const MAX_WIDTH: usize = 4096;

fn put_padded(out: &mut Vec<u8>, value: u64, spec: &IntegerSpec, star: Option<u64>) {
    let (width, precision, is_left_aligned) = match star {
        Some(star) => resolve_star(spec, star),
        None => (
            spec.width.into(),
            spec.precision.map(usize::from),
            spec.is_left_aligned,
        ),
    };
    let unused = 64 - u32::from(spec.bits);
    let truncated = value << unused >> unused;
    let signed = value.cast_signed() << unused >> unused;
    let has_hex_prefix = spec.has_prefix && truncated != 0;
    let (digits, prefix): (_, &[u8]) = match spec.base {
        Base::Signed => (
            Digits::decimal(signed.unsigned_abs()),
            if signed < 0 { b"-" } else { b"" },
        ),
        Base::Unsigned => (Digits::decimal(truncated), b""),
        Base::Octal => (Digits::octal(truncated), b""),
        // For `UpperHex`, digits and prefix become upper-case below.
        Base::Hex | Base::UpperHex => (
            Digits::hex(truncated),
            if has_hex_prefix { b"0x" } else { b"" },
        ),
    };
    let mut digits = digits.as_bytes();
    if precision == Some(0) && truncated == 0 {
        digits = b"";
    }
    let needs_octal_zero = spec.base == Base::Octal && spec.has_prefix && digits != b"0";
    let mut zeros = precision
        .unwrap_or(0)
        .min(MAX_WIDTH)
        .saturating_sub(digits.len());
    zeros = zeros.max(usize::from(needs_octal_zero));
    let pad = width
        .min(MAX_WIDTH)
        .saturating_sub(prefix.len() + zeros + digits.len());
    let is_zero_padded = spec.is_zero_padded && !is_left_aligned && precision.is_none();
    let start = out.len();
    if !is_left_aligned && !is_zero_padded {
        out.resize(out.len() + pad, b' ');
    }
    out.extend_from_slice(prefix);
    out.resize(
        out.len() + zeros + if is_zero_padded { pad } else { 0 },
        b'0',
    );
    out.extend_from_slice(digits);
    if spec.base == Base::UpperHex
        && let Some(written) = out.get_mut(start..)
    {
        written.make_ascii_uppercase();
    }
    if is_left_aligned {
        out.resize(out.len() + pad, b' ');
    }
}

/// Appends `text`, which has no NUL, formatted by `spec`; `star` is the argument of a `*`.
#[inline]
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8], spec: TextSpec, star: Option<u64>) {
    if spec == TextSpec::default() {
        out.extend_from_slice(text);
        return;
    }
    let star = star.map(|star| star as i32);
    let (mut width, mut is_left_aligned) = (usize::from(spec.width), spec.is_left_aligned);
    let mut precision = spec.precision.map(usize::from);
    match (spec.star, star) {
        (Some(StarArgument::Width), Some(star)) => {
            width = star.unsigned_abs() as usize;
            is_left_aligned |= star < 0;
        }
        (Some(StarArgument::Precision), Some(star)) => precision = usize::try_from(star).ok(),
        _ => {}
    }
    let length = precision.map_or(text.len(), |precision| precision.min(text.len()));
    let text = text.get(..length).unwrap_or(text);
    let pad = width.min(MAX_WIDTH).saturating_sub(text.len());
    if !is_left_aligned {
        out.resize(out.len() + pad, b' ');
    }
    out.extend_from_slice(text);
    if is_left_aligned {
        out.resize(out.len() + pad, b' ');
    }
}
