//! A JSON object in one line.

use std::fmt::{Display, LowerHex};
use std::io::Write as _;

use super::push_string;

/// An object written member by member. Writing to memory does not fail.
pub struct JsonObject<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> JsonObject<'o> {
    /// Starts an object at the end of `out`.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self {
            out,
            is_empty: true,
        }
    }

    /// Appends a key; the caller appends the value.
    pub fn member(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        push_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// Appends a string.
    pub fn text(&mut self, key: &str, text: &str) {
        push_string(self.member(key), text);
    }

    /// Appends a value without quotes: a number, `true`, a list of numbers.
    pub fn plain(&mut self, key: &str, value: impl Display) {
        let _ = write!(self.member(key), "{value}");
    }

    /// Appends an address or a mask, as a string with `0x`.
    pub fn hex(&mut self, key: &str, number: impl LowerHex) {
        let _ = write!(self.member(key), "\"{number:#x}\"");
    }

    /// Ends the object.
    pub fn finish(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_separated_and_escaped() {
        let mut out = b"before ".to_vec();
        let mut object = JsonObject::new(&mut out);
        object.text("comm", "a \"b\"\n");
        object.plain("tid", -1);
        object.hex("ip", 0xffff_u64);
        JsonObject::new(object.member("none")).finish();
        object.plain("inlined", true);
        object.finish();
        let expected =
            r#"before {"comm":"a \"b\"\n","tid":-1,"ip":"0xffff","none":{},"inlined":true}"#;
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
