//! Events specific to the machine, in addition to those that every kernel has.

use std::fmt::Debug;
use std::io;
use std::path::Path;

use crate::vendor::{UnitScale, VendorEvent, VendorTables};
use rperf_names::{is_pattern, matches_pattern};

/// Tables of a machine without vendor tables.
static NO_TABLES: VendorTables = VendorTables::EMPTY;

/// The PMUs and tracepoints of the machine; none if they could not be read.
#[derive(Debug, Clone)]
pub struct Catalogue<'a> {
    /// PMUs by name and `perf_event_attr::type`, from `/sys/bus/event_source/devices`.
    pub pmus: Vec<(String, u32)>,
    /// The PMU to select if a name matches several (`stat --pmu-filter`).
    pub preferred_pmu: Option<String>,
    /// Formats and events of the PMUs, kernel symbols, and vendor tables, queried on demand.
    pub machine: &'a dyn EventSources,
    /// The tracepoints, queried on demand.
    pub tracepoints: &'a dyn Tracepoints,
}

/// Formats and events of PMUs, kernel symbols and vendor tables.
///
/// Texts of PMUs are the contents of files in sysfs without the newline; `None` if a file doesn't exist.
pub trait EventSources: Debug {
    /// `format/NAME` of a PMU: the bits set by a term (`config:0-7,32-35`).
    fn format(&self, pmu: &str, term: &str) -> Option<String>;

    /// `events/NAME` of a PMU: the terms of an event (`event=0xcd,umask=0x1`).
    fn event(&self, pmu: &str, name: &str) -> Option<String>;

    /// The names of all terms of a PMU (the files in its `format` folder), sorted.
    fn formats(&self, pmu: &str) -> Vec<String>;

    /// The names of all events of a PMU, sorted.
    fn events(&self, pmu: &str) -> Vec<String>;

    /// The address of a symbol of the running kernel.
    fn kernel_symbol(&self, name: &str) -> Option<u64>;

    /// Whether a PMU belongs to the processor cores. Events for which the vendor tables name no PMU (`Unit` in their JSON) are
    /// events of these PMUs.
    fn is_core(&self, pmu: &str) -> bool {
        pmu == "cpu"
    }

    /// The vendor's tables for this processor, loaded on first use.
    fn vendor(&self) -> &VendorTables {
        &NO_TABLES
    }
}

/// The definition of a PMU's named event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventDefinition {
    /// The terms: `event=0xcd,umask=0x1`.
    pub(crate) terms: String,
    /// Factor and unit of counts.
    pub(crate) scale: Option<UnitScale>,
    /// Whether the event counts the whole package on any of its CPUs.
    pub(crate) per_package: bool,
}

/// The `events` folder of tracefs: systems and their events. Lists are in directory order, in which
/// perf opens the matches of a glob.
///
/// Methods that read tracefs return `NotFound` if it is not mounted, and `PermissionDenied` if the user may
/// not read it.
pub trait Tracepoints: Debug {
    /// The folder, for messages.
    fn folder(&self) -> &Path;

    /// The names of all systems.
    ///
    /// # Errors
    /// Errors of reading the folder.
    fn systems(&self) -> io::Result<Vec<String>>;

    /// The names of the events of a system.
    ///
    /// # Errors
    /// Errors of reading the system's folder: `NotFound` if it was removed.
    fn names(&self, system: &str) -> io::Result<Vec<String>>;

    /// The id of an event, `attr.config`.
    ///
    /// # Errors
    /// Errors of reading the event's `id` file; some events internal to ftrace have none.
    fn id(&self, system: &str, name: &str) -> io::Result<u64>;
}

/// A machine without known PMUs and without tracefs.
#[derive(Debug)]
struct NoSources;

impl EventSources for NoSources {
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

impl Tracepoints for NoSources {
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
            preferred_pmu: None,
            machine: &NoSources,
            tracepoints: &NoSources,
        }
    }
}

impl Catalogue<'_> {
    /// Returns the PMUs that a word selects: the PMU with this name, otherwise
    ///
    /// - for a pattern, all PMUs that match it;
    /// - for any other word, all PMUs whose name is the word, optionally after `uncore_`, and optionally with an instance number.
    ///
    /// If there are several, and [`Catalogue::preferred_pmu`] is one of them, only that one is returned.
    pub(crate) fn pmus_of(&self, word: &str) -> Vec<&(String, u32)> {
        if let Some(pmu) = self.pmus.iter().find(|(name, _)| name == word) {
            return vec![pmu];
        }
        let covers = |name: &str| match is_pattern(word) {
            true => matches_pattern(word, name),
            false => {
                let bare = name.strip_prefix("uncore_").unwrap_or(name);
                !word.is_empty() && (is_instance(name, word) || is_instance(bare, word))
            }
        };
        let covered = self.pmus.iter().filter(|(name, _)| covers(name));
        self.restrict(covered.collect())
    }

    /// Returns the PMUs that have an event of this name in sysfs; if there are none, the PMUs that have one in vendor tables.
    pub(crate) fn pmus_with(&self, event: &str) -> Vec<&(String, u32)> {
        let has = |pmu: &str| self.machine.event(pmu, event).is_some();
        let found: Vec<_> = self.pmus.iter().filter(|(pmu, _)| has(pmu)).collect();
        if !found.is_empty() {
            return self.restrict(found);
        }
        let vendor_events = self.machine.vendor().events_named(event);
        let has = |pmu: &str| vendor_events.iter().any(|event| self.is_of(event, pmu));
        self.restrict(self.pmus.iter().filter(|(pmu, _)| has(pmu)).collect())
    }

    /// Returns only [`Catalogue::preferred_pmu`] if it is among the PMUs found, otherwise all of them.
    fn restrict<'p>(&self, mut found: Vec<&'p (String, u32)>) -> Vec<&'p (String, u32)> {
        let is_wanted =
            |pmu: &&(String, u32)| self.preferred_pmu.as_deref() == Some(pmu.0.as_str());
        if found.iter().any(is_wanted) {
            found.retain(is_wanted);
        }
        found
    }

    /// The definition of a PMU's named event in sysfs, otherwise in vendor tables.
    pub(crate) fn definition(&self, pmu: &str, name: &str) -> Option<EventDefinition> {
        if let Some(terms) = self.machine.event(pmu, name) {
            // sysfs has the files `NAME.scale`, `NAME.unit` and `NAME.per-pkg` beside the event's file.
            let file = |suffix: &str| self.machine.event(pmu, &format!("{name}.{suffix}"));
            return Some(EventDefinition {
                terms,
                scale: UnitScale::of_files(file("scale").as_deref(), file("unit").as_deref()),
                per_package: file("per-pkg").is_some_and(|text| text.trim() == "1"),
            });
        }
        let mut vendor_events = self.machine.vendor().events_named(name).iter();
        let event = vendor_events.find(|event| self.is_of(event, pmu))?;
        Some(EventDefinition {
            terms: event.terms.clone(),
            scale: event.scale.clone(),
            per_package: event.per_package,
        })
    }

    /// The name of the PMU of a table's event: the name in the table (without an instance number), or that of the first core PMU
    /// if the table names none. `None` if the machine has no such PMU.
    pub(crate) fn pmu_of<'b>(&'b self, event: &'b VendorEvent) -> Option<&'b str> {
        let mut pmus = self.pmus.iter().map(|(pmu, _)| pmu.as_str());
        let found = pmus.find(|pmu| self.is_of(event, pmu))?;
        Some(event.pmu.as_deref().unwrap_or(found))
    }

    /// Whether an event of a table belongs to this PMU.
    fn is_of(&self, event: &VendorEvent, pmu: &str) -> bool {
        match &event.pmu {
            None => self.machine.is_core(pmu),
            Some(named) => pmu == named || is_instance(pmu, named),
        }
    }

    /// Returns the names of the events of a PMU: those in sysfs, then those that are only in vendor tables.
    pub(crate) fn event_names(&self, pmu: &str) -> Vec<String> {
        let mut names = self.machine.events(pmu);
        let vendor_events = self.machine.vendor().events().iter();
        let vendor_only = vendor_events
            .filter(|event| self.is_of(event, pmu) && !names.contains(&event.name))
            .map(|event| event.name.clone());
        let vendor_only: Vec<String> = vendor_only.collect();
        names.extend(vendor_only);
        names
    }

    /// All tracepoints as `system:name`, except those of systems that can't be read; none if tracefs can't be read.
    pub(crate) fn all_tracepoints(&self) -> Vec<String> {
        let mut all = Vec::new();
        for system in self.tracepoints.systems().unwrap_or_default() {
            let names = self.tracepoints.names(&system).unwrap_or_default();
            all.extend(names.into_iter().map(|name| format!("{system}:{name}")));
        }
        all
    }
}

/// Whether a PMU's name is `word`, with or without an instance number.
fn is_instance(name: &str, word: &str) -> bool {
    let number = name
        .strip_prefix(word)
        .map(|rest| rest.strip_prefix('_').unwrap_or(rest));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
