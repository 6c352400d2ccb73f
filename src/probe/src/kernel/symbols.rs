//! The symbols of the running kernel and its modules, from `/proc/kallsyms`.

use rperf_symbol::kallsyms::lines;

/// The reference symbol: probes of the kernel are written as `_text+OFFSET`, which does not depend on KASLR.
pub(crate) const BASE: &str = "_text";

/// A symbol of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its run-time address; 0 if the kernel hides it.
    pub address: u64,
    /// The module it belongs to; `None` for the kernel itself.
    pub module: Option<&'a str>,
    /// Whether it is code.
    pub is_function: bool,
}

/// All symbols sorted by address; those of the same address in the order of the listing.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbolList<'a> {
    list: Vec<KernelSymbol<'a>>,
}

impl<'a> KernelSymbolList<'a> {
    /// Parses a listing (proc(5), `/proc/kallsyms`); invalid lines and names that are not UTF-8 are skipped.
    #[must_use]
    pub fn parse(listing: &'a [u8]) -> Self {
        let symbols = lines(listing).filter_map(|line| {
            let (name, module) = line.name_and_module();
            Some(KernelSymbol {
                name: std::str::from_utf8(name).ok()?,
                address: line.address,
                module: module.and_then(|module| std::str::from_utf8(module).ok()),
                is_function: matches!(line.kind, b'T' | b't' | b'W' | b'w'),
            })
        });
        let mut list: Vec<_> = symbols.collect();
        list.sort_by_key(|symbol| symbol.address);
        Self { list }
    }

    /// Returns the functions of `module`; if it is `None`, those of the kernel itself.
    pub fn functions(&self, module: Option<&str>) -> impl Iterator<Item = &KernelSymbol<'a>> {
        let functions = self.list.iter().filter(|symbol| symbol.is_function);
        functions.filter(move |symbol| symbol.module == module)
    }

    /// Whether there are symbols of a module.
    #[must_use]
    pub fn has_module(&self, module: &str) -> bool {
        self.list.iter().any(|symbol| symbol.module == Some(module))
    }

    /// Returns the symbols of this name.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = &KernelSymbol<'a>> {
        self.list.iter().filter(move |symbol| symbol.name == name)
    }

    /// Returns the address of [`BASE`]; `None` if it is hidden or missing.
    pub(crate) fn base(&self) -> Option<u64> {
        let address = self.named(BASE).next()?.address;
        (address != 0).then_some(address)
    }

    /// Returns the distance in bytes from `address` to the next symbol; `None` if there is none, for example if addresses are
    /// hidden.
    pub(crate) fn size_of_symbol(&self, address: u64) -> Option<u64> {
        let after = self.list.partition_point(|other| other.address <= address);
        let next = self.list.get(after)?;
        Some(next.address - address)
    }

    /// Returns the function that starts nearest below or at `address`, and the offset in it; of aliases, the first in the listing.
    /// `None` if there is none or if addresses are hidden.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<(KernelSymbol<'a>, u64)> {
        let after = self.list.partition_point(|other| other.address <= address);
        let before = self.list.get(..after)?;
        let start = before
            .iter()
            .rev()
            .find(|symbol| symbol.is_function)?
            .address;
        if start == 0 {
            return None;
        }
        let first = before.partition_point(|symbol| symbol.address < start);
        let mut aliases = before.get(first..)?.iter();
        let found = aliases.find(|symbol| symbol.is_function)?;
        Some((*found, address - start))
    }

    /// Resolves a location in the kernel's syntax without a module, such as `_text+1234`, to a function and offset; `None` if it is
    /// invalid or addresses are hidden.
    #[must_use]
    pub fn resolve(&self, location: &str) -> Option<(KernelSymbol<'a>, u64)> {
        let (symbol, offset) = location.split_once('+').unwrap_or((location, "0"));
        let offset = crate::definition::number(offset)?;
        let start = self.named(symbol).next()?.address;
        self.at(start.checked_add(offset).filter(|_| start != 0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &[u8] =
        b"ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 t vfs_read\n\
        ffffffff81000180 D data\nffffffff81000200 T vfs_write\nffffffffc0000000 t start\t[veth]\n";

    #[test]
    fn functions_are_found_by_module_and_location() {
        let symbols = KernelSymbolList::parse(LISTING);
        let names = |module| -> Vec<&str> {
            let functions = symbols.functions(module);
            functions.map(|symbol| symbol.name).collect()
        };
        assert_eq!(names(None), ["_text", "_stext", "vfs_read", "vfs_write"]);
        assert_eq!(names(Some("veth")), ["start"]);
        assert!(symbols.has_module("veth") && !symbols.has_module("drm"));
        let resolved = symbols.resolve("_text+0x104");
        let named = resolved.map(|(symbol, offset)| (symbol.name, offset));
        assert_eq!(named, Some(("vfs_read", 4)));
        assert_eq!(symbols.size_of_symbol(0xffff_ffff_8100_0100), Some(0x80));
        assert_eq!(symbols.base(), Some(0xffff_ffff_8100_0000));
    }

    #[test]
    fn hidden_addresses_resolve_to_nothing() {
        let symbols = KernelSymbolList::parse(b"0 T _text\n0 T vfs_read\n");
        assert_eq!(symbols.base(), None);
        assert_eq!(symbols.resolve("_text+4"), None);
        assert_eq!(symbols.at(0), None);
    }
}
