//! `/tmp/perf-PID.map`: JIT-compiled code, listed by the runtime.

use crate::builder::{NewSymbol, TableBuilder};
use crate::symbol::{Binding, NameForm, SymbolKind};
use crate::table::{AddressKind, SymbolTable};

/// Maximum length of a line, in bytes. Longer lines are not text: for example, a hole in a sparse file reads as one line of NULs.
const MAX_LINE: usize = 1 << 20;
/// Entries whose name has at most this many bytes are ignored, as in perf.
const IGNORED_NAME_LEN: usize = 2;

/// A parsed perf map.
#[derive(Debug)]
pub struct PerfMap {
    /// Its symbols, at run-time addresses. Overlapping entries are neither shortened nor removed: [`SymbolTable::find`]
    /// selects one of them, as perf does.
    pub table: SymbolTable,
    /// Number of lines that are malformed or too long; empty lines do not count.
    pub bad_lines: usize,
}

/// Parses lines of the form `START SIZE NAME`, where the numbers are hexadecimal, with or without `0x`;
/// names may contain spaces.
pub fn parse(text: &[u8]) -> PerfMap {
    let demangle = false;
    let mut builder = TableBuilder::new(demangle);
    let mut bad_lines = 0;
    for line in text.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let parsed = parse_line(line).filter(|_| line.len() <= MAX_LINE);
        let Some((start, size, name)) = parsed else {
            bad_lines += 1;
            continue;
        };
        if name.len() <= IGNORED_NAME_LEN {
            continue;
        }
        let new = NewSymbol {
            start,
            size,
            binding: Binding::Global,
            kind: SymbolKind::Function,
            form: NameForm::Plain,
        };
        builder.push(new, name);
    }
    PerfMap {
        table: builder.finish(AddressKind::Runtime),
        bad_lines,
    }
}

/// Returns a table for kernel code generated at run time: one function of `size` bytes at address 0. Although the table has
/// [`AddressKind::Runtime`], its addresses are thus offsets in the code.
pub fn kernel_function_table(size: u64, name: &[u8]) -> SymbolTable {
    let demangle = false;
    let mut builder = TableBuilder::new(demangle);
    let function = NewSymbol {
        start: 0,
        size,
        binding: Binding::Local,
        kind: SymbolKind::Function,
        form: NameForm::Plain,
    };
    builder.push(function, name);
    builder.finish(AddressKind::Runtime)
}

/// Returns start, size and name. One byte after each number is skipped, the separator.
fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = hexadecimal(line)?;
    let (size, rest) = hexadecimal(rest.get(1..)?)?;
    let name = rest.get(1..)?;
    (!name.is_empty()).then_some((start, size, name))
}

/// The number at the start of `text`, after blanks, and the rest; `None` if there is no number, or it has more than 64 bits.
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .unwrap_or(text);
    let len = digits
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    let (number, rest) = digits.split_at_checked(len)?;
    let number = std::str::from_utf8(number).ok()?;
    Some((u64::from_str_radix(number, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_lines_are_counted() {
        let map = parse(b"10 8 first\n\nnonsense\n18\n18 8\n0x20 0X8 a name\n30 8 ab\n99999999999999999 1 wide\n");
        let names: Vec<_> = map
            .table
            .iter()
            .map(|(at, _)| map.table.name(at).into_owned())
            .collect();
        assert_eq!(names, ["first", "a name"]);
        assert_eq!(map.bad_lines, 4);
    }
}
