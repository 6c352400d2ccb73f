//! Resolves the arguments of a definition at each probe point.

use super::convert;
use super::raw::{self, FetchAddress};
use super::variables::{VariableInScope, globals, visible};
use super::{Candidate, SearchNote};
use crate::definition::{Argument, ArgumentValue};
use crate::dwarf::{AccessPoint, CompileUnit, Die, locate};
use crate::error::Error;
use crate::event::field_name;
use crate::field::ProbeField;
use crate::object::{ProbeObject, all_or_nearest};

/// The value recorded for a variable at a probe point where it is unavailable, if it is available at another probe point: an
/// immediate value in the kernel's syntax (`\IMM`), with the number that perf uses.
const PLACEHOLDER: &str = "\\0xdeade12d";

/// A probe point, with what is needed to find the values there.
#[derive(Clone, Copy)]
pub(super) struct ProbeContext<'s, 'w, 'u> {
    pub(super) object: &'s ProbeObject<'s>,
    pub(super) compile_unit: &'w CompileUnit<'u>,
    /// The function that contains the code.
    pub(super) function: &'s Die<'w, 'u>,
    /// The function whose variables are fetched: `function`, or one inlined into it.
    pub(super) scope: &'s Die<'w, 'u>,
    pub(super) address: u64,
    pub(super) file_offset: u64,
    pub(super) is_return: bool,
}

/// A value to fetch at one probe point.
pub(crate) enum FetchedValue {
    /// A field to fetch.
    Ready {
        /// The index of the argument in the definition.
        index: usize,
        field: ProbeField,
        /// Whether its type is too wide to be recorded completely.
        is_truncated: bool,
    },
    /// The value is unavailable at this probe point.
    Missing {
        /// The index of the argument in the definition.
        index: usize,
        error: Error,
    },
}

impl FetchedValue {
    pub(super) fn into_field(self) -> Option<ProbeField> {
        match self {
            Self::Ready { field, .. } => Some(field),
            Self::Missing { .. } => None,
        }
    }
}

impl<'s, 'w, 'u> ProbeContext<'s, 'w, 'u> {
    /// Returns the place from which variables are accessed.
    pub(super) fn access_point(&self) -> AccessPoint<'s, 'w, 'u> {
        AccessPoint {
            function: self.function,
            frames: &self.object.frames,
            address: self.address,
        }
    }

    /// Formats the probe point as a user would write it.
    pub(super) fn point_text(&self) -> String {
        let name = self.function.name().unwrap_or_default();
        let entry = self.function.entry_address().unwrap_or(self.address);
        match self.address.wrapping_sub(entry) {
            0 => name,
            offset => format!("{name}+{offset}"),
        }
    }

    /// Returns the variable to which `name` refers: one visible in the scope, otherwise a global one of the unit.
    pub(super) fn variable(&self, name: &str) -> Option<Die<'w, 'u>> {
        let mut local = visible(self.scope, self.address).into_iter();
        let local = local.find(|variable| variable.name.as_deref() == Some(name));
        let is_named = |die: &Die<'w, 'u>| die.name().as_deref() == Some(name);
        let global = || globals(self.compile_unit).into_iter().find(is_named);
        local.map(|variable| variable.die).or_else(global)
    }

    /// Returns the names of local variables that have a location here, for an error about `name`: all names if they are few,
    /// otherwise the most similar ones ([`all_or_nearest`]).
    pub(super) fn available_or_nearest(&self, name: &str) -> Vec<String> {
        let variables = visible(self.scope, self.address);
        let located = variables
            .iter()
            .filter(|variable| locate(&variable.die, self.access_point()).is_ok());
        let mut names: Vec<String> = located
            .filter_map(|variable| variable.name.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        all_or_nearest(name, names)
    }
}

/// Returns the values of `arguments` at one probe point, in argument order. `$params` and `$vars` may have any number of values.
pub(super) fn values(
    context: &ProbeContext<'_, '_, '_>,
    arguments: &[Argument],
) -> Result<Vec<FetchedValue>, Error> {
    let mut values = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        match &argument.value {
            ArgumentValue::Raw(text) => {
                let fetch = FetchAddress {
                    file_offset: context.file_offset,
                    is_entry: context.function.entry_address() == Some(context.address),
                    is_return: context.is_return,
                };
                values.push(FetchedValue::Ready {
                    index,
                    field: raw::field(context.object, argument, text, fetch)?,
                    is_truncated: false,
                });
            }
            ArgumentValue::Variable { name, .. } => {
                values.push(variable_value(context, argument, index, name))
            }
            ArgumentValue::Parameters | ArgumentValue::Variables if context.is_return => {
                return Err(convert::not_at_return(&argument.text));
            }
            ArgumentValue::Parameters | ArgumentValue::Variables => {
                let only_parameters = matches!(argument.value, ArgumentValue::Parameters);
                expand(context, argument, index, only_parameters, &mut values);
            }
        }
    }
    Ok(values)
}

fn variable_value(
    context: &ProbeContext<'_, '_, '_>,
    argument: &Argument,
    index: usize,
    name: &str,
) -> FetchedValue {
    let variable = context.variable(name).ok_or_else(|| Error::NoVariable {
        name: name.to_owned(),
        place: context.point_text(),
        reason: None,
        elsewhere: Vec::new(),
        known: context.available_or_nearest(name),
    });
    let converted = variable.and_then(|die| convert::field(context, argument, &die));
    match converted {
        Ok((field, is_truncated)) => FetchedValue::Ready {
            index,
            field,
            is_truncated,
        },
        Err(error) => FetchedValue::Missing { index, error },
    }
}

/// Appends the variables that can be fetched: an expansion of `$params` (`only_parameters`) or `$vars`.
fn expand(
    context: &ProbeContext<'_, '_, '_>,
    argument: &Argument,
    index: usize,
    only_parameters: bool,
    values: &mut Vec<FetchedValue>,
) {
    for VariableInScope {
        die, name, is_own, ..
    } in visible(context.scope, context.address)
    {
        // Parameters of functions inlined into `scope` are not its own.
        let is_parameter = is_own && die.tag() == gimli::DW_TAG_formal_parameter;
        if only_parameters && !is_parameter {
            continue;
        }
        let Some(name) = name else {
            continue;
        };
        // The type and `@user` after `$params` or `$vars` apply to each variable.
        let single = Argument {
            text: name.clone(),
            name: Some(field_name(&name)),
            value: ArgumentValue::Variable {
                name: name.clone(),
                members: Vec::new(),
            },
            ..argument.clone()
        };
        if let Ok((field, is_truncated)) = convert::field(context, &single, &die) {
            values.push(FetchedValue::Ready {
                index,
                field,
                is_truncated,
            });
        }
    }
}

/// Replaces the missing values of variables that only some probe points lack by a placeholder, and adds notes about these
/// variables and about truncated values. A variable that all probe points lack is an error.
pub(super) fn complete(
    arguments: &[Argument],
    candidates: &mut [Candidate],
    notes: &mut Vec<SearchNote>,
) -> Result<(), Error> {
    for (argument_index, argument) in arguments.iter().enumerate() {
        let mut first_field = None;
        let mut is_truncated_somewhere = false;
        let mut missing_count = 0;
        let mut first_error = None;
        for value in candidates.iter().flat_map(|candidate| &candidate.values) {
            match value {
                FetchedValue::Ready {
                    index,
                    field,
                    is_truncated,
                } if *index == argument_index => {
                    first_field = first_field.or(Some(field.clone()));
                    is_truncated_somewhere |= is_truncated;
                }
                FetchedValue::Missing { index, error } if *index == argument_index => {
                    missing_count += 1;
                    first_error = first_error.or(Some(error.clone()));
                }
                _ => {}
            }
        }
        let text = argument.text.clone();
        if is_truncated_somewhere {
            let argument = text.clone();
            notes.push(SearchNote::Truncated { argument });
        }
        let Some(error) = first_error else {
            continue;
        };
        let Some(field) = first_field else {
            return Err(error);
        };
        notes.push(SearchNote::Incomplete {
            argument: text,
            places: missing_count,
        });
        // The placeholder is a number, which cannot be recorded as a string.
        let is_string = |kind: &String| kind.contains("string");
        let placeholder = ProbeField {
            base: PLACEHOLDER.to_owned(),
            reads: Vec::new(),
            kind: field.kind.filter(|kind| !is_string(kind)),
            name: field.name,
        };
        replace_missing(candidates, argument_index, &placeholder);
    }
    Ok(())
}

/// Replaces the missing values of the argument with this index by `placeholder`.
fn replace_missing(candidates: &mut [Candidate], argument_index: usize, placeholder: &ProbeField) {
    let values = candidates
        .iter_mut()
        .flat_map(|candidate| &mut candidate.values);
    for value in values {
        if matches!(value, FetchedValue::Missing { index, .. } if *index == argument_index) {
            *value = FetchedValue::Ready {
                index: argument_index,
                field: placeholder.clone(),
                is_truncated: false,
            };
        }
    }
}
