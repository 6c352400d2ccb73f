//! The values that a marker records: its own arguments, or the requested ones.

use super::{Marker, operand};
use crate::definition::{Argument, ArgumentValue};
use crate::error::Error;
use crate::field::{Dereference, ProbeField};
use crate::object::ProbeObject;
use crate::search::{FetchAddress, raw_fields};

/// The prefix of the names of a marker's arguments, which are numbered from 1.
const PREFIX: &str = "arg";

/// The values of one marker.
pub(super) struct Values<'a> {
    pub(super) object: &'a ProbeObject<'a>,
    pub(super) marker: &'a Marker,
}

impl Values<'_> {
    /// Returns `arg1`, `arg2`, …, without those that the kernel cannot fetch.
    pub(super) fn recordable_fields(&self) -> Vec<ProbeField> {
        let words = self.words();
        let fields = words.iter().zip(1..).filter_map(|(word, number)| {
            Some(ProbeField {
                name: Some(format!("{PREFIX}{number}")),
                ..self.fetched(word)?
            })
        });
        fields.collect()
    }

    /// Returns the requested values: `argN`, with a name and a type if given, registers and memory in the kernel's syntax, and
    /// all recordable arguments for `$params` and `$vars`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other names, for members and for arguments that the kernel cannot fetch; for registers and
    /// memory, the errors of [`raw_fields`].
    pub(super) fn requested(
        &self,
        arguments: &[Argument],
        fetch: FetchAddress,
    ) -> Result<Vec<ProbeField>, Error> {
        let mut fields = Vec::new();
        for argument in arguments {
            match &argument.value {
                ArgumentValue::Raw(_) => fields.extend(raw_fields(
                    self.object,
                    std::slice::from_ref(argument),
                    fetch,
                )?),
                ArgumentValue::Parameters | ArgumentValue::Variables => {
                    fields.extend(self.recordable_fields());
                }
                ArgumentValue::Variable { name, members } => {
                    let number = name.strip_prefix(PREFIX);
                    let number = number.and_then(|number| number.parse().ok());
                    let number = number.filter(|_| members.is_empty());
                    let number = number.ok_or_else(|| self.unknown(argument))?;
                    fields.push(self.numbered(number, argument)?);
                }
            }
        }
        Ok(fields)
    }

    /// Returns the field for the marker's argument `number`, with the name and type that `argument` requests.
    fn numbered(&self, number: usize, argument: &Argument) -> Result<ProbeField, Error> {
        let words = self.words();
        let word = number.checked_sub(1).and_then(|index| words.get(index));
        let word = word.ok_or_else(|| self.unknown(argument))?;
        let field = self.fetched(word).ok_or_else(|| Error::Unsupported {
            message: format!(
                "{PREFIX}{number} of marker {} is {word}, which the kernel cannot fetch",
                self.name()
            ),
            known: self.recordable_names(),
        })?;
        let name = argument.name.clone();
        let name = name.unwrap_or_else(|| format!("{PREFIX}{number}"));
        Ok(ProbeField {
            name: Some(name),
            ..typed(field, argument)
        })
    }

    /// Returns the field for an argument in assembler syntax; `None` if the kernel cannot fetch it.
    fn fetched(&self, word: &str) -> Option<ProbeField> {
        let operand = operand::parse(self.object.architecture(), word)?;
        // The `OFFSET` in `@+OFFSET`, the kernel's syntax for memory. It is relative to the mapping of the code, so it depends on
        // the marker's address, too.
        let symbol_offset = |name: &str| {
            let address = self.object.symbol(name)?;
            self.object.memory_offset(address, self.marker.address)
        };
        Some(ProbeField {
            name: None,
            base: match operand.base {
                operand::OperandBase::Known(text) => text,
                operand::OperandBase::Symbol(name, offset) => {
                    let start = symbol_offset(&name)?;
                    format!("@+{:#x}", start.wrapping_add_signed(offset))
                }
            },
            reads: operand.reads,
            kind: Some(operand.kind),
        })
    }

    /// Returns the marker's arguments in assembler syntax, such as `-4@%edi`.
    fn words(&self) -> Vec<&str> {
        operand::split(&self.marker.arguments)
    }

    fn unknown(&self, argument: &Argument) -> Error {
        Error::Unsupported {
            message: format!(
                "'{}' is not an argument of marker {}: its arguments have numbers (arg1), not names, and no members",
                argument.text,
                self.name()
            ),
            known: self.recordable_names(),
        }
    }

    /// Returns the names of the arguments that can be recorded.
    fn recordable_names(&self) -> Vec<String> {
        let names = self
            .recordable_fields()
            .into_iter()
            .filter_map(|field| field.name);
        names.collect()
    }

    fn name(&self) -> String {
        format!("{}:{}", self.marker.provider, self.marker.name)
    }
}

/// Applies the type that `argument` requests. A string or an array is at the address that the marker's argument contains; `u`,
/// `s` and `x` without a number have the size of the marker's argument.
fn typed(mut field: ProbeField, argument: &Argument) -> ProbeField {
    let Some(kind) = &argument.kind else {
        return field;
    };
    let (element, length) = kind.split_at(kind.find('[').unwrap_or(kind.len()));
    if matches!(element, "string" | "ustring") || !length.is_empty() {
        field.reads.push(Dereference {
            offset: 0,
            is_user: argument.is_user,
        });
    }
    let marker_kind = field.kind.unwrap_or_default();
    let size = marker_kind.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    field.kind = Some(match element {
        "u" | "s" | "x" => format!("{element}{size}{length}"),
        _ => kind.clone(),
    });
    field
}
