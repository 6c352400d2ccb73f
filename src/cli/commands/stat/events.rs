//! The events to count: those of `-e`, `--probe` and of the requested metrics; without these options, the default events and
//! those of `-d`.

use clap::ArgMatches;
use rperf_count::{CountedEvent, Role};
use rperf_events::{Catalogue, EventSpec, parse};
use rperf_session::{CountEvent, Target};
use rperf_sys::{CpuList, Sysfs};

use super::field_ranges::in_ranges;
use super::metrics::{self, StatMetrics};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{cgroups, events};
use crate::cli::options::{count, flag};
use crate::cli::pmus::MachinePmus;
use crate::cli::tracefs::MachineTracepoints;

/// The default software events, after the clock.
const SOFTWARE: &str = "context-switches,cpu-migrations,page-faults";
/// Events that are counted by default if the CPU has them.
const STALLED: [&str; 2] = ["stalled-cycles-frontend", "stalled-cycles-backend"];
/// A PMU that exists only on hybrid CPUs.
const HYBRID_PMU: &str = "cpu_atom";
/// The default hardware events, after `cycles` and [`STALLED`].
const HARDWARE: &str = "instructions,branches,branch-misses";
/// The events that each `-d` adds.
const DETAILED: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// An event to count, and the row that shows it.
#[derive(Debug, Clone)]
pub(super) struct RowEvent {
    pub(super) event: CountEvent,
    /// The index of the event in whose row this event is included; `None` for a row of its own.
    merged_into: Option<usize>,
}

impl RowEvent {
    fn new(spec: EventSpec) -> Self {
        Self {
            event: CountEvent {
                spec,
                cgroup: None,
                cpus: None,
            },
            merged_into: None,
        }
    }

    /// Returns the event for the aggregator of counts. `spec` is the event as it was opened, which may differ from the
    /// requested one.
    pub(super) fn counted(&self, spec: &EventSpec, supported: bool) -> CountedEvent {
        let mut event = CountedEvent::new(&spec.name, &spec.attr);
        if let Some(scale) = &spec.scale {
            event.unit.clone_from(&scale.unit);
            event.scale = scale.factor;
        }
        if spec.tool.is_some() {
            // All tool events, such as `duration_time`, are times.
            event.role = Role::Time;
        }
        event.cgroup.clone_from(&self.event.cgroup);
        event.merged_into = self.merged_into;
        event.per_core = spec.settings.per_core;
        event.supported = supported;
        event
    }
}

/// Returns the events to count, and the metrics computed from them.
pub(super) fn events_to_count(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    pmus: &MachinePmus,
) -> Result<(Vec<RowEvent>, StatMetrics), CliError> {
    if flag(matches, "null") == Some(true) {
        return Ok(Default::default());
    }
    // `--filter` and `--hist` apply to events: without any, they are refused rather than used for the default events.
    let has_events = ["event", "filter", "probe", "hist"]
        .into_iter()
        .any(|id| matches.contains_id(id))
        || metrics::are_requested(matches);
    let (specs, mut metrics) = match has_events {
        true => requested_events(matches, context, target, pmus)?,
        false => {
            let default = default_events(matches, context, target, pmus)?;
            (default, StatMetrics::default())
        }
    };
    let merge = flag(matches, "no-merge") != Some(true);
    let mut row_events = on_pmus(specs, pmus, merge);
    if flag(matches, "group") == Some(true) {
        let specs = row_events
            .iter()
            .map(|row_event| row_event.event.spec.clone())
            .collect();
        for (row_event, spec) in row_events.iter_mut().zip(events::grouped(specs)) {
            row_event.event.spec = spec;
        }
    }
    // `--all-kernel` and `--all-user` set the privilege level of all events.
    if let Some(level) = events::privilege_level(matches)? {
        for row_event in &mut row_events {
            row_event.event.spec = level.restrict_event(row_event.event.spec.clone());
        }
    }
    let original_count = row_events.len();
    let row_events = in_cgroups(matches, target, row_events)?;
    // With `--for-each-cgroup`, the events were repeated for each cgroup: the metrics are repeated accordingly.
    metrics.repeat(original_count, row_events.len());
    Ok((row_events, metrics))
}

fn requested_events(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    pmus: &MachinePmus,
) -> Result<(Vec<EventSpec>, StatMetrics), CliError> {
    let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let mut specs = events::events(matches, context, pmus, &tracepoints)?.unwrap_or_default();
    // Filters that the kernel cannot evaluate need samples, which are not written here.
    events::refuse_sample_filters(&specs)?;
    // With `--hist`, there is one event for each range of a field.
    specs = in_ranges(specs, matches, context)?;
    let mut metrics = StatMetrics::default();
    if metrics::are_requested(matches) {
        let catalogue = pmus.catalogue(&tracepoints);
        let machine = metrics::MachineInfo {
            pmus,
            catalogue: &catalogue,
            on_cpus: matches!(target, Target::Cpus(_)),
        };
        metrics = StatMetrics::plan(matches, &machine, &mut specs)?;
    }
    Ok((specs, metrics))
}

/// Assigns events to the CPUs of their PMUs; with `merge`, equal events of several PMUs share a row.
fn on_pmus(specs: Vec<EventSpec>, pmus: &MachinePmus, merge: bool) -> Vec<RowEvent> {
    let mut row_events: Vec<RowEvent> = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut one = RowEvent::new(spec);
        if let Some(pmu) = &one.event.spec.pmu {
            one.event.cpus = cpus_of(pmu, &pmus.sysfs);
            let like = |other: &RowEvent| is_same_word(&other.event.spec, &one.event.spec);
            one.merged_into = row_events.iter().position(like).filter(|_| merge);
        }
        row_events.push(one);
    }
    row_events
}

/// Whether both events come from the same word of the command line, on different PMUs.
fn is_same_word(one: &EventSpec, other: &EventSpec) -> bool {
    one.position == other.position && one.name == other.name && one.attr.kind != other.attr.kind
}

/// The CPUs in the PMU's `cpumask` or `cpus` file; `None` if it has neither.
fn cpus_of(pmu: &str, sysfs: &Sysfs) -> Option<CpuList> {
    // The empty name of a folder means the PMU's own folder.
    let files = ["cpumask", "cpus"].into_iter();
    let mut files = files.filter_map(|name| sysfs.pmu_file(pmu, "", name));
    files.next().and_then(|cpus| CpuList::parse(&cpus).ok())
}

fn default_events(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    pmus: &MachinePmus,
) -> Result<Vec<EventSpec>, CliError> {
    let clock = match target {
        Target::Cpus(_) => "cpu-clock",
        _ => "task-clock",
    };
    let mut names = format!("{clock},{SOFTWARE},cycles");
    for stalled in STALLED {
        if pmus.sysfs.pmu_file("cpu", "events", stalled).is_some() {
            names.push(',');
            names.push_str(stalled);
        }
    }
    names.push(',');
    names.push_str(HARDWARE);
    for more in DETAILED.iter().take(count(matches, "detailed").into()) {
        names.push(',');
        names.push_str(more);
    }
    // On hybrid CPUs, a name is one event of each core PMU, and the catalogue lists the PMUs. Otherwise the names need
    // no catalogue. Each PMU has a file `type`: without it, the PMU does not exist.
    let tracepoints;
    let catalogue = match pmus.sysfs.pmu_file(HYBRID_PMU, "", "type") {
        Some(_) => {
            tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
            pmus.catalogue(&tracepoints)
        }
        None => Catalogue::default(),
    };
    Ok(parse(&names, &catalogue)?)
}

/// Returns each event with its cgroup of `-G`, or all events once for every cgroup of `--for-each-cgroup`.
fn in_cgroups(
    matches: &ArgMatches,
    target: &Target,
    mut row_events: Vec<RowEvent>,
) -> Result<Vec<RowEvent>, CliError> {
    let Some(list) = matches.get_one::<String>("for-each-cgroup") else {
        let names = cgroups::cgroups(matches, target, row_events.len())?;
        for (row_event, name) in row_events.iter_mut().zip(names) {
            row_event.event.cgroup = name;
        }
        return Ok(row_events);
    };
    if matches.contains_id("cgroup") {
        return Err(CliError::usage(
            "-G and --for-each-cgroup exclude each other",
        ));
    }
    cgroups::check(target)?;
    let mut all = Vec::new();
    for name in list.split(',').filter(|name| !name.is_empty()) {
        let first = all.len();
        all.extend(row_events.iter().cloned().map(|mut one| {
            one.event.cgroup = Some(name.to_owned());
            one.merged_into = one.merged_into.map(|index| first + index);
            one
        }));
    }
    Ok(all)
}
