//! Events required by a metric, and its evaluation.

use std::collections::HashMap;

use super::error::MetricError;
use super::eval::MetricCounts;
use super::expr::{Expr, MachineProperties};
use crate::vendor::{MetricGrouping, UnitScale, VendorMetric, VendorTables, metric_groups};
use rperf_names::nearest;

/// Names in formulas that are aliases of events.
const EVENT_ALIASES: [(&str, &str); 1] = [("TSC", "msr/tsc/")];

/// A metric with all its dependencies, ready for counting and evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricPlan {
    /// Its name.
    pub name: String,
    /// The distinct events to count, in the syntax of `-e`, including tool events such as
    /// `duration_time`.
    pub events: Vec<String>,
    /// Whether the events can be counted in one group.
    pub grouping: MetricGrouping,
    /// Factor and unit of the result.
    pub scale: Option<UnitScale>,
    /// Condition that marks a result as notable.
    pub threshold: Option<Expr>,
    /// The formulas of the required metrics in dependency order; the last one is that of this metric.
    formulas: Vec<(String, Expr)>,
}

/// Result of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricResult {
    /// The scaled value; NaN if undefined.
    pub value: f64,
    /// Events, and literals such as `#num_cpus`, that are missing, if the value is undefined because of them.
    pub missing: Vec<String>,
    /// Whether the threshold condition holds; `None` without one, or if it can't be evaluated.
    pub meets_threshold: Option<bool>,
}

impl MetricPlan {
    /// Returns the plans of all metrics that a word of `-M` selects. The word is the name of a metric or of a metric group.
    ///
    /// # Errors
    /// [`MetricError::Unknown`] if it selects no metric, and the errors of [`MetricPlan::new`].
    pub fn for_word(
        word: &str,
        tables: &VendorTables,
        machine: &dyn MachineProperties,
    ) -> Result<Vec<Self>, MetricError> {
        let metrics = tables.metrics_for(word);
        if metrics.is_empty() {
            let names = tables.metrics().iter().map(|metric| metric.name.as_str());
            let groups = metric_groups(tables.metrics()).into_keys();
            let near = nearest(word, names.chain(groups)).map(str::to_owned);
            return Err(MetricError::Unknown {
                word: word.to_owned(),
                near,
            });
        }
        let plans = metrics.into_iter();
        plans
            .map(|metric| Self::new(metric, tables, machine))
            .collect()
    }

    /// The plan of one metric. Branches that are never taken on this machine are removed, with their events.
    ///
    /// # Errors
    /// A syntax error, or metrics that depend on each other.
    pub fn new(
        metric: &VendorMetric,
        tables: &VendorTables,
        machine: &dyn MachineProperties,
    ) -> Result<Self, MetricError> {
        let mut resolver = Resolver {
            tables,
            machine,
            chain: Vec::new(),
            formulas: Vec::new(),
            events: Vec::new(),
            grouping: MetricGrouping::Together,
        };
        resolver.metric(metric)?;
        let threshold = metric.threshold.as_deref();
        // A threshold only marks a result, so an invalid one is ignored.
        let threshold = threshold.and_then(|formula| Expr::parse(formula).ok());
        Ok(Self {
            name: metric.name.clone(),
            events: resolver.events,
            grouping: resolver.grouping,
            scale: metric.scale.clone(),
            threshold: threshold.map(|expr| expr.simplified_for(machine)),
            formulas: resolver.formulas,
        })
    }

    /// Evaluates the metric.
    #[must_use]
    pub fn evaluate(&self, counts: &dyn MetricCounts) -> MetricResult {
        let mut computed = ComputedMetrics {
            counts,
            values: HashMap::new(),
        };
        let mut missing = Vec::new();
        let mut value = f64::NAN;
        // After the loop, `value` and `missing` are those of the last formula, that of this metric.
        for (name, formula) in &self.formulas {
            missing.clear();
            let mut undefined = Vec::new();
            value = formula.value(&computed, &mut undefined);
            for undefined_name in undefined {
                // If the name is that of a metric, the names that are missing in that metric are the cause.
                match computed.missing_of(&undefined_name) {
                    Some(inner) => missing.extend(inner.iter().cloned()),
                    None => missing.push(undefined_name),
                }
            }
            missing.sort_unstable();
            missing.dedup();
            computed.values.insert(name, (value, missing.clone()));
        }
        let is_met = self.threshold.as_ref().map(|threshold| {
            let condition = threshold.value(&computed, &mut Vec::new());
            (!condition.is_nan()).then_some(condition != 0.0)
        });
        let factor = self.scale.as_ref().map_or(1.0, |scale| scale.factor);
        MetricResult {
            value: value * factor,
            missing,
            meets_threshold: is_met.flatten(),
        }
    }
}

/// The counts, and the metrics computed so far with their missing names.
struct ComputedMetrics<'a> {
    counts: &'a dyn MetricCounts,
    values: HashMap<&'a str, (f64, Vec<String>)>,
}

impl ComputedMetrics<'_> {
    fn missing_of(&self, name: &str) -> Option<&Vec<String>> {
        self.values.get(name).map(|(_, missing)| missing)
    }
}

impl MetricCounts for ComputedMetrics<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some((value, missing)) => missing.is_empty().then_some(*value),
            None => self.counts.value(event(name)),
        }
    }

    fn source_count(&self, name: &str) -> Option<u32> {
        self.counts.source_count(event(name))
    }
}

/// The event for a name in a formula.
fn event(name: &str) -> &str {
    let alias = EVENT_ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, event)| event)
}

/// Resolves the dependencies of a metric: collects their formulas, events and grouping.
struct Resolver<'a> {
    tables: &'a VendorTables,
    machine: &'a dyn MachineProperties,
    /// The metrics whose formulas are being resolved.
    chain: Vec<&'a str>,
    formulas: Vec<(String, Expr)>,
    events: Vec<String>,
    grouping: MetricGrouping,
}

impl<'a> Resolver<'a> {
    /// Adds the formula of a metric after those of the metrics that it depends on.
    fn metric(&mut self, metric: &'a VendorMetric) -> Result<(), MetricError> {
        // `Expr::parse` does not know the metric, so its name is added to a syntax error.
        let expr = Expr::parse(&metric.formula).map_err(|error| match error {
            MetricError::Syntax {
                formula,
                position,
                reason,
                ..
            } => MetricError::Syntax {
                metric: metric.name.clone(),
                formula,
                position,
                reason,
            },
            other => other,
        })?;
        let expr = expr.simplified_for(self.machine);
        self.chain.push(&metric.name);
        for name in expr.names() {
            self.name(name, metric)?;
        }
        self.chain.pop();
        self.grouping = self.grouping.stricter(metric.grouping);
        self.formulas.push((metric.name.clone(), expr));
        Ok(())
    }

    /// Adds the metric or event that the formula of `within` refers to by `name`.
    fn name(&mut self, name: &str, within: &VendorMetric) -> Result<(), MetricError> {
        let is_done = self.formulas.iter().any(|(known, _)| known == name);
        if is_done {
            return Ok(());
        }
        let referred = self.tables.referenced_metric(name, within.pmu.as_deref());
        // A formula that contains its own metric's name refers to the event of that name.
        match referred.filter(|metric| metric.name != within.name) {
            Some(metric) => match self.chain.iter().position(|known| *known == metric.name) {
                Some(first) => {
                    let cycle = self.chain.get(first..).unwrap_or_default();
                    let cycle = cycle.iter().map(|name| (*name).to_owned());
                    let again = std::iter::once(metric.name.clone());
                    Err(MetricError::Circular {
                        chain: cycle.chain(again).collect(),
                    })
                }
                None => self.metric(metric),
            },
            None => {
                let event = event(name).to_owned();
                if !self.events.contains(&event) {
                    self.events.push(event);
                }
                Ok(())
            }
        }
    }
}
