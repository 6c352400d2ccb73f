//! Integers and padded text as printf shows them, without allocating.

use super::spec::{Base, IntegerSpec, Star, TextSpec};

const PAIRS: &[u8; 200] =
    b"00010203040506070809101112131415161718192021222324252627282930313233343536373839\
40414243444546474849505152535455565758596061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Room for 64 bits in octal.
const MAX_DIGITS: usize = 22;

/// The digits of a number, written from the end of a small buffer.
struct Digits {
    buffer: [u8; MAX_DIGITS],
    start: usize,
}

impl Digits {
    fn decimal(mut value: u64) -> Self {
        let mut digits = Self {
            buffer: [b'0'; MAX_DIGITS],
            start: MAX_DIGITS,
        };
        while value >= 100 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            digits.start -= 2;
            digits.buffer[digits.start] = PAIRS[pair];
            digits.buffer[digits.start + 1] = PAIRS[pair + 1];
        }
        let pair = value as usize * 2;
        digits.start -= 1;
        digits.buffer[digits.start] = PAIRS[pair + 1];
        if value >= 10 {
            digits.start -= 1;
            digits.buffer[digits.start] = PAIRS[pair];
        }
        digits
    }

    /// Digits of `bits` bits each.
    fn binary(mut value: u64, bits: u32, alphabet: &[u8; 16]) -> Self {
        let mut digits = Self {
            buffer: [b'0'; MAX_DIGITS],
            start: MAX_DIGITS,
        };
        let mask = (1 << bits) - 1;
        loop {
            digits.start -= 1;
            digits.buffer[digits.start] = alphabet[(value & mask) as usize];
            value >>= bits;
            if value == 0 {
                return digits;
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Appends `value` in decimal.
#[inline]
pub(super) fn put_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(Digits::decimal(value).as_bytes());
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
    out.extend_from_slice(Digits::binary(value, 4, LOWER).as_bytes());
}

/// Appends a byte as two hexadecimal digits.
#[inline]
pub(super) fn put_hex_byte(out: &mut Vec<u8>, byte: u8) {
    out.push(LOWER[usize::from(byte >> 4)]);
    out.push(LOWER[usize::from(byte & 15)]);
}

/// Appends `value` as `spec` says; `star` is the argument that a `*` took.
#[inline]
pub(super) fn put_integer(out: &mut Vec<u8>, value: u64, spec: &IntegerSpec, star: Option<u64>) {
    let unused = 64 - u32::from(spec.bits);
    let is_plain = spec.width == 0
        && spec.precision.is_none()
        && spec.star.is_none()
        && !spec.has_prefix
        && !spec.has_plus;
    let truncated = value << unused >> unused;
    if !is_plain {
        return put_padded(out, value, spec, star);
    }
    match spec.base {
        Base::Signed => put_signed(out, value.cast_signed() << unused >> unused),
        Base::Unsigned => put_decimal(out, truncated),
        Base::Hex => put_hex(out, truncated),
        Base::Octal | Base::UpperHex => put_padded(out, value, spec, star),
    }
}

#[cold]
fn resolve_star(spec: &IntegerSpec, star: u64) -> (usize, Option<usize>, bool) {
    let star = star as i32;
    let precision = spec.precision.map(usize::from);
    let size = star.unsigned_abs() as usize;
    match spec.star {
        Some(Star::Width) => (size, precision, spec.is_left || star < 0),
        _ if star < 0 => (spec.width.into(), precision, spec.is_left),
        _ => (spec.width.into(), Some(size), spec.is_left),
    }
}

/// A width that no line of output needs; a record may ask for any.
const MAX_WIDTH: usize = 4096;

fn put_padded(out: &mut Vec<u8>, value: u64, spec: &IntegerSpec, star: Option<u64>) {
    let (width, precision, is_left) = match star {
        Some(star) => resolve_star(spec, star),
        None => (
            spec.width.into(),
            spec.precision.map(usize::from),
            spec.is_left,
        ),
    };
    let unused = 64 - u32::from(spec.bits);
    let truncated = value << unused >> unused;
    let signed = value.cast_signed() << unused >> unused;
    let (digits, mut prefix): (_, &[u8]) = match spec.base {
        Base::Signed => (
            Digits::decimal(signed.unsigned_abs()),
            match signed < 0 {
                true => b"-",
                false if spec.has_plus => b"+",
                false => b"",
            },
        ),
        Base::Unsigned => (Digits::decimal(truncated), b""),
        Base::Octal => (Digits::binary(truncated, 3, LOWER), b""),
        Base::Hex => (Digits::binary(truncated, 4, LOWER), b"0x"),
        Base::UpperHex => (Digits::binary(truncated, 4, UPPER), b"0X"),
    };
    if prefix.first() == Some(&b'0') && (!spec.has_prefix || truncated == 0) {
        prefix = b"";
    }
    let mut digits = digits.as_bytes();
    if precision == Some(0) && truncated == 0 {
        digits = b"";
    }
    let is_octal_zero = spec.base == Base::Octal && spec.has_prefix && digits != b"0";
    let mut zeros = precision
        .unwrap_or(0)
        .min(MAX_WIDTH)
        .saturating_sub(digits.len());
    zeros = zeros.max(usize::from(is_octal_zero));
    let pad = width
        .min(MAX_WIDTH)
        .saturating_sub(prefix.len() + zeros + digits.len());
    let is_zero_padded = spec.is_zero_padded && !is_left && precision.is_none();
    if !is_left && !is_zero_padded {
        out.resize(out.len() + pad, b' ');
    }
    out.extend_from_slice(prefix);
    out.resize(
        out.len() + zeros + if is_zero_padded { pad } else { 0 },
        b'0',
    );
    out.extend_from_slice(digits);
    if is_left {
        out.resize(out.len() + pad, b' ');
    }
}

/// Appends `text`, which has no NUL, as `spec` says; `star` is the argument that a `*` took.
#[inline]
pub(super) fn put_text(out: &mut Vec<u8>, text: &[u8], spec: TextSpec, star: Option<u64>) {
    if spec == TextSpec::default() {
        out.extend_from_slice(text);
        return;
    }
    let star = star.map(|star| star as i32);
    let (mut width, mut is_left) = (usize::from(spec.width), spec.is_left);
    let mut precision = spec.precision.map(usize::from);
    match (spec.star, star) {
        (Some(Star::Width), Some(star)) => {
            width = star.unsigned_abs() as usize;
            is_left |= star < 0;
        }
        (Some(Star::Precision), Some(star)) => precision = usize::try_from(star).ok(),
        _ => {}
    }
    let shown = precision.map_or(text.len(), |precision| precision.min(text.len()));
    let text = text.get(..shown).unwrap_or(text);
    let pad = width.min(MAX_WIDTH).saturating_sub(text.len());
    if !is_left {
        out.resize(out.len() + pad, b' ');
    }
    out.extend_from_slice(text);
    if is_left {
        out.resize(out.len() + pad, b' ');
    }
}
