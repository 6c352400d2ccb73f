//! Converts a variable and an access path to the kernel's fetch argument.

use super::access_path::{PathValue, unsupported};
use super::argument::ProbeScope;
use crate::definition::{Argument, ArgumentValue};
use crate::dwarf::{
    AccessPoint, Die, UnavailableVariable, ValueBase, ValueLocation, locate, relative_to_entry,
    valid_ranges,
};
use crate::error::Error;
use crate::field::{Dereference, ProbeField};
use crate::register;

/// Returns the field of an argument, and whether its type is too wide to be recorded completely.
pub(super) fn field<'w, 'u>(
    scope: &ProbeScope<'_, 'w, 'u>,
    argument: &Argument,
    variable: &Die<'w, 'u>,
    located: AccessPoint<'_, 'w, 'u>,
) -> Result<(ProbeField, bool), Error> {
    let ArgumentValue::Variable { name, members } = &argument.value else {
        return Err(unsupported("this argument is not a variable".to_owned()));
    };
    let place = match locate(variable, located) {
        Ok(place) => place,
        Err(cause) => in_other_unit(scope, variable, name, cause)?,
    };
    if scope.is_return && !matches!(place.base, ValueBase::Address(_)) {
        // Values are fetched after the function has returned.
        return Err(not_at_return(name));
    }
    let reads = place.reads.iter().map(|offset| Dereference {
        offset: *offset,
        is_user: false,
    });
    let mut path = PathValue::new(variable.clone(), name, reads.collect(), argument.is_user);
    path.apply_all(members)?;
    let (kind, is_truncated) = path.finish_with_type(argument.kind.as_deref())?;
    let base = base(scope, place.base, &mut path.reads, name)?;
    let field = ProbeField {
        name: argument.field_name(),
        base,
        reads: path.reads,
        kind,
    };
    Ok((field, is_truncated))
}

/// The error for a variable of a function that is probed at its return: its frame and registers no longer exist.
pub(super) fn not_at_return(name: &str) -> Error {
    unsupported(format!(
        "Semantic error: {name} is local to the function and not available after its return; use $retval, registers or global variables"
    ))
}

/// Returns the location of a variable defined in another unit, by its symbol.
fn in_other_unit(
    scope: &ProbeScope<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    cause: UnavailableVariable,
) -> Result<ValueLocation, Error> {
    let linker = variable.linkage_name();
    let symbol = linker.as_deref().unwrap_or(name);
    let is_external = variable.find(gimli::DW_AT_external).is_some();
    let address = scope.object.symbol(symbol).filter(|_| is_external);
    address
        .map(|address| ValueLocation {
            base: ValueBase::Address(address),
            reads: vec![0],
        })
        .ok_or_else(|| without_location(scope, variable, name, cause))
}

fn without_location(
    scope: &ProbeScope<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    cause: UnavailableVariable,
) -> Error {
    let function = scope.function.name().unwrap_or_default();
    let entry = scope.function.entry_address().unwrap_or(scope.address);
    let places = valid_ranges(variable).unwrap_or_default();
    let places = relative_to_entry(places, scope.function, entry);
    let places = places.map(|(from, to)| format!("{function}+[{from}-{to}]"));
    Error::NoVariable {
        name: name.to_owned(),
        place: scope.shown(),
        reason: Some(cause.to_string()),
        elsewhere: places.take(4).collect(),
        known: scope.recordable(name),
    }
}

/// Returns the base in the kernel's syntax. The address of a process includes the first of `reads`, which is removed.
fn base(
    scope: &ProbeScope<'_, '_, '_>,
    base: ValueBase,
    reads: &mut Vec<Dereference>,
    name: &str,
) -> Result<String, Error> {
    let object = scope.object;
    match base {
        ValueBase::Register(register) => register::name(object.architecture(), register)
            .ok_or_else(|| Error::NoVariable {
                name: name.to_owned(),
                place: scope.shown(),
                reason: Some(register::unreadable(object.architecture(), register)),
                elsewhere: Vec::new(),
                known: scope.recordable(name),
            }),
        ValueBase::Constant(value) => Ok(format!("\\{value}")),
        ValueBase::Address(address) if object.is_kernel() => object
            .kernel_memory(address)
            .ok_or_else(|| unsupported(format!("no symbol of the kernel is at {name}"))),
        ValueBase::Address(address) => {
            // The kernel performs the first read of an address implicitly.
            let first = if reads.is_empty() {
                0
            } else {
                reads.remove(0).offset
            };
            let address = address.wrapping_add_signed(first);
            let place = object.memory(address, scope.address);
            let place = place.ok_or_else(|| {
                unsupported(format!(
                    "{name} has a lower address than the code, which probes cannot read"
                ))
            })?;
            Ok(format!("@+{place:#x}"))
        }
    }
}
