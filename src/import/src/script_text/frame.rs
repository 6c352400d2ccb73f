//! One frame: address, function and object.

/// A frame of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextFrame<'t> {
    /// The address as printed: the address of the code or, for user space in callchains of perf 6.1, its offset in the object.
    pub(super) address: u64,
    /// The function's name; `None` if unknown.
    pub(super) symbol: Option<&'t str>,
    /// Distance of the address from the function's start; `None` if not printed, or larger than the address.
    pub(super) offset: Option<u64>,
    /// The object's name; `None` if unknown.
    pub(super) object: Option<&'t str>,
    /// Whether the function is inlined into the function of the next frame.
    pub(super) is_inlined: bool,
}

const UNKNOWN: &str = "[unknown]";
const INLINED: &str = "inlined";

impl<'t> TextFrame<'t> {
    /// Parses `114a leaf+0x11 (/tmp/load)`. The function and the object may be missing; `None` if the address is missing or the
    /// text is truncated.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim();
        let (address, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
        let address = hexadecimal(address)?;
        let rest = rest.trim();
        let (function, object) = match rest.ends_with(')') {
            true => {
                let start = group_start(rest)?;
                let object = rest.get(start + 1..rest.len() - 1)?;
                (rest.get(..start)?.trim_end(), Some(object))
            }
            // A truncated object, not a function without an object.
            false if rest.contains(" (") => return None,
            false => (rest, None),
        };
        let (symbol, offset) = match function.rsplit_once("+0x") {
            Some((symbol, offset)) => match hexadecimal(offset) {
                Some(offset) => (symbol, Some(offset)),
                None => (function, None),
            },
            None => (function, None),
        };
        let is_inlined = object == Some(INLINED);
        Some(Self {
            address,
            symbol: Some(symbol).filter(|symbol| !matches!(*symbol, "" | UNKNOWN)),
            offset: offset.filter(|offset| *offset <= address),
            object: object.filter(|object| !matches!(*object, "" | UNKNOWN) && !is_inlined),
            is_inlined,
        })
    }

    /// Whether the code is the kernel's.
    pub(super) fn is_kernel(&self) -> bool {
        is_kernel(self.address)
    }
}

/// Whether an address is the kernel's: in the upper half of 57-bit addresses, which includes the upper half of 48-bit ones.
pub(super) fn is_kernel(address: u64) -> bool {
    address >= 0xff00_0000_0000_0000
}

/// Parses hexadecimal digits without a prefix or sign.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_plain && !text.is_empty())
        .then(|| u64::from_str_radix(text, 16).ok())
        .flatten()
}

/// Returns the offset of the opening parenthesis that matches the `)` at the end of the text. Paths can have parentheses, too:
/// `(/tmp/load (deleted))`.
fn group_start(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
