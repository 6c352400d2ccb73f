//! The events of `list`, as text and as JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use rperf_events::list::{Kind, Row};

/// Columns of a name; a longer one pushes what follows it.
const NAME: usize = 50;

/// A row with what is told about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The event.
    pub row: Row,
    /// Lines below it.
    pub details: Vec<String>,
}

/// Writes one event in a line, and what is told about it below.
///
/// # Errors
/// What `out` says.
pub fn write_text(out: &mut dyn Write, events: &[Told]) -> io::Result<()> {
    for Told { row, details } in events {
        let both = row
            .alias
            .as_ref()
            .map(|alias| format!("{} OR {alias}", row.name));
        let name = both.as_deref().unwrap_or(&row.name);
        writeln!(out, "  {name:<NAME$} [{}]", row.kind)?;
        for line in details {
            writeln!(out, "       {line}")?;
        }
    }
    Ok(())
}

/// Writes bare names in one line, each with a blank behind it; what only shows how names are made is left out.
///
/// # Errors
/// What `out` says.
pub fn write_names(out: &mut dyn Write, events: &[Told]) -> io::Result<()> {
    let mut rows = events.iter().map(|told| &told.row);
    rows.try_for_each(|row| match row.kind {
        Kind::Raw | Kind::Breakpoint => Ok(()),
        // With its PMU a name is clear.
        Kind::Pmu => write!(out, "{} ", row.alias.as_ref().unwrap_or(&row.name)),
        _ => write!(out, "{} ", row.name),
    })
}

/// Writes an array with an object for each event, under the keys that newer releases of perf use.
///
/// # Errors
/// What `out` says.
pub fn write_json(out: &mut dyn Write, events: &[Told]) -> io::Result<()> {
    writeln!(out, "[")?;
    for (number, Told { row, details }) in events.iter().enumerate() {
        let encoding = row.terms.clone().or_else(|| {
            let (kind, config) = row.config?;
            Some(format!("type={},config={config:#x}", kind.0))
        });
        let details = (!details.is_empty()).then(|| details.join("\n"));
        let pairs = [
            ("EventName", Some(row.name.clone())),
            ("EventAlias", row.alias.clone()),
            ("EventType", Some(row.kind.to_string())),
            ("Encoding", encoding),
            ("PublicDescription", details),
        ];
        let pairs = pairs.into_iter().filter_map(|(key, value)| {
            let value = value?;
            Some(format!("\t\"{key}\": {}", quoted(&value)))
        });
        let pairs: Vec<String> = pairs.collect();
        let comma = if number + 1 < events.len() { "," } else { "" };
        writeln!(out, "{{\n{}\n}}{comma}", pairs.join(",\n"))?;
    }
    writeln!(out, "]")
}

/// A string of JSON (RFC 8259, section 7).
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            '\n' => quoted.push_str("\\n"),
            control if control < ' ' => {
                // A String takes every write.
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_json() {
        let text = "a\t\"b\\c\"\nd\u{e9}";
        assert_eq!(quoted(text), "\"a\\u0009\\\"b\\\\c\\\"\\nd\u{e9}\"");
    }
}
