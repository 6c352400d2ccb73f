//! What `-v` and `--details` tell about an event.

use std::collections::BTreeMap;

use rperf_events::Catalogue;
use rperf_events::list::{Decoded, Kind, Row};
use rperf_events::vendor::Metric;
use rperf_probe::Event;
use rperf_sys::Tracefs;
use rperf_tracepoint::{Field, Format};
use rperf_view::list::Told;
use rperf_wire::{Attr, EventType};

use super::found::{Access, with_program};
use crate::cli::marks::Mark;
use crate::cli::tracefs::describe;

/// Columns of a field's declaration.
const DECLARATION: usize = 40;

/// Letters behind a colon that hardware events take, and those that all events take.
const HARDWARE_MODIFIERS: &str = "ukhGHpPSDIWe";
const MODIFIERS: &str = "ukhGHSDIWe";

/// What is to be told.
pub(super) struct Details<'a> {
    pub(super) catalogue: &'a Catalogue<'a>,
    /// Where the formats of tracepoints are.
    pub(super) tracefs: &'a Tracefs,
    /// The places that programs mark, asked only for those.
    pub(super) marks: &'a dyn Fn() -> Vec<Mark>,
    /// What tables say of an event, instead of its kind.
    pub(super) described: bool,
    /// Type, number and terms.
    pub(super) resolved: bool,
    /// All that tables say; fields of tracepoints; who may open an event.
    pub(super) long: bool,
    /// Examples of what is not a name.
    pub(super) examples: bool,
}

impl Details<'_> {
    pub(super) fn tell(&self, row: Row) -> Told {
        let mut details = Vec::new();
        if self.resolved {
            details.extend(self.resolution(&row));
        }
        if self.long {
            details.extend(access(&row));
        }
        if let (true, Some((system, name))) = (self.long, row.tracepoint()) {
            details.extend(self.definition(system, name));
            details.extend(self.tracepoint(system, name));
        }
        if self.long && row.kind == Kind::Sdt {
            let marks = (self.marks)();
            let own = |mark: &&Mark| mark.name == row.name || with_program(mark) == row.name;
            details.extend(marks.iter().filter(own).flat_map(places));
        }
        if self.examples || self.long {
            details.extend(self.code(&row));
            details.extend(example(&row));
        }
        Told {
            description: self.description(&row),
            row,
            details,
        }
    }

    /// What is told of a metric.
    pub(super) fn of_metric(&self, metric: &Metric) -> Vec<String> {
        let long = metric.long.as_ref().filter(|_| self.long);
        let told = long.or(metric.brief.as_ref()).filter(|_| self.described);
        let formula = Some(&metric.formula).filter(|_| self.resolved);
        told.into_iter().chain(formula).cloned().collect()
    }

    /// What a table says of an event. An event of a unit outside the cores names it.
    fn description(&self, row: &Row) -> Option<String> {
        let described = row.described.as_ref().filter(|_| self.described)?;
        let long = described.long.as_ref().filter(|_| self.long);
        let text = long.or(described.brief.as_ref());
        match self.catalogue.machine.is_core(&described.pmu) {
            true => text.cloned(),
            false => {
                let text = text.map_or(String::new(), |text| format!("{text}. "));
                Some(format!("{text}Unit: {}", described.pmu))
            }
        }
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
        let terms = row.terms.as_ref()?;
        Some(match &row.described {
            Some(described) => format!(" {}/{terms}/", described.pmu),
            None => format!("terms {terms}"),
        })
    }

    /// What a raw code is made of, and what else it is called.
    fn code(&self, row: &Row) -> Vec<String> {
        let Some((EventType::RAW, config)) = row.config else {
            return Vec::new();
        };
        match Decoded::new(config, self.catalogue) {
            None => vec!["no PMU of processor cores is here to decode it by".to_owned()],
            Some(Decoded { pmu, terms, names }) => {
                let named =
                    (!names.is_empty()).then(|| format!("also called {}", names.join(", ")));
                let decoded = format!("{pmu}/{terms}/");
                std::iter::once(decoded).chain(named).collect()
            }
        }
    }

    /// How a probe was defined: its line in the files that tracefs takes definitions by.
    fn definition(&self, system: &str, name: &str) -> Option<String> {
        let place = format!(":{system}/{name}");
        ["uprobe_events", "kprobe_events"]
            .into_iter()
            .find_map(|file| {
                let text = self.tracefs.read(file).ok()?;
                let text = String::from_utf8_lossy(&text);
                let mut lines = text.lines();
                let is_its = |line: &&str| {
                    let first = line.split_whitespace().next();
                    first.is_some_and(|first| first.ends_with(&place))
                };
                lines.find(is_its).map(|line| format!("defined as {line}"))
            })
    }

    /// The fields of a tracepoint, how the kernel prints it, and a filter.
    fn tracepoint(&self, system: &str, name: &str) -> Vec<String> {
        let format = match describe(self.tracefs, system, name) {
            Ok(tracepoint) => tracepoint.format,
            Err(why) => return vec![format!("its fields are not known: {why}")],
        };
        let mut lines: Vec<String> = format.fields.iter().map(shown).collect();
        lines.push(format!("print fmt: {}", format.print_fmt));
        lines.extend(filter(&format).map(|filter| format!("filter: --filter '{filter}'")));
        lines
    }
}

/// `in /usr/bin/node: 2 places with s32 arg1, u64 arg2`: the places of a program with the values that are recorded there.
fn places(mark: &Mark) -> Vec<String> {
    let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for event in mark.lines.iter().filter_map(|line| Event::parse(line)) {
        let values = event.fields.iter().zip(1..).map(|(field, number)| {
            let name = field.name.clone().unwrap_or_else(|| format!("arg{number}"));
            match field.base.rsplit_once(':') {
                Some((_, kind)) => format!("{kind} {name}"),
                None => name,
            }
        });
        *counts.entry(values.collect()).or_default() += 1;
    }
    let program = mark.program.display();
    let told = counts.into_iter().map(|(values, count)| {
        let several = if count > 1 { "s" } else { "" };
        let with = match values.is_empty() {
            true => "no values".to_owned(),
            false => values.join(", "),
        };
        format!("in {program}: {count} place{several} with {with}")
    });
    told.collect()
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

/// What can stand behind an event's colon, and who may open it.
fn access(row: &Row) -> Option<String> {
    let (kind, config) = row.config.filter(|(kind, _)| *kind != EventType::RAW)?;
    let modifiers = match kind {
        EventType::SOFTWARE => MODIFIERS,
        _ => HARDWARE_MODIFIERS,
    };
    let attr = Attr {
        kind,
        config,
        ..Attr::default()
    };
    let opens = match Access::to(&attr) {
        Access::All => "opens here, in the kernel too",
        Access::User => {
            "opens here in user space alone (:u); the kernel takes kernel.perf_event_paranoid at 1 or less"
        }
        Access::None => "does not open here",
    };
    Some(format!("modifiers {modifiers}; {opens}"))
}

/// How a form is filled in.
fn example(row: &Row) -> Option<String> {
    match row.kind {
        Kind::Raw if row.config.is_some() => None,
        Kind::Raw if row.name.starts_with('r') => Some("-e r01d2: config 0x1d2".to_owned()),
        Kind::Raw => Some("-e cpu/event=0xd2,umask=0x1/u: terms as in the format folder of the PMU in sysfs".to_owned()),
        Kind::Breakpoint => Some("-e mem:0x1000/8:w: writes to the eight bytes from there; an address may be a symbol of the kernel".to_owned()),
        _ => None,
    }
}
