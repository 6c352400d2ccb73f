//! The arguments of a definition at one place after the other.

use super::convert;
use super::raw::{self, Entry};
use super::variables::{Visible, globals, visible};
use super::{Candidate, Note};
use crate::definition::{Argument, Value};
use crate::dwarf::{Die, Located, World, locate};
use crate::error::Error;
use crate::event::field_name;
use crate::field::Field;
use crate::object::{Object, nearest};

/// What is recorded where a variable is not known and it is at other places.
const MARK: &str = "\\0xdeade12d";

/// A place and what surrounds it.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s, 'w, 'u> {
    pub(super) object: &'s Object<'s>,
    pub(super) world: &'w World<'u>,
    /// The function whose code it is.
    pub(super) function: &'s Die<'w, 'u>,
    /// The function that was asked for.
    pub(super) scope: &'s Die<'w, 'u>,
    pub(super) address: u64,
    pub(super) file_offset: u64,
    pub(super) is_return: bool,
}

/// One value at one place.
pub(crate) enum Slot {
    /// It is fetched so.
    Ready {
        /// Position of the argument in the definition.
        argument: usize,
        field: Field,
        /// Its type had more bits than can be recorded.
        is_cut: bool,
    },
    /// It is not to be had here.
    Missing { argument: usize, error: Error },
}

impl Slot {
    pub(super) fn into_field(self) -> Option<Field> {
        match self {
            Self::Ready { field, .. } => Some(field),
            Self::Missing { .. } => None,
        }
    }
}

impl<'s, 'w, 'u> Scope<'s, 'w, 'u> {
    fn located(&self) -> Located<'s, 'w, 'u> {
        Located {
            function: self.function,
            frames: &self.object.frames,
            address: self.address,
        }
    }

    /// The place as a user would name it.
    pub(super) fn shown(&self) -> String {
        let name = self.function.name().unwrap_or_default();
        let entry = self.function.entry_address().unwrap_or(self.address);
        match self.address.wrapping_sub(entry) {
            0 => name,
            offset => format!("{name}+{offset}"),
        }
    }

    /// The variable of this name: of the innermost block, else a global one.
    pub(super) fn variable(&self, name: &str) -> Option<Die<'w, 'u>> {
        let mut local = visible(self.scope, self.address).into_iter();
        let local = local.find(|variable| variable.name.as_deref() == Some(name));
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        let global = || globals(self.world).into_iter().find(is_named);
        local.map(|variable| variable.die).or_else(global)
    }

    /// The names of variables that can be recorded here.
    pub(super) fn known(&self, name: &str) -> Vec<String> {
        let variables = visible(self.scope, self.address);
        let present = variables
            .iter()
            .filter(|variable| locate(&variable.die, self.located()).is_ok());
        let mut names: Vec<String> = present.filter_map(|found| found.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let close = nearest(name, &names);
        // Few are all listed.
        if names.len() <= 8 { names } else { close }
    }
}

/// What is fetched at one place, in the order of the arguments.
pub(super) fn slots(scope: &Scope<'_, '_, '_>, arguments: &[Argument]) -> Result<Vec<Slot>, Error> {
    let mut found = Vec::new();
    for (number, argument) in arguments.iter().enumerate() {
        match &argument.value {
            Value::Raw(text) => {
                let entry = Entry {
                    file_offset: scope.file_offset,
                    is_entry: scope.function.entry_address() == Some(scope.address),
                    is_return: scope.is_return,
                };
                found.push(Slot::Ready {
                    argument: number,
                    field: raw::field(scope.object, argument, text, entry)?,
                    is_cut: false,
                });
            }
            Value::Variable { name, .. } => found.push(slot(scope, argument, number, name)),
            Value::Parameters | Value::Variables if scope.is_return => {
                return Err(convert::gone(&argument.text));
            }
            Value::Parameters => all(scope, argument, number, true, &mut found),
            Value::Variables => all(scope, argument, number, false, &mut found),
        }
    }
    Ok(found)
}

fn slot(scope: &Scope<'_, '_, '_>, argument: &Argument, number: usize, name: &str) -> Slot {
    let found = scope.variable(name).ok_or_else(|| Error::NoVariable {
        name: name.to_owned(),
        place: scope.shown(),
        reason: None,
        elsewhere: Vec::new(),
        known: scope.known(name),
    });
    let converted = found.and_then(|die| convert::field(scope, argument, &die, scope.located()));
    match converted {
        Ok((field, is_cut)) => Slot::Ready {
            argument: number,
            field,
            is_cut,
        },
        Err(error) => Slot::Missing {
            argument: number,
            error,
        },
    }
}

/// `$params` and `$vars`: all that is somewhere.
fn all(
    scope: &Scope<'_, '_, '_>,
    argument: &Argument,
    number: usize,
    only_parameters: bool,
    found: &mut Vec<Slot>,
) {
    for Visible {
        die, name, is_own, ..
    } in visible(scope.scope, scope.address)
    {
        let is_parameter = is_own && die.tag() == gimli::DW_TAG_formal_parameter;
        let Some(name) = name.filter(|_| is_parameter || !only_parameters) else {
            continue;
        };
        let single = Argument {
            text: name.clone(),
            name: Some(field_name(&name)),
            value: Value::Variable {
                name: name.clone(),
                members: Vec::new(),
            },
            ..argument.clone()
        };
        if let Ok((field, is_cut)) = convert::field(scope, &single, &die, scope.located()) {
            found.push(Slot::Ready {
                argument: number,
                field,
                is_cut,
            });
        }
    }
}

/// Puts a mark where a variable is missing that other places have; what no place has is an error.
pub(super) fn complete(
    arguments: &[Argument],
    candidates: &mut [Candidate],
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    for (number, argument) in arguments.iter().enumerate() {
        let mut pattern = None;
        let mut cut = false;
        let mut places = 0;
        let mut first = None;
        for slot in candidates.iter().flat_map(|candidate| &candidate.slots) {
            match slot {
                Slot::Ready {
                    argument,
                    field,
                    is_cut,
                } if *argument == number => {
                    pattern = pattern.or(Some(field.clone()));
                    cut |= is_cut;
                }
                Slot::Missing { argument, error } if *argument == number => {
                    places += 1;
                    first = first.or(Some(error.clone()));
                }
                _ => {}
            }
        }
        let argument = argument.text.clone();
        if cut {
            let argument = argument.clone();
            notes.push(Note::Cut { argument });
        }
        let Some(error) = first else {
            continue;
        };
        let Some(pattern) = pattern else {
            return Err(error);
        };
        notes.push(Note::Incomplete { argument, places });
        // A number is no text to the kernel.
        let is_text = |kind: &String| kind.contains("string");
        let mark = Field {
            base: MARK.to_owned(),
            reads: Vec::new(),
            kind: pattern.kind.filter(|kind| !is_text(kind)),
            name: pattern.name,
        };
        mark_missing(candidates, number, &mark);
    }
    Ok(())
}

fn mark_missing(candidates: &mut [Candidate], number: usize, mark: &Field) {
    let slots = candidates
        .iter_mut()
        .flat_map(|candidate| &mut candidate.slots);
    for slot in slots {
        if matches!(slot, Slot::Missing { argument, .. } if *argument == number) {
            *slot = Slot::Ready {
                argument: number,
                field: mark.clone(),
                is_cut: false,
            };
        }
    }
}
