//! Numbers as text, padded as by `printf`. The standard library's formatting is slower, and a recording can have tens of
//! millions of numbers.

use std::fmt::Write as _;

const BLANKS: &str = "                                ";

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Maximum number of digits: those of `u64::MAX` in decimal.
const MAX_DIGITS: usize = 20;
/// Bytes copied at once: a fixed length avoids a call of memcpy, and few numbers are longer.
const CHUNK: usize = 16;

/// Digits of a number, with the sign of a negative number. They end before index [`MAX_DIGITS`]. The [`CHUNK`] bytes after the
/// digits exist only so that a whole chunk can be copied from any start; the copy is truncated.
struct Digits {
    /// All bytes other than the digits and the sign are `fill`.
    bytes: [u8; MAX_DIGITS + CHUNK],
    /// Index of the first digit or of the sign.
    start: usize,
    /// The byte that pads the digits on the left.
    fill: u8,
}

impl Digits {
    #[inline]
    fn decimal(mut value: u64, fill: u8) -> Self {
        let mut digits = Self {
            bytes: [fill; MAX_DIGITS + CHUNK],
            start: MAX_DIGITS,
            fill,
        };
        while value >= 10 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            digits.start -= 2;
            digits.bytes[digits.start] = PAIRS[pair];
            digits.bytes[digits.start + 1] = PAIRS[pair + 1];
        }
        if value > 0 || digits.start == MAX_DIGITS {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + value as u8;
        }
        digits
    }

    #[inline]
    fn hexadecimal(mut value: u64, fill: u8) -> Self {
        let mut digits = Self {
            bytes: [fill; MAX_DIGITS + CHUNK],
            start: MAX_DIGITS,
            fill,
        };
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = b"0123456789abcdef"[(value & 15) as usize];
            value >>= 4;
            if value == 0 {
                return digits;
            }
        }
    }

    /// Appends the digits, padded on the left to `width` bytes.
    #[inline]
    fn put(&self, out: &mut Vec<u8>, width: usize) {
        let length = (MAX_DIGITS - self.start).max(width);
        // Up to `MAX_DIGITS` bytes, the padding is already in `bytes`.
        match MAX_DIGITS
            .checked_sub(length)
            .and_then(|from| self.bytes.get(from..))
        {
            Some(text) if length <= CHUNK => put_start(out, text, length),
            Some(text) => out.extend_from_slice(text.get(..length).unwrap_or(text)),
            None => {
                out.resize(out.len() + length - MAX_DIGITS, self.fill);
                out.extend_from_slice(&self.bytes[..MAX_DIGITS]);
            }
        }
    }

    /// The digits without padding.
    #[inline]
    fn text(&self) -> &str {
        let digits = self.bytes.get(self.start..MAX_DIGITS);
        digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .unwrap_or_default()
    }
}

/// Appends the digits of `value`.
#[inline]
pub(crate) fn push_decimal(out: &mut String, value: u64) {
    out.push_str(Digits::decimal(value, b' ').text());
}

/// Appends `value` with two decimals, as `{:.2}` formats it.
#[inline]
pub(crate) fn push_two_decimals(out: &mut String, value: f64) {
    let Some(hundredths) = hundredths(value) else {
        // Writing to a String cannot fail.
        let _ = write!(out, "{value:.2}");
        return;
    };
    push_decimal(out, hundredths / 100);
    // `text` omits the padding, so the fill byte has no effect; a leading zero is written with the decimal point.
    let digits = Digits::decimal(hundredths % 100, b'0');
    out.push_str(if hundredths % 100 < 10 { ".0" } else { "." });
    out.push_str(digits.text());
}

/// `value` in hundredths, rounded to the nearest. `None` for negative (also -0), large and non-finite values, and close to a tie:
/// there the product, which is inexact by at most half a unit of its last place, could round the wrong way.
#[inline]
fn hundredths(value: f64) -> Option<u64> {
    const LIMIT: f64 = 1e7;
    // More than the error of a product below 100 * LIMIT, which is at most 2^-24 (6e-8).
    const TIE_DISTANCE: f64 = 1e-6;
    if !(0.0..LIMIT).contains(&value) || value.is_sign_negative() {
        return None;
    }
    let scaled = value * 100.0;
    let whole = scaled as u64;
    let rest = scaled - whole as f64;
    if (rest - 0.5).abs() < TIE_DISTANCE {
        return None;
    }
    Some(whole + u64::from(rest > 0.5))
}

/// Inserts blanks at `start`, so that the text from there on has at least `width` bytes.
#[inline]
pub(crate) fn align_right(out: &mut String, start: usize, width: usize) {
    let mut missing = width.saturating_sub(out.len() - start);
    while missing > 0 {
        let count = missing.min(BLANKS.len());
        out.insert_str(start, BLANKS.get(..count).unwrap_or(BLANKS));
        missing -= count;
    }
}

/// Appends `count` blanks.
#[inline]
pub(crate) fn push_blanks(out: &mut String, count: usize) {
    let mut missing = count;
    while missing > 0 {
        let count = missing.min(BLANKS.len());
        out.push_str(BLANKS.get(..count).unwrap_or(BLANKS));
        missing -= count;
    }
}

/// Appends the first `length` bytes of `text`. `length` must be at most [`CHUNK`]; `text` must have at least [`CHUNK`] bytes.
#[inline]
fn put_start(out: &mut Vec<u8>, text: &[u8], length: usize) {
    let end = out.len() + length;
    if let Some(chunk) = text.first_chunk::<CHUNK>() {
        out.extend_from_slice(chunk);
        out.truncate(end);
    }
}

/// Appends `count` blanks.
#[inline]
pub(crate) fn blanks(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

/// Appends `text`, right-aligned in `width` bytes.
#[inline]
pub(crate) fn right(out: &mut Vec<u8>, text: &[u8], width: usize) {
    blanks(out, width.saturating_sub(text.len()));
    out.extend_from_slice(text);
}

/// Appends `text`, left-aligned in `width` bytes.
#[inline]
pub(crate) fn left(out: &mut Vec<u8>, text: &[u8], width: usize) {
    out.extend_from_slice(text);
    blanks(out, width.saturating_sub(text.len()));
}

/// `%*llu`.
#[inline]
pub(crate) fn decimal(out: &mut Vec<u8>, value: u64, width: usize) {
    Digits::decimal(value, b' ').put(out, width);
}

/// `%0*llx`.
#[inline]
pub(crate) fn hexadecimal_zeros(out: &mut Vec<u8>, value: u64, width: usize) {
    Digits::hexadecimal(value, b'0').put(out, width);
}

/// `%0*llu`.
#[inline]
pub(crate) fn decimal_zeros(out: &mut Vec<u8>, value: u64, width: usize) {
    Digits::decimal(value, b'0').put(out, width);
}

/// `%*d` of a number with the bits of an `int`: `u32::MAX` is -1.
#[inline]
pub(crate) fn signed(out: &mut Vec<u8>, value: u32, width: usize) {
    signed_digits(value).put(out, width);
}

/// `%-*d` of a number with the bits of an `int`.
#[inline]
pub(crate) fn signed_left(out: &mut Vec<u8>, value: u32, width: usize) {
    let digits = signed_digits(value);
    digits.put(out, 0);
    blanks(out, width.saturating_sub(MAX_DIGITS - digits.start));
}

#[inline]
fn signed_digits(value: u32) -> Digits {
    let value = value.cast_signed();
    let mut digits = Digits::decimal(u64::from(value.unsigned_abs()), b' ');
    if value < 0 {
        digits.start -= 1;
        digits.bytes[digits.start] = b'-';
    }
    digits
}

/// `%*llx`.
#[inline]
pub(crate) fn hexadecimal(out: &mut Vec<u8>, value: u64, width: usize) {
    Digits::hexadecimal(value, b' ').put(out, width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hundredths_equal_the_standard_library() {
        let ties = (0..4000_u32).map(|eighth| f64::from(eighth) / 8.0);
        let decimal_ties = (0..4000_u32).map(|half_hundredth| f64::from(half_hundredth) / 200.0);
        let near = (0..4000_u32).flat_map(|half_hundredth| {
            let tie = f64::from(half_hundredth) / 200.0;
            [tie.next_up(), tie.next_down(), tie + 1e-7, tie - 1e-7]
        });
        let shares = (1..3000_u32).map(|part| f64::from(part) * 100.0 / 3001.0);
        let special = [
            0.0,
            -0.0,
            -1.0,
            99.994_999,
            99.995,
            1e7,
            1e300,
            f64::NAN,
            f64::INFINITY,
        ];
        let values = ties.chain(decimal_ties).chain(near);
        for value in values.chain(shares).chain(special) {
            let mut text = String::new();
            push_two_decimals(&mut text, value);
            assert_eq!(text, format!("{value:.2}"));
        }
    }

    #[test]
    fn text_is_aligned_right() {
        let mut text = "a12".to_owned();
        align_right(&mut text, 1, 40);
        assert_eq!(text, format!("a{:>40}", 12));
        push_blanks(&mut text, 50);
        assert_eq!(text, format!("a{:>40}{:50}", 12, ""));
    }

    #[test]
    fn padded_numbers_equal_the_standard_library() {
        let mut value: u64 = 1;
        let mut values = vec![
            0,
            9,
            10,
            99,
            100,
            101,
            999,
            1000,
            u64::MAX,
            u64::MAX - 1,
            1 << 63,
        ];
        for _ in 0..500 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            values.push(value >> (value % 64));
        }
        for value in values {
            assert_eq!(
                written(|out| decimal(out, value, 10)),
                format!("{value:>10}")
            );
            assert_eq!(
                written(|out| decimal_zeros(out, value, 6)),
                format!("{value:06}")
            );
            assert_eq!(
                written(|out| hexadecimal(out, value, 16)),
                format!("{value:16x}")
            );
            let low = value as u32;
            assert_eq!(
                written(|out| signed(out, low, 5)),
                format!("{:>5}", low as i32)
            );
            assert_eq!(
                written(|out| signed_left(out, low, 5)),
                format!("{:<5}", low as i32)
            );
            assert_eq!(
                written(|out| decimal(out, value, 25)),
                format!("{value:>25}")
            );
            assert_eq!(
                written(|out| hexadecimal_zeros(out, value, 25)),
                format!("{value:025x}")
            );
        }
        assert_eq!(written(|out| right(out, b"abcdef", 5)), "abcdef");
    }
}
