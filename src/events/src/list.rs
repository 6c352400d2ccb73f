//! What can be named: the rows of `list`, out of a [`Catalogue`].

use std::fmt;
use std::io;

use rperf_wire::{Attr, EventType, HARDWARE_NAMES, SOFTWARE_NAMES};

use crate::glob::matches;
use crate::names::{ALIASES, TOOL_NAMES, raw_code};
use crate::vendor::{Metric, Scale};
use crate::{Catalogue, cache_event};

mod decode;
mod described;

pub use decode::Decoded;

/// The system whose events need not be open to others.
const FTRACE: &str = "ftrace";

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One that the kernel finds for the processor at hand.
    Hardware,
    /// One that the kernel counts itself.
    Software,
    /// One that a counting command takes itself.
    Tool,
    /// One of a cache.
    Cache,
    /// One that a PMU has a name for.
    Pmu,
    /// How a number is written.
    Raw,
    /// How an address is written.
    Breakpoint,
    /// A place in the kernel, or one that a probe was put at.
    Tracepoint,
    /// A place that a program marks itself.
    Sdt,
}

impl fmt::Display for Kind {
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

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What `-e` takes.
    pub name: String,
    /// A second name.
    pub alias: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// The terms that it stands for, if a PMU names it: `event=0xcd,umask=0x1`.
    pub terms: Option<String>,
    /// `type` and `config` of its attr, where the name alone decides them.
    pub config: Option<(EventType, u64)>,
    /// What a vendor's table tells of it.
    pub described: Option<Described>,
}

/// What a vendor's table tells of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    /// The heading that it is listed under.
    pub topic: String,
    /// The PMU whose event it is, without the number of the unit.
    pub pmu: String,
    /// In one sentence.
    pub brief: Option<String>,
    /// At length.
    pub long: Option<String>,
    /// What its count is multiplied with, and the unit of that.
    pub scale: Option<Scale>,
    /// Whether its vendor advises against it.
    pub deprecated: bool,
}

impl Row {
    fn new(kind: Kind, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            alias: None,
            kind,
            terms: None,
            config: None,
            described: None,
        }
    }

    /// The system and the name of a tracepoint.
    #[must_use]
    pub fn tracepoint(&self) -> Option<(&str, &str)> {
        let is_tracepoint = self.kind == Kind::Tracepoint;
        is_tracepoint.then(|| self.name.split_once(':'))?
    }
}

/// Which events are wanted, as one word of the command line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of all kinds.
    All,
    /// All of these kinds.
    Kinds(&'static [Kind]),
    /// A raw code, to be decoded.
    Code(u64),
    /// Those whose name fits.
    Named {
        /// A pattern for the system of tracepoints; then only these and programs' marks are meant.
        system: Option<String>,
        /// A pattern for the name.
        name: String,
        /// Whether capital letters count.
        exact: bool,
    },
}

impl Wanted {
    /// Reads a word: one for a kind, `system:name` with patterns, or a part of names.
    #[must_use]
    pub fn new(word: &str) -> Self {
        match word {
            "hw" | "hardware" => Self::Kinds(&[Kind::Hardware]),
            "sw" | "software" => Self::Kinds(&[Kind::Software, Kind::Tool]),
            "cache" | "hwcache" => Self::Kinds(&[Kind::Cache]),
            "pmu" => Self::Kinds(&[Kind::Pmu]),
            "tracepoint" => Self::Kinds(&[Kind::Tracepoint]),
            "sdt" => Self::Kinds(&[Kind::Sdt]),
            "rNNN" => Self::Kinds(&[Kind::Raw]),
            _ if let Some(Some(code)) = raw_code(word) => Self::Code(code),
            _ if word.starts_with("mem:") => Self::Kinds(&[Kind::Breakpoint]),
            _ => match word.split_once(':') {
                Some((system, name)) => Self::Named {
                    system: Some(system.to_owned()),
                    name: name.to_owned(),
                    exact: true,
                },
                None => Self::Named {
                    system: None,
                    name: format!("*{word}*"),
                    exact: true,
                },
            },
        }
    }

    /// The same without regard to capital letters; `None` for kinds.
    #[must_use]
    pub fn in_any_case(&self) -> Option<Self> {
        let Self::Named { system, name, .. } = self else {
            return None;
        };
        Some(Self::Named {
            system: system.as_deref().map(str::to_ascii_lowercase),
            name: name.to_ascii_lowercase(),
            exact: false,
        })
    }

    fn takes(&self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Kinds(kinds) => kinds.contains(&kind),
            Self::Code(_) => false,
            Self::Named { system, .. } => match kind {
                Kind::Tracepoint | Kind::Sdt => true,
                Kind::Raw | Kind::Breakpoint => false,
                _ => system.is_none(),
            },
        }
    }

    fn takes_system(&self, found: &str) -> bool {
        match self {
            Self::Named {
                system: Some(system),
                exact,
                ..
            } => fits(system, found, *exact),
            _ => true,
        }
    }

    fn takes_name(&self, found: &str) -> bool {
        match self {
            Self::Named { name, exact, .. } => fits(name, found, *exact),
            _ => true,
        }
    }
}

fn fits(pattern: &str, name: &str, exact: bool) -> bool {
    match exact {
        true => matches(pattern, name),
        false => matches(pattern, &name.to_ascii_lowercase()),
    }
}

impl Wanted {
    /// Whether a metric's name or one of its groups fits.
    #[must_use]
    pub fn takes_metric(&self, metric: &Metric) -> bool {
        match self {
            Self::All => true,
            Self::Named { system: None, .. } => {
                let mut names = std::iter::once(&metric.name).chain(&metric.groups);
                names.any(|name| self.takes_name(name))
            }
            _ => false,
        }
    }
}

/// Where rows come from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// PMUs and tracepoints.
    pub catalogue: &'a Catalogue<'a>,
    /// Whether the kernel opens an event.
    pub opens: &'a dyn Fn(&Attr) -> bool,
    /// The marks of programs: their names, which `@` and the program may follow.
    pub marks: &'a dyn Fn() -> Vec<String>,
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Listing {
    /// The events, by kind, sorted.
    pub rows: Vec<Row>,
    /// Why tracepoints are missing.
    pub untraced: Option<io::Error>,
}

impl Listing {
    /// The events that are wanted.
    #[must_use]
    pub fn new(wanted: &Wanted, sources: Sources<'_>) -> Self {
        let mut listing = Self::default();
        let rows = &mut listing.rows;
        for (kind, event_type, names) in [
            (Kind::Hardware, EventType::HARDWARE, &HARDWARE_NAMES[..]),
            (Kind::Software, EventType::SOFTWARE, &SOFTWARE_NAMES[..]),
        ] {
            if wanted.takes(kind) {
                rows.extend(generic(kind, event_type, names, wanted, sources));
            }
        }
        if wanted.takes(Kind::Tool) {
            let names = TOOL_NAMES.iter().filter(|name| wanted.takes_name(name));
            rows.extend(names.map(|name| Row::new(Kind::Tool, *name)));
        }
        if wanted.takes(Kind::Cache) {
            rows.extend(caches(wanted, sources));
        }
        if wanted.takes(Kind::Pmu) {
            rows.extend(of_pmus(wanted, sources.catalogue));
            rows.extend(described::rows(wanted, sources.catalogue));
        }
        if let Wanted::Code(code) = wanted {
            rows.push(Row {
                config: Some((EventType::RAW, *code)),
                ..Row::new(Kind::Raw, format!("r{code:x}"))
            });
        }
        if wanted.takes(Kind::Raw) {
            let forms = ["rNNN", "cpu/t1=v1[,t2=v2,t3 ...]/modifier"];
            rows.extend(forms.map(|form| Row::new(Kind::Raw, form)));
        }
        if wanted.takes(Kind::Breakpoint) {
            rows.push(Row::new(Kind::Breakpoint, "mem:<addr>[/len][:access]"));
        }
        if wanted.takes(Kind::Tracepoint) {
            match tracepoints(wanted, sources.catalogue) {
                Ok(found) => rows.extend(found),
                Err(error) => listing.untraced = Some(error),
            }
        }
        if wanted.takes(Kind::Sdt) {
            listing.rows.extend(marks(wanted, sources));
        }
        listing
    }
}

/// Events of these names, each under the name that perf lists first, with the other one.
fn generic(
    kind: Kind,
    event_type: EventType,
    names: &[&str],
    wanted: &Wanted,
    sources: Sources<'_>,
) -> Vec<Row> {
    let rows = names.iter().zip(0..).filter_map(|(first, config)| {
        let other = ALIASES.iter().find(|(_, stands_for)| stands_for == first);
        let other = other.map(|(alias, _)| *alias);
        let named = [Some(*first), other].into_iter().flatten();
        if !named.clone().any(|name| wanted.takes_name(name)) {
            return None;
        }
        let attr = Attr {
            kind: event_type,
            config,
            ..Attr::default()
        };
        let mut row = match other {
            // Of cycles and branches the longer name is the first.
            Some(other) if matches!(*first, "cycles" | "branches") => Row {
                alias: Some((*first).to_owned()),
                ..Row::new(kind, other)
            },
            other => Row {
                alias: other.map(str::to_owned),
                ..Row::new(kind, *first)
            },
        };
        row.config = Some((event_type, config));
        (sources.opens)(&attr).then_some(row)
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

fn caches(wanted: &Wanted, sources: Sources<'_>) -> Vec<Row> {
    let names = cache_event::all_names().into_iter();
    let rows = names
        .filter(|name| wanted.takes_name(name))
        .filter_map(|name| {
            let config = cache_event::config_of(&name)?;
            let row = Row {
                config: Some((EventType::HW_CACHE, config)),
                ..Row::new(Kind::Cache, name)
            };
            (sources.opens)(&cache_event::attr(config)).then_some(row)
        });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    rows
}

/// Those of the processor's own PMU first; these have a name without it, too.
fn of_pmus(wanted: &Wanted, catalogue: &Catalogue<'_>) -> Vec<Row> {
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
            let is_wanted = wanted.takes_name(pmu) || wanted.takes_name(&event);
            let row = match pmu {
                "cpu" => Row {
                    alias: Some(full),
                    ..Row::new(Kind::Pmu, &event)
                },
                _ => Row::new(Kind::Pmu, full),
            };
            if is_wanted {
                rows.push(Row {
                    terms: catalogue.machine.event(pmu, &event),
                    ..row
                });
            }
        }
    }
    rows
}

fn tracepoints(wanted: &Wanted, catalogue: &Catalogue<'_>) -> io::Result<Vec<Row>> {
    let mut systems = catalogue.tracepoints.systems()?;
    systems.retain(|system| wanted.takes_system(system));
    let mut rows = Vec::new();
    for system in systems {
        let mut names = match catalogue.tracepoints.names(&system) {
            // Probes come and go while they are listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        names.retain(|name| wanted.takes_name(name));
        if system == FTRACE {
            // Most of these are records of ftrace alone, which nothing else can open.
            names.retain(|name| catalogue.tracepoints.id(&system, name).is_ok());
        }
        let named = names.iter().map(|name| format!("{system}:{name}"));
        rows.extend(named.map(|name| Row::new(Kind::Tracepoint, name)));
    }
    rows.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(rows)
}

fn marks(wanted: &Wanted, sources: Sources<'_>) -> Vec<Row> {
    let is_wanted = |mark: &String| {
        let named = mark.split_once('@').map_or(mark.as_str(), |(name, _)| name);
        let (system, name) = named.split_once(':').unwrap_or(("", named));
        wanted.takes_system(system) && wanted.takes_name(name)
    };
    let marks = (sources.marks)().into_iter().filter(is_wanted);
    marks.map(|mark| Row::new(Kind::Sdt, mark)).collect()
}

#[cfg(test)]
mod tests;
