//! Sizes in options: `64K`, `5M`, `2G`, `100B`.

/// Parses a number above 0 with the suffix `B`, `K`, `M` or `G`, in upper or lower case, into bytes; `None` for anything else.
pub(crate) fn parse_with_unit(word: &str) -> Option<u64> {
    scaled(word)?.filter(|size| *size > 0)
}

/// Parses bytes, with or without a suffix; `None` if invalid or too large, and for 0 with a suffix, which [`parse_with_unit`]
/// refuses.
pub(crate) fn bytes(word: &str) -> Option<u64> {
    word.parse().ok().or_else(|| parse_with_unit(word))
}

/// Parses a number with a suffix, in upper or lower case, into bytes. The outer `None` is for a word without a suffix, the inner
/// one for an invalid or too large number.
#[expect(
    clippy::option_option,
    reason = "a word without a suffix differs from one with an invalid number"
)]
pub(crate) fn scaled(word: &str) -> Option<Option<u64>> {
    let unit = word.chars().last()?;
    let shift = match unit.to_ascii_uppercase() {
        'B' => 0,
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return None,
    };
    let number = word.get(..word.len() - 1).unwrap_or_default();
    let number = number.parse::<u64>().ok();
    Some(number.and_then(|number| number.checked_mul(1 << shift)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_suffix() {
        assert_eq!(
            [
                parse_with_unit("100B"),
                parse_with_unit("64k"),
                parse_with_unit("2G")
            ],
            [Some(100), Some(64 << 10), Some(2 << 30)]
        );
        for bad in [
            "",
            "5",
            "0K",
            "1.5M",
            "K",
            "99999999999999999999G",
            "9999999999999G",
            "é",
        ] {
            assert_eq!(parse_with_unit(bad), None, "{bad}");
        }
    }

    #[test]
    fn bytes_need_no_suffix() {
        assert_eq!([bytes("4096"), bytes("64K")], [Some(4096), Some(64 << 10)]);
        assert_eq!([bytes(""), bytes("x"), bytes("-1")], [None; 3]);
    }
}
