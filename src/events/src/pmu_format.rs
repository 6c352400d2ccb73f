//! `format` files of a PMU: the attr bits set by a term (`Documentation/ABI`,
//! event_source-devices-format).

use rperf_wire::Attr;

/// Bits of one word of the attr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldBits {
    /// 0 for `config`, otherwise the number of `configN`.
    word: usize,
    /// First and last bit of each part, the parts for the lowest bits of the value first.
    parts: Vec<(u32, u32)>,
}

impl FieldBits {
    /// Parses `config1:0-7,32-35`; `None` if it is malformed or names another word.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = match word.strip_prefix("config")? {
            "" => 0,
            digit => digit.parse().ok().filter(|word| (1..=4).contains(word))?,
        };
        let part = |range: &str| -> Option<(u32, u32)> {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < 64).then_some((first, last))
        };
        let parts: Option<Vec<_>> = ranges.split(',').map(part).collect();
        Some(Self {
            word,
            parts: parts?,
        })
    }

    /// The largest value that the bits can hold.
    pub(crate) fn max(&self) -> u64 {
        let width: u32 = self
            .parts
            .iter()
            .map(|(first, last)| last - first + 1)
            .sum();
        u64::MAX
            .checked_shr(64_u32.saturating_sub(width))
            .unwrap_or(0)
    }

    /// Whether the bits are in `config`.
    pub(crate) fn is_of_config(&self) -> bool {
        self.word == 0
    }

    /// Position in the word of the lowest bit of the value.
    pub(crate) fn lowest(&self) -> Option<u32> {
        self.parts.first().map(|(first, _)| *first)
    }

    /// Mask of the bits.
    pub(crate) fn mask(&self) -> u64 {
        let parts = self.parts.iter();
        parts.fold(0, |mask, part| mask | part_mask(part.0, part.1))
    }

    /// Extracts the value from `word`, the word of the attr that has these bits.
    pub(crate) fn get(&self, word: u64) -> u64 {
        let (mut value, mut shift) = (0, 0);
        for part in &self.parts {
            value |= ((word & part_mask(part.0, part.1)) >> part.0)
                .checked_shl(shift)
                .unwrap_or(0);
            shift += part.1 - part.0 + 1;
        }
        value
    }

    /// Replaces the value in the attr.
    pub(crate) fn set(&self, mut value: u64, attr: &mut Attr) {
        let Some(word) = config_word(attr, self.word) else {
            return;
        };
        for (first, last) in &self.parts {
            let width = last - first + 1;
            let mask = part_mask(*first, *last);
            *word = (*word & !mask) | ((value << first) & mask);
            value = value.checked_shr(width).unwrap_or(0);
        }
    }
}

/// Mask of a part.
fn part_mask(first: u32, last: u32) -> u64 {
    (u64::MAX >> (63 - (last - first))) << first
}

/// The word `config` (0) to `config4` of an attr; `None` for other numbers.
pub(crate) fn config_word(attr: &mut Attr, number: usize) -> Option<&mut u64> {
    match number {
        0 => Some(&mut attr.config),
        1 => Some(&mut attr.config1),
        2 => Some(&mut attr.config2),
        3 => Some(&mut attr.config3),
        4 => Some(&mut attr.config4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_spread_over_its_parts() {
        let bits = FieldBits::parse("config2:0-7,32-35\n").unwrap();
        assert_eq!(bits.max(), 0xfff);
        let mut attr = Attr {
            config2: 0xff00,
            ..Attr::default()
        };
        bits.set(0xabc, &mut attr);
        assert_eq!(attr.config2, 0xa_0000_ffbc);
        assert_eq!(
            (bits.get(attr.config2), bits.mask()),
            (0xabc, 0xf_0000_00ff)
        );
        bits.set(1, &mut attr);
        assert_eq!(attr.config2, 0xff01, "the last value applies");
        let all = FieldBits::parse("config:0-63").unwrap();
        assert_eq!(all.max(), u64::MAX);
        all.set(u64::MAX, &mut attr);
        assert_eq!(attr.config, u64::MAX);
    }

    #[test]
    fn invalid_formats_are_refused() {
        for bad in [
            "",
            "config",
            "config:",
            "config:8-7",
            "config:64",
            "config9:0",
            "other:0",
            "config:0-x",
        ] {
            assert_eq!(FieldBits::parse(bad), None, "{bad}");
        }
    }
}
