//! Probe points without debug information: by symbol or by address.

use super::raw::{self, FetchAddress};
use super::{Probe, ProbePoints};
use crate::definition::{Definition, FunctionPlace, Point};
use crate::error::Error;
use crate::object::{PLT_SUFFIX, ProbeObject, SymbolRange};
use crate::search::is_wanted;

/// Returns probe points in the matching functions of the symbol table, one per address, without PLT entries.
pub(super) fn by_symbol(
    object: &ProbeObject<'_>,
    definition: &Definition,
) -> Result<Vec<Probe>, Error> {
    let is_plt = false;
    in_symbol_table(object, definition, is_plt)
}

/// Returns probe points in the matching PLT entries, which call functions of other objects.
pub(super) fn plt_entries(
    object: &ProbeObject<'_>,
    definition: &Definition,
) -> Result<Vec<Probe>, Error> {
    let is_plt = true;
    in_symbol_table(object, definition, is_plt)
}

/// Searches the PLT entries if `is_plt`, otherwise the other functions.
fn in_symbol_table(
    object: &ProbeObject<'_>,
    definition: &Definition,
    is_plt: bool,
) -> Result<Vec<Probe>, Error> {
    let Point::Function { name, place, .. } = &definition.point else {
        return Ok(Vec::new());
    };
    let offset = match place {
        FunctionPlace::Offset(offset) => *offset,
        _ => 0,
    };
    let mut probes: Vec<Probe> = Vec::new();
    for function in object.functions() {
        // The version of a symbol (`name@@GLIBC_2.2.5`) or `@plt` is removed.
        let plain = function.name.split('@').next().unwrap_or_default();
        if function.name.ends_with(PLT_SUFFIX) != is_plt || !is_wanted(name, plain) {
            continue;
        }
        let file_offset = function.offset.wrapping_add(offset);
        if probes.iter().any(|probe| probe.file_offset == file_offset) {
            continue;
        }
        check_offset(object, &function, offset)?;
        let fetch = FetchAddress {
            file_offset,
            is_entry: offset == 0,
            is_return: *place == FunctionPlace::Return,
        };
        probes.push(Probe {
            symbol: plain.to_owned(),
            offset,
            name: plain.to_owned(),
            provider: None,
            file_offset,
            semaphore: None,
            is_return: fetch.is_return,
            is_inlined: false,
            fields: raw::fields(object, &definition.arguments, fetch)?,
        });
    }
    Ok(probes)
}

/// Returns the probe point at an address of the object.
pub(super) fn at_address(
    object: &ProbeObject<'_>,
    definition: &Definition,
    address: u64,
    is_return: bool,
) -> Result<ProbePoints, Error> {
    if definition.needs_debug_info() {
        // Variables need the function's debug information, which is not looked up by address.
        return Err(Error::Unsupported {
            message: format!(
                "variables are not supported for a probe at an address of {}; give a function instead",
                object.inputs.path.display()
            ),
            // No names are suggested.
            known: Vec::new(),
        });
    }
    let file_offset = object.offset_of(address).ok_or_else(|| Error::NoCode {
        address,
        path: object.inputs.path.to_owned(),
    })?;
    let function = object.function_at(file_offset);
    let offset = function
        .as_ref()
        .map_or(0, |function| file_offset - function.offset);
    if let Some(function) = &function {
        check_offset(object, function, offset)?;
    }
    let fetch = FetchAddress {
        file_offset,
        is_entry: function.is_some() && offset == 0,
        is_return,
    };
    let probe = Probe {
        symbol: function.map_or_else(String::new, |function| function.name),
        offset,
        name: format!("abs_{address:x}"),
        provider: None,
        file_offset,
        semaphore: None,
        is_return,
        is_inlined: false,
        fields: raw::fields(object, &definition.arguments, fetch)?,
    };
    Ok(ProbePoints {
        probes: vec![probe],
        notes: Vec::new(),
    })
}

/// Checks that `offset` from the function's entry is inside the function and, if its code can be decoded, at the start
/// of an instruction. Offset 0 is always accepted.
pub(super) fn check_offset(
    object: &ProbeObject<'_>,
    function: &SymbolRange,
    offset: u64,
) -> Result<(), Error> {
    let name = || function.name.clone();
    if offset == 0 {
        return Ok(());
    }
    if offset >= function.size {
        return Err(Error::OffsetTooLarge {
            function: name(),
            offset,
            size: function.size,
        });
    }
    let starts = object.instruction_boundaries(function.offset, function.size, offset);
    let Some(starts) = starts.filter(|starts| !starts.contains(&offset)) else {
        return Ok(());
    };
    // The last two boundaries are the nearest: one on each side of `offset`, or both before it if `offset` is in the function's
    // last instruction.
    let second_last = starts.len().saturating_sub(2);
    Err(Error::NoInstruction {
        function: name(),
        offset,
        nearest: starts.get(second_last..).unwrap_or_default().to_vec(),
    })
}
