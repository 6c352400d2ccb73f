//! Numbers as text, right-aligned with blanks as `printf("%16llx")` does: the standard library's formatting costs
//! several times as much, and a recording has tens of millions of them.

const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Digits of one number, filled from the end.
struct Digits {
    bytes: [u8; 20],
    start: usize,
}

impl Digits {
    #[inline]
    fn decimal(mut value: u64) -> Self {
        let mut digits = Self {
            bytes: [b'0'; 20],
            start: 20,
        };
        while value >= 10 {
            let pair = (value % 100) as usize * 2;
            value /= 100;
            digits.start -= 2;
            digits.bytes[digits.start] = PAIRS[pair];
            digits.bytes[digits.start + 1] = PAIRS[pair + 1];
        }
        if value > 0 || digits.start == 20 {
            digits.start -= 1;
            digits.bytes[digits.start] = b'0' + value as u8;
        }
        digits
    }

    #[inline]
    fn hexadecimal(mut value: u64) -> Self {
        let mut digits = Self {
            bytes: [b'0'; 20],
            start: 20,
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

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Appends `count` blanks.
#[inline]
pub(super) fn blanks(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b' ');
}

/// Appends `text` right-aligned in `width` columns.
#[inline]
pub(super) fn right(out: &mut Vec<u8>, text: &[u8], width: usize) {
    blanks(out, width.saturating_sub(text.len()));
    out.extend_from_slice(text);
}

/// Appends `text` and blanks up to `width` columns.
pub(super) fn left(out: &mut Vec<u8>, text: &[u8], width: usize) {
    out.extend_from_slice(text);
    blanks(out, width.saturating_sub(text.len()));
}

/// `%*llu`.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, value: u64, width: usize) {
    right(out, Digits::decimal(value).as_bytes(), width);
}

/// `%0*llx`.
#[inline]
pub(super) fn hexadecimal_zeros(out: &mut Vec<u8>, value: u64, width: usize) {
    let digits = Digits::hexadecimal(value);
    let digits = digits.as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

/// `%0*llu`.
#[inline]
pub(super) fn decimal_zeros(out: &mut Vec<u8>, value: u64, width: usize) {
    let digits = Digits::decimal(value);
    let digits = digits.as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

/// `%d` of a 32-bit number, as text of its own.
pub(super) fn signed(value: u32) -> impl AsRef<[u8]> {
    struct Text([u8; 11], usize);
    impl AsRef<[u8]> for Text {
        fn as_ref(&self) -> &[u8] {
            &self.0[self.1..]
        }
    }
    let value = value.cast_signed();
    let digits = Digits::decimal(u64::from(value.unsigned_abs()));
    let digits = digits.as_bytes();
    let mut text = Text([b'-'; 11], 11 - digits.len());
    text.0[text.1..].copy_from_slice(digits);
    text.1 -= usize::from(value < 0);
    text
}

/// `%*llx`.
#[inline]
pub(super) fn hexadecimal(out: &mut Vec<u8>, value: u64, width: usize) {
    right(out, Digits::hexadecimal(value).as_bytes(), width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn equals_the_standard_library() {
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
            assert_eq!(made(|out| decimal(out, value, 10)), format!("{value:>10}"));
            assert_eq!(
                made(|out| decimal_zeros(out, value, 6)),
                format!("{value:06}")
            );
            assert_eq!(
                made(|out| hexadecimal(out, value, 16)),
                format!("{value:16x}")
            );
            let low = value as u32;
            assert_eq!(
                made(|out| right(out, signed(low).as_ref(), 5)),
                format!("{:>5}", low as i32)
            );
        }
        assert_eq!(made(|out| left(out, b"ab", 5)), "ab   ");
        assert_eq!(made(|out| right(out, b"abcdef", 5)), "abcdef");
    }
}
