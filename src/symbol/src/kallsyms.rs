//! `/proc/kallsyms`: `ADDRESS TYPE NAME`, and `[MODULE]` after a tab (proc(5), kernel/kallsyms.c).

use crate::builder::{NewSymbol, TableBuilder};
use crate::table::{AddressSpace, Binding, NameForm, SymbolTable};

/// One line of the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Run-time address.
    pub address: u64,
    /// The letter that nm(1) uses: `T` global text, `t` local text, `W` weak, `D` data, …
    pub kind: u8,
    /// The name, with tab and `[MODULE]` where there is one.
    pub text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Name and module, the module without its brackets.
    pub fn split(&self) -> (&'a [u8], Option<&'a [u8]>) {
        let Some(tab) = self.text.iter().position(|&byte| byte == b'\t') else {
            return (self.text, None);
        };
        let (name, module) = self.text.split_at(tab);
        let module = module.get(1..).unwrap_or_default();
        let bare = module
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"));
        (name, Some(bare.unwrap_or(module)))
    }

    /// Text, weak, data and bss symbols: what perf keeps. (`$x` and the like are ARM's mapping symbols.)
    fn is_wanted(&self) -> bool {
        matches!(self.kind.to_ascii_uppercase(), b'T' | b'W' | b'D' | b'B')
            && self.text.first() != Some(&b'$')
    }

    fn as_symbol(&self) -> NewSymbol {
        NewSymbol {
            start: self.address,
            size: 0,
            binding: match self.kind {
                b'W' => Binding::Weak,
                letter if letter.is_ascii_uppercase() => Binding::Global,
                _ => Binding::Local,
            },
            is_function: matches!(self.kind.to_ascii_lowercase(), b't' | b'w'),
            form: NameForm::Plain,
        }
    }
}

/// The lines of a listing; what isn't one is passed over.
pub fn lines(listing: &[u8]) -> impl Iterator<Item = Line<'_>> {
    Lines { rest: listing }
}

struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while !self.rest.is_empty() {
            let mut address = 0u64;
            let mut digits = 0;
            for &byte in self.rest {
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    b'a'..=b'f' => byte - b'a' + 10,
                    b'A'..=b'F' => byte - b'A' + 10,
                    _ => break,
                };
                address = address << 4 | u64::from(digit);
                digits += 1;
            }
            let after = self.rest.get(digits..).unwrap_or_default();
            let len = after
                .iter()
                .position(|&byte| byte == b'\n')
                .unwrap_or(after.len());
            let (line, rest) = after.split_at(len);
            self.rest = rest.get(1..).unwrap_or_default();
            if let [b' ', kind, b' ', text @ ..] = line
                && kind.is_ascii_graphic()
                && (1..=16).contains(&digits)
                && !text.is_empty()
            {
                return Some(Line {
                    address,
                    kind: *kind,
                    text,
                });
            }
        }
        None
    }
}

/// The symbols of one module, as kallsyms lists them.
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
    /// Those of modules, and of what calls itself one (`bpf`, `ftrace`, `__builtin__kprobes`), by name.
    pub modules: Vec<ModuleSymbols>,
    /// Whether no line has an address other than zero: they are hidden from us.
    pub hidden: bool,
    /// Whether the symbol that tells of relocation is missing; then there are no symbols at all.
    pub lacks_relocation: bool,
}

/// Parses a whole listing. Where `relocation` gives a symbol and the address it had while recording, all of
/// the kernel's symbols are moved by the difference to what the listing says (modules stay).
pub fn parse(listing: &[u8], relocation: Option<(&str, u64)>) -> Kallsyms {
    let mut builder = TableBuilder::with_capacity(false, listing.len() / 42, listing.len() / 2);
    let mut reference = None;
    let mut hidden = true;
    for line in lines(listing) {
        hidden &= line.address == 0;
        if !line.is_wanted() {
            continue;
        }
        if let Some((name, _)) = relocation
            && reference.is_none()
            && line.as_symbol().is_function
            && line.text == name.as_bytes()
        {
            reference = Some(line.address);
        }
        builder.push(line.as_symbol(), line.text);
    }
    let lacks_relocation = relocation.is_some() && reference.is_none() && !hidden;
    if hidden || lacks_relocation {
        return Kallsyms {
            kernel: SymbolTable::empty(AddressSpace::Runtime),
            modules: Vec::new(),
            hidden,
            lacks_relocation,
        };
    }
    let in_module = |name: &str| name.as_bytes().contains(&b'[');
    builder.fix_ends(|name, next| in_module(name) != in_module(next));
    builder.drop_duplicates();
    let distance = match (relocation, reference) {
        (Some((_, recorded)), Some(listed)) => recorded.wrapping_sub(listed),
        _ => 0,
    };
    let (kernel, modules) = split(builder.finish(AddressSpace::Runtime), distance);
    Kallsyms {
        kernel,
        modules,
        hidden,
        lacks_relocation,
    }
}

/// Takes the modules' symbols out of `all`, and moves those of the kernel by `distance`.
fn split(mut all: SymbolTable, distance: u64) -> (SymbolTable, Vec<ModuleSymbols>) {
    let mut modules: Vec<(Box<str>, TableBuilder)> = Vec::new();
    let names = &all.names;
    all.symbols.retain_mut(|symbol| {
        let line = Line {
            address: 0,
            kind: 0,
            text: names.get(symbol.name).as_bytes(),
        };
        let (name, Some(module)) = line.split() else {
            symbol.start = symbol.start.wrapping_add(distance);
            symbol.end = symbol.end.wrapping_add(distance);
            return true;
        };
        let module = String::from_utf8_lossy(module);
        // The lines of a module stand together: look at the last one first.
        let known = modules.iter().rposition(|(name, _)| **name == *module);
        let position = known.unwrap_or_else(|| {
            modules.push((module.as_ref().into(), TableBuilder::new(false)));
            modules.len() - 1
        });
        let new = NewSymbol {
            start: symbol.start,
            size: symbol.end.saturating_sub(symbol.start),
            binding: symbol.binding,
            is_function: symbol.is_function,
            form: NameForm::Plain,
        };
        if let Some((_, builder)) = modules.get_mut(position) {
            builder.push(new, name);
        }
        false
    });
    let modules = modules.into_iter().map(|(name, builder)| ModuleSymbols {
        name,
        table: builder.finish(AddressSpace::Runtime),
    });
    let modules = modules.collect();
    (all, modules)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(table: &SymbolTable) -> Vec<(u64, u64, String)> {
        let named = table
            .iter()
            .map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()));
        named.collect()
    }

    #[test]
    fn modules_get_tables_of_their_own() {
        let text = b"1000 T _text\n1010 t last\n100000 t one\t[mod_a]\n100010 T two\t[mod_a]\n200000 t three\t[mod_b]\n";
        let parsed = parse(text, None);
        assert_eq!(
            names(&parsed.kernel),
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
            names(&a.table),
            [
                (0x10_0000, 0x10_0010, "one".into()),
                (0x10_0010, 0x20_0000, "two".into())
            ]
        );
        assert_eq!(names(&b.table), [(0x20_0000, 0x20_1000, "three".into())]);
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
        let parsed = parse(text, Some(("_stext", 0x5000)));
        assert!(parsed.lacks_relocation && parsed.kernel.is_empty());
    }

    #[test]
    fn zeros_are_hidden_addresses() {
        let parsed = parse(
            b"0000000000000000 T _text\n0000000000000000 t f\n",
            Some(("_text", 1)),
        );
        assert!(parsed.hidden && parsed.kernel.is_empty());
    }

    /// One line after the other with the tools of the standard library.
    fn naive(text: &str) -> Vec<(u64, u8, String)> {
        let parse = |line: &str| {
            let (address, rest) = line.split_once(' ')?;
            let (kind, name) = rest.split_once(' ')?;
            let hexadecimal = address.len() <= 16 && address.chars().all(|c| c.is_ascii_hexdigit());
            let &[kind] = kind.as_bytes() else {
                return None;
            };
            let address = u64::from_str_radix(address, 16)
                .ok()
                .filter(|_| hexadecimal)?;
            (!name.is_empty()).then(|| (address, kind, name.to_owned()))
        };
        text.split('\n').filter_map(parse).collect()
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_naive_parser(text in "([0-9a-f]{0,16} [A-Za-z]{0,2} [a-z_]{0,9}(\t\\[m\\])?\n|[ 0-9a-zT\n]{0,9}){0,9}") {
            let quick: Vec<_> = lines(text.as_bytes())
                .map(|line| (line.address, line.kind, String::from_utf8_lossy(line.text).into_owned()))
                .collect();
            prop_assert_eq!(quick, naive(&text));
        }
    }
}
