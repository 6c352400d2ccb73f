//! Functions by other names: aliases, of which symbol tables keep one, and those that are chosen when a program starts.

use object::{Object as _, ObjectSymbol as _, SymbolFlags, elf};

use super::raw::{self, Entry};
use super::symbols::check_offset;
use super::{Found, Note, Options, Probe, in_debug_info};
use crate::definition::{Definition, Place, Point};
use crate::describe::describe;
use crate::error::Error;
use crate::object::{Object, SymbolRange};

/// How many of the functions that may be chosen are named.
const VARIANTS: usize = 4;
/// Where the head of an ELF file names the system whose extensions it uses (`EI_OSABI`).
const OS_ABI: usize = 7;
/// What their names tell: the instructions that they use.
const INSTRUCTIONS: [&str; 6] = ["sse", "avx", "evex", "erms", "asimd", "sve"];

/// The same places by the name that debug information has for them, or by the symbol alone; none if no symbol is called so.
pub(super) fn find(
    object: &Object<'_>,
    definition: &Definition,
    options: &Options,
) -> Result<Found, Error> {
    let Point::Function { name, place, file } = &definition.point else {
        return Ok(Found::default());
    };
    let Some(symbol) = symbol(object, name) else {
        return Ok(Found::default());
    };
    let described = object.sources.info.and(describe(object, symbol.offset));
    let known = described.filter(|place| place.suffix.is_empty() && place.function != *name);
    if let Some(known) = known {
        let mut renamed = definition.clone();
        renamed.point = Point::Function {
            name: known.function,
            place: place.clone(),
            file: file.clone(),
        };
        let mut found = in_debug_info(object, &renamed, options)?;
        // The symbol is one place, whatever else has the other name.
        let is_there = |probe: &Probe| {
            let distance = probe.file_offset.checked_sub(symbol.offset);
            distance.is_some_and(|distance| distance < symbol.size.max(1)) && !probe.is_inlined
        };
        if !matches!(place, Place::Source(_)) {
            found.probes.retain(is_there);
        }
        if !found.probes.is_empty() {
            return Ok(found);
        }
    }
    match definition.needs_debug_info() {
        true => Ok(Found::default()),
        false => by_symbol(object, definition, place, &symbol),
    }
}

/// The place without debug information.
fn by_symbol(
    object: &Object<'_>,
    definition: &Definition,
    place: &Place,
    symbol: &SymbolRange,
) -> Result<Found, Error> {
    let offset = match place {
        Place::Offset(offset) => *offset,
        _ => 0,
    };
    check_offset(object, symbol, offset)?;
    let entry = Entry {
        file_offset: symbol.offset.wrapping_add(offset),
        is_entry: offset == 0,
        is_return: *place == Place::Return,
    };
    let probe = Probe {
        symbol: symbol.name.clone(),
        offset,
        name: symbol.name.clone(),
        provider: None,
        file_offset: entry.file_offset,
        semaphore: None,
        is_return: entry.is_return,
        is_inlined: false,
        fields: raw::fields(object, &definition.arguments, entry)?,
    };
    Ok(Found {
        probes: vec![probe],
        notes: Vec::new(),
    })
}

/// The function of this name, with a version behind it or without, in the tables of the file itself.
fn symbol(object: &Object<'_>, name: &str) -> Option<SymbolRange> {
    let file = &object.file;
    let mut all = file.dynamic_symbols().chain(file.symbols());
    let found = all.find(|symbol| {
        let is_named = symbol.name().is_ok_and(|found| plain(found) == name);
        is_named && symbol.is_definition() && kind(symbol.flags()) != elf::STT_OBJECT
    })?;
    Some(SymbolRange {
        name: name.to_owned(),
        offset: object.offset_of(found.address())?,
        size: found.size(),
    })
}

fn plain(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn kind(flags: SymbolFlags<object::SectionIndex, object::SymbolIndex>) -> u8 {
    match flags {
        SymbolFlags::Elf { st_info, .. } => st_info & 0xf,
        _ => elf::STT_NOTYPE,
    }
}

/// What is said of a function whose code only chooses the one that runs.
pub(super) fn indirect(object: &Object<'_>, probes: &[Probe]) -> Option<Note> {
    let file = &object.file;
    // Kernels have none.
    if object.is_kernel() || probes.is_empty() {
        return None;
    }
    let entry = |probe: &&Probe| probe.offset == 0;
    let places: Vec<u64> = probes
        .iter()
        .filter(entry)
        .map(|found| found.file_offset)
        .collect();
    // Programs that are linked statically have them in the other table, and say so.
    let is_marked = object.sources.bytes.get(OS_ABI) == Some(&elf::ELFOSABI_GNU);
    let is_static = is_marked && file.dynamic_symbols().next().is_none();
    let rest = is_static.then(|| file.symbols()).into_iter().flatten();
    let mut all = file.dynamic_symbols().chain(rest);
    let found = all.find(|symbol| {
        let is_indirect = kind(symbol.flags()) == elf::STT_GNU_IFUNC;
        let place = || object.offset_of(symbol.address());
        is_indirect && place().is_some_and(|place| places.contains(&place))
    })?;
    let name = plain(found.name().ok()?).to_owned();
    let start = format!("__{}_", name.trim_start_matches('_'));
    let functions = object.functions();
    let variants = functions.map(|function| function.name);
    let is_variant = |name: &String| {
        let rest = name.strip_prefix(&start).unwrap_or_default();
        INSTRUCTIONS.iter().any(|word| rest.starts_with(word))
    };
    let mut variants: Vec<String> = variants.filter(is_variant).collect();
    variants.sort_unstable_by_key(|name| (name.len(), name.clone()));
    variants.dedup();
    variants.truncate(VARIANTS);
    Some(Note::Indirect { name, variants })
}
