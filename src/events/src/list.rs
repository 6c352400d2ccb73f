//! The rows of `list`.

use std::fmt;
use std::io;

use rperf_names::matches_pattern;
use rperf_wire::{Attr, EventType, HARDWARE_NAMES, SOFTWARE_NAMES};

use crate::names::{ALIASES, TOOL_NAMES, raw_code};
use crate::vendor::{UnitScale, VendorMetric};
use crate::{Catalogue, cache_event};

mod decode;
mod vendor_rows;

pub use decode::DecodedEvent;

/// The system of ftrace's internal events, most of which can't be opened.
const FTRACE: &str = "ftrace";

/// Type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A generic hardware event.
    Hardware,
    /// A software event of the kernel.
    Software,
    /// A tool event, measured by `stat` itself.
    Tool,
    /// A generic cache event.
    Cache,
    /// A named event of a PMU.
    Pmu,
    /// A raw code, or the syntax of one.
    Raw,
    /// The syntax of breakpoints.
    Breakpoint,
    /// A tracepoint or probe.
    Tracepoint,
    /// A statically defined tracing marker of a program.
    Sdt,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hardware => "Hardware event",
            Self::Software => "Software event",
            Self::Tool => "Tool event",
            Self::Cache => "Hardware cache event",
            Self::Pmu => "Kernel PMU event",
            Self::Raw => "Raw hardware event descriptor",
            Self::Breakpoint => "Hardware breakpoint",
            Self::Tracepoint => "Tracepoint event",
            Self::Sdt => "SDT event",
        })
    }
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedEvent {
    /// The name for `-e`.
    pub name: String,
    /// Another name for `-e`.
    pub alias: Option<String>,
    /// Type of the event.
    pub kind: EventKind,
    /// The terms of a PMU's named event: `event=0xcd,umask=0x1`.
    pub terms: Option<String>,
    /// `type` and `config` of the attr, for generic events and raw codes.
    pub config: Option<(EventType, u64)>,
    /// The description, if the event is from a vendor's table.
    pub description: Option<EventDescription>,
}

/// A vendor's description of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDescription {
    /// The topic, used as a heading.
    pub topic: String,
    /// The PMU, without the instance number.
    pub pmu: String,
    /// Short description.
    pub brief: Option<String>,
    /// Long description.
    pub long: Option<String>,
    /// Factor and unit of counts.
    pub scale: Option<UnitScale>,
    /// Whether the vendor deprecated the event.
    pub deprecated: bool,
}

impl ListedEvent {
    fn new(kind: EventKind, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            alias: None,
            kind,
            terms: None,
            config: None,
            description: None,
        }
    }

    /// The system and name of a tracepoint.
    #[must_use]
    pub fn tracepoint(&self) -> Option<(&str, &str)> {
        match self.kind {
            EventKind::Tracepoint => self.name.split_once(':'),
            _ => None,
        }
    }
}

/// An argument that selects events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventSelection {
    /// All events.
    All,
    /// All events of these types.
    Kinds(&'static [EventKind]),
    /// A raw code to decode.
    Code(u64),
    /// Events with matching names.
    Named {
        /// Pattern for the system of tracepoints; restricts the selection to tracepoints and SDT
        /// markers.
        system: Option<String>,
        /// A pattern for the name.
        name: String,
        /// Whether matching is case-sensitive; otherwise the patterns are lowercase.
        case_sensitive: bool,
    },
}

impl EventSelection {
    /// Parses an argument: the name of a type, a raw code, `system:name` with patterns, or a part of names.
    #[must_use]
    pub fn new(word: &str) -> Self {
        match word {
            "hw" | "hardware" => Self::Kinds(&[EventKind::Hardware]),
            "sw" | "software" => Self::Kinds(&[EventKind::Software, EventKind::Tool]),
            "cache" | "hwcache" => Self::Kinds(&[EventKind::Cache]),
            "pmu" => Self::Kinds(&[EventKind::Pmu]),
            "tracepoint" => Self::Kinds(&[EventKind::Tracepoint]),
            "sdt" => Self::Kinds(&[EventKind::Sdt]),
            "rNNN" => Self::Kinds(&[EventKind::Raw]),
            // `read` could be a raw code, too (0xead), but a word without decimal digits is more likely a part of a name.
            _ if let Some(code) = listed_code(word)
                && word.bytes().any(|byte| byte.is_ascii_digit()) =>
            {
                Self::Code(code)
            }
            _ if word.starts_with("mem:") => Self::Kinds(&[EventKind::Breakpoint]),
            _ => match word.split_once(':') {
                Some((system, name)) => Self::Named {
                    system: Some(system.to_owned()),
                    name: name.to_owned(),
                    case_sensitive: true,
                },
                None => Self::Named {
                    system: None,
                    name: format!("*{word}*"),
                    case_sensitive: true,
                },
            },
        }
    }

    /// Returns the possible meanings of an argument, of which the first one that selects an event or metric applies: the
    /// selection of [`EventSelection::new`], the same selection but case-insensitive, and the raw code of a word such as `rcafe`.
    #[must_use]
    pub fn interpretations(word: &str) -> Vec<Self> {
        let first = Self::new(word);
        let case_insensitive = first.case_insensitive();
        let code = listed_code(word).map(Self::Code);
        let rest = [case_insensitive, code].into_iter().flatten();
        std::iter::once(first).chain(rest).collect()
    }

    /// The same selection, case-insensitive; `None` if it does not select by name.
    #[must_use]
    pub fn case_insensitive(&self) -> Option<Self> {
        let Self::Named { system, name, .. } = self else {
            return None;
        };
        Some(Self::Named {
            system: system.as_deref().map(str::to_ascii_lowercase),
            name: name.to_ascii_lowercase(),
            case_sensitive: false,
        })
    }

    /// Whether the events of this type are to be listed; from a selection by name, the caller removes those whose names do not
    /// match. [`Self::Code`] takes no type: its only row is added separately.
    fn takes(&self, kind: EventKind) -> bool {
        match self {
            Self::All => true,
            Self::Kinds(kinds) => kinds.contains(&kind),
            Self::Code(_) => false,
            Self::Named { system, .. } => match kind {
                EventKind::Tracepoint | EventKind::Sdt => true,
                EventKind::Raw | EventKind::Breakpoint => false,
                _ => system.is_none(),
            },
        }
    }

    /// Whether the tracepoint system `candidate` is selected; true if the selection restricts no system.
    fn takes_system(&self, candidate: &str) -> bool {
        match self {
            Self::Named {
                system: Some(system),
                case_sensitive,
                ..
            } => fits(system, candidate, *case_sensitive),
            _ => true,
        }
    }

    /// Whether the name `candidate` is selected; true if the selection is not by name.
    fn takes_name(&self, candidate: &str) -> bool {
        match self {
            Self::Named {
                name,
                case_sensitive,
                ..
            } => fits(name, candidate, *case_sensitive),
            _ => true,
        }
    }
}

/// The number of a raw code; `None` if `word` is not a raw code, or if the number has more than 64 bits.
fn listed_code(word: &str) -> Option<u64> {
    raw_code(word).flatten()
}

/// Whether a name matches a pattern, which must be lowercase unless `case_sensitive`.
fn fits(pattern: &str, name: &str, case_sensitive: bool) -> bool {
    match case_sensitive {
        true => matches_pattern(pattern, name),
        false => matches_pattern(pattern, &name.to_ascii_lowercase()),
    }
}

impl EventSelection {
    /// Whether the name of a metric or of one of its groups matches. For metrics of generic events, the whole name must match:
    /// parts of their names, such as `cycles` in `cycles_frequency`, are names of events.
    #[must_use]
    pub fn matches_metric(&self, metric: &VendorMetric) -> bool {
        match self {
            Self::All => true,
            // `is_default`: a metric of generic events.
            Self::Named {
                system: None, name, ..
            } if metric.is_default() => metric.matches_word(name.trim_matches('*')),
            Self::Named { system: None, .. } => {
                let mut names = std::iter::once(&metric.name).chain(&metric.groups);
                names.any(|name| self.takes_name(name))
            }
            _ => false,
        }
    }
}

/// Inputs of a listing.
#[derive(Clone, Copy)]
pub struct ListSources<'a> {
    /// PMUs and tracepoints.
    pub catalogue: &'a Catalogue<'a>,
    /// Whether the kernel can open an event.
    pub opens: &'a dyn Fn(&Attr) -> bool,
    /// The SDT markers: their names, optionally followed by `@` and the program.
    pub markers: &'a dyn Fn() -> Vec<String>,
}

impl fmt::Debug for ListSources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListSources").finish_non_exhaustive()
    }
}

/// The selected events.
#[derive(Debug, Default)]
pub struct EventList {
    /// The events, by type.
    pub rows: Vec<ListedEvent>,
    /// The error if tracepoints could not be listed.
    pub tracepoint_error: Option<io::Error>,
}

impl EventList {
    /// Lists the selected events.
    #[must_use]
    pub fn new(selection: &EventSelection, sources: ListSources<'_>) -> Self {
        let mut listing = Self::default();
        let rows = &mut listing.rows;
        for (kind, event_type, names) in [
            (
                EventKind::Hardware,
                EventType::HARDWARE,
                &HARDWARE_NAMES[..],
            ),
            (
                EventKind::Software,
                EventType::SOFTWARE,
                &SOFTWARE_NAMES[..],
            ),
        ] {
            if selection.takes(kind) {
                rows.extend(generic(kind, event_type, names, selection, sources));
            }
        }
        if selection.takes(EventKind::Tool) {
            let names = TOOL_NAMES.iter().filter(|name| selection.takes_name(name));
            rows.extend(names.map(|name| ListedEvent::new(EventKind::Tool, *name)));
        }
        if selection.takes(EventKind::Cache) {
            rows.extend(caches(selection, sources));
        }
        if selection.takes(EventKind::Pmu) {
            rows.extend(of_pmus(selection, sources.catalogue));
            rows.extend(vendor_rows::rows(selection, sources.catalogue));
        }
        if let EventSelection::Code(code) = selection {
            rows.push(ListedEvent {
                config: Some((EventType::RAW, *code)),
                ..ListedEvent::new(EventKind::Raw, format!("r{code:x}"))
            });
        }
        if selection.takes(EventKind::Raw) {
            let syntaxes = ["rNNN", "cpu/t1=v1[,t2=v2,t3 ...]/modifier"];
            rows.extend(syntaxes.map(|syntax| ListedEvent::new(EventKind::Raw, syntax)));
        }
        if selection.takes(EventKind::Breakpoint) {
            rows.push(ListedEvent::new(
                EventKind::Breakpoint,
                "mem:<addr>[/len][:access]",
            ));
        }
        if selection.takes(EventKind::Tracepoint) {
            match tracepoints(selection, sources.catalogue) {
                Ok(listed) => rows.extend(listed),
                Err(error) => listing.tracepoint_error = Some(error),
            }
        }
        if selection.takes(EventKind::Sdt) {
            listing.rows.extend(markers(selection, sources));
        }
        listing
    }
}

/// The selected generic events that the kernel can open, each with perf's preferred name and the alias, sorted by name.
fn generic(
    kind: EventKind,
    event_type: EventType,
    names: &[&str],
    selection: &EventSelection,
    sources: ListSources<'_>,
) -> Vec<ListedEvent> {
    let rows = names.iter().zip(0..).filter_map(|(name, config)| {
        let alias = ALIASES.iter().find(|(_, stands_for)| stands_for == name);
        let alias = alias.map(|(alias, _)| *alias);
        let mut both = [Some(*name), alias].into_iter().flatten();
        if !both.any(|name| selection.takes_name(name)) {
            return None;
        }
        let attr = Attr {
            kind: event_type,
            config,
            ..Attr::default()
        };
        let mut row = match alias {
            // As in perf, the longer name of cycles and branches comes first.
            Some(alias) if matches!(*name, "cycles" | "branches") => ListedEvent {
                alias: Some((*name).to_owned()),
                ..ListedEvent::new(kind, alias)
            },
            alias => ListedEvent {
                alias: alias.map(str::to_owned),
                ..ListedEvent::new(kind, *name)
            },
        };
        row.config = Some((event_type, config));
        (sources.opens)(&attr).then_some(row)
    });
    let mut rows: Vec<ListedEvent> = rows.collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

fn caches(selection: &EventSelection, sources: ListSources<'_>) -> Vec<ListedEvent> {
    let names = cache_event::all_names().into_iter();
    let rows = names
        .filter(|name| selection.takes_name(name))
        .filter_map(|name| {
            let config = cache_event::config_of(&name)?;
            let row = ListedEvent {
                config: Some((EventType::HW_CACHE, config)),
                ..ListedEvent::new(EventKind::Cache, name)
            };
            (sources.opens)(&cache_event::attr(config)).then_some(row)
        });
    let mut rows: Vec<ListedEvent> = rows.collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

/// The selected named events in sysfs, those of the PMU `cpu` first. Events of `cpu` also have a name without the PMU.
fn of_pmus(selection: &EventSelection, catalogue: &Catalogue<'_>) -> Vec<ListedEvent> {
    let mut pmus: Vec<&str> = catalogue
        .pmus
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    pmus.sort_by_key(|pmu| (*pmu != "cpu", *pmu));
    let mut rows = Vec::new();
    for pmu in pmus {
        for event in catalogue.machine.events(pmu) {
            let full = format!("{pmu}/{event}/");
            let is_wanted = selection.takes_name(pmu) || selection.takes_name(&event);
            let row = match pmu {
                "cpu" => ListedEvent {
                    alias: Some(full),
                    ..ListedEvent::new(EventKind::Pmu, &event)
                },
                _ => ListedEvent::new(EventKind::Pmu, full),
            };
            if is_wanted {
                rows.push(ListedEvent {
                    terms: catalogue.machine.event(pmu, &event),
                    ..row
                });
            }
        }
    }
    rows
}

fn tracepoints(
    selection: &EventSelection,
    catalogue: &Catalogue<'_>,
) -> io::Result<Vec<ListedEvent>> {
    let mut systems = catalogue.tracepoints.systems()?;
    systems.retain(|system| selection.takes_system(system));
    let mut rows = Vec::new();
    for system in systems {
        let mut names = match catalogue.tracepoints.names(&system) {
            // The system's folder disappears if its last event, such as a probe, is removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        names.retain(|name| selection.takes_name(name));
        if system == FTRACE {
            names.retain(|name| catalogue.tracepoints.id(&system, name).is_ok());
        }
        let named = names.iter().map(|name| format!("{system}:{name}"));
        rows.extend(named.map(|name| ListedEvent::new(EventKind::Tracepoint, name)));
    }
    rows.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(rows)
}

fn markers(selection: &EventSelection, sources: ListSources<'_>) -> Vec<ListedEvent> {
    let is_wanted = |marker: &String| {
        let named = marker
            .split_once('@')
            .map_or(marker.as_str(), |(name, _)| name);
        let (system, name) = named.split_once(':').unwrap_or(("", named));
        selection.takes_system(system) && selection.takes_name(name)
    };
    let markers = (sources.markers)().into_iter().filter(is_wanted);
    markers
        .map(|marker| ListedEvent::new(EventKind::Sdt, marker))
        .collect()
}

#[cfg(test)]
mod tests;
