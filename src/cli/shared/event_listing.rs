//! This machine's events and metrics that match the given words.

use std::io;

use rperf_buildid_cache::Cache;
use rperf_events::list::{EventKind, EventList, EventSelection, ListSources, ListedEvent};
use rperf_events::vendor::VendorMetric;
use rperf_events::{Catalogue, EventSources as _};
use rperf_sys::{Counter, ObservedTask};
use rperf_view::list::MetricListing;
use rperf_wire::{Attr, AttrFlags};

use crate::cli::context::Context;
use crate::cli::pmus::{MachinePmus, machine_pmus};
use crate::cli::tracefs::MachineTracepoints;
use crate::cli::usdt_markers::{UsdtMarker, installed_markers};

/// The event sources of this machine.
pub(crate) struct MachineEvents {
    pub(crate) pmus: MachinePmus,
    pub(crate) tracepoints: MachineTracepoints,
    cache: Option<Cache>,
}

/// Matching events and metrics.
pub(crate) struct MatchingEvents<'m> {
    pub(crate) rows: Vec<ListedEvent>,
    pub(crate) metrics: Vec<&'m VendorMetric>,
    /// Whether to list the metrics alone, in their groups, or only the names of the groups.
    pub(crate) metric_listing: MetricListing,
    /// Whether any word matched nothing. Words for a kind of events (`hw`, `sdt`), `metric` and `metricgroup` do not count.
    pub(crate) has_unmatched_word: bool,
}

impl MachineEvents {
    pub(crate) fn find(context: &Context) -> Self {
        Self {
            pmus: machine_pmus(context),
            tracepoints: MachineTracepoints::find(context.globals.debugfs_dir.as_deref()),
            cache: context.buildid_dir().map(Cache::new),
        }
    }

    /// Returns the USDT markers of programs in the build-id cache.
    pub(crate) fn markers(&self) -> Vec<UsdtMarker> {
        self.cache
            .as_ref()
            .map(installed_markers)
            .unwrap_or_default()
    }

    pub(crate) fn catalogue(&self) -> Catalogue<'_> {
        self.pmus.catalogue(&self.tracepoints)
    }

    /// Finds the matches of each word in order, or all events and metrics if there are no words. Prints notes on words without a
    /// match, and on tracepoints that cannot be listed.
    pub(crate) fn find_all<'m>(
        &'m self,
        words: &[&str],
        catalogue: &Catalogue<'_>,
        context: &Context,
    ) -> MatchingEvents<'m> {
        let sources = ListSources {
            catalogue,
            opens: &|attr| OpenPermission::query(attr) != OpenPermission::None,
            markers: &|| self.cache.as_ref().map(marker_names).unwrap_or_default(),
        };
        let mut tracepoint_error = None;
        let mut rows = Vec::new();
        let mut add_events = |wanted: &EventSelection| {
            let listing = EventList::new(wanted, sources);
            tracepoint_error = tracepoint_error.take().or(listing.tracepoint_error);
            let count = listing.rows.len();
            rows.extend(listing.rows);
            count > 0
        };
        let mut chosen_metrics = ChosenMetrics::new(self.metrics(catalogue));
        let mut has_unmatched_word = false;
        if words.is_empty() {
            add_events(&EventSelection::All);
            chosen_metrics.select_all(MetricListing::InGroups);
        }
        for word in words {
            if chosen_metrics.add_kind(word, context) {
                continue;
            }
            // The first meaning with a match applies. `|` instead of `||`: it selects both events and metrics.
            let mut meanings = EventSelection::interpretations(word).into_iter();
            if meanings.any(|wanted| add_events(&wanted) | chosen_metrics.add_matching(&wanted)) {
                continue;
            }
            match EventSelection::new(word) {
                // tracefs cannot be read: the error is reported after the loop.
                EventSelection::Kinds(kinds)
                    if kinds.contains(&EventKind::Tracepoint)
                        && catalogue.tracepoints.systems().is_err() => {}
                EventSelection::Kinds(kinds) => context.note(no_events(kinds)),
                _ => {
                    has_unmatched_word = true;
                    context.note(no_match(word));
                }
            }
        }
        if let Some(error) = tracepoint_error {
            self.note_unreadable_tracepoints(&error, context);
        }
        MatchingEvents {
            rows,
            metrics: chosen_metrics.chosen,
            metric_listing: chosen_metrics.metric_listing,
            has_unmatched_word,
        }
    }

    /// Returns the metrics whose PMU this machine has; a metric that names no PMU needs a core PMU.
    fn metrics(&self, catalogue: &Catalogue<'_>) -> Vec<&VendorMetric> {
        let pmus = || catalogue.pmus.iter().map(|(name, _)| name.as_str());
        let all = self.pmus.vendor().metrics().iter();
        let has_pmu = |metric: &&VendorMetric| match &metric.pmu {
            None => pmus().any(|pmu| self.pmus.is_core(pmu)),
            Some(unit) => pmus().any(|pmu| pmu == unit),
        };
        all.filter(has_pmu).collect()
    }

    fn note_unreadable_tracepoints(&self, error: &io::Error, context: &Context) {
        let folder = self.tracepoints.tracefs.events_folder().display();
        context.note(format_args!(
            "tracepoints are not listed: {folder}: {error}"
        ));
        let root = self.tracepoints.tracefs.root().display();
        match error.kind() {
            io::ErrorKind::NotFound => context.note(format_args!(
                "hint: mount tracefs: 'mount -t tracefs nodev {root}'"
            )),
            _ => context.note(format_args!(
                "hint: run as root, or give a group access: 'mount -o remount,gid=GROUP,mode=750 {root}'"
            )),
        }
    }
}

/// Returns the events of this machine that `-e` accepts by name.
pub(crate) fn events(context: &Context) -> Vec<ListedEvent> {
    let machine = MachineEvents::find(context);
    let mut rows = machine.find_all(&[], &machine.catalogue(), context).rows;
    rows.retain(|row| !matches!(row.kind, EventKind::Raw | EventKind::Breakpoint));
    rows
}

/// Returns the names of all metrics of this machine.
pub(crate) fn metrics(context: &Context) -> Vec<String> {
    let machine = MachineEvents::find(context);
    let matching = machine.find_all(&["metric"], &machine.catalogue(), context);
    let names = matching.metrics.iter().map(|metric| metric.name.clone());
    names.collect()
}

/// The metrics selected by words.
struct ChosenMetrics<'m> {
    all: Vec<&'m VendorMetric>,
    chosen: Vec<&'m VendorMetric>,
    metric_listing: MetricListing,
}

impl<'m> ChosenMetrics<'m> {
    fn new(all: Vec<&'m VendorMetric>) -> Self {
        Self {
            all,
            chosen: Vec::new(),
            // Without meaning until a metric is chosen.
            metric_listing: MetricListing::Alone,
        }
    }

    fn select_all(&mut self, metric_listing: MetricListing) {
        self.chosen.clone_from(&self.all);
        self.metric_listing = metric_listing;
    }

    /// Selects all metrics if `word` is `metric[s]` or `metricgroup[s]`; returns whether it is one of them.
    fn add_kind(&mut self, word: &str, context: &Context) -> bool {
        let metric_listing = match word {
            "metric" | "metrics" => MetricListing::Alone,
            "metricgroup" | "metricgroups" => MetricListing::Groups,
            _ => return false,
        };
        if self.all.is_empty() {
            context.note("no metrics: the event tables have none for the PMUs of this machine");
        }
        // Both `metric` and `metricgroup` are given, or one of them after a word that matched metrics.
        let both = !self.chosen.is_empty() && self.metric_listing != metric_listing;
        self.select_all(if both {
            MetricListing::InGroups
        } else {
            metric_listing
        });
        true
    }

    /// Adds the metrics that match; returns whether any were added.
    fn add_matching(&mut self, wanted: &EventSelection) -> bool {
        let before = self.chosen.len();
        let matching = self
            .all
            .iter()
            .filter(|metric| wanted.matches_metric(metric));
        self.chosen.extend(matching);
        let has_match = self.chosen.len() > before;
        // The listing of an earlier `metric` or `metricgroup` is kept.
        if has_match && before == 0 {
            self.metric_listing = MetricListing::InGroups;
        }
        has_match
    }
}

/// Returns the message for requested kinds without events.
fn no_events(kinds: &[EventKind]) -> &'static str {
    match kinds {
        [EventKind::Hardware | EventKind::Cache] => "no hardware PMU found",
        [EventKind::Pmu] => "the PMUs of this machine have no named events",
        [EventKind::Sdt] => {
            "no program in the build-id cache has USDT probes; add programs with 'buildid-cache --add'"
        }
        _ => "this machine has no such events",
    }
}

/// Returns the message for a name without a match, which may be an event of other machines.
fn no_match(word: &str) -> String {
    let spec = rperf_events::parse(word, &Catalogue::default()).unwrap_or_default();
    match spec.as_slice() {
        [event] => format!(
            "'{word}' is type {}, config {:#x}: this machine cannot count it",
            event.attr.kind.0, event.attr.config
        ),
        _ => format!("no event matches '{word}'; 'list' without arguments shows all events"),
    }
}

/// The privilege levels for which the kernel opens an event for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenPermission {
    None,
    /// In user space only.
    User,
    All,
}

impl OpenPermission {
    /// Opens an event for this process, on all CPUs, to find out. [`Self::None`] also if the error is not one of permission.
    pub(crate) fn query(attr: &Attr) -> Self {
        let mut attr = Attr {
            flags: AttrFlags::DISABLED,
            ..attr.clone()
        };
        let observed = ObservedTask { pid: 0, cpu: -1 };
        let leader = None;
        match Counter::open(&attr, observed, leader) {
            Ok(_) => Self::All,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                attr.flags.0 |= AttrFlags::EXCLUDE_KERNEL.0;
                let opened = Counter::open(&attr, observed, leader);
                opened.map_or(Self::None, |_| Self::User)
            }
            Err(_) => Self::None,
        }
    }
}

/// Returns the name of a marker that several programs share, with the program's path and the first 12 digits of its build-id.
pub(crate) fn name_with_program(marker: &UsdtMarker) -> String {
    let UsdtMarker {
        name,
        build_id,
        program,
        ..
    } = marker;
    format!("{name}@{}({build_id:.12})", program.display())
}

/// Returns the names of the USDT markers of programs in the cache, with the program for names that are not unique.
fn marker_names(cache: &Cache) -> Vec<String> {
    let markers = installed_markers(cache);
    let by_name = markers.chunk_by(|one, next| one.name == next.name);
    let names = by_name.flat_map(|same| {
        same.iter().map(|marker| match same.len() {
            1 => marker.name.clone(),
            _ => name_with_program(marker),
        })
    });
    names.collect()
}
