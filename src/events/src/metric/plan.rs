//! What a metric needs, and what comes out of it.

use std::collections::HashMap;

use super::error::MetricError;
use super::eval::Counts;
use super::expr::{Expr, Known};
use crate::nearest;
use crate::vendor::{Grouping, Metric, Scale, Tables, metric_groups};

/// Names in formulas that stand for an event of another name.
const EVENTS: [(&str, &str); 1] = [("TSC", "msr/tsc/")];

/// A metric with everything that it refers to, ready to be counted and computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// The events to be counted, as `-e` takes them, each once; tool events such as `duration_time` are among them.
    pub events: Vec<String>,
    /// Whether these can be counted at the same time.
    pub grouping: Grouping,
    /// What the result is multiplied with, and the unit of that.
    pub scale: Option<Scale>,
    /// A condition under which the result asks for attention.
    pub threshold: Option<Expr>,
    /// The formulas of metrics that others refer to, before these; the last is its own.
    formulas: Vec<(String, Expr)>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The value, scaled; not a number where it is undefined.
    pub value: f64,
    /// What was not counted or is not known, if it is undefined because of that.
    pub missing: Vec<String>,
    /// Whether the threshold is passed; `None` where there is none, or where it cannot be said.
    pub asks_for_attention: Option<bool>,
}

impl Plan {
    /// The plans of all metrics that a word of `-M` means: a metric, or a group.
    ///
    /// # Errors
    /// [`MetricError::Unknown`] for a word that means none; else what [`Plan::new`] reports.
    pub fn all(word: &str, tables: &Tables, known: &dyn Known) -> Result<Vec<Self>, MetricError> {
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
            .map(|metric| Self::new(metric, tables, known))
            .collect()
    }

    /// The plan of one metric. What the machine is known not to choose is left out, with its events.
    ///
    /// # Errors
    /// A formula that is none, or metrics that refer to each other.
    pub fn new(metric: &Metric, tables: &Tables, known: &dyn Known) -> Result<Self, MetricError> {
        let mut resolver = Resolver {
            tables,
            known,
            chain: Vec::new(),
            formulas: Vec::new(),
            events: Vec::new(),
            grouping: Grouping::Together,
        };
        resolver.metric(metric)?;
        let threshold = metric.threshold.as_deref();
        // A threshold only marks a result, so that a broken one is no reason to refuse it.
        let threshold = threshold.and_then(|formula| Expr::parse(formula).ok());
        Ok(Self {
            name: metric.name.clone(),
            events: resolver.events,
            grouping: resolver.grouping,
            scale: metric.scale.clone(),
            threshold: threshold.map(|expr| expr.with(known)),
            formulas: resolver.formulas,
        })
    }

    /// The value of the metric.
    #[must_use]
    pub fn outcome(&self, counts: &dyn Counts) -> Outcome {
        let mut known = Computed {
            counts,
            values: HashMap::new(),
        };
        let mut missing = Vec::new();
        let mut value = f64::NAN;
        for (name, formula) in &self.formulas {
            missing.clear();
            let mut lacking = Vec::new();
            value = formula.value(&known, &mut lacking);
            for name in lacking {
                // A metric that is undefined is so for want of others.
                match known.lacking(&name) {
                    Some(inner) => missing.extend(inner.iter().cloned()),
                    None => missing.push(name),
                }
            }
            missing.sort_unstable();
            missing.dedup();
            known.values.insert(name, (value, missing.clone()));
        }
        let passed = self.threshold.as_ref().map(|threshold| {
            let passed = threshold.value(&known, &mut Vec::new());
            (!passed.is_nan()).then_some(passed != 0.0)
        });
        let factor = self.scale.as_ref().map_or(1.0, |scale| scale.factor);
        Outcome {
            value: value * factor,
            missing,
            asks_for_attention: passed.flatten(),
        }
    }
}

/// The counts, and the metrics that are computed by now with what they lacked.
struct Computed<'a> {
    counts: &'a dyn Counts,
    values: HashMap<&'a str, (f64, Vec<String>)>,
}

impl Computed<'_> {
    fn lacking(&self, name: &str) -> Option<&Vec<String>> {
        self.values.get(name).map(|(_, missing)| missing)
    }
}

impl Counts for Computed<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some((value, missing)) => missing.is_empty().then_some(*value),
            None => self.counts.value(event(name)),
        }
    }

    fn sources(&self, name: &str) -> Option<u32> {
        self.counts.sources(event(name))
    }
}

/// The event that a name in a formula stands for.
fn event(name: &str) -> &str {
    let found = EVENTS.iter().find(|(known, _)| *known == name);
    found.map_or(name, |(_, event)| event)
}

/// Follows the references of a metric.
struct Resolver<'a> {
    tables: &'a Tables,
    known: &'a dyn Known,
    /// The metrics whose formulas are being followed.
    chain: Vec<&'a str>,
    formulas: Vec<(String, Expr)>,
    events: Vec<String>,
    grouping: Grouping,
}

impl<'a> Resolver<'a> {
    fn metric(&mut self, metric: &'a Metric) -> Result<(), MetricError> {
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
        let expr = expr.with(self.known);
        self.chain.push(&metric.name);
        for name in expr.names() {
            self.name(name, metric)?;
        }
        self.chain.pop();
        self.grouping = self.grouping.stricter(metric.grouping);
        self.formulas.push((metric.name.clone(), expr));
        Ok(())
    }

    fn name(&mut self, name: &str, within: &Metric) -> Result<(), MetricError> {
        let is_done = self.formulas.iter().any(|(known, _)| known == name);
        // A metric may be called like the event that it is made of.
        let referred = self.tables.metric_of(name, within.pmu.as_deref());
        match referred.filter(|metric| metric.name != within.name) {
            _ if is_done => Ok(()),
            Some(metric) => match self.chain.iter().position(|known| *known == metric.name) {
                Some(first) => {
                    let chain = self.chain.get(first..).unwrap_or_default();
                    let chain = chain.iter().map(|name| (*name).to_owned());
                    let again = std::iter::once(metric.name.clone());
                    Err(MetricError::Circular {
                        chain: chain.chain(again).collect(),
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
