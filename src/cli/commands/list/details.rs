//! What `-v` and `--details` tell about an event.

use rperf_events::list::{Kind, Row};
use rperf_events::tracepoint::{Field, Format};
use rperf_sys::Tracefs;
use rperf_view::list::Told;

/// Columns of a field's declaration.
const DECLARATION: usize = 40;

/// What is to be told.
pub(super) struct Details<'a> {
    /// Where the formats of tracepoints are.
    pub(super) tracefs: &'a Tracefs,
    /// Type, number and terms.
    pub(super) resolved: bool,
    /// Fields of tracepoints.
    pub(super) fields: bool,
    /// Examples of what is not a name.
    pub(super) examples: bool,
}

impl Details<'_> {
    pub(super) fn tell(&self, row: Row) -> Told {
        let mut details = Vec::new();
        if self.resolved {
            details.extend(self.resolution(&row));
        }
        if let (true, Some((system, name))) = (self.fields, row.tracepoint()) {
            details.extend(self.tracepoint(system, name));
        }
        if self.examples || self.fields {
            details.extend(example(&row));
        }
        Told { row, details }
    }

    /// What becomes of the name in an attr.
    fn resolution(&self, row: &Row) -> Option<String> {
        if let Some((kind, config)) = row.config {
            return Some(format!("type {}, config {config:#x}", kind.0));
        }
        if let Some((system, name)) = row.tracepoint() {
            const TRACEPOINT: u32 = rperf_wire::EventType::TRACEPOINT.0;
            let id = self.tracefs.id(system, name).ok()?;
            return Some(format!("type {TRACEPOINT}, config {id}"));
        }
        row.terms.as_ref().map(|terms| format!("terms {terms}"))
    }

    /// The fields of a tracepoint, how the kernel prints it, and a filter.
    fn tracepoint(&self, system: &str, name: &str) -> Vec<String> {
        let read = self.tracefs.format(system, name);
        let read = read.map_err(|error| error.to_string()).and_then(|text| {
            Format::parse(&String::from_utf8_lossy(&text)).map_err(|error| error.to_string())
        });
        let format = match read {
            Ok(format) => format,
            Err(why) => return vec![format!("its fields are not known: {why}")],
        };
        let mut lines: Vec<String> = format.fields.iter().map(shown).collect();
        lines.push(format!("print fmt: {}", format.print_fmt));
        lines.extend(filter(&format).map(|filter| format!("filter: --filter '{filter}'")));
        lines
    }
}

/// `char prev_comm[16]`, and how much room it has.
fn shown(field: &Field) -> String {
    let (before, brackets) = match field.type_name.find('[') {
        Some(at) => field.type_name.split_at(at),
        None => (field.type_name.as_str(), ""),
    };
    let declared = format!("{} {}{brackets}", before.trim_end(), field.name);
    let nature = match field {
        _ if field.is_string => "text",
        _ if field.is_pointer => "pointer",
        _ if field.is_array || field.is_dynamic => "array",
        _ if field.is_signed => "signed",
        _ => "unsigned",
    };
    let size = match field.is_dynamic {
        true => "any size".to_owned(),
        false => format!("{} bytes", field.size),
    };
    format!("{declared:<DECLARATION$} {size}, {nature}")
}

/// A filter over a number and a text, as far as there are.
fn filter(format: &Format) -> Option<String> {
    let is_number = |field: &&Field| !field.is_string && !field.is_array && !field.is_dynamic;
    let number = format.fields.iter().find(is_number);
    let text = format.fields.iter().find(|field| field.is_string);
    let number = number.map(|field| format!("{} > 1", field.name));
    let text = text.map(|field| format!("{} == \"calc\"", field.name));
    let both: Vec<String> = number.into_iter().chain(text).collect();
    (!both.is_empty()).then(|| both.join(" && "))
}

/// How a form is filled in.
fn example(row: &Row) -> Option<String> {
    match row.kind {
        Kind::Raw if row.name.starts_with('r') => Some("-e r01d2: config 0x1d2".to_owned()),
        Kind::Raw => Some("-e cpu/event=0xd2,umask=0x1/u: terms as in the format folder of the PMU in sysfs".to_owned()),
        Kind::Breakpoint => Some("-e mem:0x1000/8:w: writes to the eight bytes from there; an address may be a symbol of the kernel".to_owned()),
        _ => None,
    }
}
