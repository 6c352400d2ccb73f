//! Converts a variable and an access path to a fetch argument of the kernel.

use super::access_path::{PathValue, unsupported};
use super::argument::ProbeContext;
use crate::definition::{Argument, ArgumentValue};
use crate::dwarf::{
    Die, UnavailableVariable, ValueBase, ValueLocation, locate, relative_to_entry, valid_ranges,
};
use crate::error::Error;
use crate::field::{Dereference, ProbeField};
use crate::register;

/// The maximum number of ranges of a variable that an error names.
const MAX_NAMED_RANGES: usize = 4;

/// Returns the field for an argument that is `variable` or a value reached from it, and whether the value is too wide to be
/// recorded completely.
pub(super) fn field<'w, 'u>(
    context: &ProbeContext<'_, 'w, 'u>,
    argument: &Argument,
    variable: &Die<'w, 'u>,
) -> Result<(ProbeField, bool), Error> {
    let ArgumentValue::Variable { name, members } = &argument.value else {
        return Err(unsupported("this argument is not a variable".to_owned()));
    };
    let location = match locate(variable, context.access_point()) {
        Ok(location) => location,
        Err(cause) => in_other_unit(context, variable, name, cause)?,
    };
    if context.is_return && !matches!(location.base, ValueBase::Address(_)) {
        // Values are fetched after the function has returned. Only variables at fixed addresses can still be read.
        return Err(not_at_return(name));
    }
    let reads = location.reads.iter().map(|offset| Dereference {
        offset: *offset,
        // `@user` is for the pointers on the path, not for the variable itself.
        is_user: false,
    });
    let mut path = PathValue::new(variable.clone(), name, reads.collect(), argument.is_user);
    path.apply_all(members)?;
    let (kind, is_truncated) = path.finish_with_type(argument.kind.as_deref())?;
    let base = base(context, location.base, &mut path.reads, name)?;
    let field = ProbeField {
        name: argument.field_name(),
        base,
        reads: path.reads,
        kind,
    };
    Ok((field, is_truncated))
}

/// The error for a local variable in a return probe: the frame and registers of the function no longer exist.
pub(super) fn not_at_return(name: &str) -> Error {
    unsupported(format!(
        "Semantic error: {name} is local to the function and not available after its return; use $retval, registers or global variables"
    ))
}

/// Returns the location of a variable for which [`locate`] failed with `cause`, if it is an external variable defined in another
/// unit: the address of its symbol. If it is not external or has no symbol, the error has `cause`.
fn in_other_unit(
    context: &ProbeContext<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    cause: UnavailableVariable,
) -> Result<ValueLocation, Error> {
    let linkage_name = variable.linkage_name();
    let symbol = linkage_name.as_deref().unwrap_or(name);
    let is_external = variable.find(gimli::DW_AT_external).is_some();
    let address = context.object.symbol(symbol).filter(|_| is_external);
    address
        .map(|address| ValueLocation {
            base: ValueBase::Address(address),
            // The value is in the memory at this address.
            reads: vec![0],
        })
        .ok_or_else(|| without_location(context, variable, name, cause))
}

/// The error for a variable that has no location at the probe point.
fn without_location(
    context: &ProbeContext<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    cause: UnavailableVariable,
) -> Error {
    let function = context.function.name().unwrap_or_default();
    let entry = context.function.entry_address().unwrap_or(context.address);
    let ranges = valid_ranges(variable).unwrap_or_default();
    let ranges = relative_to_entry(ranges, context.function, entry);
    let places = ranges.map(|(from, to)| format!("{function}+[{from}-{to}]"));
    Error::NoVariable {
        name: name.to_owned(),
        place: context.point_text(),
        reason: Some(cause.to_string()),
        elsewhere: places.take(MAX_NAMED_RANGES).collect(),
        known: context.available_or_nearest(name),
    }
}

/// Returns the base in the kernel's syntax. For memory at an address, the first of `reads` becomes part of the base.
fn base(
    context: &ProbeContext<'_, '_, '_>,
    base: ValueBase,
    reads: &mut Vec<Dereference>,
    name: &str,
) -> Result<String, Error> {
    let object = context.object;
    let address = match base {
        ValueBase::Register(register) => {
            let architecture = object.architecture();
            return register::name(architecture, register).ok_or_else(|| Error::NoVariable {
                name: name.to_owned(),
                place: context.point_text(),
                reason: Some(register::why_unreadable(architecture, register)),
                elsewhere: Vec::new(),
                known: context.available_or_nearest(name),
            });
        }
        ValueBase::Constant(value) => return Ok(format!("\\{value}")),
        ValueBase::Address(address) => address,
    };
    // `@` already reads the memory: this is the first dereference.
    // `reads` is not empty: a variable's own address, as a value, is refused by `locate`.
    let first = match reads.is_empty() {
        true => 0,
        false => reads.remove(0).offset,
    };
    let address = address.wrapping_add_signed(first);
    if object.is_kernel() {
        return object
            .kernel_memory(address)
            .ok_or_else(|| unsupported(format!("no symbol of the kernel is at {name}")));
    }
    // The kernel computes the address from where the probed code is mapped.
    let offset = object.memory_offset(address, context.address);
    let offset = offset.ok_or_else(|| {
        unsupported(format!(
            "probes cannot read {name}: its address is below the address of the file's first byte"
        ))
    })?;
    Ok(format!("@+{offset:#x}"))
}
