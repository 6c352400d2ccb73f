//! The format string of a `print fmt`, split into conversions.

use crate::FormatWarning;

/// A part of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormatPart {
    /// Literal text with resolved escapes, or perf's text for an unknown conversion.
    Literal(Vec<u8>),
    /// A conversion that takes an argument.
    Conversion(Conversion),
}

/// A conversion such as `%-8s`, `%#llx` or `%pI6c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversion {
    pub(super) kind: ConversionKind,
    /// Whether an argument precedes the converted one, for `*`. For integers and text, `star` of the spec says whether it is
    /// the width or the precision. For `%*ph` it is the maximum number of bytes; other pointers ignore it.
    pub(super) takes_star: bool,
}

/// Type of a conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversionKind {
    Integer(IntegerSpec),
    Text(TextSpec),
    /// `%p`; the characters after it that belong to the conversion, such as `I6c`.
    Pointer(String),
}

/// The purpose of a `*` argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StarArgument {
    Width,
    Precision,
}

/// Format of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of printf")]
pub(super) struct IntegerSpec {
    pub(super) base: Base,
    /// Size of the argument in bits: 8, 16, 32 or 64.
    pub(super) bits: u8,
    pub(super) width: u16,
    pub(super) precision: Option<u16>,
    pub(super) star: Option<StarArgument>,
    pub(super) is_left_aligned: bool,
    pub(super) is_zero_padded: bool,
    pub(super) has_prefix: bool,
    /// Whether there are no flags, no width and no precision.
    pub(super) is_plain: bool,
}

/// The base of an integer; `Signed` and `Unsigned` are decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    Signed,
    Unsigned,
    Octal,
    Hex,
    UpperHex,
}

/// Padding and truncation of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TextSpec {
    pub(super) width: u16,
    pub(super) precision: Option<u16>,
    pub(super) star: Option<StarArgument>,
    pub(super) is_left_aligned: bool,
}

/// Maximum length of a conversion in bytes, as in perf.
const MAX_CONVERSION: usize = 31;

/// Splits `format` into literal text and conversions.
pub(super) fn parts(format: &str) -> Result<Vec<FormatPart>, FormatWarning> {
    let mut parts = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        if rest.starts_with('%') && !rest.starts_with("%%") {
            rest = conversion(rest, &mut parts)?;
        } else {
            rest = literal(rest, &mut parts);
        }
    }
    Ok(parts)
}

/// Parses the literal text up to the next conversion and returns the rest.
fn literal<'a>(text: &'a str, parts: &mut Vec<FormatPart>) -> &'a str {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut used = first.len_utf8();
        match (first, rest.as_bytes().get(1)) {
            ('\\', Some(escaped)) => {
                let plain = match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                };
                // Only the backslash is removed before a multi-byte character.
                if plain.is_ascii() {
                    bytes.push(plain);
                    used += 1;
                }
            }
            ('\\', None) => {}
            ('%', Some(b'%')) => {
                bytes.push(b'%');
                used += 1;
            }
            ('%', _) => break,
            _ => bytes.extend_from_slice(rest.get(..used).unwrap_or_default().as_bytes()),
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    parts.push(FormatPart::Literal(bytes));
    rest
}

/// Parses the conversion at the start of `text` and returns the rest.
fn conversion<'a>(text: &'a str, parts: &mut Vec<FormatPart>) -> Result<&'a str, FormatWarning> {
    let malformed = |end: usize| {
        let start = text.get(..end).unwrap_or(text);
        FormatWarning::Conversion(start.to_owned())
    };
    // The number of `l` minus that of `h`; 2 for `L`.
    let mut longs = 0_i8;
    let mut is_size_t = false;
    let mut has_star = false;
    for (index, letter) in text.char_indices().skip(1) {
        let end = index + letter.len_utf8();
        match letter {
            '#' | '.' | '-' | '0'..='9' => {}
            'h' => longs = longs.saturating_sub(1),
            'l' => longs = longs.saturating_add(1),
            'L' => longs = 2,
            'z' | 'Z' => is_size_t = true,
            '*' if has_star => return Err(malformed(end)),
            '*' => has_star = true,
            'p' | 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 's' => {
                let suffix = text.get(end..).unwrap_or_default();
                let extra = if letter == 'p' {
                    pointer_suffix(suffix.as_bytes())
                } else {
                    0
                };
                if end + extra > MAX_CONVERSION {
                    return Err(malformed(end));
                }
                let modifiers = text.get(1..index).unwrap_or_default();
                let kind = match letter {
                    'p' => ConversionKind::Pointer(suffix.get(..extra).unwrap_or_default().into()),
                    's' => ConversionKind::Text(text_spec(modifiers)),
                    _ => ConversionKind::Integer(
                        integer_spec(letter, modifiers, longs, is_size_t)
                            .ok_or_else(|| malformed(end))?,
                    ),
                };
                parts.push(FormatPart::Conversion(Conversion {
                    kind,
                    takes_star: has_star,
                }));
                return Ok(suffix.get(extra..).unwrap_or_default());
            }
            // perf 6.1 prints unknown conversions, including `%c`, like this.
            other => {
                parts.push(FormatPart::Literal(format!(">{other}<").into_bytes()));
                return Ok(text.get(end..).unwrap_or_default());
            }
        }
    }
    // The format ends inside the conversion, which then prints nothing.
    Ok("")
}

/// Number of characters after `%p` that belong to the conversion.
fn pointer_suffix(suffix: &[u8]) -> usize {
    let at = |index: usize| suffix.get(index).copied().unwrap_or_default();
    match at(0) {
        b'F' | b'S' | b'f' | b's' => 1,
        b'M' | b'm' => 1 + usize::from(b"RF".contains(&at(1))),
        b'U' => 1 + usize::from(b"LlBb".contains(&at(1))),
        b'h' => 1 + usize::from(b"CDN".contains(&at(1))),
        b'I' | b'i' => match at(1) {
            b'4' => 2 + usize::from(b"hnlb".contains(&at(2))),
            b'6' => 2 + usize::from(at(2) == b'c'),
            b'S' => {
                let mut end = 2;
                while b"pfs".contains(&at(end)) {
                    end += 1;
                }
                end += usize::from(b"hnlb".contains(&at(end)));
                end + usize::from(at(end) == b'c')
            }
            _ => 1,
        },
        _ => 0,
    }
}

/// Parses the modifiers between `%` and the letter: flags, width and precision. Length modifiers are ignored.
fn text_spec(modifiers: &str) -> TextSpec {
    let without_length = modifiers.trim_matches(|c: char| c.is_ascii_alphabetic());
    let flags_end = without_length
        .find(|c| !"#-0".contains(c))
        .unwrap_or(without_length.len());
    let (flags, digits) = without_length.split_at(flags_end);
    let (width, precision) = match digits.split_once('.') {
        Some((width, precision)) => (width, Some(precision)),
        None => (digits, None),
    };
    let precision_star = precision.is_some_and(|precision| precision.contains('*'));
    TextSpec {
        width: width.parse().unwrap_or(0),
        precision: precision
            .filter(|_| !precision_star)
            .map(|precision| precision.parse().unwrap_or(0)),
        star: match (width.contains('*'), precision_star) {
            (true, _) => Some(StarArgument::Width),
            (_, true) => Some(StarArgument::Precision),
            _ => None,
        },
        is_left_aligned: flags.contains('-'),
    }
}

/// Parses the modifiers of the conversion `letter`; `None` if the length modifiers give no valid size.
fn integer_spec(letter: char, modifiers: &str, longs: i8, is_size_t: bool) -> Option<IntegerSpec> {
    // Width, precision and alignment are written as for `%s`.
    let text = text_spec(modifiers);
    let flags_end = modifiers
        .find(|c| !"#-0".contains(c))
        .unwrap_or(modifiers.len());
    let flags = modifiers.get(..flags_end).unwrap_or_default();
    Some(IntegerSpec {
        base: match letter {
            // As in perf, which passes only 32 bits to printf for the 64 bits of `%zd`: -1 prints as 4294967295.
            'd' | 'i' if is_size_t && longs == 0 => Base::Unsigned,
            'd' | 'i' => Base::Signed,
            'u' => Base::Unsigned,
            'o' => Base::Octal,
            'X' => Base::UpperHex,
            _ => Base::Hex,
        },
        bits: match longs {
            -2 => 8,
            -1 => 16,
            0 => 32,
            1 | 2 => 64,
            _ => return None,
        },
        width: text.width,
        precision: text.precision,
        star: text.star,
        is_left_aligned: text.is_left_aligned,
        is_zero_padded: flags.contains('0'),
        has_prefix: flags.contains('#'),
        is_plain: modifiers.bytes().all(|byte| byte.is_ascii_alphabetic()),
    })
}
