//! The details of an event that `-v` and `--details` show.

use std::collections::BTreeMap;

use rperf_events::Catalogue;
use rperf_events::list::{DecodedEvent, EventKind, ListedEvent};
use rperf_events::vendor::VendorMetric;
use rperf_probe::ProbeEvent;
use rperf_sys::{Tracefs, syscall_number};
use rperf_tracepoint::{Field, Format};
use rperf_view::list::EventRow;
use rperf_wire::{Attr, EventType};

use crate::cli::shared::event_listing::{OpenPermission, name_with_program};
use crate::cli::tracefs::describe;
use crate::cli::usdt_markers::UsdtMarker;

/// The width of a field's declaration, in columns.
const DECLARATION: usize = 40;

/// The modifiers of events that the processor counts, without `b` (of `stat` only) and `X` (no effect).
const HARDWARE_MODIFIERS: &str = "ukhGHpPSDIWe";
/// Those of software events: also without `p` and `P`, since these events have no precise instruction addresses.
const SOFTWARE_MODIFIERS: &str = "ukhGHSDIWe";

/// Which details are shown.
pub(super) struct ShownDetails<'a> {
    pub(super) catalogue: &'a Catalogue<'a>,
    /// The source of tracepoint formats.
    pub(super) tracefs: &'a Tracefs,
    /// Returns the USDT probes (markers) of programs; called only if they are shown.
    pub(super) markers: &'a dyn Fn() -> Vec<UsdtMarker>,
    /// Whether descriptions from vendor tables are shown.
    pub(super) descriptions: bool,
    /// Whether type, config and terms of events, and formulas of metrics are shown.
    pub(super) terms: bool,
    /// Whether `-v` is given, if `descriptions` is set (then `terms` is set, too): descriptions are the long ones, and modifiers,
    /// permission, tracepoint fields, probes and what `examples` shows are added.
    pub(super) verbose: bool,
    /// Whether decoded raw codes and examples for events with parameters are shown; `verbose` shows them as well.
    pub(super) examples: bool,
}

impl ShownDetails<'_> {
    pub(super) fn event_row(&self, row: ListedEvent) -> EventRow {
        let mut details = Vec::new();
        if self.terms {
            details.extend(self.resolution(&row));
        }
        if self.verbose {
            details.extend(access(&row));
        }
        if let (true, Some((system, name))) = (self.verbose, row.tracepoint()) {
            details.extend(self.definition(system, name));
            details.extend(self.tracepoint(system, name));
        }
        if self.verbose && row.kind == EventKind::Sdt {
            let markers = (self.markers)();
            let is_of_row = |marker: &&UsdtMarker| {
                marker.name == row.name || name_with_program(marker) == row.name
            };
            details.extend(markers.iter().filter(is_of_row).flat_map(locations));
        }
        if self.examples || self.verbose {
            details.extend(self.code(&row));
            details.extend(example(&row));
        }
        EventRow {
            description: self.description(&row),
            event: row,
            details,
        }
    }

    /// The details of a metric.
    pub(super) fn of_metric(&self, metric: &VendorMetric) -> Vec<String> {
        let long = metric.long.as_ref().filter(|_| self.verbose);
        let description = long.or(metric.brief.as_ref()).filter(|_| self.descriptions);
        let formula = Some(&metric.formula).filter(|_| self.terms);
        description.into_iter().chain(formula).cloned().collect()
    }

    /// The description in a vendor table, with the PMU if that is not a core PMU.
    fn description(&self, row: &ListedEvent) -> Option<String> {
        let described = row.description.as_ref().filter(|_| self.descriptions)?;
        let long = described.long.as_ref().filter(|_| self.verbose);
        let text = long.or(described.brief.as_ref());
        match self.catalogue.machine.is_core(&described.pmu) {
            true => text.cloned(),
            false => {
                let text = text.map_or(String::new(), |text| format!("{text}. "));
                Some(format!("{text}Unit: {}", described.pmu))
            }
        }
    }

    /// The type and config, or the terms, that the name resolves to.
    fn resolution(&self, row: &ListedEvent) -> Option<String> {
        if let Some((kind, config)) = row.config {
            return Some(format!("type {}, config {config:#x}", kind.0));
        }
        if let Some((system, name)) = row.tracepoint() {
            const TRACEPOINT: u32 = rperf_wire::EventType::TRACEPOINT.0;
            let id = self.tracefs.id(system, name).ok()?;
            return Some(format!("type {TRACEPOINT}, config {id}"));
        }
        let terms = row.terms.as_ref()?;
        Some(match &row.description {
            // With this space, the line is indented by 8 columns, as in perf; other details by 7.
            Some(described) => format!(" {}/{terms}/", described.pmu),
            None => format!("terms {terms}"),
        })
    }

    /// The terms and other names of a raw event code.
    fn code(&self, row: &ListedEvent) -> Vec<String> {
        let Some((EventType::RAW, config)) = row.config else {
            return Vec::new();
        };
        match DecodedEvent::new(config, self.catalogue) {
            None => vec!["not decoded: this machine has no core PMU".to_owned()],
            Some(DecodedEvent { pmu, terms, names }) => {
                let aliases = (!names.is_empty()).then(|| format!("alias {}", names.join(", ")));
                let decoded = format!("{pmu}/{terms}/");
                std::iter::once(decoded).chain(aliases).collect()
            }
        }
    }

    /// The definition of a probe: its line in uprobe_events or kprobe_events. `None` for other tracepoints.
    fn definition(&self, system: &str, name: &str) -> Option<String> {
        let suffix = format!(":{system}/{name}");
        ["uprobe_events", "kprobe_events"]
            .into_iter()
            .find_map(|file| {
                let text = self.tracefs.read(file).ok()?;
                let text = String::from_utf8_lossy(&text);
                let mut lines = text.lines();
                let is_definition = |line: &&str| {
                    let first = line.split_whitespace().next();
                    first.is_some_and(|first| first.ends_with(&suffix))
                };
                lines
                    .find(is_definition)
                    .map(|line| format!("defined as {line}"))
            })
    }

    /// The system call of a tracepoint, its fields, its print format, and an example filter.
    fn tracepoint(&self, system: &str, name: &str) -> Vec<String> {
        let format = match describe(self.tracefs, system, name) {
            Ok(tracepoint) => tracepoint.format,
            Err(why) => return vec![format!("its fields are unknown: {why}")],
        };
        let mut lines: Vec<String> = syscall(system, name).into_iter().collect();
        lines.extend(format.fields.iter().map(field_text));
        lines.push(format!("print fmt: {}", format.print_fmt));
        lines.extend(filter(&format).map(|filter| format!("filter: --filter '{filter}'")));
        lines
    }
}

/// `system call 257`: the number on this machine of the system call of a tracepoint.
fn syscall(system: &str, name: &str) -> Option<String> {
    let names = ["sys_enter_", "sys_exit_"].into_iter();
    let call = names.filter(|_| system == "syscalls");
    let call = call.filter_map(|prefix| name.strip_prefix(prefix)).next()?;
    Some(format!("system call {}", syscall_number(call)?))
}

/// `in /usr/bin/node: 2 locations with s32 arg1, u64 arg2`: the locations of a USDT probe in a program, and its arguments.
fn locations(marker: &UsdtMarker) -> Vec<String> {
    let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    // Each line is the uprobe definition of one location.
    for event in marker
        .lines
        .iter()
        .filter_map(|line| ProbeEvent::parse(line))
    {
        let values = event.fields.iter().zip(1..).map(|(field, number)| {
            let name = field.name.clone().unwrap_or_else(|| format!("arg{number}"));
            // [`ProbeEvent::parse`] leaves the type in the base: `%di:s32`.
            match field.base.rsplit_once(':') {
                Some((_, kind)) => format!("{kind} {name}"),
                None => name,
            }
        });
        *counts.entry(values.collect()).or_default() += 1;
    }
    let program = marker.program.display();
    let locations = counts.into_iter().map(|(values, count)| {
        let plural = if count > 1 { "s" } else { "" };
        let with = match values.is_empty() {
            true => "no arguments".to_owned(),
            false => values.join(", "),
        };
        format!("in {program}: {count} location{plural} with {with}")
    });
    locations.collect()
}

/// The declaration of a field such as `char prev_comm[16]`, its size and its type.
fn field_text(field: &Field) -> String {
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
        true => "variable size".to_owned(),
        false => format!("{} bytes", field.size),
    };
    format!("{declared:<DECLARATION$} {size}, {nature}")
}

/// An example filter on the first number and the first string; on one of them if the tracepoint has only that, `None` if it has
/// neither.
fn filter(format: &Format) -> Option<String> {
    let is_number = |field: &&Field| !field.is_string && !field.is_array && !field.is_dynamic;
    let number = format.fields.iter().find(is_number);
    let text = format.fields.iter().find(|field| field.is_string);
    let number = number.map(|field| format!("{} > 1", field.name));
    let text = text.map(|field| format!("{} == \"calc\"", field.name));
    let conditions: Vec<String> = number.into_iter().chain(text).collect();
    (!conditions.is_empty()).then(|| conditions.join(" && "))
}

/// The modifiers of an event, and whether this user can open it; `None` for raw codes and events without a known config.
fn access(row: &ListedEvent) -> Option<String> {
    let (kind, config) = row.config.filter(|(kind, _)| *kind != EventType::RAW)?;
    let modifiers = match kind {
        EventType::SOFTWARE => SOFTWARE_MODIFIERS,
        _ => HARDWARE_MODIFIERS,
    };
    let attr = Attr {
        kind,
        config,
        ..Attr::default()
    };
    let opens = match OpenPermission::query(&attr) {
        OpenPermission::All => "can be opened by this user in user space and in the kernel",
        OpenPermission::User => {
            "can be opened by this user in user space only (:u); the kernel needs kernel.perf_event_paranoid at 1 or less"
        }
        OpenPermission::None => "cannot be opened on this machine",
    };
    Some(format!("modifiers {modifiers}; {opens}"))
}

/// An example for an event with parameters.
fn example(row: &ListedEvent) -> Option<String> {
    match row.kind {
        // A code that the user gave, not a syntax.
        EventKind::Raw if row.config.is_some() => None,
        EventKind::Raw if row.name.starts_with('r') => Some("-e r01d2: config 0x1d2".to_owned()),
        EventKind::Raw => Some("-e cpu/event=0xd2,umask=0x1/u: terms as in the format folder of the PMU in sysfs".to_owned()),
        EventKind::Breakpoint => Some("-e mem:0x1000/8:w: writes to the 8 bytes at this address, which may be a kernel symbol".to_owned()),
        _ => None,
    }
}
