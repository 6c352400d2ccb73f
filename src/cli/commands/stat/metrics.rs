//! `-M`: metrics out of the tables of vendors, the events that they need, and their values beside the counts.

use std::collections::BTreeSet;
use std::path::Path;

use clap::ArgMatches;
use regex::Regex;
use rperf_count::{Form, Metric, Row, State, Table, Unit};
use rperf_events::metric::{Counts, Known, MetricError, Plan};
use rperf_events::vendor::{Grouping, Tables};
use rperf_events::{Catalogue, EventSpec, Group, parse};
use rperf_sys::CpuState;
use rperf_sys::kernel_text;

use crate::cli::error::CliError;
use crate::cli::live::PROC;
use crate::cli::options::flag;
use crate::cli::pmus::MachinePmus;

/// perf's exit status for metrics that nobody knows.
const UNKNOWN: u8 = 234;
/// That for metrics that the processor does not have.
const FAILED: u8 = 255;
/// Levels of detail of the top-down method that any vendor has.
const LEVELS: u64 = 6;
/// Formulas take times in seconds.
const SECONDS: f64 = 1e-9;

/// The metrics of a run.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    planned: Vec<Planned>,
}

/// A metric with its events.
#[derive(Debug)]
struct Planned {
    plan: Plan,
    /// By name the indices of the events that count it.
    events: Vec<(String, Vec<usize>)>,
}

impl Metrics {
    /// Plans what the options ask for, and appends the events that it takes to `specs`.
    pub(super) fn plan(
        matches: &ArgMatches,
        pmus: &MachinePmus,
        catalogue: &Catalogue<'_>,
        specs: &mut Vec<EventSpec>,
    ) -> Result<Self, CliError> {
        let mut metrics = Self::default();
        let machine = Machine { pmus, catalogue };
        let tables = pmus.tables.get();
        let given = matches.get_many::<String>("metrics").into_iter().flatten();
        let given = given.flat_map(|list| list.split(',')).map(str::to_owned);
        for word in given.chain(topdown(matches, tables)?) {
            let plans = Plan::all(word.trim(), tables, &machine).map_err(refused)?;
            for plan in plans {
                let events = metrics.events(matches, &plan, catalogue, specs)?;
                metrics.planned.push(Planned { plan, events });
            }
        }
        Ok(metrics)
    }

    /// The events of a metric: those of one before it that has all of them, or new ones.
    fn events(
        &self,
        matches: &ArgMatches,
        plan: &Plan,
        catalogue: &Catalogue<'_>,
        specs: &mut Vec<EventSpec>,
    ) -> Result<Vec<(String, Vec<usize>)>, CliError> {
        let on = |id: &str| flag(matches, id) == Some(true);
        let has_all = |other: &&Planned| {
            let known = |name: &String| other.events.iter().any(|(known, _)| known == name);
            plan.events.iter().all(known)
        };
        if let Some(other) = self.planned.iter().find(has_all)
            && !on("metric-no-merge")
        {
            return Ok(other.events.clone());
        }
        let together = match plan.grouping {
            Grouping::Together => true,
            Grouping::WithoutWatchdog => !has_watchdog(),
            _ => false,
        };
        let grouped = together && !on("metric-no-group");
        let mut leads = true;
        let mut events = Vec::new();
        for name in &plan.events {
            let parsed = parse(name, catalogue).map_err(|error| {
                CliError::message(UNKNOWN, format!("metric {} needs event {name}", plan.name))
                    .details(&error.to_string())
            })?;
            let first = specs.len();
            for mut spec in parsed {
                if grouped && spec.tool.is_none() {
                    spec.weak = true;
                    spec.group = match std::mem::take(&mut leads) {
                        true => Group::Leader {
                            name: String::new(),
                        },
                        false => Group::Member,
                    };
                }
                specs.push(spec);
            }
            events.push((name.clone(), (first..specs.len()).collect()));
        }
        Ok(events)
    }

    /// Computes every metric in every unit of a table, and puts it into the row of its first event.
    pub(super) fn compute(&self, specs: &[EventSpec], table: &mut Table) {
        let units: BTreeSet<Unit> = table.rows.iter().map(|row| row.unit).collect();
        for planned in &self.planned {
            let first = planned.events.iter().flat_map(|(_, indices)| indices).min();
            let Some(first) = first else { continue };
            for unit in &units {
                let counts = InUnit {
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

impl Planned {
    /// The metric's value; `None` where something that it takes was not counted.
    fn metric(&self, counts: &dyn Counts) -> Option<Metric> {
        let outcome = self.plan.outcome(counts);
        if !outcome.value.is_finite() {
            return None;
        }
        let name = &self.plan.name;
        Some(match &self.plan.scale {
            Some(scale) => Metric {
                value: outcome.value,
                unit: format!("{}  {name}", scale.unit).into(),
                form: Form::Scaled,
            },
            None => Metric {
                value: outcome.value,
                unit: name.clone().into(),
                form: Form::Formula,
            },
        })
    }
}

/// The counts of one unit.
struct InUnit<'a> {
    planned: &'a Planned,
    specs: &'a [EventSpec],
    rows: Vec<&'a Row>,
}

impl InUnit<'_> {
    fn indices(&self, name: &str) -> Option<&Vec<usize>> {
        let mut events = self.planned.events.iter();
        events.find_map(|(known, indices)| (known == name).then_some(indices))
    }
}

impl Counts for InUnit<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        let indices = self.indices(name)?;
        let rows = self.rows.iter().filter(|row| indices.contains(&row.event));
        let values = rows.map(|row| match row.state {
            State::Counted(value) => Some(value.value),
            _ => None,
        });
        let values: Option<Vec<f64>> = values.collect();
        let values = values.filter(|values| !values.is_empty())?;
        let spec = self.specs.get(*indices.first()?)?;
        let factor = if spec.tool.is_some() { SECONDS } else { 1.0 };
        Some(values.iter().sum::<f64>() * factor)
    }

    fn sources(&self, name: &str) -> Option<u32> {
        u32::try_from(self.indices(name)?.len()).ok()
    }
}

/// Whether metrics are asked for.
pub(super) fn are_asked(matches: &ArgMatches) -> bool {
    matches.contains_id("metrics") || flag(matches, "topdown") == Some(true)
}

/// The group of metrics that `--topdown` stands for. Vendors call them so, level by level.
fn topdown(matches: &ArgMatches, tables: &Tables) -> Result<Option<String>, CliError> {
    if flag(matches, "topdown") != Some(true) {
        return Ok(None);
    }
    let group = |level: u64| format!("TopdownL{level}");
    let mut levels = (1..=LEVELS).rev();
    let deepest = levels.find(|level| !tables.metrics_for(&group(*level)).is_empty());
    let Some(deepest) = deepest else {
        let message = "Topdown requested but the topdown metric groups aren't present.";
        return Err(CliError::message(FAILED, message)
            .detail("(See perf list the metric groups have names like TopdownL1)")
            .hint("tables of the processor's vendor have them: docs/compatibility.md, Recording"));
    };
    let level = matches.get_one::<u64>("td-level").copied();
    let level = level.filter(|level| *level > 0).unwrap_or(1);
    if level > deepest {
        let message = format!("Invalid top-down metrics level. The max level is {deepest}.");
        return Err(CliError::message(FAILED, message));
    }
    Ok(Some(group(level)))
}

fn refused(error: MetricError) -> CliError {
    let near = match &error {
        MetricError::Unknown {
            near: Some(near), ..
        } => Some(format!("the nearest is '{near}'")),
        MetricError::Unknown { .. } => {
            Some("'list metric' and 'list metricgroup' show what there is".to_owned())
        }
        _ => None,
    };
    let text = error.to_string();
    let (first, rest) = match error {
        // No text in it has newlines.
        MetricError::Syntax { .. } => text.split_once('\n').unwrap_or((&text, "")),
        _ => (text.as_str(), ""),
    };
    let error = CliError::message(UNKNOWN, first).details(rest);
    near.into_iter().fold(error, CliError::hint)
}

/// Whether the kernel's watchdog takes a counter.
fn has_watchdog() -> bool {
    let setting = kernel_text(Path::new(PROC).join("sys/kernel/nmi_watchdog"));
    setting.is_ok_and(|setting| setting.trim() == "1")
}

/// What formulas ask of this machine.
struct Machine<'a> {
    pmus: &'a MachinePmus,
    catalogue: &'a Catalogue<'a>,
}

impl Known for Machine<'_> {
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
        let whole = Regex::new(&format!("^(?:{pattern})$"));
        whole.is_ok_and(|pattern| pattern.is_match(self.pmus.tables.cpuid()))
    }
}
