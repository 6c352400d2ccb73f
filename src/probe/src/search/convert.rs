//! From a variable and the members that are wanted of it to what the kernel fetches.

use super::argument::Scope;
use super::walk::{Walk, member};
use crate::definition::{Argument, Value};
use crate::dwarf::{Base, Die, Located, Place, Trouble, behind_entry, locate, stretches};
use crate::error::Error;
use crate::field::{Field, Read};
use crate::register;

/// The field of an argument, and whether its type is too wide to be recorded as a whole.
pub(super) fn field<'w, 'u>(
    scope: &Scope<'_, 'w, 'u>,
    argument: &Argument,
    variable: &Die<'w, 'u>,
    located: Located<'_, 'w, 'u>,
) -> Result<(Field, bool), Error> {
    let Value::Variable { name, members } = &argument.value else {
        return Err(member("this argument is no variable".to_owned()));
    };
    let place = match locate(variable, located) {
        Ok(place) => place,
        Err(trouble) => elsewhere(scope, variable, name, trouble)?,
    };
    if scope.is_return && !matches!(place.base, Base::Address(_)) {
        // Values are fetched when the function has returned.
        return Err(gone(name));
    }
    let reads = place.reads.iter().map(|offset| Read {
        offset: *offset,
        is_user: false,
    });
    let mut walk = Walk::new(variable.clone(), name, reads.collect(), argument.is_user);
    walk.steps(members)?;
    let (kind, is_cut) = walk.kind(argument.kind.as_deref())?;
    let base = base(scope, place.base, &mut walk.reads, name)?;
    let field = Field {
        name: argument.field_name(),
        base,
        reads: walk.reads,
        kind,
    };
    Ok((field, is_cut))
}

/// Frames and registers of a function are no longer its own where it returns.
pub(super) fn gone(name: &str) -> Error {
    member(format!(
        "Semantic error: {name} is local to the function, and gone where that returns; \
         $retval, registers and global variables can be recorded there"
    ))
}

/// A variable that stands in another unit, by its symbol.
fn elsewhere(
    scope: &Scope<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    trouble: Trouble,
) -> Result<Place, Error> {
    let linker = variable.linkage_name();
    let symbol = linker.as_deref().unwrap_or(name);
    let is_external = variable.find(gimli::DW_AT_external).is_some();
    let address = scope.object.symbol(symbol).filter(|_| is_external);
    address
        .map(|address| Place {
            base: Base::Address(address),
            reads: vec![0],
        })
        .ok_or_else(|| unlocated(scope, variable, name, trouble))
}

fn unlocated(
    scope: &Scope<'_, '_, '_>,
    variable: &Die<'_, '_>,
    name: &str,
    trouble: Trouble,
) -> Error {
    let function = scope.function.name().unwrap_or_default();
    let entry = scope.function.entry_address().unwrap_or(scope.address);
    let places = stretches(variable).unwrap_or_default();
    let places = behind_entry(places, scope.function, entry);
    let places = places.map(|(from, to)| format!("{function}+[{from}-{to}]"));
    Error::NoVariable {
        name: name.to_owned(),
        place: scope.shown(),
        reason: Some(trouble.to_string()),
        elsewhere: places.take(4).collect(),
        known: scope.known(name),
    }
}

/// What is fetched first, in the kernel's words.
fn base(
    scope: &Scope<'_, '_, '_>,
    base: Base,
    reads: &mut Vec<Read>,
    name: &str,
) -> Result<String, Error> {
    let object = scope.object;
    match base {
        Base::Register(register) => {
            register::name(object.architecture(), register).ok_or_else(|| Error::NoVariable {
                name: name.to_owned(),
                place: scope.shown(),
                reason: Some(register::unreadable(object.architecture(), register)),
                elsewhere: Vec::new(),
                known: scope.known(name),
            })
        }
        Base::Constant(value) => Ok(format!("\\{value}")),
        Base::Address(address) if object.is_kernel() => object
            .kernel_memory(address)
            .ok_or_else(|| member(format!("no symbol of the kernel is at {name}"))),
        Base::Address(address) => {
            // The first read is what the kernel does by itself at an address.
            let first = if reads.is_empty() {
                0
            } else {
                reads.remove(0).offset
            };
            let address = address.wrapping_add_signed(first);
            let place = object.memory(address, scope.address);
            let place = place.ok_or_else(|| {
                member(format!(
                    "{name} is below the code, where probes cannot read"
                ))
            })?;
            Ok(format!("@+{place:#x}"))
        }
    }
}
