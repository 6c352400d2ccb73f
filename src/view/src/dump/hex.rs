//! Bytes, sixteen to a line, in hexadecimal and as text.

use std::io::{self, Write};

/// Bytes per line.
const LINE: usize = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes a heading, a record's bytes and an empty line.
pub(super) fn write(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    writeln!(out, ".\n. ... raw event: size {} bytes", bytes.len())?;
    // Enough for any line.
    let mut line = Vec::with_capacity(96);
    for (index, part) in bytes.chunks(LINE).enumerate() {
        line.clear();
        write!(line, ".  {:04x}: ", index * LINE)?;
        for byte in part {
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
            line.extend([b' ', digit(byte >> 4), digit(byte & 15)]);
        }
        let missing = LINE - part.len();
        line.extend(std::iter::repeat_n(b' ', 3 * missing + 2));
        line.extend(part.iter().map(|byte| printable(*byte)));
        line.extend(std::iter::repeat_n(b' ', missing));
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.write_all(b"\n")
}

fn printable(byte: u8) -> u8 {
    match byte {
        b' '..=b'~' => byte,
        _ => b'.',
    }
}
