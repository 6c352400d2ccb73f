//! Memory of a process that was copied at a system call.

use std::io::{self, Write};

/// The memory that an argument points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedBytes<'a> {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// Index of the text or buffer, if the argument is a list of them; for messages, see [`crate::captured_record`].
    pub item: usize,
    /// The bytes; those of a text without its NUL.
    pub bytes: &'a [u8],
    /// Whether `bytes` is only the first part of the text, buffer or array.
    pub is_truncated: bool,
    /// Whether the memory could not be read.
    pub is_unreadable: bool,
    /// Whether this has no bytes, but marks that the list has more items than were captured.
    pub marks_more_items: bool,
    /// Whether the memory was read from outside the process after the call had begun: its content may have changed since.
    pub is_late: bool,
}

/// Writes bytes in quotes, as C would: `"a\n\377"`, followed by `...` if they are truncated.
///
/// # Errors
/// Errors of `to`.
pub fn write_quoted(to: &mut dyn Write, bytes: &[u8], is_truncated: bool) -> io::Result<()> {
    to.write_all(b"\"")?;
    for byte in bytes {
        match byte {
            b'"' => to.write_all(b"\\\"")?,
            b'\\' => to.write_all(b"\\\\")?,
            b'\n' => to.write_all(b"\\n")?,
            b'\t' => to.write_all(b"\\t")?,
            b'\r' => to.write_all(b"\\r")?,
            0x20..=0x7e => to.write_all(&[*byte])?,
            _ => write!(to, "\\{byte:03o}")?,
        }
    }
    to.write_all(if is_truncated { b"\"..." } else { b"\"" })
}

/// Writes a path or the name of a task. Control characters are escaped as in [`write_quoted`]: a name with a newline must
/// not look like another line.
///
/// # Errors
/// Errors of `to`.
pub fn write_name(to: &mut dyn Write, name: &[u8]) -> io::Result<()> {
    for byte in name {
        match byte {
            b'\n' => to.write_all(b"\\n")?,
            b'\t' => to.write_all(b"\\t")?,
            b'\r' => to.write_all(b"\\r")?,
            0..0x20 | 0x7f => write!(to, "\\{byte:03o}")?,
            _ => to.write_all(&[*byte])?,
        }
    }
    Ok(())
}

/// Writes bytes as perf shows buffers: without quotes, followed by `...` if they are truncated. Backslashes and bytes that are not
/// printable become decimal numbers like `\10`.
///
/// # Errors
/// Errors of `to`.
pub fn write_buffer(to: &mut dyn Write, bytes: &[u8], is_truncated: bool) -> io::Result<()> {
    for byte in bytes {
        match byte {
            0x20..=0x7e if *byte != b'\\' => to.write_all(&[*byte])?,
            _ => write!(to, "\\{byte}")?,
        }
    }
    to.write_all(if is_truncated { b"..." } else { b"" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_byte_is_quoted() {
        let mut text = Vec::new();
        write_quoted(&mut text, b"a\"\\\n\x1b\xff", true).unwrap();
        assert_eq!(text, b"\"a\\\"\\\\\\n\\033\\377\"...");
    }

    #[test]
    fn names_stay_on_one_line() {
        let mut text = Vec::new();
        write_name(&mut text, "é\n1 x\x1b\u{7f}".as_bytes()).unwrap();
        assert_eq!(text, "é\\n1 x\\033\\177".as_bytes());
    }

    #[test]
    fn buffers_have_no_quotes() {
        let mut text = Vec::new();
        write_buffer(&mut text, b"a\"\\\n\xff", false).unwrap();
        assert_eq!(text, b"a\"\\92\\10\\255");
    }
}
