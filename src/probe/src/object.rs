//! The probed object.

use std::path::Path;

use object::{
    Architecture, File, Object as _, ObjectKind, ObjectSection as _, ObjectSegment as _,
    ObjectSymbol as _, SectionKind,
};
use rperf_insn::Isa;
use rperf_names::by_distance;
use rperf_symbol::{DebugInfo, Files, SymbolKind, SymbolTable};

use crate::dwarf::Frames;
use crate::error::Error;
use crate::search::Probe;

/// Maximum number of suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 3;
/// Maximum number of available names that are all listed for an unknown name.
const MAX_LISTED: usize = 8;
/// The suffix of PLT symbols of functions in other objects.
pub(crate) const PLT_SUFFIX: &str = "@plt";

/// Loads the symbols of an object on demand: most searches do not need them.
pub trait Symbols {
    /// The symbols.
    fn table(&self) -> &SymbolTable;

    /// Whether symbol names may contain `part`; if not, symbols need not be loaded.
    fn may_have_name_with(&self, part: &str) -> bool {
        let _ = part;
        true
    }
}

impl Symbols for SymbolTable {
    fn table(&self) -> &SymbolTable {
        self
    }
}

/// An object to search, and other inputs of the search.
#[derive(Clone, Copy)]
pub struct ObjectInputs<'a> {
    /// Provides `.dwo` files and source text.
    pub files: &'a dyn Files,
    /// The object's path, for messages.
    pub path: &'a Path,
    /// The contents of the executed file. The debug information may come from another file.
    pub bytes: &'a [u8],
    /// Provides the object's symbols, whose addresses are file offsets.
    pub symbols: &'a dyn Symbols,
    /// The object's debug information.
    pub info: Option<&'a DebugInfo>,
    /// Whether the object is the image of the kernel or a module. Its probes address memory by symbols (`@SYMBOL`).
    pub is_kernel: bool,
}

/// A program, a library, or the image of the kernel or of a module.
pub struct ProbeObject<'a> {
    pub(crate) inputs: ObjectInputs<'a>,
    /// The call frame information.
    pub(crate) frames: Frames<'a>,
    pub(crate) file: File<'a>,
    isa: Option<Isa>,
    architecture: Architecture,
}

/// A function from the symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolRange {
    pub(crate) name: String,
    /// Its file offset.
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl<'a> ProbeObject<'a> {
    /// Reads the headers of an object.
    ///
    /// # Errors
    ///
    /// It is not an ELF file, or damaged.
    pub fn parse(inputs: ObjectInputs<'a>) -> Result<Self, Error> {
        let file = File::parse(inputs.bytes).map_err(|error| Error::Object {
            path: inputs.path.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            inputs,
            frames: Frames::new(&file, inputs.bytes),
            isa: Isa::of_elf(inputs.bytes),
            architecture: file.architecture(),
            file,
        })
    }

    /// The symbols of the object.
    pub(crate) fn symbol_table(&self) -> &'a SymbolTable {
        self.inputs.symbols.table()
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Returns the address, file offset and size in the file of each segment; for a kernel module's file, which has no segments,
    /// those of its `.text` section, whose address is 0.
    fn segments(&self) -> impl Iterator<Item = (u64, (u64, u64))> {
        let segments = self.file.segments();
        let loaded = segments.map(|segment| (segment.address(), segment.file_range()));
        let is_module = self.file.kind() == ObjectKind::Relocatable;
        let text = self.file.section_by_name(".text").filter(|_| is_module);
        let text = text.and_then(|text| Some((text.address(), text.file_range()?)));
        loaded.chain(text)
    }

    /// Returns the file offset of an address; `None` if the file has no contents for it.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        self.segments()
            .find_map(|(first_address, (first_offset, size))| {
                let distance = address.checked_sub(first_address)?;
                (distance < size).then(|| first_offset.wrapping_add(distance))
            })
    }

    /// Returns the address of a file offset.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments()
            .find_map(|(first_address, (first_offset, size))| {
                let distance = offset
                    .checked_sub(first_offset)
                    .filter(|distance| *distance < size)?;
                first_address.checked_add(distance)
            })
    }

    /// Returns the `OFFSET` with which a probe at the address `code` reads the memory at `address`, in the kernel's syntax
    /// `@+OFFSET`: relative to the address that the file's start would have if the whole file were mapped like the code. `None`
    /// if `address` is below the address of the file's start.
    pub(crate) fn memory_offset(&self, address: u64, code: u64) -> Option<u64> {
        let bias = code.checked_sub(self.offset_of(code)?)?;
        address.checked_sub(bias)
    }

    /// Whether it is a kernel image or module.
    pub(crate) fn is_kernel(&self) -> bool {
        self.inputs.is_kernel
    }

    /// Returns the kernel memory at `address` in the kernel's syntax: `@SYMBOL` or `@SYMBOL+OFFSET`.
    pub(crate) fn kernel_memory(&self, address: u64) -> Option<String> {
        let (name, start) = self.variable_at(address)?;
        Some(match address.checked_sub(start)? {
            0 => format!("@{name}"),
            distance => format!("@{name}+{distance}"),
        })
    }

    /// Returns the name and the address of the symbol that contains `address`. If the file has no contents for `address`, returns
    /// those of the last variable at or before it in sections such as `.bss`.
    fn variable_at(&self, address: u64) -> Option<(&str, u64)> {
        let table = self.symbol_table();
        let Some(offset) = self.offset_of(address) else {
            let before = self.zeroed_variables();
            let before = before.filter(|(_, start)| *start <= address);
            return before.max_by_key(|(_, start)| *start);
        };
        let index = table.find(offset)?;
        Some((
            table.raw_name(index),
            self.address_of(table.get(index)?.start)?,
        ))
    }

    /// Returns the symbol that contains a probe, and the probe's offset in it, if the symbol's name is a variant of the
    /// function's name: cold parts are placed elsewhere (`vfs_read.cold`), and variants are created for some callers
    /// (`do_execveat_common.isra.0`). `None` if the symbol has another name, such as the function's own.
    pub(crate) fn variant_symbol(&self, probe: &Probe) -> Option<(String, u64)> {
        let variant_prefix = format!("{}.", probe.symbol);
        if !self.inputs.symbols.may_have_name_with(&variant_prefix) {
            return None;
        }
        let table = self.symbol_table();
        let index = table.find(probe.file_offset)?;
        let name = table.raw_name(index);
        let suffix = name.strip_prefix(&probe.symbol)?;
        let start = table.get(index)?.start;
        // Not a variant if the symbol with the function's own name has the same address: the own name is preferred.
        let is_variant =
            suffix.starts_with('.') && self.symbol(&probe.symbol) != self.address_of(start);
        is_variant.then(|| (name.to_owned(), probe.file_offset.wrapping_sub(start)))
    }

    /// Whether only exported functions have names: the object has neither a full symbol table nor debug information.
    #[must_use]
    pub fn is_stripped(&self) -> bool {
        let tables = [".symtab", ".gnu_debugdata"];
        let mut tables = tables.into_iter();
        self.inputs.info.is_none() && tables.all(|name| self.file.section_by_name(name).is_none())
    }

    /// Returns all functions of the symbol table, with their display names.
    pub(crate) fn functions(&self) -> impl Iterator<Item = SymbolRange> {
        let table = self.symbol_table();
        let functions = table
            .iter()
            .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
        functions.map(|(index, symbol)| SymbolRange {
            name: table.name(index).into_owned(),
            offset: symbol.start,
            size: symbol.end.saturating_sub(symbol.start),
        })
    }

    /// Returns the display names of the functions that may be wanted; names of the others are not demangled. `may_be` returns
    /// whether a wanted name can have this beginning. It is called with both [`SymbolTable::name_beginnings`] of a function, of
    /// which at least one is the beginning of its display name; one `true` is enough, so the caller must check the returned
    /// names.
    pub(crate) fn function_names(
        &self,
        may_be: &dyn Fn(&str) -> bool,
    ) -> impl Iterator<Item = String> {
        let table = self.symbol_table();
        let functions = table
            .iter()
            .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
        let named = functions.filter(move |(index, _)| {
            let [first, second] = table.name_beginnings(*index);
            may_be(first) || (first != second && may_be(second))
        });
        named.map(|(index, _)| table.name(index).into_owned())
    }

    /// Returns the function that contains the file offset.
    pub(crate) fn function_at(&self, file_offset: u64) -> Option<SymbolRange> {
        self.functions().find(|function| {
            let distance = file_offset.checked_sub(function.offset);
            distance.is_some_and(|distance| distance < function.size)
        })
    }

    /// Returns the address of a symbol of any type; `None` if it is missing.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        let zeroed = self.zeroed_variables().find(|(known, _)| *known == name);
        if let Some((_, address)) = zeroed {
            return Some(address);
        }
        let table = self.symbol_table();
        let mut symbols = table.iter();
        let (_, symbol) = symbols.find(|(index, _)| table.raw_name(*index) == name)?;
        self.address_of(symbol.start)
    }

    /// Returns the names and addresses of variables in sections such as `.bss`, which have no contents in the file. Empty for
    /// a kernel module's file, whose symbols have no addresses.
    fn zeroed_variables(&self) -> impl Iterator<Item = (&str, u64)> {
        let has_addresses = self.file.kind() != ObjectKind::Relocatable;
        let symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let zeroed = symbols.filter(move |symbol| {
            let section = symbol.section_index().filter(|_| has_addresses);
            let section = section.and_then(|index| self.file.section_by_index(index).ok());
            section.is_some_and(|section| section.kind() == SectionKind::UninitializedData)
        });
        zeroed.filter_map(|symbol| Some((symbol.name().ok()?, symbol.address())))
    }

    /// Returns the function names most similar to `name`.
    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        let plain = |name: &str| name.trim_end_matches(PLT_SUFFIX).to_owned();
        let functions = self.functions();
        let names: Vec<String> = functions.map(|function| plain(&function.name)).collect();
        nearest(name, &names)
    }

    /// Returns the instruction boundaries in the `size` bytes at the file offset `offset`: all up to `last`, and the next one.
    /// The boundaries and `last` are relative to `offset`. `None` if the code is not in the file or cannot be decoded.
    pub(crate) fn instruction_boundaries(
        &self,
        offset: u64,
        size: u64,
        last: u64,
    ) -> Option<Vec<u64>> {
        let isa = self.isa?;
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        let code = self.inputs.bytes.get(start..end)?;
        let mut starts = Vec::new();
        let mut at = 0;
        while at < code.len() {
            starts.push(at as u64);
            if at as u64 > last {
                break;
            }
            at += rperf_insn::decode(isa, code.get(at..)?)?.len;
        }
        Some(starts)
    }

    /// Returns the bytes of a section.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.file.section_by_name(name)?.data().ok()
    }

    /// Returns the address of a section.
    pub(crate) fn section_address(&self, name: &str) -> Option<u64> {
        Some(self.file.section_by_name(name)?.address())
    }

    /// Returns the size of a pointer in bytes.
    pub(crate) fn pointer_size(&self) -> usize {
        if self.file.is_64() { 8 } else { 4 }
    }

    pub(crate) fn is_little_endian(&self) -> bool {
        self.file.is_little_endian()
    }
}

/// Returns all `names` if there are at most [`MAX_LISTED`], otherwise the [`nearest`] ones.
pub(crate) fn all_or_nearest(name: &str, names: Vec<String>) -> Vec<String> {
    match names.len() <= MAX_LISTED {
        true => names,
        false => nearest(name, &names),
    }
}

/// Returns at most [`MAX_SUGGESTIONS`] of `names`, the most similar to `name` first, without duplicates. Ignores names whose
/// length differs from that of `name` by more than half of it and by more than 2.
pub(crate) fn nearest(name: &str, names: &[String]) -> Vec<String> {
    let limit = name.chars().count().div_ceil(2).max(2);
    let close = names.iter().map(String::as_str).filter(|other| {
        let difference = other.len().abs_diff(name.len());
        difference <= limit
    });
    let mut suggestions: Vec<String> = Vec::new();
    for other in by_distance(name, close) {
        if suggestions.len() == MAX_SUGGESTIONS {
            break;
        }
        if !suggestions.iter().any(|known| known == other) {
            suggestions.push(other.to_owned());
        }
    }
    suggestions
}
