//! Names for the entries of the procedure linkage table, which have no symbols.

use object::elf::{EM_AARCH64, EM_ARM, EM_SPARC, EM_SPARCV9, SHT_REL, SHT_RELA};

use super::ElfImage;
use crate::builder::{NewSymbol, TableBuilder};
use crate::symbol::{Binding, NameForm, SymbolKind};

/// Adds a symbol per relocation of `.rela.plt` (or `.rel.plt`), for consecutive entries of `.plt` after its header. As in perf
/// 6.1, entries of `.plt.sec` and `.plt.got` get no names. No symbols are added if `.plt`, its relocations, or the dynamic
/// symbols and their names are missing or damaged.
pub(super) fn add_entries(image: &ElfImage<'_>, builder: &mut TableBuilder) {
    let Some(targets) = targets(image) else {
        return;
    };
    let Some((_, plt)) = image.section_by_name(b".plt") else {
        return;
    };
    // Sizes of the header and of an entry. On x86, for example, the header is as large as an entry.
    let (header, entry) = match image.machine {
        EM_ARM => (20, 12),
        EM_AARCH64 => (32, 16),
        EM_SPARC => (48, 12),
        EM_SPARCV9 => (128, 32),
        _ => (plt.entry_size, plt.entry_size),
    };
    // In a symbol table of this crate, symbols of ELF files start at file offsets, not at the addresses of `st_value`.
    let mut start = plt.offset.wrapping_add(header);
    for name in targets {
        let new = NewSymbol {
            start,
            size: entry,
            binding: Binding::Global,
            kind: SymbolKind::Function,
            // `name` is that of the called function; it is shown as `name@plt`.
            form: NameForm::PltTarget,
        };
        builder.push(new, name);
        start = start.wrapping_add(entry);
    }
}

/// The names of the functions that the PLT's relocations refer to, in order; empty names for invalid relocations.
fn targets<'a>(image: &ElfImage<'a>) -> Option<Vec<&'a [u8]>> {
    let (dynsym_number, dynsym) = image.dynsym()?;
    let relocations = [b".rela.plt".as_slice(), b".rel.plt"]
        .iter()
        .find_map(|name| image.section_by_name(name))?
        .1;
    if relocations.link as usize != dynsym_number {
        return None;
    }
    let symbols = image.section_data(dynsym)?;
    let strings = image.sections.get(dynsym.link as usize)?;
    let strings = image.section_data(strings)?;
    let addend_words = match relocations.kind {
        SHT_RELA => 1,
        SHT_REL => 0,
        _ => return None,
    };
    let word = if image.is_64 { 8 } else { 4 };
    let names = image
        .section_data(relocations)?
        .chunks_exact(word * (2 + addend_words))
        .map(|relocation| {
            let number = symbol_index(image, relocation)?;
            let symbol_size = if image.is_64 { 24 } else { 16 };
            let symbol = symbols.get(number.checked_mul(symbol_size)?..)?;
            let name = read_u32(image, symbol)?;
            ElfImage::text(strings, name)
        });
    Some(names.map(Option::unwrap_or_default).collect())
}

/// The symbol index in `r_info`: the upper half of 64 bits, or all but the lowest byte of 32.
fn symbol_index(image: &ElfImage<'_>, relocation: &[u8]) -> Option<usize> {
    let big = image.endian == object::Endianness::Big;
    let number = if image.is_64 {
        read_u32(image, relocation.get(if big { 8 } else { 12 }..)?)?
    } else {
        read_u32(image, relocation.get(4..)?)? >> 8
    };
    usize::try_from(number).ok()
}

fn read_u32(image: &ElfImage<'_>, bytes: &[u8]) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    Some(match image.endian {
        object::Endianness::Little => u32::from_le_bytes(bytes),
        object::Endianness::Big => u32::from_be_bytes(bytes),
    })
}
