//! `-M` and `--topdown`: metrics from vendor tables, the events they need, and their values next to the counts.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ArgMatches;
use regex::Regex;
use rperf_count::{
    AggregationUnit, CountRow, CountState, CountTable, MetricValue, NumberFormat, Role,
};
use rperf_events::metric::{MachineProperties, MetricCounts, MetricError, MetricPlan};
use rperf_events::vendor::{MetricGrouping, VendorTables};
use rperf_events::{Catalogue, EventSpec, GroupPosition, parse};
use rperf_sys::CpuState;
use rperf_sys::read_pseudo_file_text;

use crate::cli::error::CliError;
use crate::cli::live::PROC;
use crate::cli::options::flag;
use crate::cli::pmus::MachinePmus;

/// perf's exit status for a metric that cannot be planned.
const METRIC_STATUS: u8 = 234;
/// perf's exit status for a top-down level that the CPU does not have.
const TOPDOWN_STATUS: u8 = 255;
/// The deepest level of the top-down method in any vendor's tables.
const MAX_TOPDOWN_LEVEL: u64 = 6;
/// The factor for tool events: counts are in nanoseconds, formulas expect seconds.
const NANOSECONDS_TO_SECONDS: f64 = 1e-9;
/// The factor for `cpu-clock` and `task-clock`: counts are in milliseconds, formulas expect nanoseconds.
const MILLISECONDS_TO_NANOSECONDS: f64 = 1e6;

/// The metrics of a run.
#[derive(Debug, Default)]
pub(super) struct StatMetrics {
    planned: Vec<PlannedMetric>,
}

/// A metric with its events.
#[derive(Debug, Clone)]
struct PlannedMetric {
    plan: MetricPlan,
    /// The names of the events, each with the indices of its specs. If an earlier metric has all events of this one, this is the
    /// list of the earlier one, which may have more events.
    events: Vec<(String, Vec<usize>)>,
    /// Whether the events are counted as a group.
    is_grouped: bool,
}

impl StatMetrics {
    /// Plans the requested metrics, and appends their events to `specs`.
    pub(super) fn plan(
        matches: &ArgMatches,
        machine: &MachineInfo<'_>,
        specs: &mut Vec<EventSpec>,
    ) -> Result<Self, CliError> {
        let mut metrics = Self::default();
        let tables = machine.pmus.tables.get();
        let given = matches.get_many::<String>("metrics").into_iter().flatten();
        let given = given.flat_map(|list| list.split(',')).map(str::to_owned);
        for word in given.chain(topdown(matches, tables)?) {
            let plans = MetricPlan::for_word(word.trim(), tables, machine).map_err(metric_error)?;
            for plan in plans {
                let (events, is_grouped) = match metrics.superset(matches, &plan) {
                    Some(other) => (other.events.clone(), other.is_grouped),
                    None => (
                        metrics.add_events(matches, &plan, machine.catalogue, specs)?,
                        is_grouped(matches, &plan),
                    ),
                };
                metrics.planned.push(PlannedMetric {
                    plan,
                    events,
                    is_grouped,
                });
            }
        }
        Ok(metrics)
    }

    /// Returns the first earlier metric that has all events of `plan`; `None` with `--metric-no-merge`.
    fn superset(&self, matches: &ArgMatches, plan: &MetricPlan) -> Option<&PlannedMetric> {
        if flag(matches, "metric-no-merge") == Some(true) {
            return None;
        }
        let has_all = |other: &&PlannedMetric| {
            let has = |name: &String| other.events.iter().any(|(known, _)| known == name);
            plan.events.iter().all(has)
        };
        self.planned.iter().find(has_all)
    }

    /// Appends the events of a metric to `specs`, and returns their indices by name. Metrics whose events are not a group share
    /// events of the same name, unless `--metric-no-merge` is given.
    fn add_events(
        &self,
        matches: &ArgMatches,
        plan: &MetricPlan,
        catalogue: &Catalogue<'_>,
        specs: &mut Vec<EventSpec>,
    ) -> Result<Vec<(String, Vec<usize>)>, CliError> {
        let grouped = is_grouped(matches, plan);
        let mut is_first = true;
        let mut events = Vec::new();
        for name in &plan.events {
            if let Some(shared) = self.ungrouped_event(name)
                && !grouped
                && flag(matches, "metric-no-merge") != Some(true)
            {
                events.push((name.clone(), shared));
                continue;
            }
            let parsed = parse(name, catalogue).map_err(|error| {
                CliError::message(
                    METRIC_STATUS,
                    format!("metric {} needs event {name}", plan.name),
                )
                .details(&error.to_string())
            })?;
            let first = specs.len();
            for mut spec in parsed {
                // Tool events have no counter, so they are not in the group: the first other event leads it.
                if grouped && spec.tool.is_none() {
                    spec.weak = true;
                    spec.group = match std::mem::take(&mut is_first) {
                        true => GroupPosition::Leader {
                            name: String::new(),
                        },
                        false => GroupPosition::Member,
                    };
                }
                specs.push(spec);
            }
            events.push((name.clone(), (first..specs.len()).collect()));
        }
        Ok(events)
    }

    /// Returns the indices of the event of this name that an earlier metric counts outside of a group.
    fn ungrouped_event(&self, name: &str) -> Option<Vec<usize>> {
        let ungrouped = self.planned.iter().filter(|planned| !planned.is_grouped);
        let mut events = ungrouped.flat_map(|planned| &planned.events);
        events.find_map(|(known, indices)| (known == name).then(|| indices.clone()))
    }

    /// Repeats the metrics for each copy of the events that `--for-each-cgroup` makes. A copy has `per_copy` events, all copies
    /// together have `total`. The metrics were planned with the first copy.
    pub(super) fn repeat(&mut self, per_copy: usize, total: usize) {
        let planned = std::mem::take(&mut self.planned);
        for offset in (0..total).step_by(per_copy.max(1)) {
            let of_copy = planned.iter().cloned().map(|mut metric| {
                let indices = metric.events.iter_mut().flat_map(|(_, indices)| indices);
                indices.for_each(|index| *index += offset);
                metric
            });
            self.planned.extend(of_copy);
        }
    }

    /// Computes every metric for each aggregation unit of a table, and adds it to the row of the metric's first event.
    pub(super) fn compute(&self, specs: &[EventSpec], table: &mut CountTable) {
        let units: BTreeSet<AggregationUnit> = table.rows.iter().map(|row| row.unit).collect();
        for planned in &self.planned {
            let first = planned.events.iter().flat_map(|(_, indices)| indices).min();
            let Some(first) = first else { continue };
            for unit in &units {
                let counts = UnitCounts {
                    planned,
                    specs,
                    rows: table.rows.iter().filter(|row| row.unit == *unit).collect(),
                };
                let Some(metric) = planned.metric(&counts) else {
                    continue;
                };
                let mut rows = table.rows.iter_mut();
                let row = rows.find(|row| row.unit == *unit && row.event == *first);
                if let Some(row) = row {
                    row.metrics.push(metric);
                }
            }
        }
    }
}

impl PlannedMetric {
    /// The metric's value; `None` if it is not finite: an event was not counted, a literal is unknown, or a
    /// divisor of `/` is 0.
    fn metric(&self, counts: &dyn MetricCounts) -> Option<MetricValue> {
        let outcome = self.plan.evaluate(counts);
        if !outcome.value.is_finite() {
            return None;
        }
        let name = &self.plan.name;
        Some(match &self.plan.scale {
            Some(scale) => MetricValue {
                value: outcome.value,
                unit: format!("{}  {name}", scale.unit).into(),
                format: NumberFormat::Scaled,
            },
            None => MetricValue {
                value: outcome.value,
                unit: name.clone().into(),
                format: NumberFormat::Formula,
            },
        })
    }
}

/// The counts of a metric's events in one aggregation unit.
struct UnitCounts<'a> {
    planned: &'a PlannedMetric,
    specs: &'a [EventSpec],
    rows: Vec<&'a CountRow>,
}

impl UnitCounts<'_> {
    fn indices(&self, name: &str) -> Option<&Vec<usize>> {
        let mut events = self.planned.events.iter();
        events.find_map(|(known, indices)| (known == name).then_some(indices))
    }
}

impl MetricCounts for UnitCounts<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        let indices = self.indices(name)?;
        let rows = self.rows.iter().filter(|row| indices.contains(&row.event));
        let values = rows.map(|row| match row.state {
            CountState::Counted(value) => Some(value.value),
            _ => None,
        });
        let values: Option<Vec<f64>> = values.collect();
        let values = values.filter(|values| !values.is_empty())?;
        let spec = self.specs.get(*indices.first()?)?;
        let factor = match spec {
            _ if spec.tool.is_some() => NANOSECONDS_TO_SECONDS,
            _ if is_clock(spec) => MILLISECONDS_TO_NANOSECONDS,
            _ => 1.0,
        };
        Some(values.iter().sum::<f64>() * factor)
    }

    fn source_count(&self, name: &str) -> Option<u32> {
        u32::try_from(self.indices(name)?.len()).ok()
    }
}

/// Whether an event is `cpu-clock` or `task-clock`.
fn is_clock(spec: &EventSpec) -> bool {
    Role::of(&spec.attr) == Role::Clock
}

/// Whether metrics are requested.
pub(super) fn are_requested(matches: &ArgMatches) -> bool {
    matches.contains_id("metrics") || flag(matches, "topdown") == Some(true)
}

/// Returns the metric group for `--topdown`, `None` without this option. Vendors name these groups by level.
fn topdown(matches: &ArgMatches, tables: &VendorTables) -> Result<Option<String>, CliError> {
    if flag(matches, "topdown") != Some(true) {
        return Ok(None);
    }
    let group = |level: u64| format!("TopdownL{level}");
    let mut levels = (1..=MAX_TOPDOWN_LEVEL).rev();
    let deepest = levels.find(|level| !tables.metrics_for(&group(*level)).is_empty());
    let Some(deepest) = deepest else {
        let message = "Topdown requested but the topdown metric groups aren't present.";
        return Err(CliError::message(TOPDOWN_STATUS, message)
            .detail("(See perf list the metric groups have names like TopdownL1)")
            .hint(
                "install the event tables of the CPU vendor (see docs/compatibility.md, Recording)",
            ));
    };
    let level = matches.get_one::<u64>("td-level").copied();
    let level = level.filter(|level| *level > 0).unwrap_or(1);
    if level > deepest {
        let message = format!("Invalid top-down metrics level. The max level is {deepest}.");
        return Err(CliError::message(TOPDOWN_STATUS, message));
    }
    Ok(Some(group(level)))
}

fn metric_error(error: MetricError) -> CliError {
    let hint = match &error {
        MetricError::Unknown {
            near: Some(near), ..
        } => Some(format!("did you mean '{near}'?")),
        MetricError::Unknown { .. } => Some("see 'list metric' and 'list metricgroup'".to_owned()),
        _ => None,
    };
    let text = error.to_string();
    let (first, rest) = match error {
        // Only the message of a syntax error has several lines.
        MetricError::Syntax { .. } => text.split_once('\n').unwrap_or((&text, "")),
        _ => (text.as_str(), ""),
    };
    let error = CliError::message(METRIC_STATUS, first).details(rest);
    hint.into_iter().fold(error, CliError::hint)
}

/// Whether the events of a metric are counted as a group.
fn is_grouped(matches: &ArgMatches, plan: &MetricPlan) -> bool {
    let together = match plan.grouping {
        MetricGrouping::Together => true,
        MetricGrouping::WithoutWatchdog => !has_watchdog(),
        _ => false,
    };
    together && flag(matches, "metric-no-group") != Some(true)
}

/// Whether the NMI watchdog uses a counter.
fn has_watchdog() -> bool {
    let setting = read_pseudo_file_text(Path::new(PROC).join("sys/kernel/nmi_watchdog"));
    setting.is_ok_and(|setting| setting.trim() == "1")
}

/// What the literals of formulas and the choice of events depend on: this machine, and whether CPUs or tasks are counted.
pub(super) struct MachineInfo<'a> {
    pub(super) pmus: &'a MachinePmus,
    pub(super) catalogue: &'a Catalogue<'a>,
    /// Whether CPUs are counted instead of tasks.
    pub(super) on_cpus: bool,
}

impl MachineProperties for MachineInfo<'_> {
    fn literal(&self, name: &str) -> Option<f64> {
        let sysfs = &self.pmus.sysfs;
        let cpus = |state| sysfs.cpus(state).map(|cpus| cpus.numbers().len()).ok();
        let groups = || sysfs.cpu_groups().ok();
        let number = match name {
            "num_cpus" => cpus(CpuState::Present),
            "num_cpus_online" => cpus(CpuState::Online),
            "num_cores" => groups().map(|groups| groups.cores.len()),
            "num_dies" => groups().map(|groups| groups.dies.len()),
            "num_packages" => groups().map(|groups| groups.packages.len()),
            "target_cpu" => Some(usize::from(self.on_cpus)),
            "smt_on" => {
                let (cpus, groups) = (cpus(CpuState::Online)?, groups()?);
                Some(usize::from(cpus > groups.cores.len()))
            }
            _ => None,
        };
        number.map(|number| number as f64)
    }

    fn has_event(&self, event: &str) -> bool {
        parse(event, self.catalogue).is_ok()
    }

    fn is_processor(&self, pattern: &str) -> bool {
        let anchored = Regex::new(&format!("^(?:{pattern})$"));
        anchored.is_ok_and(|pattern| pattern.is_match(self.pmus.tables.cpuid()))
    }
}
