//! A metric of a vendor table.

use super::UnitScale;
use std::collections::BTreeMap;

use super::event::{description_text, pmu_of};
use super::row::Row;

/// Topic of the metrics of generic events.
pub(super) const DEFAULT_TOPIC: &str = "default";
/// Group of metrics without a group.
const NO_GROUP: &str = "No_group";

/// A metric described by a vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct VendorMetric {
    /// Its name as the vendor spells it: `tma_backend_bound`, `IPC`.
    pub name: String,
    /// Its formula, in the syntax of [`crate::metric::Expr`].
    pub formula: String,
    /// The groups of the metric; `No_group` if the table gives none.
    pub groups: Vec<String>,
    /// The PMU whose events the metric uses, if the table names one: `cpu_core` on hybrid machines.
    pub pmu: Option<String>,
    /// Short description.
    pub brief: Option<String>,
    /// Long description.
    pub long: Option<String>,
    /// Factor and unit of the result.
    pub scale: Option<UnitScale>,
    /// Condition, a formula, that marks a result as notable.
    pub threshold: Option<String>,
    /// Whether the events of the metric can be counted in one event group (unrelated to `groups`, which are groups of metrics).
    pub grouping: MetricGrouping,
    /// The topic of its file.
    pub topic: String,
}

/// Whether the events of a metric can be in one event group (`MetricConstraint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MetricGrouping {
    /// The events can be grouped.
    #[default]
    Together,
    /// The events can be grouped only if the kernel's hard lockup detector uses no counter (`kernel.nmi_watchdog`).
    WithoutWatchdog,
    /// The events cannot be grouped: there may not be enough counters, for instance with SMT.
    Apart,
}

impl MetricGrouping {
    /// Returns the grouping that suits the events of two metrics together.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Apart, _) | (_, Self::Apart) => Self::Apart,
            (Self::WithoutWatchdog, _) | (_, Self::WithoutWatchdog) => Self::WithoutWatchdog,
            (Self::Together, Self::Together) => Self::Together,
        }
    }
}

impl VendorMetric {
    /// Returns the metric of a row; `None` for rows without a metric name or a formula. `topic` is that of the file. `pmu` is
    /// used if the row has no `Unit` (its PMU), or the `Unit` is `cpu`.
    pub(super) fn of_row(row: &Row, topic: &str, pmu: Option<&str>) -> Option<Self> {
        let name = row.text("MetricName")?;
        let formula = row.text("MetricExpr")?;
        let groups = row.text("MetricGroup").unwrap_or(NO_GROUP);
        let groups = groups.split(';').map(str::trim);
        let unit = row.text("Unit").filter(|unit| *unit != "cpu").map(pmu_of);
        Some(Self {
            name: name.to_owned(),
            formula: formula.to_owned(),
            groups: groups
                .filter(|group| !group.is_empty())
                .map(str::to_owned)
                .collect(),
            pmu: unit.or_else(|| pmu.map(str::to_owned)),
            brief: description_text(row, "BriefDescription"),
            long: description_text(row, "PublicDescription"),
            scale: row.text("ScaleUnit").map(UnitScale::parse),
            threshold: row.text("MetricThreshold").map(str::to_owned),
            grouping: grouping(row.text("MetricConstraint")),
            topic: topic.to_owned(),
        })
    }

    /// Whether the metric is a metric of generic events ([`super::default_metrics`]).
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.topic == DEFAULT_TOPIC
    }

    /// Whether the name of the metric or of one of its groups is `word`. Case is ignored.
    #[must_use]
    pub fn matches_word(&self, word: &str) -> bool {
        let fits = |name: &String| name.eq_ignore_ascii_case(word);
        fits(&self.name) || self.groups.iter().any(fits)
    }
}

fn grouping(constraint: Option<&str>) -> MetricGrouping {
    match constraint {
        Some("NO_NMI_WATCHDOG" | "NO_GROUP_EVENTS_NMI" | "NO_THRESHOLD_AND_NMI") => {
            MetricGrouping::WithoutWatchdog
        }
        Some("NO_GROUP_EVENTS" | "NO_GROUP_EVENTS_SMT") => MetricGrouping::Apart,
        _ => MetricGrouping::Together,
    }
}

/// Returns the groups of metrics, sorted by name, with their metrics in the order of `metrics`.
#[must_use]
pub fn metric_groups<'t>(
    metrics: impl IntoIterator<Item = &'t VendorMetric>,
) -> BTreeMap<&'t str, Vec<&'t VendorMetric>> {
    let mut groups = BTreeMap::<&str, Vec<&VendorMetric>>::new();
    for metric in metrics {
        for group in &metric.groups {
            groups.entry(group).or_default().push(metric);
        }
    }
    groups
}
