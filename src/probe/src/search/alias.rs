//! Functions that have several names (aliases), and IFUNCs, whose implementation a resolver function chooses at run time.

use object::{Object as _, ObjectSymbol as _, SymbolFlags, elf};

use super::raw::{self, FetchAddress};
use super::symbols::check_offset;
use super::{Probe, ProbePoints, SearchNote, SearchOptions, in_debug_info};
use crate::definition::{Definition, FunctionPlace, Point};
use crate::describe::describe;
use crate::error::Error;
use crate::object::{ProbeObject, SymbolRange};

/// The maximum number of variants (implementations of an IFUNC) named in a note.
const MAX_VARIANTS: usize = 4;
/// The offset of `EI_OSABI` in an ELF header.
const OS_ABI: usize = 7;
/// CPU features that follow the function's name in names of implementations: `__memcpy_avx_unaligned`.
const CPU_FEATURES: [&str; 6] = ["sse", "avx", "evex", "erms", "asimd", "sve"];

/// Finds the probe points of a function whose name only the symbol table has. If the debug information has a function with
/// another name at the symbol's address, that function is probed, otherwise the symbol.
///
/// The result is empty if the definition is not about a function, if there is no such symbol, or if the definition needs debug
/// information and no probe point is found in it.
pub(super) fn find(
    object: &ProbeObject<'_>,
    definition: &Definition,
    options: &SearchOptions,
) -> Result<ProbePoints, Error> {
    let Point::Function { name, place, file } = &definition.point else {
        return Ok(ProbePoints::default());
    };
    let Some(symbol) = symbol(object, name) else {
        return Ok(ProbePoints::default());
    };
    let described = object.inputs.info.and(describe(object, symbol.offset));
    // An empty suffix: the symbol is at the entry of the described function.
    let other_name = described
        .filter(|entry| entry.suffix.is_empty() && entry.function != *name)
        .map(|entry| entry.function);
    if let Some(other_name) = other_name {
        let mut renamed = definition.clone();
        renamed.point = Point::Function {
            name: other_name,
            place: place.clone(),
            file: file.clone(),
        };
        let mut points = in_debug_info(object, &renamed, options)?;
        // Unrelated functions may have the name from the debug information, too. So only probe points inside the symbol are kept,
        // and none in inlined instances. Those of a source line are all kept: its code may also be outside the symbol.
        let is_in_symbol = |probe: &Probe| {
            let distance = probe.file_offset.checked_sub(symbol.offset);
            distance.is_some_and(|distance| distance < symbol.size.max(1)) && !probe.is_inlined
        };
        if !matches!(place, FunctionPlace::Source(_)) {
            points.probes.retain(is_in_symbol);
        }
        if !points.probes.is_empty() {
            return Ok(points);
        }
    }
    match definition.needs_debug_info() {
        true => Ok(ProbePoints::default()),
        false => by_symbol(object, definition, place, &symbol),
    }
}

/// Returns the probe point at the symbol, found without debug information.
fn by_symbol(
    object: &ProbeObject<'_>,
    definition: &Definition,
    place: &FunctionPlace,
    symbol: &SymbolRange,
) -> Result<ProbePoints, Error> {
    let offset = match place {
        FunctionPlace::Offset(offset) => *offset,
        _ => 0,
    };
    check_offset(object, symbol, offset)?;
    let fetch = FetchAddress {
        file_offset: symbol.offset.wrapping_add(offset),
        is_entry: offset == 0,
        is_return: *place == FunctionPlace::Return,
    };
    let probe = Probe {
        symbol: symbol.name.clone(),
        offset,
        name: symbol.name.clone(),
        provider: None,
        file_offset: fetch.file_offset,
        semaphore: None,
        is_return: fetch.is_return,
        is_inlined: false,
        fields: raw::fields(object, &definition.arguments, fetch)?,
    };
    Ok(ProbePoints {
        probes: vec![probe],
        notes: Vec::new(),
    })
}

/// Returns the first defined symbol of this name, with or without a version, that is not a data object (`STT_OBJECT`). Only the
/// symbol tables of the executed file are searched.
fn symbol(object: &ProbeObject<'_>, name: &str) -> Option<SymbolRange> {
    let file = &object.file;
    let mut symbols = file.dynamic_symbols().chain(file.symbols());
    let symbol = symbols.find(|symbol| {
        let is_named = symbol.name().is_ok_and(|own| without_version(own) == name);
        is_named && symbol.is_definition() && kind(symbol.flags()) != elf::STT_OBJECT
    })?;
    Some(SymbolRange {
        name: name.to_owned(),
        offset: object.offset_of(symbol.address())?,
        size: symbol.size(),
    })
}

fn without_version(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn kind(flags: SymbolFlags<object::SectionIndex, object::SymbolIndex>) -> u8 {
    match flags {
        SymbolFlags::Elf { st_info, .. } => st_info & 0xf,
        _ => elf::STT_NOTYPE,
    }
}

/// Returns a note about the first IFUNC whose resolver has a probe at its entry; `None` if there is none.
pub(super) fn ifunc_note(object: &ProbeObject<'_>, probes: &[Probe]) -> Option<SearchNote> {
    let file = &object.file;
    // Kernels have no IFUNCs.
    if object.is_kernel() || probes.is_empty() {
        return None;
    }
    let is_at_entry = |probe: &&Probe| probe.offset == 0;
    let entries: Vec<u64> = probes
        .iter()
        .filter(is_at_entry)
        .map(|probe| probe.file_offset)
        .collect();
    // Statically linked programs with IFUNCs have the OS ABI GNU, and list the IFUNCs in `.symtab` only.
    let is_gnu = object.inputs.bytes.get(OS_ABI) == Some(&elf::ELFOSABI_GNU);
    let is_static = is_gnu && file.dynamic_symbols().next().is_none();
    let static_symbols = is_static.then(|| file.symbols()).into_iter().flatten();
    let mut symbols = file.dynamic_symbols().chain(static_symbols);
    let symbol = symbols.find(|symbol| {
        let is_indirect = kind(symbol.flags()) == elf::STT_GNU_IFUNC;
        let offset = || object.offset_of(symbol.address());
        is_indirect && offset().is_some_and(|offset| entries.contains(&offset))
    })?;
    let name = without_version(symbol.name().ok()?).to_owned();
    let prefix = format!("__{}_", name.trim_start_matches('_'));
    let functions = object.functions();
    let variants = functions.map(|function| function.name);
    let is_variant = |name: &String| {
        let rest = name.strip_prefix(&prefix).unwrap_or_default();
        CPU_FEATURES.iter().any(|word| rest.starts_with(word))
    };
    let mut variants: Vec<String> = variants.filter(is_variant).collect();
    variants.sort_unstable_by_key(|name| (name.len(), name.clone()));
    variants.dedup();
    variants.truncate(MAX_VARIANTS);
    Some(SearchNote::Indirect { name, variants })
}
