//! The program or library that is probed.

use std::path::Path;

use object::{Architecture, File, Object as _, ObjectKind, ObjectSection as _, ObjectSegment as _};
use rperf_events::by_distance;
use rperf_insn::Isa;
use rperf_symbol::{DebugInfo, Files, SymbolKind, SymbolTable};

use crate::dwarf::Frames;
use crate::error::Error;
use crate::search::Probe;

/// How many names are proposed instead of an unknown one.
const PROPOSALS: usize = 3;
/// What stands behind the name of a function of another object, at the code by which this one calls it.
pub(crate) const CALL: &str = "@plt";

/// What has the symbols of an object, which may not have been read yet: most searches go without.
pub trait Symbols {
    /// The symbols.
    fn table(&self) -> &SymbolTable;

    /// Whether names of symbols may have `part` in them, for those who need no symbols if not.
    fn may_have(&self, part: &str) -> bool {
        let _ = part;
        true
    }
}

impl Symbols for SymbolTable {
    fn table(&self) -> &SymbolTable {
        self
    }
}

/// What is known of an object before it is searched.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Gives `.dwo` files and source texts.
    pub files: &'a dyn Files,
    /// The path that the kernel is told.
    pub path: &'a Path,
    /// The file that is executed.
    pub bytes: &'a [u8],
    /// Has its symbols, by their offsets in the file.
    pub symbols: &'a dyn Symbols,
    /// Its debug information.
    pub info: Option<&'a DebugInfo>,
    /// Whether it is the kernel's image or a module's, whose memory goes by the names of symbols.
    pub is_kernel: bool,
}

/// A program or library.
pub struct Object<'a> {
    pub(crate) sources: Sources<'a>,
    pub(crate) frames: Frames<'a>,
    pub(crate) file: File<'a>,
    isa: Option<Isa>,
    architecture: Architecture,
}

/// A function by the symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SymbolRange {
    pub(crate) name: String,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl<'a> Object<'a> {
    /// Reads the headers of an object.
    ///
    /// # Errors
    ///
    /// It is no ELF file, or damaged.
    pub fn parse(sources: Sources<'a>) -> Result<Self, Error> {
        let file = File::parse(sources.bytes).map_err(|error| Error::Object {
            path: sources.path.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            sources,
            frames: Frames::new(&file),
            isa: Isa::of_elf(sources.bytes),
            architecture: file.architecture(),
            file,
        })
    }

    /// Its symbols.
    pub(crate) fn table(&self) -> &'a SymbolTable {
        self.sources.symbols.table()
    }

    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Addresses of parts of the file, and where those begin in it and how long they are. A module of the kernel that is not
    /// loaded has its code, which counts from 0.
    fn parts(&self) -> impl Iterator<Item = (u64, (u64, u64))> {
        let segments = self.file.segments();
        let loaded = segments.map(|segment| (segment.address(), segment.file_range()));
        let is_module = self.file.kind() == ObjectKind::Relocatable;
        let text = self.file.section_by_name(".text").filter(|_| is_module);
        let text = text.and_then(|text| Some((text.address(), text.file_range()?)));
        loaded.chain(text)
    }

    /// Where the byte at this address is in the file.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u64> {
        self.parts().find_map(|(first, (start, size))| {
            let distance = address.checked_sub(first)?;
            (distance < size).then(|| start.wrapping_add(distance))
        })
    }

    /// The address of the byte at this offset of the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        self.parts().find_map(|(first, (start, size))| {
            let distance = offset.checked_sub(start).filter(|far| *far < size)?;
            first.checked_add(distance)
        })
    }

    /// What the kernel calls the memory at `address` when the probe is at `code`: it counts from where the file would begin
    /// were it mapped as a whole like the code.
    pub(crate) fn memory(&self, address: u64, code: u64) -> Option<u64> {
        let bias = code.checked_sub(self.offset_of(code)?)?;
        address.checked_sub(bias)
    }

    /// Whether it is of the kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        self.sources.is_kernel
    }

    /// What the kernel calls memory of its own: a symbol, and how far behind it.
    pub(crate) fn kernel_memory(&self, address: u64) -> Option<String> {
        let table = self.table();
        let index = table.find(self.offset_of(address).unwrap_or(address))?;
        let start = self.address_of(table.get(index)?.start)?;
        let distance = address.checked_sub(start)?;
        Some(match distance {
            0 => format!("@{}", table.raw_name(index)),
            distance => format!("@{}+{distance}", table.raw_name(index)),
        })
    }

    /// The symbol of code that doesn't go by the name of the function it belongs to, and how far behind it the probe is: what is
    /// seldom run lies apart (`vfs_read.cold`), and variants are made for some callers (`do_execveat_common.isra.0`).
    pub(crate) fn apart(&self, probe: &Probe) -> Option<(String, u64)> {
        let variants = format!("{}.", probe.symbol);
        if !self.sources.symbols.may_have(&variants) {
            return None;
        }
        let table = self.table();
        let index = table.find(probe.file_offset)?;
        let name = table.raw_name(index);
        let suffix = name.strip_prefix(&probe.symbol)?;
        let start = table.get(index)?.start;
        // Of several names of the same code the function's own will do.
        let is_apart =
            suffix.starts_with('.') && self.symbol(&probe.symbol) != self.address_of(start);
        is_apart.then(|| (name.to_owned(), probe.file_offset.wrapping_sub(start)))
    }

    /// All functions of the symbol table, by their names as they are shown.
    pub(crate) fn functions(&self) -> impl Iterator<Item = SymbolRange> {
        let table = self.table();
        let functions = table
            .iter()
            .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
        functions.map(|(index, symbol)| SymbolRange {
            name: table.name(index).into_owned(),
            offset: symbol.start,
            size: symbol.end.saturating_sub(symbol.start),
        })
    }

    /// The names of those functions of the symbol table as they are shown that `may_be` says yes to by their beginnings.
    pub(crate) fn functions_called(
        &self,
        may_be: &dyn Fn(&str) -> bool,
    ) -> impl Iterator<Item = String> {
        let table = self.table();
        let functions = table
            .iter()
            .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
        let called = functions.filter(move |(index, _)| {
            let [first, second] = table.name_beginnings(*index);
            may_be(first) || (first != second && may_be(second))
        });
        called.map(|(index, _)| table.name(index).into_owned())
    }

    /// The function whose code is at this offset of the file.
    pub(crate) fn function_at(&self, file_offset: u64) -> Option<SymbolRange> {
        self.functions().find(|function| {
            let distance = file_offset.checked_sub(function.offset);
            distance.is_some_and(|distance| distance < function.size)
        })
    }

    /// The address of a symbol, function or not.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        let table = self.table();
        let mut symbols = table.iter();
        let (_, symbol) = symbols.find(|(index, _)| table.raw_name(*index) == name)?;
        self.address_of(symbol.start)
    }

    /// The names of functions that are nearest to `name`.
    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        let plain = |name: &str| name.trim_end_matches(CALL).to_owned();
        let functions = self.functions();
        let names: Vec<String> = functions.map(|function| plain(&function.name)).collect();
        nearest(name, &names)
    }

    /// Where instructions begin in the `size` bytes from `offset` on, up to `wanted` and one beyond, in bytes from `offset`.
    /// `None` where the code cannot be read as instructions of a known kind.
    pub(crate) fn instructions(&self, offset: u64, size: u64, wanted: u64) -> Option<Vec<u64>> {
        let isa = self.isa?;
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        let code = self.sources.bytes.get(start..end)?;
        let mut starts = Vec::new();
        let mut at = 0;
        while at < code.len() {
            starts.push(at as u64);
            if at as u64 > wanted {
                break;
            }
            at += rperf_insn::decode(isa, code.get(at..)?)?.len;
        }
        Some(starts)
    }

    /// The bytes of a section.
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        self.file.section_by_name(name)?.data().ok()
    }

    /// The address of a section.
    pub(crate) fn section_address(&self, name: &str) -> Option<u64> {
        Some(self.file.section_by_name(name)?.address())
    }

    /// Bytes of a pointer.
    pub(crate) fn pointer_size(&self) -> usize {
        if self.file.is_64() { 8 } else { 4 }
    }

    pub(crate) fn is_little_endian(&self) -> bool {
        self.file.is_little_endian()
    }
}

/// Those of `names` that could be meant by `name`.
pub(crate) fn nearest(name: &str, names: &[String]) -> Vec<String> {
    let limit = name.chars().count().div_ceil(2).max(2);
    let close = names.iter().map(String::as_str).filter(|other| {
        let longer = other.len().abs_diff(name.len());
        longer <= limit
    });
    let sorted = by_distance(name, close);
    let mut found: Vec<String> = sorted.into_iter().map(str::to_owned).collect();
    found.dedup();
    found.truncate(PROPOSALS);
    found
}
