//! One metric of a table.

use super::Scale;
use std::collections::BTreeMap;

use super::event::pmu_of;
use super::row::Row;

/// Where metrics without a group are listed.
const NO_GROUP: &str = "No_group";

/// A number that is computed from counts, as a vendor describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name, whose letters keep their size: `tma_backend_bound`, `IPC`.
    pub name: String,
    /// How it is computed: [`crate::metric::Expr`].
    pub formula: String,
    /// The groups that it belongs to; `No_group` for one that belongs to none.
    pub groups: Vec<String>,
    /// Whose events it takes on a machine with several kinds of cores: `cpu_core`.
    pub pmu: Option<String>,
    /// In one sentence.
    pub brief: Option<String>,
    /// At length.
    pub long: Option<String>,
    /// What the result is multiplied with, and the unit of that.
    pub scale: Option<Scale>,
    /// A condition, in the language of formulas, under which the result asks for attention.
    pub threshold: Option<String>,
    /// Whether its events can be counted at the same time.
    pub grouping: Grouping,
    /// The heading that its file stands for.
    pub topic: String,
}

/// Whether the events of a metric can be a group (`MetricConstraint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Grouping {
    /// They can.
    #[default]
    Together,
    /// Only while the kernel's watchdog for hard lockups takes no counter (`kernel.nmi_watchdog`).
    WithoutWatchdog,
    /// They need more counters than there are.
    Apart,
}

impl Grouping {
    /// What holds for the events of two metrics together.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Apart, _) | (_, Self::Apart) => Self::Apart,
            (Self::WithoutWatchdog, _) | (_, Self::WithoutWatchdog) => Self::WithoutWatchdog,
            (Self::Together, Self::Together) => Self::Together,
        }
    }
}

impl Metric {
    /// The metric of a row, of whose file these are the topic and the PMU of rows that name none; `None` for rows that
    /// are none.
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
            brief: described(row, "BriefDescription"),
            long: described(row, "PublicDescription"),
            scale: row.text("ScaleUnit").map(Scale::parse),
            threshold: row.text("MetricThreshold").map(str::to_owned),
            grouping: grouping(row.text("MetricConstraint")),
            topic: topic.to_owned(),
        })
    }

    /// Whether it belongs to a group, or is called like it. The size of letters does not count.
    #[must_use]
    pub fn answers_to(&self, word: &str) -> bool {
        let fits = |name: &String| name.eq_ignore_ascii_case(word);
        fits(&self.name) || self.groups.iter().any(fits)
    }
}

fn grouping(constraint: Option<&str>) -> Grouping {
    match constraint {
        Some("NO_NMI_WATCHDOG" | "NO_GROUP_EVENTS_NMI" | "NO_THRESHOLD_AND_NMI") => {
            Grouping::WithoutWatchdog
        }
        Some("NO_GROUP_EVENTS" | "NO_GROUP_EVENTS_SMT") => Grouping::Apart,
        _ => Grouping::Together,
    }
}

fn described(row: &Row, key: &str) -> Option<String> {
    let text = row.text(key)?;
    let text = text.strip_suffix('.').unwrap_or(text);
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The groups of metrics with their members, both in the order of their names.
#[must_use]
pub fn metric_groups<'t>(
    metrics: impl IntoIterator<Item = &'t Metric>,
) -> BTreeMap<&'t str, Vec<&'t Metric>> {
    let mut groups = BTreeMap::<&str, Vec<&Metric>>::new();
    for metric in metrics {
        for group in &metric.groups {
            groups.entry(group).or_default().push(metric);
        }
    }
    groups
}
