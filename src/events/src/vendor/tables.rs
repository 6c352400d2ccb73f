//! The tables of one processor.

use super::{VendorEvent, VendorMetric};

/// The events and metrics of a processor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VendorTables {
    /// Sorted by name (all names are in lower case) and PMU; events of the same name belong to different PMUs.
    events: Vec<VendorEvent>,
    /// Sorted by name (as the vendor spells it) and PMU; metrics of the same name belong to different PMUs.
    metrics: Vec<VendorMetric>,
}

impl VendorTables {
    /// Empty tables.
    pub const EMPTY: Self = Self {
        events: Vec::new(),
        metrics: Vec::new(),
    };

    /// Sorts events and metrics. Of those with the same name and PMU, the first is kept.
    pub(crate) fn new(mut events: Vec<VendorEvent>, mut metrics: Vec<VendorMetric>) -> Self {
        events.sort_by(|left, right| (&left.name, &left.pmu).cmp(&(&right.name, &right.pmu)));
        events.dedup_by(|next, first| (&first.name, &first.pmu) == (&next.name, &next.pmu));
        metrics.sort_by(|left, right| (&left.name, &left.pmu).cmp(&(&right.name, &right.pmu)));
        metrics.dedup_by(|next, first| (&first.name, &first.pmu) == (&next.name, &next.pmu));
        Self { events, metrics }
    }

    /// Adds metrics, except those whose names the tables already have for any PMU.
    #[must_use]
    pub fn with_missing_metrics(self, more: Vec<VendorMetric>) -> Self {
        let Self { events, metrics } = self;
        let is_new = |metric: &VendorMetric| !metrics.iter().any(|known| known.name == metric.name);
        let more: Vec<VendorMetric> = more.into_iter().filter(is_new).collect();
        Self::new(events, [metrics, more].concat())
    }

    /// All events, sorted by name.
    #[must_use]
    pub fn events(&self) -> &[VendorEvent] {
        &self.events
    }

    /// The events of this name, case-insensitive; several if more than one PMU has one.
    #[must_use]
    pub fn events_named(&self, name: &str) -> &[VendorEvent] {
        let name = name.to_lowercase();
        let start = self.events.partition_point(|event| event.name < name);
        let rest = self.events.get(start..).unwrap_or_default();
        let count = rest.partition_point(|event| event.name == name);
        rest.get(..count).unwrap_or_default()
    }

    /// All metrics, sorted by name.
    #[must_use]
    pub fn metrics(&self) -> &[VendorMetric] {
        &self.metrics
    }

    /// The metric of this name, case-insensitive; the first if several PMUs have one.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&VendorMetric> {
        let mut metrics = self.metrics.iter();
        metrics.find(|metric| metric.name.eq_ignore_ascii_case(name))
    }

    /// The metric that a formula refers to, case-sensitive; if there are several, the one of the PMU `pmu` (`None`: the
    /// one without a PMU), or else the first.
    #[must_use]
    pub fn referenced_metric(&self, name: &str, pmu: Option<&str>) -> Option<&VendorMetric> {
        let start = self
            .metrics
            .partition_point(|metric| metric.name.as_str() < name);
        let rest = self.metrics.get(start..).unwrap_or_default();
        let count = rest.partition_point(|metric| metric.name == name);
        let same_name = rest.get(..count).unwrap_or_default();
        let same_pmu = same_name.iter().find(|metric| metric.pmu.as_deref() == pmu);
        same_pmu.or_else(|| same_name.first())
    }

    /// The metrics selected by a word of `-M`: those whose name or group is the word.
    #[must_use]
    pub fn metrics_for(&self, word: &str) -> Vec<&VendorMetric> {
        let metrics = self.metrics.iter();
        metrics.filter(|metric| metric.matches_word(word)).collect()
    }

    /// Whether there are neither events nor metrics.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.metrics.is_empty()
    }
}
