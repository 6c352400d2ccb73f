//! Selection of ELF symbols, and their addresses.

use object::Endianness;
use object::elf::{
    EM_AARCH64, EM_ARM, SHF_ALLOC, SHN_ABS, SHN_UNDEF, SHT_NOBITS, STB_GLOBAL, STB_LOCAL, STB_WEAK,
    STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, STV_HIDDEN, STV_INTERNAL, Sym32, Sym64,
};
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym;

use super::{ElfImage, Section};
use crate::builder::{NewSymbol, TableBuilder};
use crate::names::AsciiNames;
use crate::symbol::{Binding, NameForm, SymbolKind};

/// Conversion of a symbol's value to an address in the table that `TableBuilder` builds (not the ELF symbol table).
#[derive(Debug, Clone, Copy)]
pub(crate) enum AddressRelocation {
    /// For user objects: to the offset in the mapped file.
    FileOffset,
    /// For kernels: adds this relocation offset.
    Shift(u64),
    /// For modules: to the offset in `.text`, plus this load address of `.text`. Symbols of other sections are omitted.
    ModuleText(u64),
}

/// The two files of an object's symbols: `symbols` has the symbol tables, `runtime` the mapped segments and the PLT.
/// Often both are the same file.
#[derive(Clone, Copy)]
pub(crate) struct SymbolSource<'i, 'a> {
    pub(crate) symbols: &'i ElfImage<'a>,
    pub(crate) runtime: &'i ElfImage<'a>,
    pub(crate) relocation: AddressRelocation,
    /// Whether `.dynsym` is read from `runtime`: if `symbols` is from `.gnu_debugdata`, which omits exported symbols.
    pub(crate) dynsym_from_runtime: bool,
}

/// Adds the symbols of `.symtab`, then those of `.dynsym`; like perf, fixes ends and drops duplicates after each of the two. For
/// user objects with any symbols, then adds the entries of the procedure linkage table. An error describes damage; symbols
/// before it remain in `builder`.
pub(crate) fn load_symbols(
    source: &SymbolSource<'_, '_>,
    builder: &mut TableBuilder,
) -> Result<(), String> {
    // Where `.dynsym` is read from.
    let exports = match source.dynsym_from_runtime {
        true => SymbolSource {
            symbols: source.runtime,
            ..*source
        },
        false => *source,
    };
    let dynsym = exports.symbols.dynsym().map(|(_, section)| section);
    let symtab = source.symbols.symtab().map(|section| (source, section));
    let tables = symtab
        .into_iter()
        .chain(dynsym.map(|section| (&exports, section)));
    // The symbols of an ELF file are not divided into regions (such as kernel and modules): each one without a size is
    // extended to the next one.
    let never_separates = |_: u32, _: u32| false;
    for (source, section) in tables {
        source.load_section(section, builder)?;
        builder.fix_ends(never_separates);
        builder.drop_duplicates();
    }
    if !builder.is_empty() && matches!(source.relocation, AddressRelocation::FileOffset) {
        super::plt::add_entries(source.runtime, builder);
    }
    Ok(())
}

/// A name that is decoded lazily, because decoding takes most of the time for a large table.
#[derive(Clone, Copy)]
struct LazyName<'a> {
    strings: &'a [u8],
    offset: u32,
}

impl<'a> LazyName<'a> {
    fn bytes(self) -> &'a [u8] {
        ElfImage::text(self.strings, self.offset).unwrap_or_default()
    }
}

/// A decoded symbol table entry.
struct SymbolEntry<'a> {
    name: LazyName<'a>,
    kind: u8,
    binding: u8,
    visibility: u8,
    section: u16,
    value: u64,
    size: u64,
}

impl SymbolEntry<'_> {
    fn symbol_kind(&self) -> SymbolKind {
        match self.kind {
            STT_FUNC | STT_GNU_IFUNC => SymbolKind::Function,
            STT_OBJECT => SymbolKind::Variable,
            _ => SymbolKind::Label,
        }
    }

    fn is_visible_label(&self) -> bool {
        self.kind == STT_NOTYPE && !matches!(self.visibility, STV_HIDDEN | STV_INTERNAL)
    }

    /// Whether it is a function, object or visible label, and neither undefined nor absolute, as in perf.
    fn is_wanted(&self) -> bool {
        !matches!(self.section, SHN_UNDEF | SHN_ABS)
            && (self.symbol_kind() != SymbolKind::Label || self.is_visible_label())
    }

    /// Whether it is a mapping symbol of the ARM ABIs, which marks code or data: `$a`, `$d`, `$t` or `$x`, also with a suffix
    /// such as `.1`.
    fn is_mapping_symbol(&self) -> bool {
        matches!(
            self.name.bytes(),
            [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..]
        )
    }
}

impl<'a> SymbolSource<'_, 'a> {
    fn load_section(
        &self,
        section: &Section<'a>,
        builder: &mut TableBuilder,
    ) -> Result<(), String> {
        let image = self.symbols;
        let data = image.section_data(section);
        let strings = image.sections.get(section.link as usize);
        let strings = strings.and_then(|strings| image.section_data(strings));
        let (Some(data), Some(strings)) = (data, strings) else {
            return Err("the symbol table lies outside of the file".to_owned());
        };
        if image.is_64 {
            self.load_entries::<Sym64<Endianness>>(
                whole_entries(data, size_of::<Sym64<Endianness>>()),
                strings,
                builder,
            )
        } else {
            self.load_entries::<Sym32<Endianness>>(
                whole_entries(data, size_of::<Sym32<Endianness>>()),
                strings,
                builder,
            )
        }
    }

    fn load_entries<S>(
        &self,
        data: &'a [u8],
        strings: &'a [u8],
        builder: &mut TableBuilder,
    ) -> Result<(), String>
    where
        S: Sym<Endian = Endianness> + object::pod::Pod,
    {
        let endian = self.symbols.endian;
        // This cannot fail: the callers cut `data` by `whole_entries`, and the types of the entries need no alignment.
        let entries: &[S] = slice_from_all_bytes(data)
            .map_err(|()| "the symbol table is not a whole number of entries".to_owned())?;
        // The names, if they need no validation as UTF-8 because all are ASCII.
        let ascii_names = builder.ascii_names(strings);
        for entry in entries {
            // st_name 0 is the empty name at the start of the string table.
            if entry.st_name(endian) == 0 {
                continue;
            }
            let entry = SymbolEntry {
                name: LazyName {
                    strings,
                    offset: entry.st_name(endian),
                },
                kind: entry.st_type(),
                binding: entry.st_bind(),
                visibility: entry.st_visibility(),
                section: entry.st_shndx(endian),
                value: entry.st_value(endian).into(),
                size: entry.st_size(endian).into(),
            };
            self.load_entry(&entry, ascii_names, builder)?;
        }
        Ok(())
    }

    fn load_entry(
        &self,
        entry: &SymbolEntry<'_>,
        ascii_names: Option<AsciiNames>,
        builder: &mut TableBuilder,
    ) -> Result<(), String> {
        let machine = self.symbols.machine;
        let is_arm = matches!(machine, EM_ARM | EM_AARCH64);
        if !entry.is_wanted() || (is_arm && entry.is_mapping_symbol()) {
            return Ok(());
        }
        let Some(section) = self.symbols.sections.get(usize::from(entry.section)) else {
            return Err(format!(
                "symbol {} has no section",
                String::from_utf8_lossy(entry.name.bytes())
            ));
        };
        // Sections such as .gnu.warning.* are not loaded.
        if section.flags & u64::from(SHF_ALLOC) == 0 {
            return Ok(());
        }
        // A debug file keeps the header of omitted sections, with a meaningless offset.
        let section = match section.kind {
            SHT_NOBITS => self.runtime.sections.get(usize::from(entry.section)),
            _ => Some(section),
        };
        let Some(section) = section else {
            return Err("the debug file's sections are not those of the object".to_owned());
        };
        if entry.is_visible_label() && !holds_code_or_data(section) {
            return Ok(());
        }
        // Bit 0 of the value of a Thumb function; 0 for other symbols.
        let thumb_bit = u64::from(machine == EM_ARM && entry.kind == STT_FUNC) & entry.value;
        let Some(start) = self.relocated(entry.value - thumb_bit, section) else {
            return Ok(());
        };
        let new = NewSymbol {
            start,
            size: entry.size,
            binding: binding(entry.binding),
            kind: entry.symbol_kind(),
            // Also for names that are not mangled: demangling leaves them as they are.
            form: NameForm::Mangled,
        };
        match ascii_names.and_then(|names| names.at(entry.name.offset)) {
            Some(name) => builder.push_named(new, name),
            None => builder.push(new, entry.name.bytes()),
        }
        Ok(())
    }

    /// The address in the built table, see [`AddressRelocation`]; `None` for symbols that are omitted.
    fn relocated(&self, value: u64, section: &Section<'_>) -> Option<u64> {
        match self.relocation {
            AddressRelocation::Shift(distance) => Some(value.wrapping_add(distance)),
            AddressRelocation::ModuleText(start) => {
                let inside = value.wrapping_sub(section.address);
                (section.name == b".text").then(|| start.wrapping_add(inside))
            }
            AddressRelocation::FileOffset => {
                let holder = self.runtime.segments.iter().find(|segment| {
                    value >= segment.address && value - segment.address < segment.memory_size
                });
                let (address, offset) = match holder {
                    Some(segment) => (segment.address, segment.offset),
                    None => (section.address, section.offset),
                };
                Some(value.wrapping_sub(address).wrapping_add(offset))
            }
        }
    }
}

/// As in perf, labels are only loaded from sections whose names contain "text" or "data".
fn holds_code_or_data(section: &Section<'_>) -> bool {
    let contains = |word: &[u8; 4]| section.name.windows(word.len()).any(|part| part == word);
    contains(b"text") || contains(b"data")
}

/// The data without an incomplete entry at its end.
fn whole_entries(data: &[u8], size: usize) -> &[u8] {
    data.get(..data.len() - data.len() % size)
        .unwrap_or_default()
}

fn binding(value: u8) -> Binding {
    match value {
        STB_LOCAL => Binding::Local,
        STB_GLOBAL => Binding::Global,
        STB_WEAK => Binding::Weak,
        _ => Binding::Other,
    }
}

impl ElfImage<'_> {
    /// The value of the first symbol called `name` in `.symtab`; `None` if there is none, or the table is damaged.
    pub(crate) fn symbol_value(&self, name: &str) -> Option<u64> {
        let section = self.symtab()?;
        let data = self.section_data(section)?;
        let strings = self.section_data(self.sections.get(section.link as usize)?)?;
        if self.is_64 {
            value_of::<Sym64<Endianness>>(self.endian, data, strings, name)
        } else {
            value_of::<Sym32<Endianness>>(self.endian, data, strings, name)
        }
    }
}

fn value_of<S>(endian: Endianness, data: &[u8], strings: &[u8], name: &str) -> Option<u64>
where
    S: Sym<Endian = Endianness> + object::pod::Pod,
{
    let entries: &[S] = slice_from_all_bytes(whole_entries(data, size_of::<S>())).ok()?;
    let symbol = entries
        .iter()
        .find(|entry| ElfImage::text(strings, entry.st_name(endian)) == Some(name.as_bytes()))?;
    Some(symbol.st_value(endian).into())
}
