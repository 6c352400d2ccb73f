//! What is counted: the events of `-e`, or the default ones with those of `-d`.

use clap::ArgMatches;
use rperf_count::{Event, Role};
use rperf_events::{Catalogue, EventSpec, parse};
use rperf_session::{CountEvent, Target};
use rperf_sys::{CpuList, Sysfs};

use super::metrics::{self, Metrics};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{cgroups, events};
use crate::cli::options::{count, flag};
use crate::cli::pmus::MachinePmus;
use crate::cli::tracefs::MachineTracepoints;

/// What is counted where nobody says otherwise, behind the clock.
const SOFTWARE: &str = "context-switches,cpu-migrations,page-faults";
/// Each where the processor has it.
const STALLED: [&str; 2] = ["stalled-cycles-frontend", "stalled-cycles-backend"];
/// The PMU of the cores that only machines with two kinds of them have.
const SECOND_KIND: &str = "cpu_atom";
const HARDWARE: &str = "instructions,branches,branch-misses";
/// What each `-d` adds.
const DETAILED: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// An event with what is shown of it.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) event: CountEvent,
    /// The event in whose row it is.
    merged_into: Option<usize>,
}

impl Shown {
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

    /// The event for rows, after it was opened as `spec`.
    pub(super) fn counted(&self, spec: &EventSpec, supported: bool) -> Event {
        let mut event = Event::new(&spec.name, &spec.attr);
        if let Some(scale) = &spec.scale {
            event.unit.clone_from(&scale.unit);
            event.scale = scale.factor;
        }
        if spec.tool.is_some() {
            event.role = Role::Time;
        }
        event.cgroup.clone_from(&self.event.cgroup);
        event.merged_into = self.merged_into;
        event.per_core = spec.own.per_core;
        event.supported = supported;
        event
    }
}

/// The events in order, in their cgroups.
pub(super) fn shown(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    pmus: &MachinePmus,
) -> Result<(Vec<Shown>, Metrics), CliError> {
    if flag(matches, "null") == Some(true) {
        return Ok(Default::default());
    }
    let asked = ["event", "filter", "probe"]
        .into_iter()
        .any(|id| matches.contains_id(id))
        || metrics::are_asked(matches);
    let (specs, metrics) = match asked {
        true => asked_for(matches, context, pmus)?,
        false => {
            let usual = default_events(matches, context, target, pmus)?;
            (usual, Metrics::default())
        }
    };
    let mut shown = on_pmus(specs, pmus, flag(matches, "no-merge") != Some(true));
    if flag(matches, "group") == Some(true) {
        let specs = shown.iter().map(|shown| shown.event.spec.clone()).collect();
        for (shown, spec) in shown.iter_mut().zip(events::grouped(specs)) {
            shown.event.spec = spec;
        }
    }
    if let Some(side) = events::side(matches)? {
        for shown in &mut shown {
            shown.event.spec = side.of(shown.event.spec.clone());
        }
    }
    Ok((in_cgroups(matches, target, shown)?, metrics))
}

fn asked_for(
    matches: &ArgMatches,
    context: &Context,
    pmus: &MachinePmus,
) -> Result<(Vec<EventSpec>, Metrics), CliError> {
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let mut specs = events::events(matches, context, pmus, &machine)?.unwrap_or_default();
    events::refuse_sample_filters(&specs)?;
    let mut metrics = Metrics::default();
    if metrics::are_asked(matches) {
        let catalogue = pmus.catalogue(&machine);
        metrics = Metrics::plan(matches, pmus, &catalogue, &mut specs)?;
    }
    Ok((specs, metrics))
}

/// Events on the CPUs of their PMUs; with `merge` one row has what several of one kind count.
fn on_pmus(specs: Vec<EventSpec>, pmus: &MachinePmus, merge: bool) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut one = Shown::new(spec);
        if let Some(pmu) = &one.event.spec.pmu {
            one.event.cpus = cpus_of(pmu, &pmus.sysfs);
            let like = |other: &Shown| is_same_word(&other.event.spec, &one.event.spec);
            one.merged_into = shown.iter().position(like).filter(|_| merge);
        }
        shown.push(one);
    }
    shown
}

/// Whether one word stands for both, on different PMUs.
fn is_same_word(one: &EventSpec, other: &EventSpec) -> bool {
    one.position == other.position && one.name == other.name && one.attr.kind != other.attr.kind
}

/// The CPUs that count for all, or the only ones that have the PMU.
fn cpus_of(pmu: &str, sysfs: &Sysfs) -> Option<CpuList> {
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
    // Each kind of cores counts for itself where there are two; otherwise every kernel knows these names.
    let tracepoints;
    let catalogue = match pmus.sysfs.pmu_file(SECOND_KIND, "", "type") {
        Some(_) => {
            tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
            pmus.catalogue(&tracepoints)
        }
        None => Catalogue::default(),
    };
    Ok(parse(&names, &catalogue)?)
}

/// Every event in the cgroup that `-G` gives it, or all of them in each of `--for-each-cgroup`.
fn in_cgroups(
    matches: &ArgMatches,
    target: &Target,
    mut shown: Vec<Shown>,
) -> Result<Vec<Shown>, CliError> {
    let Some(each) = matches.get_one::<String>("for-each-cgroup") else {
        let names = cgroups::cgroups(matches, target, shown.len())?;
        for (shown, name) in shown.iter_mut().zip(names) {
            shown.event.cgroup = name;
        }
        return Ok(shown);
    };
    if matches.contains_id("cgroup") {
        return Err(CliError::usage(
            "-G and --for-each-cgroup say different things of the same events: give one of them",
        ));
    }
    cgroups::check(target)?;
    let mut all = Vec::new();
    for name in each.split(',').filter(|name| !name.is_empty()) {
        let before = all.len();
        all.extend(shown.iter().cloned().map(|mut one| {
            one.event.cgroup = Some(name.to_owned());
            one.merged_into = one.merged_into.map(|index| before + index);
            one
        }));
    }
    Ok(all)
}
