//! `-A`, `--per-…`: what rows are of.

use clap::ArgMatches;
use rperf_count::{Aggregation, CpuPlace, Grouping, Topology};
use rperf_session::Target;
use rperf_sys::{CpuList, CpuState, Sysfs};

use super::events::Shown;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Switches with what they ask for.
const SWITCHES: [(&str, Aggregation); 7] = [
    ("no-aggr", Aggregation::Cpu),
    ("per-core", Aggregation::Core),
    ("per-cluster", Aggregation::Cluster),
    ("per-die", Aggregation::Die),
    ("per-socket", Aggregation::Socket),
    ("per-node", Aggregation::Node),
    ("per-thread", Aggregation::Thread),
];
/// The last level of caches in most processors.
const LAST_LEVEL: u8 = 3;

/// What the options ask for; none of them for everything in one row.
pub(super) fn aggregation(matches: &ArgMatches) -> Result<Aggregation, CliError> {
    let given = SWITCHES
        .iter()
        .filter(|(id, _)| flag(matches, id) == Some(true));
    let mut given: Vec<Aggregation> = given.map(|(_, by)| *by).collect();
    given.extend(cache(matches)?.map(Aggregation::Cache));
    match given.as_slice() {
        [] => Ok(Aggregation::Global),
        [one] => Ok(*one),
        _ => Err(CliError::usage(
            "rows are of one thing: give one of -A and the --per options",
        )),
    }
}

/// Of `--per-cache`; 0 stands for the last level.
fn cache(matches: &ArgMatches) -> Result<Option<u8>, CliError> {
    let given = matches.try_get_one::<String>("per-cache");
    let Some(word) = given.ok().flatten() else {
        return Ok(None);
    };
    if word.is_empty() {
        return Ok(Some(0));
    }
    let digits = word.trim_start_matches(['l', 'L']);
    let level = digits.parse().ok().filter(|level| (1..=5).contains(level));
    let wrong = || CliError::usage(format!("--per-cache: '{word}' is no cache: l1 to l5"));
    level.map(Some).ok_or_else(wrong)
}

/// Whether rows are of parts of the machine.
pub(super) fn is_of_cpus(by: Aggregation) -> bool {
    !matches!(by, Aggregation::Global | Aggregation::Thread)
}

/// How readings become rows, on this machine.
pub(super) fn grouping(
    matches: &ArgMatches,
    target: &Target,
    sysfs: &Sysfs,
) -> Result<Grouping, CliError> {
    let by = aggregation(matches)?;
    if is_of_cpus(by) && !matches!(target, Target::Cpus(_)) {
        let message = "both cgroup and no-aggregation modes only available in system-wide mode";
        return Err(CliError::usage(message).hint("add -a, or -C with the CPUs"));
    }
    let topology = match by {
        Aggregation::Global | Aggregation::Thread | Aggregation::Cpu => Topology::default(),
        _ => topology(sysfs),
    };
    Ok(Grouping {
        by: at_last_level(by, &topology),
        topology,
        unscaled: flag(matches, "scale") == Some(false),
    })
}

/// Tells rows of CPUs where cores are, for the events that have one row for each of those (`percore`).
pub(super) fn with_cores(mut grouping: Grouping, shown: &[Shown], sysfs: &Sysfs) -> Grouping {
    let per_core = |shown: &Shown| shown.event.spec.own.per_core;
    if grouping.by == Aggregation::Cpu && shown.iter().any(per_core) {
        grouping.topology = topology(sysfs);
    }
    grouping
}

/// `--per-cache` alone stands for the last level that there is.
pub(super) fn at_last_level(by: Aggregation, topology: &Topology) -> Aggregation {
    if by != Aggregation::Cache(0) {
        return by;
    }
    let levels = topology.places().values().flat_map(|place| &place.caches);
    let last = levels.map(|(level, _)| *level).max();
    Aggregation::Cache(last.unwrap_or(LAST_LEVEL))
}

fn topology(sysfs: &Sysfs) -> Topology {
    let nodes = sysfs.nodes().unwrap_or_default();
    let node_of = |cpu| {
        let node = nodes
            .iter()
            .find(|node| CpuList::parse(&node.cpus).is_ok_and(|cpus| cpus.contains(cpu)));
        // Kernels without NUMA have one node and no folder for it.
        node.map_or(0, |node| node.number.cast_signed())
    };
    let place = |cpu: u32| {
        let place = sysfs.place(cpu);
        let place = CpuPlace {
            socket: place.package,
            // Kernels before 5.2 know no dies.
            die: place.die.max(0),
            cluster: sysfs.cluster(cpu),
            core: place.core,
            node: node_of(cpu),
            caches: sysfs.data_caches(cpu),
        };
        (cpu, place)
    };
    let cpus = sysfs.cpus(CpuState::Online).unwrap_or_default();
    cpus.numbers().iter().map(|cpu| place(*cpu)).collect()
}
