//! Parses definitions: `[[GROUP:]EVENT=]POINT [[NAME=]ARGUMENT[:TYPE][@user]]…` (perf-probe(1), "PROBE
//! SYNTAX").

mod argument;
mod fault;
mod point;
#[cfg(test)]
mod tests;
mod words;

pub use argument::{Argument, ArgumentValue, Member};
pub use fault::SyntaxError;
pub use point::{FunctionPlace, Point, SourcePlace};

pub(crate) use point::{number, signed_number};
use words::{Word, split};

/// A parsed probe definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The group of the event, if the user chose one.
    pub group: Option<String>,
    /// The name of the event, if the user chose one.
    pub event: Option<String>,
    /// The probe point.
    pub point: Point,
    /// The recorded values.
    pub arguments: Vec<Argument>,
}

impl Definition {
    /// Whether a probe in a program or library requires debug information. The answer is not valid for the running kernel,
    /// where BTF may describe the arguments, nor for USDT markers, which describe their own arguments.
    #[must_use]
    pub fn needs_debug_info(&self) -> bool {
        let in_source = match &self.point {
            Point::Function { file, place, .. } => {
                file.is_some() || matches!(place, FunctionPlace::Source(_))
            }
            Point::File { .. } => true,
            Point::Address { .. } | Point::Marker { .. } => false,
        };
        in_source || self.arguments.iter().any(Argument::needs_debug_info)
    }
}

/// Parses a definition.
///
/// # Errors
///
/// The cause and its position.
pub fn parse(text: &str) -> Result<Definition, SyntaxError> {
    let words = split(text)?;
    let Some((first, rest)) = words.split_first() else {
        return Err(SyntaxError::new(0, "no probe point given"));
    };
    let (group, event, point) = split_names(first)?;
    let point = point::parse(&point)?;
    let arguments = rest.iter().map(argument::parse);
    Ok(Definition {
        group,
        event,
        point,
        arguments: arguments.collect::<Result<_, _>>()?,
    })
}

/// Splits `[GROUP:]EVENT=` from the probe point; returns group, event and point.
fn split_names(word: &Word) -> Result<(Option<String>, Option<String>, Word), SyntaxError> {
    // The first of these characters decides: `=` ends the names; after another one, `=` is part of the probe point: `f;a=b`.
    let Some(end) = word.find(&[';', '=', '@', '+', '%']) else {
        return Ok((None, None, word.clone()));
    };
    if word.char_at(end) != Some('=') {
        return Ok((None, None, word.clone()));
    }
    // `split_at` drops the character at the position: here the `=`, below the `:`.
    let (names, point) = word.split_at(end);
    let (group, event) = match names.find(&[':']) {
        Some(colon) => {
            let (group, event) = names.split_at(colon);
            (Some(group), event)
        }
        None => (None, names),
    };
    for name in group.iter().chain([&event]) {
        if !is_identifier(&name.text()) {
            let text = name.text();
            return Err(SyntaxError::new(
                name.start(),
                format!(
                    "'{text}' is not a valid name of an event or group: use letters, digits and _, not starting with a digit"
                ),
            ));
        }
    }
    Ok((group.map(|group| group.text()), Some(event.text()), point))
}

/// Whether `name` is a C identifier, which the kernel accepts as the name of an event, a group or a field.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
