//! Resolves the arguments of a definition at each probe point.

use super::convert;
use super::raw::{self, FetchAddress};
use super::variables::{VisibleVariable, globals, visible};
use super::{Candidate, SearchNote};
use crate::definition::{Argument, ArgumentValue};
use crate::dwarf::{AccessPoint, CompileUnit, Die, locate};
use crate::error::Error;
use crate::event::field_name;
use crate::field::ProbeField;
use crate::object::{ProbeObject, nearest};

/// The placeholder for a variable that is unavailable at a probe point but not at all of them.
const MARK: &str = "\\0xdeade12d";

/// A probe point and its functions.
#[derive(Clone, Copy)]
pub(super) struct ProbeScope<'s, 'w, 'u> {
    pub(super) object: &'s ProbeObject<'s>,
    pub(super) compile_unit: &'w CompileUnit<'u>,
    /// The function that contains the code.
    pub(super) function: &'s Die<'w, 'u>,
    /// The requested function, which may be inlined.
    pub(super) scope: &'s Die<'w, 'u>,
    pub(super) address: u64,
    pub(super) file_offset: u64,
    pub(super) is_return: bool,
}

/// One value at one probe point.
pub(crate) enum FetchedValue {
    /// A field to fetch.
    Ready {
        /// The index of the argument in the definition.
        argument: usize,
        field: ProbeField,
        /// Whether its type is too wide to be recorded completely.
        is_truncated: bool,
    },
    /// The value is unavailable at this probe point.
    Missing { argument: usize, error: Error },
}

impl FetchedValue {
    pub(super) fn into_field(self) -> Option<ProbeField> {
        match self {
            Self::Ready { field, .. } => Some(field),
            Self::Missing { .. } => None,
        }
    }
}

impl<'s, 'w, 'u> ProbeScope<'s, 'w, 'u> {
    fn located(&self) -> AccessPoint<'s, 'w, 'u> {
        AccessPoint {
            function: self.function,
            frames: &self.object.frames,
            address: self.address,
        }
    }

    /// Formats the probe point as a user would write it.
    pub(super) fn shown(&self) -> String {
        let name = self.function.name().unwrap_or_default();
        let entry = self.function.entry_address().unwrap_or(self.address);
        match self.address.wrapping_sub(entry) {
            0 => name,
            offset => format!("{name}+{offset}"),
        }
    }

    /// Returns the variable to which `name` refers: one of the scope, otherwise a global one.
    pub(super) fn variable(&self, name: &str) -> Option<Die<'w, 'u>> {
        let mut local = visible(self.scope, self.address).into_iter();
        let local = local.find(|variable| variable.name.as_deref() == Some(name));
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        let global = || globals(self.compile_unit).into_iter().find(is_named);
        local.map(|variable| variable.die).or_else(global)
    }

    /// Returns the names of variables that can be recorded here, for an error about `name`: all names if there are at most 8,
    /// otherwise similar ones.
    pub(super) fn recordable(&self, name: &str) -> Vec<String> {
        let variables = visible(self.scope, self.address);
        let present = variables
            .iter()
            .filter(|variable| locate(&variable.die, self.located()).is_ok());
        let mut names: Vec<String> = present
            .filter_map(|variable| variable.name.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        let similar = nearest(name, &names);
        if names.len() <= 8 { names } else { similar }
    }
}

/// Returns the values of `arguments` at one probe point, in argument order.
pub(super) fn slots(
    scope: &ProbeScope<'_, '_, '_>,
    arguments: &[Argument],
) -> Result<Vec<FetchedValue>, Error> {
    let mut values = Vec::new();
    for (number, argument) in arguments.iter().enumerate() {
        match &argument.value {
            ArgumentValue::Raw(text) => {
                let fetch = FetchAddress {
                    file_offset: scope.file_offset,
                    is_entry: scope.function.entry_address() == Some(scope.address),
                    is_return: scope.is_return,
                };
                values.push(FetchedValue::Ready {
                    argument: number,
                    field: raw::field(scope.object, argument, text, fetch)?,
                    is_truncated: false,
                });
            }
            ArgumentValue::Variable { name, .. } => {
                values.push(slot(scope, argument, number, name))
            }
            ArgumentValue::Parameters | ArgumentValue::Variables if scope.is_return => {
                return Err(convert::not_at_return(&argument.text));
            }
            ArgumentValue::Parameters => expand(scope, argument, number, true, &mut values),
            ArgumentValue::Variables => expand(scope, argument, number, false, &mut values),
        }
    }
    Ok(values)
}

fn slot(
    scope: &ProbeScope<'_, '_, '_>,
    argument: &Argument,
    number: usize,
    name: &str,
) -> FetchedValue {
    let variable = scope.variable(name).ok_or_else(|| Error::NoVariable {
        name: name.to_owned(),
        place: scope.shown(),
        reason: None,
        elsewhere: Vec::new(),
        known: scope.recordable(name),
    });
    let converted = variable.and_then(|die| convert::field(scope, argument, &die, scope.located()));
    match converted {
        Ok((field, is_truncated)) => FetchedValue::Ready {
            argument: number,
            field,
            is_truncated,
        },
        Err(error) => FetchedValue::Missing {
            argument: number,
            error,
        },
    }
}

/// Appends the variables that can be fetched: an expansion of `$params` (`only_parameters`) or `$vars`.
fn expand(
    scope: &ProbeScope<'_, '_, '_>,
    argument: &Argument,
    number: usize,
    only_parameters: bool,
    values: &mut Vec<FetchedValue>,
) {
    for VisibleVariable {
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
            value: ArgumentValue::Variable {
                name: name.clone(),
                members: Vec::new(),
            },
            ..argument.clone()
        };
        if let Ok((field, is_truncated)) = convert::field(scope, &single, &die, scope.located()) {
            values.push(FetchedValue::Ready {
                argument: number,
                field,
                is_truncated,
            });
        }
    }
}

/// Inserts a placeholder for variables that only some probe points lack, and adds notes about them and about truncated values. A
/// variable that all probe points lack is an error.
pub(super) fn complete(
    arguments: &[Argument],
    candidates: &mut [Candidate],
    notes: &mut Vec<SearchNote>,
) -> Result<(), Error> {
    for (number, argument) in arguments.iter().enumerate() {
        let mut pattern = None;
        let mut is_truncated_somewhere = false;
        let mut places = 0;
        let mut first_error = None;
        for slot in candidates.iter().flat_map(|candidate| &candidate.slots) {
            match slot {
                FetchedValue::Ready {
                    argument,
                    field,
                    is_truncated,
                } if *argument == number => {
                    pattern = pattern.or(Some(field.clone()));
                    is_truncated_somewhere |= is_truncated;
                }
                FetchedValue::Missing { argument, error } if *argument == number => {
                    places += 1;
                    first_error = first_error.or(Some(error.clone()));
                }
                _ => {}
            }
        }
        let argument = argument.text.clone();
        if is_truncated_somewhere {
            let argument = argument.clone();
            notes.push(SearchNote::Truncated { argument });
        }
        let Some(error) = first_error else {
            continue;
        };
        let Some(pattern) = pattern else {
            return Err(error);
        };
        notes.push(SearchNote::Incomplete { argument, places });
        // The placeholder is a number, which the kernel rejects as a string.
        let is_text = |kind: &String| kind.contains("string");
        let mark = ProbeField {
            base: MARK.to_owned(),
            reads: Vec::new(),
            kind: pattern.kind.filter(|kind| !is_text(kind)),
            name: pattern.name,
        };
        mark_missing(candidates, number, &mark);
    }
    Ok(())
}

fn mark_missing(candidates: &mut [Candidate], number: usize, mark: &ProbeField) {
    let slots = candidates
        .iter_mut()
        .flat_map(|candidate| &mut candidate.slots);
    for slot in slots {
        if matches!(slot, FetchedValue::Missing { argument, .. } if *argument == number) {
            *slot = FetchedValue::Ready {
                argument: number,
                field: mark.clone(),
                is_truncated: false,
            };
        }
    }
}
