//! The events of a recording, a line each: what `evlist` prints.

mod sizes;
mod trace_fields;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use rperf_perfdata::{EventDesc, PerfData};
use rperf_wire::{Attr, AttrText};

use self::sizes::attr_sizes;
pub use self::trace_fields::TraceFields;
use crate::Groups;

/// What stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Nothing.
    #[default]
    Name,
    /// The frequency in Hz, or the period where that is fixed.
    Frequency,
    /// Every field of the attr that is not 0.
    Attr,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvlistOptions<'a> {
    /// What stands behind the name.
    pub detail: Detail,
    /// The members of a group in braces behind its leader, on one line.
    pub groups: bool,
    /// The fields of tracepoints, where they are wanted.
    pub trace_fields: Option<&'a TraceFields>,
}

/// Writes the events of `data` in the order of the file. `file` is all of its bytes.
///
/// # Errors
/// What `out` says.
pub fn write_events(
    out: &mut dyn Write,
    data: &PerfData<'_>,
    file: &[u8],
    options: &EvlistOptions<'_>,
) -> io::Result<()> {
    let events = data.events();
    let groups = match options.groups {
        true => {
            let described = data.features().group_desc().unwrap_or_default();
            Groups::new(described, events.len())
        }
        false => Groups::default(),
    };
    let sizes = match options.detail {
        Detail::Attr => attr_sizes(data, file),
        _ => Vec::new(),
    };
    for (place, event) in events.iter().enumerate() {
        if groups.is_member(place) {
            continue;
        }
        match groups.led_by(place) {
            Some(group) => {
                let members = events.get(group.places()).unwrap_or_default();
                let names: Vec<&str> = members.iter().map(|event| event.name.as_str()).collect();
                write!(out, "{}{{{}}}", group.name, names.join(","))?;
            }
            None => out.write_all(event.name.as_bytes())?,
        }
        let size = sizes.get(place).copied().unwrap_or_default();
        for (index, part) in parts(event, place, size, options).iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            write!(out, "{before} {part}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// How often an event is sampled.
#[must_use]
pub fn frequency(attr: &Attr) -> String {
    let unit = if attr.is_freq() { "freq" } else { "period" };
    format!("sample_{unit}={}", attr.sample_period)
}

/// What follows the name.
fn parts(event: &EventDesc, place: usize, size: u32, options: &EvlistOptions<'_>) -> Vec<String> {
    let attr = &event.attr;
    let mut parts = Vec::new();
    match options.detail {
        Detail::Name => {}
        Detail::Frequency => parts.push(frequency(attr)),
        Detail::Attr => {
            let separator = ": ";
            let text = AttrText {
                attr,
                size,
                separator,
            };
            parts.push(text.to_string());
        }
    }
    if let Some(fields) = options.trace_fields {
        parts.push(fields.text(place));
    }
    // An attr of nothing but zeros has no text.
    parts.retain(|part| !part.is_empty());
    parts
}
