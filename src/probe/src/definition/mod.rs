//! What a user writes: `[GROUP:][EVENT=]POINT [[NAME=]ARGUMENT[:TYPE]…]` (perf-probe(1), "PROBE SYNTAX").

mod argument;
mod fault;
mod point;
#[cfg(test)]
mod tests;
mod words;

pub use argument::{Argument, Member, Value};
pub use fault::Fault;
pub use point::{Place, Point, SourcePlace};

pub(crate) use point::number;
use words::{Word, split};

/// A probe as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The group of the event, where the user chose one.
    pub group: Option<String>,
    /// The name of the event, where the user chose one.
    pub event: Option<String>,
    /// Where the probe goes.
    pub point: Point,
    /// What it records there.
    pub arguments: Vec<Argument>,
}

impl Definition {
    /// Whether places or values are asked for that only debug information tells.
    #[must_use]
    pub fn needs_debug_info(&self) -> bool {
        let in_source = match &self.point {
            Point::Function { file, place, .. } => {
                file.is_some() || matches!(place, Place::Source(_))
            }
            Point::File { .. } => true,
            Point::Address { .. } | Point::Marker { .. } => false,
        };
        in_source || self.arguments.iter().any(Argument::needs_debug_info)
    }
}

/// Reads a definition.
///
/// # Errors
///
/// What is wrong with it, and where.
pub fn parse(text: &str) -> Result<Definition, Fault> {
    let words = split(text)?;
    let Some((first, rest)) = words.split_first() else {
        return Err(Fault::new(0, "there is no place to probe"));
    };
    let (group, event, place) = names(first)?;
    let point = point::parse(&place)?;
    let arguments = rest.iter().map(argument::parse);
    Ok(Definition {
        group,
        event,
        point,
        arguments: arguments.collect::<Result<_, _>>()?,
    })
}

/// Takes `GROUP:EVENT=` off the word that names the place.
fn names(word: &Word) -> Result<(Option<String>, Option<String>, Word), Fault> {
    let Some(end) = word.find(&[';', '=', '@', '+', '%']) else {
        return Ok((None, None, word.clone()));
    };
    if word.char_at(end) != Some('=') {
        return Ok((None, None, word.clone()));
    }
    let (names, place) = word.cut(end);
    let (group, event) = match names.find(&[':']) {
        Some(colon) => {
            let (group, event) = names.cut(colon);
            (Some(group), event)
        }
        None => (None, names),
    };
    for name in group.iter().chain([&event]) {
        if !is_event_name(&name.text()) {
            let text = name.text();
            return Err(Fault::new(
                name.start(),
                format!(
                    "'{text}' is no name for an event or a group: letters, digits and _ make one, the first is no digit"
                ),
            ));
        }
    }
    Ok((group.map(|group| group.text()), Some(event.text()), place))
}

/// Whether the kernel takes `name` for an event or a group.
fn is_event_name(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
