//! `/proc/kallsyms`: `ADDRESS TYPE NAME`, and `[MODULE]` after a tab (proc(5), kernel/kallsyms.c).

use std::io;
use std::ops::ControlFlow;

use memchr::memchr;

use crate::builder::{NewSymbol, TableBuilder};
use crate::symbol::{Binding, NameForm, SymbolKind};
use crate::table::{AddressKind, SymbolTable};

/// One line of the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KallsymsLine<'a> {
    /// Run-time address.
    pub address: u64,
    /// The letter as in nm(1): `T` global text, `t` local text, `W` weak, `D` data, …
    pub kind: u8,
    /// The name, followed by a tab and `[MODULE]` for symbols of modules.
    pub text: &'a [u8],
}

impl<'a> KallsymsLine<'a> {
    /// Name and module, the module without its brackets.
    pub fn name_and_module(&self) -> (&'a [u8], Option<&'a [u8]>) {
        let Some(tab) = memchr(b'\t', self.text) else {
            return (self.text, None);
        };
        let (name, module) = self.text.split_at(tab);
        let module = module.get(1..).unwrap_or_default();
        let bare = module
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"));
        (name, Some(bare.unwrap_or(module)))
    }

    /// Whether perf keeps the symbol: text, weak, data and bss symbols, except ARM's mapping symbols such as `$x`.
    fn is_kept_by_perf(&self) -> bool {
        matches!(self.kind.to_ascii_uppercase(), b'T' | b'W' | b'D' | b'B')
            && self.text.first() != Some(&b'$')
    }

    fn as_symbol(&self) -> NewSymbol {
        NewSymbol {
            start: self.address,
            size: 0,
            binding: match self.kind {
                // As in perf, a lower-case `w` is local.
                b'W' => Binding::Weak,
                letter if letter.is_ascii_uppercase() => Binding::Global,
                _ => Binding::Local,
            },
            kind: match self.kind.to_ascii_lowercase() {
                b't' | b'w' => SymbolKind::Function,
                _ => SymbolKind::Variable,
            },
            form: NameForm::Plain,
        }
    }
}

/// The valid lines of a listing.
pub fn lines(listing: &[u8]) -> impl Iterator<Item = KallsymsLine<'_>> {
    KallsymsLines { rest: listing }
}

struct KallsymsLines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for KallsymsLines<'a> {
    type Item = KallsymsLine<'a>;

    fn next(&mut self) -> Option<KallsymsLine<'a>> {
        while !self.rest.is_empty() {
            let (address, digits) = hexadecimal(self.rest);
            let after = self.rest.get(digits..).unwrap_or_default();
            let len = memchr(b'\n', after).unwrap_or(after.len());
            let (line, rest) = after.split_at(len);
            self.rest = rest.get(1..).unwrap_or_default();
            if let [b' ', kind, b' ', text @ ..] = line
                && kind.is_ascii_graphic()
                && (1..=16).contains(&digits)
                && !text.is_empty()
            {
                return Some(KallsymsLine {
                    address,
                    kind: *kind,
                    text,
                });
            }
        }
        None
    }
}

/// The number at the start of `text` and how many digits it has. More than 16 are counted, but only the last 16 used.
fn hexadecimal(text: &[u8]) -> (u64, usize) {
    let mut number = 0u64;
    let mut digits = 0;
    // Eight digits at a time, for speed: addresses of 64-bit kernels have 16.
    while let Some(chunk) = text.get(digits..).and_then(<[u8]>::first_chunk)
        && let Some(eight) = eight_digits(*chunk)
    {
        number = number << 32 | eight;
        digits += 8;
    }
    for byte in text.get(digits..).unwrap_or_default() {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            break;
        };
        number = number << 4 | u64::from(digit);
        digits += 1;
    }
    (number, digits)
}

/// The number with these eight hexadecimal digits; `None` if a byte is not a digit. Works on all bytes at once.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    let bytes = u64::from_be_bytes(text);
    // Returns a number in which the top bit of each byte is set if that byte of the argument is at least `least`. The argument
    // must not have a byte with its top bit set.
    let reaches = |bytes: u64, least: u64| ((bytes | TOP) - least * EACH) & TOP;
    let decimal = reaches(bytes & !TOP, 0x30) & !reaches(bytes & !TOP, 0x3a);
    // Setting bit 0x20 turns upper-case letters into lower-case ones, and no other bytes into letters.
    let lower = (bytes | (0x20 * EACH)) & !TOP;
    let letter = reaches(lower, 0x61) & !reaches(lower, 0x67);
    // A byte with its top bit set is not a digit.
    if (decimal | letter) & !bytes != TOP {
        return None;
    }
    let values = (bytes & (0x0f * EACH)) + (letter >> 7) * 9;
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) & u64::from(u32::MAX))
}

/// The symbols of one module in kallsyms.
#[derive(Debug, Clone)]
pub struct ModuleSymbols {
    /// The module's name without brackets.
    pub name: Box<str>,
    /// Its symbols at run-time addresses.
    pub table: SymbolTable,
}

/// A parsed listing.
#[derive(Debug, Clone)]
pub struct Kallsyms {
    /// The symbols of the kernel itself.
    pub kernel: SymbolTable,
    /// The symbols of each module and pseudo-module (`bpf`, `ftrace`, `__builtin__kprobes`).
    pub modules: Vec<ModuleSymbols>,
    /// Whether all addresses are zero, because they are hidden; then there are no symbols. Also true if there are no valid lines.
    pub hidden: bool,
    /// Whether there are no valid lines.
    pub is_blank: bool,
    /// Whether the relocation symbol is missing although addresses are not hidden; then there are no symbols.
    pub lacks_relocation_symbol: bool,
}

/// Parses a whole listing. `relocation` is a symbol of the kernel and its address in the recorded kernel: if given, the kernel's
/// symbols are moved by the difference from its address in the listing. Symbols of modules are not moved.
pub fn parse(listing: &[u8], relocation: Option<(&str, u64)>) -> Kallsyms {
    let mut collector = Collector::new(relocation);
    lines(listing).for_each(|line| collector.line(&line));
    collector.finish()
}

/// Maximum length of a line in bytes, which limits the buffer: a hole in a sparse file is read as one line, however large it is.
const MAX_LINE: usize = 1 << 20;
/// Initial size of the buffer in bytes. It grows only for a line that does not fit.
const CHUNK: usize = 64 << 10;

/// Like [`parse`], for a listing that is read incrementally.
///
/// # Errors
///
/// Those of `source`; `InvalidData` for a line of more than 1 MiB.
pub fn read(source: &mut dyn io::Read, relocation: Option<(&str, u64)>) -> io::Result<Kallsyms> {
    let mut collector = Collector::new(relocation);
    walk(source, |line| {
        collector.line(line);
        ControlFlow::Continue(())
    })?;
    Ok(collector.finish())
}

/// The address of the kernel's own function `name`, not of a module's function with this name; `None` if it is missing. Reads no
/// further than the chunk with its line.
///
/// # Errors
///
/// Those of [`read`].
pub(crate) fn address_of(source: &mut dyn io::Read, name: &str) -> io::Result<Option<u64>> {
    let mut address = None;
    walk(source, |line| {
        if line.text != name.as_bytes() || line.as_symbol().kind != SymbolKind::Function {
            return ControlFlow::Continue(());
        }
        address = Some(line.address);
        ControlFlow::Break(())
    })?;
    Ok(address)
}

/// Reads a listing incrementally, and calls `each` for its valid lines until `each` breaks.
fn walk(
    source: &mut dyn io::Read,
    mut each: impl FnMut(&KallsymsLine<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            if filled >= MAX_LINE {
                let error = format!("a line of more than {MAX_LINE} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            buffer.resize(2 * filled, 0);
        }
        let count = match source.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let (_, new) = buffer.split_at(filled);
        let last = new.iter().take(count).rposition(|byte| *byte == b'\n');
        let complete = last.map_or(0, |last| filled + last + 1);
        filled += count;
        if complete > 0 {
            if each_line(buffer.get(..complete), &mut each).is_break() {
                return Ok(());
            }
            buffer.copy_within(complete..filled, 0);
            filled -= complete;
        }
    }
    let _ = each_line(buffer.get(..filled), &mut each);
    Ok(())
}

fn each_line(
    bytes: Option<&[u8]>,
    mut each: impl FnMut(&KallsymsLine<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    lines(bytes.unwrap_or_default()).try_for_each(|line| each(&line))
}

/// Collects the symbols of a listing.
struct Collector<'r> {
    builder: TableBuilder,
    relocation: Option<(&'r str, u64)>,
    /// Address of the symbol of `relocation` in the listing.
    reference: Option<u64>,
    hidden: bool,
    is_blank: bool,
    /// Names of modules. Their numbers start at 1; 0 is the kernel itself.
    modules: Vec<Box<str>>,
    /// Position and module number of each symbol whose module is not that of the previous symbol. Symbols before the first of
    /// these positions are the kernel's.
    runs: Vec<(u32, usize)>,
}

impl<'r> Collector<'r> {
    fn new(relocation: Option<(&'r str, u64)>) -> Self {
        let demangle = false;
        Self {
            builder: TableBuilder::new(demangle),
            relocation,
            reference: None,
            hidden: true,
            is_blank: true,
            modules: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn line(&mut self, line: &KallsymsLine<'_>) {
        self.is_blank = false;
        self.hidden &= line.address == 0;
        if !line.is_kept_by_perf() {
            return;
        }
        let symbol = line.as_symbol();
        if let Some((name, _)) = self.relocation
            && self.reference.is_none()
            && symbol.kind == SymbolKind::Function
            // Not a symbol of a module, whose text ends with the module's name.
            && line.text == name.as_bytes()
        {
            self.reference = Some(line.address);
        }
        let (name, module) = line.name_and_module();
        let number = module.map_or(0, |module| self.number(module));
        if self.runs.last().map_or(0, |(_, last)| *last) != number {
            self.runs.push((self.builder.len(), number));
        }
        self.builder.push(symbol, name);
    }

    /// The number of a module, which is added if it is new. Lines of a module are usually consecutive, so the search begins with
    /// the module added last.
    fn number(&mut self, module: &[u8]) -> usize {
        let module = String::from_utf8_lossy(module);
        let known = self.modules.iter().rposition(|name| **name == *module);
        let position = known.unwrap_or_else(|| {
            self.modules.push(module.as_ref().into());
            self.modules.len() - 1
        });
        position + 1
    }

    fn finish(mut self) -> Kallsyms {
        let lacks_relocation_symbol =
            self.relocation.is_some() && self.reference.is_none() && !self.hidden;
        if self.hidden || lacks_relocation_symbol {
            return Kallsyms {
                kernel: SymbolTable::empty(AddressKind::Runtime),
                modules: Vec::new(),
                hidden: self.hidden,
                is_blank: self.is_blank,
                lacks_relocation_symbol,
            };
        }
        let runs = &self.runs;
        let module = |position: u32| {
            let started_runs = runs.partition_point(|(first, _)| *first <= position);
            let run = started_runs.checked_sub(1).and_then(|last| runs.get(last));
            run.map_or(0, |(_, number)| *number)
        };
        // As in perf, all modules are one region, and the kernel is another: a symbol ends at the next one of its region, even if
        // that is in another module.
        self.builder
            .fix_ends(|position, next| (module(position) == 0) != (module(next) == 0));
        self.builder.drop_duplicates();
        let distance = match (self.relocation, self.reference) {
            (Some((_, recorded)), Some(listed)) => recorded.wrapping_sub(listed),
            _ => 0,
        };
        let tables = self
            .builder
            .finish_separately(1 + self.modules.len(), module);
        let mut tables = tables.into_iter();
        let mut kernel = tables
            .next()
            .unwrap_or_else(|| SymbolTable::empty(AddressKind::Runtime));
        kernel.symbols.shift(distance);
        let modules = self.modules.into_iter().zip(tables);
        Kallsyms {
            kernel,
            modules: modules
                .map(|(name, table)| ModuleSymbols { name, table })
                .collect(),
            hidden: false,
            is_blank: false,
            lacks_relocation_symbol: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named_ranges(table: &SymbolTable) -> Vec<(u64, u64, String)> {
        let named = table
            .iter()
            .map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()));
        named.collect()
    }

    #[test]
    fn modules_get_tables_of_their_own() {
        // The last symbol of the kernel and that of the modules end at the first page boundary at least a page after their start.
        let text = b"1000 T _text\n1010 t last\n100000 t one\t[mod_a]\n100010 T two\t[mod_a]\n200000 t three\t[mod_b]\n";
        let parsed = parse(text, None);
        assert_eq!(
            named_ranges(&parsed.kernel),
            [
                (0x1000, 0x1010, "_text".into()),
                (0x1010, 0x3000, "last".into())
            ]
        );
        let [a, b] = parsed.modules.as_slice() else {
            panic!("two modules")
        };
        assert_eq!((&*a.name, &*b.name), ("mod_a", "mod_b"));
        assert_eq!(
            named_ranges(&a.table),
            [
                (0x10_0000, 0x10_0010, "one".into()),
                (0x10_0010, 0x20_0000, "two".into())
            ]
        );
        assert_eq!(
            named_ranges(&b.table),
            [(0x20_0000, 0x20_1000, "three".into())]
        );
    }

    #[test]
    fn the_kernel_is_moved_and_modules_are_not() {
        let text = b"1000 T _text\n1010 t f\n100000 t m\t[mod]\n";
        let parsed = parse(text, Some(("_text", 0x5000)));
        assert_eq!(
            parsed
                .kernel
                .find(0x5010)
                .map(|at| parsed.kernel.raw_name(at)),
            Some("f")
        );
        assert!(
            parsed
                .modules
                .iter()
                .all(|module| module.table.find(0x10_0000).is_some())
        );
        // The listing lacks this relocation symbol, so there are no symbols.
        let parsed = parse(text, Some(("_stext", 0x5000)));
        assert!(parsed.lacks_relocation_symbol && parsed.kernel.is_empty());
    }

    #[test]
    fn listings_with_hidden_addresses_differ_from_blank_ones() {
        let parsed = parse(
            b"0000000000000000 T _text\n0000000000000000 t f\n",
            Some(("_text", 1)),
        );
        assert!(parsed.hidden && !parsed.is_blank && parsed.kernel.is_empty());
        for text in [&b""[..], b"no listing\nof symbols\n"] {
            let parsed = parse(text, None);
            assert!(parsed.is_blank && parsed.kernel.is_empty());
        }
    }

    /// Reference implementation with the standard library.
    fn naive(text: &str) -> Vec<(u64, u8, String)> {
        let parse = |line: &str| {
            let (address, rest) = line.split_once(' ')?;
            let (kind, name) = rest.split_once(' ')?;
            let is_hexadecimal =
                address.len() <= 16 && address.chars().all(|c| c.is_ascii_hexdigit());
            let &[kind] = kind.as_bytes() else {
                return None;
            };
            let address = u64::from_str_radix(address, 16)
                .ok()
                .filter(|_| is_hexadecimal)?;
            (!name.is_empty()).then(|| (address, kind, name.to_owned()))
        };
        text.split('\n').filter_map(parse).collect()
    }

    /// A reader that returns at most this number of bytes at a time, like /proc.
    struct SmallReads<'a>(&'a [u8], usize);

    impl io::Read for SmallReads<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(into.len());
            io::Read::read(&mut self.0, &mut into[..most])
        }
    }

    #[test]
    fn a_listing_in_chunks_matches_the_complete_listing() {
        let mut text = String::new();
        for number in 0..9000 {
            let module = if number % 100 > 90 { "\t[mod]" } else { "" };
            text += &format!("{:x} t name_{number}{module}\n", 0x1000 + 16 * number);
        }
        text += &format!("ffff0000 T {}\nffff1000 t end", "x".repeat(2 * CHUNK));
        let parsed = parse(text.as_bytes(), None);
        for limit in [7, 4096, usize::MAX] {
            let read = read(&mut SmallReads(text.as_bytes(), limit), None).unwrap();
            assert_eq!(named_ranges(&read.kernel), named_ranges(&parsed.kernel));
            assert_eq!(read.modules.len(), 1);
            assert_eq!(
                named_ranges(&read.modules[0].table),
                named_ranges(&parsed.modules[0].table)
            );
        }
        assert_eq!(parsed.kernel.len() + parsed.modules[0].table.len(), 9002);
    }

    proptest! {
        #[test]
        fn numbers_of_any_length_are_read(text in "[0-9a-fA-F]{0,24}", after in any::<[u8; 9]>()) {
            let bytes = [text.as_bytes(), &after].concat();
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let last = &bytes[digits.saturating_sub(16)..digits];
            let last = std::str::from_utf8(last).unwrap();
            let number = u64::from_str_radix(last, 16).unwrap_or_default();
            prop_assert_eq!(hexadecimal(&bytes), (number, digits));
        }

        #[test]
        fn eight_bytes_are_digits_or_not(text: [u8; 8], place in 0usize..8, other: u8) {
            let mut digits = text.map(|byte| b"0123456789abcdefABCDEF"[usize::from(byte) % 22]);
            digits[place] = other;
            for text in [text, digits] {
                let naive = text.iter().all(u8::is_ascii_hexdigit).then(|| {
                    u64::from_str_radix(std::str::from_utf8(&text).unwrap(), 16).unwrap()
                });
                prop_assert_eq!(eight_digits(text), naive);
            }
        }

        #[test]
        fn lines_match_a_naive_parser(text in "([0-9a-f]{0,16} [A-Za-z]{0,2} [a-z_]{0,9}(\t\\[m\\])?\n|[ 0-9a-zT\n]{0,9}){0,9}") {
            let quick: Vec<_> = lines(text.as_bytes())
                .map(|line| (line.address, line.kind, String::from_utf8_lossy(line.text).into_owned()))
                .collect();
            prop_assert_eq!(quick, naive(&text));
        }
    }
}
