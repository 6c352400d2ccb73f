//! Numbers in the arguments of `-e` and `--filter`, and in the vendors' tables of events.

/// Parses a decimal number, or a hexadecimal one with `0x` or `0X`; `None` if it is malformed or has more than 64 bits.
pub(crate) fn number(text: &str) -> Option<u64> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let parse = |digits: &str, radix| {
        // `from_str_radix` would also accept a plus sign.
        let starts_with_digit = digits.starts_with(|digit: char| digit.is_digit(radix));
        starts_with_digit.then(|| u64::from_str_radix(digits, radix).ok())?
    };
    hex.map_or_else(|| parse(text, 10), |digits| parse(digits, 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_decimal_and_hexadecimal_only() {
        assert_eq!(
            [number("10"), number("0x1F"), number("0")],
            [Some(10), Some(31), Some(0)]
        );
        for bad in ["", "0x", "+1", "0x+1", "1f", "-1", "18446744073709551616"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
