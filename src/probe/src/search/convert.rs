//! From a variable and the members that are wanted of it to what the kernel fetches.

use super::argument::Scope;
use crate::definition::{Argument, Member, Value};
use crate::dwarf::{
    Base, Die, Kind, Located, Place, Step, Trouble, behind_entry, locate, stretches,
};
use crate::error::Error;
use crate::field::{Field, Read};
use crate::object::nearest;
use crate::register;

/// The widest value that is recorded as a number.
const MAX_BITS: u64 = 64;

/// The value at some step of the way.
struct Walk<'w, 'u> {
    base: Base,
    reads: Vec<Read>,
    /// What it is: a variable, a member, or the array that elements are taken of.
    die: Die<'w, 'u>,
    bits: Option<(u64, u64, u64)>,
    /// How it is called so far.
    name: String,
    is_user: bool,
}

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
    let reads = place.reads.iter().map(|offset| Read {
        offset: *offset,
        is_user: false,
    });
    let mut walk = Walk {
        base: place.base,
        reads: reads.collect(),
        die: variable.clone(),
        bits: None,
        name: name.clone(),
        is_user: argument.is_user,
    };
    for step in members {
        walk.step(step)?;
    }
    let (kind, is_cut) = walk.kind(argument.kind.as_deref())?;
    let base = walk.base(scope, name)?;
    let field = Field {
        name: argument.field_name(),
        base,
        reads: walk.reads,
        kind,
    };
    Ok((field, is_cut))
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

fn member(message: String) -> Error {
    Error::Member {
        message,
        known: Vec::new(),
    }
}

impl<'w, 'u> Walk<'w, 'u> {
    fn step(&mut self, step: &Member) -> Result<(), Error> {
        let found = self.die.real_type();
        let found =
            found.ok_or_else(|| member(format!("Failed to get the type of {}.", self.name)))?;
        match step {
            Member::Element(index) => self.element(&found, *index),
            Member::Field(name) | Member::Pointed(name) => {
                let is_arrow = matches!(step, Member::Pointed(_));
                self.field(&found, name, is_arrow)
            }
        }
    }

    fn element(&mut self, found: &Die<'w, 'u>, index: i64) -> Result<(), Error> {
        let kind = found.kind();
        let element = found.real_type().and_then(|element| element.whole_size());
        let size = element.and_then(|size| i64::try_from(size).ok());
        let distance = size.and_then(|size| size.checked_mul(index));
        let Some(distance) = distance.filter(|_| matches!(kind, Kind::Array | Kind::Pointer))
        else {
            let name = &self.name;
            return Err(member(format!(
                "Semantic error: {name} is not a pointer nor array."
            )));
        };
        if found.dimensions() > 1 {
            return Err(member(format!(
                "{} is an array of several dimensions, which is not supported",
                self.name
            )));
        }
        match kind {
            Kind::Pointer => self.read(distance),
            _ => self.shift(distance)?,
        }
        self.die = found.clone();
        self.bits = None;
        Ok(())
    }

    fn field(&mut self, found: &Die<'w, 'u>, name: &str, is_arrow: bool) -> Result<(), Error> {
        let is_reference = found.tag() != gimli::DW_TAG_pointer_type;
        let (record, is_pointer) = match found.kind() {
            Kind::Pointer => {
                if !is_arrow && !is_reference {
                    return Err(member(format!(
                        "Semantic error: {name} must be referred by '->'"
                    )));
                }
                (found.real_type(), true)
            }
            Kind::Record if is_arrow => {
                return Err(member(format!(
                    "Semantic error: {name} must be referred by '.'"
                )));
            }
            _ => (Some(found.clone()), false),
        };
        let record = record.filter(|record| record.kind() == Kind::Record);
        let record = record.ok_or_else(|| {
            member(format!(
                "{} is not a data structure nor a union.",
                self.name
            ))
        })?;
        let step = record.member(name).ok_or_else(|| {
            let kind = record.name().unwrap_or_default();
            Error::Member {
                message: format!("{}(type:{kind}) has no member {name}.", self.name),
                known: nearest(name, &record.member_names()),
            }
        })?;
        let Step {
            offset,
            member,
            bits,
        } = step;
        match is_pointer {
            true => self.read(offset),
            false => self.shift(offset)?,
        }
        self.die = member;
        self.bits = bits;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Reads memory where the value points to.
    fn read(&mut self, offset: i64) {
        self.reads.push(Read {
            offset,
            is_user: self.is_user,
        });
    }

    /// Reads further on.
    fn shift(&mut self, distance: i64) -> Result<(), Error> {
        let last = self
            .reads
            .last_mut()
            .ok_or_else(|| member("Structure on a register is not supported yet.".to_owned()))?;
        last.offset = last.offset.wrapping_add(distance);
        last.is_user |= self.is_user;
        Ok(())
    }

    /// How the kernel shows the value: as was asked for, else by its type. And whether that is too wide.
    fn kind(&mut self, cast: Option<&str>) -> Result<(Option<String>, bool), Error> {
        let (letter, is_text) = match cast {
            None => (None, false),
            Some("string" | "ustring") => (None, true),
            Some(letter @ ("u" | "s" | "x")) => (Some(letter), false),
            Some(other) => return Ok((Some(other.to_owned()), false)),
        };
        if let Some((width, low, bytes)) = self.bits.filter(|_| cast.is_none()) {
            return Ok((Some(format!("b{width}@{low}/{}", bytes * 8)), false));
        }
        let Some(found) = self.die.real_type() else {
            return Ok((cast.map(str::to_owned), false));
        };
        if is_text {
            self.text(&found)?;
            return Ok((cast.map(str::to_owned), false));
        }
        let letter = letter.unwrap_or(if found.is_signed() { "s" } else { "x" });
        let size = found.byte_size().filter(|size| *size > 0);
        let Some(bits) = size.map(|size| size.saturating_mul(8)) else {
            return Ok((None, false));
        };
        let is_cut = bits > MAX_BITS;
        // The kernel knows powers of two.
        let bits = bits.min(MAX_BITS).checked_next_power_of_two();
        Ok((bits.map(|bits| format!("{letter}{bits}")), is_cut))
    }

    /// Makes the value the start of a text.
    fn text(&mut self, found: &Die<'w, 'u>) -> Result<(), Error> {
        let name = self.die.name().unwrap_or_default();
        let kind = found.kind();
        if !matches!(kind, Kind::Pointer | Kind::Array) {
            let type_name = found.name().unwrap_or_default();
            return Err(member(format!(
                "Failed to cast into string: {name}({type_name}) is not a pointer nor array."
            )));
        }
        if kind == Kind::Pointer {
            self.read(0);
        }
        let is_text = found.real_type().is_some_and(|found| found.is_character());
        match is_text {
            true => Ok(()),
            false => Err(member(format!(
                "Failed to cast into string: {name} is not (unsigned) char *."
            ))),
        }
    }

    /// What is fetched first, in the kernel's words.
    fn base(&mut self, scope: &Scope<'_, '_, '_>, name: &str) -> Result<String, Error> {
        let object = scope.object;
        match self.base {
            Base::Register(register) => {
                register::name(object.architecture(), register).ok_or_else(|| Error::NoVariable {
                    name: name.to_owned(),
                    place: scope.shown(),
                    reason: Some(format!(
                        "it is in register {} of the debug information's numbering, which probes cannot read",
                        register.0
                    )),
                    elsewhere: Vec::new(),
                    known: scope.known(name),
                })
            }
            Base::Constant(value) => Ok(format!("\\{value}")),
            Base::Address(address) => {
                // The first read is what the kernel does by itself at an address.
                let first = if self.reads.is_empty() { 0 } else { self.reads.remove(0).offset };
                let address = address.wrapping_add_signed(first);
                let place = object.memory(address, scope.address);
                let place = place.ok_or_else(|| {
                    member(format!("{name} is below the code, where probes cannot read"))
                })?;
                Ok(format!("@+{place:#x}"))
            }
        }
    }
}
