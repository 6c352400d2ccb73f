//! What this machine has of what the words ask for.

use std::io;

use rperf_buildid_cache::Cache;
use rperf_events::list::{Kind, Listing, Row, Sources, Wanted};
use rperf_events::vendor::Metric;
use rperf_events::{Catalogue, Machine as _};
use rperf_sys::{Counter, Observed};
use rperf_view::list::Metrics;
use rperf_wire::{Attr, AttrFlags};

use crate::cli::context::Context;
use crate::cli::marks::{Mark, marks};
use crate::cli::pmus::MachinePmus;
use crate::cli::tracefs::MachineTracepoints;

/// This machine.
pub(super) struct Machine {
    pub(super) pmus: MachinePmus,
    pub(super) tracepoints: MachineTracepoints,
    cache: Option<Cache>,
}

/// Events and metrics, as far as they are wanted.
pub(super) struct Found<'m> {
    pub(super) rows: Vec<Row>,
    pub(super) metrics: Vec<&'m Metric>,
    pub(super) form: Metrics,
    /// Whether a word asked for a name that nothing has.
    pub(super) missed: bool,
}

impl Machine {
    pub(super) fn find(context: &Context) -> Self {
        Self {
            pmus: MachinePmus::find(context),
            tracepoints: MachineTracepoints::find(context.globals.debugfs_dir.as_deref()),
            cache: context.buildid_dir().map(Cache::new),
        }
    }

    /// The places that programs in the build-id cache mark.
    pub(super) fn marks(&self) -> Vec<Mark> {
        self.cache.as_ref().map(marks).unwrap_or_default()
    }

    pub(super) fn catalogue(&self) -> Catalogue<'_> {
        self.pmus.catalogue(&self.tracepoints)
    }

    /// What the words ask for, one after the other. What is missing is said.
    pub(super) fn find_all<'m>(
        &'m self,
        words: &[&str],
        catalogue: &Catalogue<'_>,
        context: &Context,
    ) -> Found<'m> {
        let sources = Sources {
            catalogue,
            opens: &|attr| Access::to(attr) != Access::None,
            marks: &|| self.cache.as_ref().map(marked).unwrap_or_default(),
        };
        let mut untraced = None;
        let mut rows = Vec::new();
        let mut take = |wanted: &Wanted| {
            let listing = Listing::new(wanted, sources);
            untraced = untraced.take().or(listing.untraced);
            let found = listing.rows.len();
            rows.extend(listing.rows);
            found > 0
        };
        let mut chosen = ChosenMetrics::new(self.metrics(catalogue));
        let mut missed = false;
        if words.is_empty() {
            take(&Wanted::All);
            chosen.all(Metrics::InGroups);
        }
        for word in words {
            if chosen.is_kind(word, context) {
                continue;
            }
            let wanted = Wanted::new(word);
            let in_any_case = wanted.in_any_case();
            let mut found = take(&wanted) | chosen.take(&wanted);
            if let Some(wanted) = in_any_case.filter(|_| !found) {
                found = take(&wanted) | chosen.take(&wanted);
            }
            match &wanted {
                _ if found => {}
                // What is in the way is said below.
                Wanted::Kinds(kinds)
                    if kinds.contains(&Kind::Tracepoint)
                        && catalogue.tracepoints.systems().is_err() => {}
                Wanted::Kinds(kinds) => context.note(absent(kinds)),
                _ => {
                    missed = true;
                    context.note(nothing_called(word));
                }
            }
        }
        if let Some(error) = untraced {
            self.say_untraced(&error, context);
        }
        Found {
            rows,
            metrics: chosen.chosen,
            form: chosen.form,
            missed,
        }
    }

    /// The metrics whose PMU this machine has.
    fn metrics(&self, catalogue: &Catalogue<'_>) -> Vec<&Metric> {
        let pmus = || catalogue.pmus.iter().map(|(name, _)| name.as_str());
        let all = self.pmus.vendor().metrics().iter();
        let has = |metric: &&Metric| match &metric.pmu {
            None => pmus().any(|pmu| self.pmus.is_core(pmu)),
            Some(unit) => pmus().any(|pmu| pmu == unit),
        };
        all.filter(has).collect()
    }

    fn say_untraced(&self, error: &io::Error, context: &Context) {
        let folder = self.tracepoints.0.events().display();
        context.note(format_args!("tracepoints are left out: {folder}: {error}"));
        context.note(format_args!(
            "hint: they are root's to read, and of whom 'mount -o remount,gid=GROUP,mode=750 {}' lets",
            self.tracepoints.0.root().display()
        ));
    }
}

/// The metrics that words ask for.
struct ChosenMetrics<'m> {
    all: Vec<&'m Metric>,
    chosen: Vec<&'m Metric>,
    form: Metrics,
}

impl<'m> ChosenMetrics<'m> {
    fn new(all: Vec<&'m Metric>) -> Self {
        Self {
            all,
            chosen: Vec::new(),
            form: Metrics::Alone,
        }
    }

    fn all(&mut self, form: Metrics) {
        self.chosen.clone_from(&self.all);
        self.form = form;
    }

    /// Takes a word that stands for metrics or their groups.
    fn is_kind(&mut self, word: &str, context: &Context) -> bool {
        let form = match word {
            "metric" | "metrics" => Metrics::Alone,
            "metricgroup" | "metricgroups" => Metrics::Groups,
            _ => return false,
        };
        if self.all.is_empty() {
            context.note("no metrics: no table tells of a PMU that this machine has");
        }
        let both = !self.chosen.is_empty() && self.form != form;
        self.all(if both { Metrics::InGroups } else { form });
        true
    }

    fn take(&mut self, wanted: &Wanted) -> bool {
        let before = self.chosen.len();
        let found = self.all.iter().filter(|metric| wanted.takes_metric(metric));
        self.chosen.extend(found);
        self.chosen.len() > before
    }
}

/// Why there are no events of a kind that was asked for.
fn absent(kinds: &[Kind]) -> &'static str {
    match kinds {
        [Kind::Hardware | Kind::Cache] => "no hardware PMU found",
        [Kind::Pmu] => "no PMU of this machine names events",
        [Kind::Sdt] => "no program in the build-id cache is known to have USDT probes",
        _ => "there are no such events here",
    }
}

/// What is said of a name that no row has: it may be one that other machines open.
fn nothing_called(word: &str) -> String {
    let spec = rperf_events::parse(word, &Catalogue::default()).unwrap_or_default();
    match spec.as_slice() {
        [event] => format!(
            "'{word}' is type {}, config {:#x}: this machine does not count it",
            event.attr.kind.0, event.attr.config
        ),
        _ => format!("no event is called '{word}', or like it"),
    }
}

/// How far the kernel opens an event for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    None,
    /// The part in user space.
    User,
    All,
}

impl Access {
    pub(super) fn to(attr: &Attr) -> Self {
        let mut attr = Attr {
            flags: AttrFlags::DISABLED,
            ..attr.clone()
        };
        let observed = Observed { pid: 0, cpu: -1 };
        match Counter::open(&attr, observed, None) {
            Ok(_) => Self::All,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                attr.flags.0 |= AttrFlags::EXCLUDE_KERNEL.0;
                let opened = Counter::open(&attr, observed, None);
                opened.map_or(Self::None, |_| Self::User)
            }
            Err(_) => Self::None,
        }
    }
}

/// What a place is called where several programs have one of its name.
pub(super) fn with_program(mark: &Mark) -> String {
    let Mark {
        name, id, program, ..
    } = mark;
    format!("{name}@{}({id:.12})", program.display())
}

/// The USDT probes of the programs in the cache. Where several have one of the same name, each is told with its program.
fn marked(cache: &Cache) -> Vec<String> {
    let marks = marks(cache);
    let shared = marks.chunk_by(|one, next| one.name == next.name);
    let named = shared.flat_map(|same| {
        same.iter().map(|mark| match same.len() {
            1 => mark.name.clone(),
            _ => with_program(mark),
        })
    });
    named.collect()
}
