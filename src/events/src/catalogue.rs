//! What the machine at hand offers beside the events that every kernel knows.

use std::fmt::Debug;
use std::io;
use std::path::Path;

use crate::glob::{is_pattern, matches};
use crate::vendor::{Scale, Tables, VendorEvent};

/// What a machine without tables knows of its processor.
static NO_TABLES: Tables = Tables::EMPTY;

/// What was found on the machine; nothing where nothing could be read.
#[derive(Debug, Clone)]
pub struct Catalogue<'a> {
    /// PMUs by name and `perf_event_attr::type`, from `/sys/bus/event_source/devices`.
    pub pmus: Vec<(String, u32)>,
    /// Of several PMUs alike, the one whose events alone are meant.
    pub only: Option<String>,
    /// What else the machine knows by name, asked only when it is needed.
    pub machine: &'a dyn Machine,
    /// The tracepoints, asked only when one is named.
    pub tracepoints: &'a dyn Tracepoints,
}

/// What PMUs offer beside their numbers, and where the kernel's symbols are.
///
/// Texts come as their files hold them, without the newline; `None` stands for no such file.
pub trait Machine: Debug {
    /// `format/NAME` of a PMU: the bits that a term sets (`config:0-7,32-35`).
    fn format(&self, pmu: &str, term: &str) -> Option<String>;

    /// `events/NAME` of a PMU: the terms that the name stands for (`event=0xcd,umask=0x1`).
    fn event(&self, pmu: &str, name: &str) -> Option<String>;

    /// The names of all terms of a PMU, sorted.
    fn formats(&self, pmu: &str) -> Vec<String>;

    /// The names of all events of a PMU, sorted.
    fn events(&self, pmu: &str) -> Vec<String>;

    /// The address of a symbol of the running kernel.
    fn kernel_symbol(&self, name: &str) -> Option<u64>;

    /// Whether a PMU is that of processor cores, whose events tables give without a unit.
    fn is_core(&self, pmu: &str) -> bool {
        pmu == "cpu"
    }

    /// What vendors publish about this processor, read when it is first asked for.
    fn vendor(&self) -> &Tables {
        &NO_TABLES
    }
}

/// What a PMU's name for an event stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Meaning {
    /// `event=0xcd,umask=0x1`.
    pub(crate) terms: String,
    /// What counts are multiplied with, and the unit of that.
    pub(crate) scale: Option<Scale>,
    /// Whether it counts the same whichever CPU of a package is asked.
    pub(crate) per_package: bool,
}

/// The `events` folder of tracefs: systems, and in each of them events. Lists are in the folder's own
/// order, which is the order in which perf opens what a glob matches.
///
/// Every call gives `NotFound` where tracefs is not mounted and `PermissionDenied` to users who may
/// not read it.
pub trait Tracepoints: Debug {
    /// The folder, for messages.
    fn folder(&self) -> &Path;

    /// The names of all systems.
    ///
    /// # Errors
    /// What reading the folder reports.
    fn systems(&self) -> io::Result<Vec<String>>;

    /// The names of the events of a system.
    ///
    /// # Errors
    /// What reading the system's folder reports: `NotFound` for one that is there no longer.
    fn names(&self, system: &str) -> io::Result<Vec<String>>;

    /// The number of an event, `attr.config`.
    ///
    /// # Errors
    /// What reading its `id` file reports; events that only ftrace itself uses have none.
    fn id(&self, system: &str, name: &str) -> io::Result<u64>;
}

/// A machine of which nothing is known.
#[derive(Debug)]
struct Unknown;

impl Machine for Unknown {
    fn format(&self, _pmu: &str, _term: &str) -> Option<String> {
        None
    }

    fn event(&self, _pmu: &str, _name: &str) -> Option<String> {
        None
    }

    fn formats(&self, _pmu: &str) -> Vec<String> {
        Vec::new()
    }

    fn events(&self, _pmu: &str) -> Vec<String> {
        Vec::new()
    }

    fn kernel_symbol(&self, _name: &str) -> Option<u64> {
        None
    }
}

impl Tracepoints for Unknown {
    fn folder(&self) -> &Path {
        Path::new("/sys/kernel/tracing/events")
    }

    fn systems(&self) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn names(&self, _system: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn id(&self, _system: &str, _name: &str) -> io::Result<u64> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Default for Catalogue<'_> {
    fn default() -> Self {
        Self {
            pmus: Vec::new(),
            only: None,
            machine: &Unknown,
            tracepoints: &Unknown,
        }
    }
}

impl Catalogue<'_> {
    /// The PMUs that a word means: that of this name, else all whose names begin so (`uncore_` may be left out) or
    /// that a pattern covers, of which [`Catalogue::only`] can leave one.
    pub(crate) fn pmus_of(&self, word: &str) -> Vec<&(String, u32)> {
        if let Some(pmu) = self.pmus.iter().find(|(name, _)| name == word) {
            return vec![pmu];
        }
        let pattern = is_pattern(word);
        let covers = |name: &str| match pattern {
            true => matches(word, name),
            false => {
                let bare = name.strip_prefix("uncore_").unwrap_or(name);
                !word.is_empty() && (is_instance(name, word) || is_instance(bare, word))
            }
        };
        let covered = self.pmus.iter().filter(|(name, _)| covers(name));
        self.only_wanted(covered.collect())
    }

    /// The PMUs that have an event of this name, in sysfs or else in tables.
    pub(crate) fn pmus_with(&self, event: &str) -> Vec<&(String, u32)> {
        let has = |pmu: &str| self.machine.event(pmu, event).is_some();
        let found: Vec<_> = self.pmus.iter().filter(|(pmu, _)| has(pmu)).collect();
        if !found.is_empty() {
            return self.only_wanted(found);
        }
        let described = self.machine.vendor().events_called(event);
        let has = |pmu: &str| described.iter().any(|event| self.is_of(event, pmu));
        self.only_wanted(self.pmus.iter().filter(|(pmu, _)| has(pmu)).collect())
    }

    /// Of several PMUs the one that is wanted; all where it is none of them.
    fn only_wanted<'p>(&self, mut found: Vec<&'p (String, u32)>) -> Vec<&'p (String, u32)> {
        let is_wanted = |pmu: &&(String, u32)| self.only.as_deref() == Some(pmu.0.as_str());
        if found.iter().any(is_wanted) {
            found.retain(is_wanted);
        }
        found
    }

    /// What an event's name stands for at a PMU.
    pub(crate) fn meaning(&self, pmu: &str, name: &str) -> Option<Meaning> {
        if let Some(terms) = self.machine.event(pmu, name) {
            let beside = |suffix: &str| self.machine.event(pmu, &format!("{name}.{suffix}"));
            return Some(Meaning {
                terms,
                scale: Scale::of_files(beside("scale").as_deref(), beside("unit").as_deref()),
                per_package: beside("per-pkg").is_some_and(|text| text.trim() == "1"),
            });
        }
        let mut described = self.machine.vendor().events_called(name).iter();
        let event = described.find(|event| self.is_of(event, pmu))?;
        Some(Meaning {
            terms: event.terms.clone(),
            scale: event.scale.clone(),
            per_package: event.per_package,
        })
    }

    /// The PMU of a table's events, without the number of the unit; `None` where the machine has none.
    pub(crate) fn pmu_of<'b>(&'b self, event: &'b VendorEvent) -> Option<&'b str> {
        let mut pmus = self.pmus.iter().map(|(pmu, _)| pmu.as_str());
        let found = pmus.find(|pmu| self.is_of(event, pmu))?;
        Some(event.pmu.as_deref().unwrap_or(found))
    }

    /// Whether an event of a table is one of this PMU.
    pub(crate) fn is_of(&self, event: &VendorEvent, pmu: &str) -> bool {
        match &event.pmu {
            None => self.machine.is_core(pmu),
            Some(unit) => pmu == unit || is_instance(pmu, unit),
        }
    }

    /// All tracepoints as `system:name`; none where they can't be read.
    pub(crate) fn all_tracepoints(&self) -> Vec<String> {
        let mut all = Vec::new();
        for system in self.tracepoints.systems().unwrap_or_default() {
            let names = self.tracepoints.names(&system).unwrap_or_default();
            all.extend(names.into_iter().map(|name| format!("{system}:{name}")));
        }
        all
    }
}

/// Whether a PMU's name is `word` and the number of one of several such units.
fn is_instance(name: &str, word: &str) -> bool {
    let number = name
        .strip_prefix(word)
        .map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
