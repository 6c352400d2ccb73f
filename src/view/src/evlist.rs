//! The events of a recording, one per line: the output of `evlist`.

mod sizes;
mod trace_fields;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use rperf_perfdata::{EventDesc, PerfData};
use rperf_wire::{Attr, attr_fields};

use self::sizes::attr_sizes;
pub use self::trace_fields::TraceFields;
use crate::EventGroups;

/// Details shown after an event's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EvlistDetail {
    /// No details.
    #[default]
    Name,
    /// The frequency in Hz, or a fixed period.
    Frequency,
    /// Every nonzero field of the attr, and `config` even if it is 0.
    Attr,
}

/// Settings of the event lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvlistOptions<'a> {
    /// The details after the name.
    pub detail: EvlistDetail,
    /// Whether a group is shown on one line, with its events in braces.
    pub groups: bool,
    /// The fields of tracepoints, if they are shown.
    pub trace_fields: Option<&'a TraceFields>,
}

/// Writes the events of `data` in file order. `file` holds the bytes of the whole file.
///
/// # Errors
/// Errors of `out`.
pub fn write_events(
    out: &mut dyn Write,
    data: &PerfData<'_>,
    file: &[u8],
    options: &EvlistOptions<'_>,
) -> io::Result<()> {
    let events = data.events();
    let groups = match options.groups {
        true => {
            let descriptions = data.features().group_desc().unwrap_or_default();
            EventGroups::new(descriptions, events.len())
        }
        false => EventGroups::default(),
    };
    let sizes = match options.detail {
        EvlistDetail::Attr => attr_sizes(data, file),
        _ => Vec::new(),
    };
    for (index, event) in events.iter().enumerate() {
        if groups.is_sibling(index) {
            continue;
        }
        match groups.led_by(index) {
            Some(group) => {
                let members = events.get(group.events()).unwrap_or_default();
                let names: Vec<&str> = members.iter().map(|event| event.name.as_str()).collect();
                write!(out, "{}{{{}}}", group.name, names.join(","))?;
            }
            None => out.write_all(event.name.as_bytes())?,
        }
        let size = sizes.get(index).copied().unwrap_or_default();
        for (number, part) in parts(event, index, size, options).iter().enumerate() {
            let separator = if number == 0 { ':' } else { ',' };
            write!(out, "{separator} {part}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The sampling frequency or period, as `sample_freq=4000` or `sample_period=1000`.
#[must_use]
pub fn frequency_or_period(attr: &Attr) -> String {
    let unit = if attr.is_freq() { "freq" } else { "period" };
    format!("sample_{unit}={}", attr.sample_period)
}

/// The nonzero fields of an attr, and `config` in any case, as in newer perf releases: 0 is a valid event number.
fn attr_parts(attr: &Attr, size: u32) -> Vec<String> {
    let fields = attr_fields(attr, size);
    let before_config = fields
        .iter()
        .take_while(|(key, _)| matches!(*key, "type" | "size"));
    let config_position = before_config.count();
    let mut parts: Vec<String> = fields
        .into_iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    if attr.config == 0 {
        parts.insert(config_position, "config: 0".to_owned());
    }
    parts
}

/// The details after the name.
fn parts(event: &EventDesc, index: usize, size: u32, options: &EvlistOptions<'_>) -> Vec<String> {
    let attr = &event.attr;
    let mut parts = Vec::new();
    match options.detail {
        EvlistDetail::Name => {}
        EvlistDetail::Frequency => parts.push(frequency_or_period(attr)),
        EvlistDetail::Attr => parts.extend(attr_parts(attr, size)),
    }
    if let Some(fields) = options.trace_fields {
        parts.push(fields.text(index));
    }
    parts
}
