//! `-A`, `--per-…`: aggregation.

use clap::ArgMatches;
use rperf_count::{Aggregation, AggregationRules, CpuLocation, Topology};
use rperf_session::Target;
use rperf_sys::{CpuList, CpuState, Sysfs};

use super::events::RowEvent;
use crate::cli::error::CliError;
use crate::cli::options::{flag, given_value};

/// Switches and their aggregation.
const SWITCHES: [(&str, Aggregation); 7] = [
    ("no-aggr", Aggregation::Cpu),
    ("per-core", Aggregation::Core),
    ("per-cluster", Aggregation::Cluster),
    ("per-die", Aggregation::Die),
    ("per-socket", Aggregation::Socket),
    ("per-node", Aggregation::Node),
    ("per-thread", Aggregation::Thread),
];
/// The last cache level of most CPUs, used if the levels are unknown.
const LAST_LEVEL: u8 = 3;

/// Returns the requested aggregation; global if none is given.
pub(super) fn aggregation_mode(matches: &ArgMatches) -> Result<Aggregation, CliError> {
    let given = SWITCHES
        .iter()
        .filter(|(id, _)| flag(matches, id) == Some(true));
    let mut given: Vec<Aggregation> = given.map(|(_, by)| *by).collect();
    given.extend(cache(matches)?.map(Aggregation::Cache));
    match given.as_slice() {
        [] => Ok(Aggregation::Global),
        [one] => Ok(*one),
        _ => Err(CliError::usage(
            "-A and the --per-... options exclude each other",
        )),
    }
}

/// The level of `--per-cache`; 0 is the last level, `None` is no aggregation by cache.
fn cache(matches: &ArgMatches) -> Result<Option<u8>, CliError> {
    let Some(word) = given_value::<String>(matches, "per-cache") else {
        return Ok(None);
    };
    if word.is_empty() {
        return Ok(Some(0));
    }
    let digits = word.trim_start_matches(['l', 'L']);
    let level = digits.parse().ok().filter(|level| (1..=5).contains(level));
    let wrong = || {
        CliError::usage(format!(
            "--per-cache: '{word}' is not a cache level: l1 to l5"
        ))
    };
    level.map(Some).ok_or_else(wrong)
}

/// Whether rows belong to CPUs, or to sets of CPUs such as cores and nodes; otherwise they are global or of threads.
pub(super) fn is_per_cpu_or_set(by: Aggregation) -> bool {
    !matches!(by, Aggregation::Global | Aggregation::Thread)
}

/// Returns the rules by which readings are aggregated on this machine.
pub(super) fn aggregation_rules(
    matches: &ArgMatches,
    target: &Target,
    sysfs: &Sysfs,
) -> Result<AggregationRules, CliError> {
    let by = aggregation_mode(matches)?;
    if is_per_cpu_or_set(by) && !matches!(target, Target::Cpus(_)) {
        // perf's text. By "no-aggregation" it means every aggregation by CPU or by set of CPUs, not only `-A` (`--no-aggr`).
        let message = "both cgroup and no-aggregation modes only available in system-wide mode";
        return Err(CliError::usage(message).hint("add -a, or -C with the CPUs"));
    }
    let topology = match by {
        Aggregation::Global | Aggregation::Thread | Aggregation::Cpu => Topology::default(),
        _ => topology(sysfs),
    };
    Ok(AggregationRules {
        by: at_last_level(by, &topology),
        topology,
        unscaled: flag(matches, "scale") == Some(false),
    })
}

/// Adds the CPU topology, which shows the cores, to the rules of `-A` if an event is aggregated by core (`percore`).
pub(super) fn with_cores(
    mut rules: AggregationRules,
    row_events: &[RowEvent],
    sysfs: &Sysfs,
) -> AggregationRules {
    let per_core = |row_event: &RowEvent| row_event.event.spec.settings.per_core;
    if rules.by == Aggregation::Cpu && row_events.iter().any(per_core) {
        rules.topology = topology(sysfs);
    }
    rules
}

/// Replaces `--per-cache` without a level by the last level that exists.
pub(super) fn at_last_level(by: Aggregation, topology: &Topology) -> Aggregation {
    if by != Aggregation::Cache(0) {
        return by;
    }
    let levels = topology
        .cpus()
        .values()
        .flat_map(|location| &location.caches);
    let last = levels.map(|(level, _)| *level).max();
    Aggregation::Cache(last.unwrap_or(LAST_LEVEL))
}

fn topology(sysfs: &Sysfs) -> Topology {
    let nodes = sysfs.nodes().unwrap_or_default();
    let node_of = |cpu| {
        let node = nodes
            .iter()
            .find(|node| CpuList::parse(&node.cpus).is_ok_and(|cpus| cpus.contains(cpu)));
        // Kernels without NUMA have one node and no directory for it.
        node.map_or(0, |node| node.number.cast_signed())
    };
    let located = |cpu: u32| {
        let ids = sysfs.cpu_ids(cpu);
        let location = CpuLocation {
            socket: ids.package,
            // Kernels before 5.2 do not report dies.
            die: ids.die.max(0),
            cluster: sysfs.cluster(cpu),
            core: ids.core,
            node: node_of(cpu),
            caches: sysfs.data_caches(cpu),
        };
        (cpu, location)
    };
    let cpus = sysfs.cpus(CpuState::Online).unwrap_or_default();
    cpus.numbers().iter().map(|cpu| located(*cpu)).collect()
}
