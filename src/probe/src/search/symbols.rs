//! Places without debug information: by the symbol table, or by their address.

use super::raw::{self, Entry};
use super::{Found, Probe};
use crate::definition::{Definition, Place, Point};
use crate::error::Error;
use crate::object::{CALL, Object, SymbolRange};
use crate::search::is_wanted;

/// The functions of the symbol table that are meant, each once.
pub(super) fn named(object: &Object<'_>, definition: &Definition) -> Result<Vec<Probe>, Error> {
    of_table(object, definition, false)
}

/// Functions of other objects, where this one calls them.
pub(super) fn called(object: &Object<'_>, definition: &Definition) -> Result<Vec<Probe>, Error> {
    of_table(object, definition, true)
}

fn of_table(
    object: &Object<'_>,
    definition: &Definition,
    elsewhere: bool,
) -> Result<Vec<Probe>, Error> {
    let Point::Function { name, place, .. } = &definition.point else {
        return Ok(Vec::new());
    };
    let offset = match place {
        Place::Offset(offset) => *offset,
        _ => 0,
    };
    let mut found: Vec<Probe> = Vec::new();
    for function in object.functions() {
        // Versions of a symbol (`name@@GLIBC_2.2.5`) go by its name.
        let plain = function.name.split('@').next().unwrap_or_default();
        if function.name.ends_with(CALL) != elsewhere || !is_wanted(name, plain) {
            continue;
        }
        let file_offset = function.offset.wrapping_add(offset);
        if found.iter().any(|probe| probe.file_offset == file_offset) {
            continue;
        }
        check_offset(object, &function, offset)?;
        let entry = Entry {
            file_offset,
            is_entry: offset == 0,
            is_return: *place == Place::Return,
        };
        found.push(Probe {
            symbol: plain.to_owned(),
            offset,
            name: plain.to_owned(),
            provider: None,
            file_offset,
            semaphore: None,
            is_return: entry.is_return,
            is_inlined: false,
            fields: raw::fields(object, &definition.arguments, entry)?,
        });
    }
    Ok(found)
}

/// The place at an address of the object's own.
pub(super) fn at_address(
    object: &Object<'_>,
    definition: &Definition,
    address: u64,
    is_return: bool,
) -> Result<Found, Error> {
    if definition.needs_debug_info() {
        let path = object.sources.path.to_owned();
        // The functions around addresses are not looked up.
        return Err(Error::Member {
            message: format!(
                "variables at an address of {} are not found; name the function they are in",
                path.display()
            ),
            known: Vec::new(),
        });
    }
    let file_offset = object.offset_of(address).ok_or_else(|| Error::NoCode {
        address,
        path: object.sources.path.to_owned(),
    })?;
    let function = object.function_at(file_offset);
    let offset = function
        .as_ref()
        .map_or(0, |function| file_offset - function.offset);
    if let Some(function) = &function {
        check_offset(object, function, offset)?;
    }
    let entry = Entry {
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
        fields: raw::fields(object, &definition.arguments, entry)?,
    };
    Ok(Found {
        probes: vec![probe],
        notes: Vec::new(),
    })
}

/// Whether a probe may go `offset` bytes behind the entry: where an instruction begins.
pub(super) fn check_offset(
    object: &Object<'_>,
    function: &SymbolRange,
    offset: u64,
) -> Result<(), Error> {
    let name = || function.name.clone();
    if offset == 0 {
        return Ok(());
    }
    if offset >= function.size {
        return Err(Error::BehindEnd {
            function: name(),
            offset,
            size: function.size,
        });
    }
    let starts = object.instructions(function.offset, function.size, offset);
    let Some(starts) = starts.filter(|starts| !starts.contains(&offset)) else {
        return Ok(());
    };
    let around = starts.len().saturating_sub(2);
    Err(Error::NoInstruction {
        function: name(),
        offset,
        nearest: starts.get(around..).unwrap_or_default().to_vec(),
    })
}
