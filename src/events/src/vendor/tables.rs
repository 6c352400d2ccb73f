//! What is known of one processor.

use super::{Metric, VendorEvent};

/// The events and metrics of a processor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tables {
    /// By name; several of one name are of different PMUs.
    events: Vec<VendorEvent>,
    /// By name.
    metrics: Vec<Metric>,
}

impl Tables {
    /// None of either.
    pub const EMPTY: Self = Self {
        events: Vec::new(),
        metrics: Vec::new(),
    };

    pub(crate) fn new(mut events: Vec<VendorEvent>, mut metrics: Vec<Metric>) -> Self {
        events.sort_by(|left, right| (&left.name, &left.pmu).cmp(&(&right.name, &right.pmu)));
        events.dedup_by(|next, first| (&first.name, &first.pmu) == (&next.name, &next.pmu));
        metrics.sort_by(|left, right| (&left.name, &left.pmu).cmp(&(&right.name, &right.pmu)));
        metrics.dedup_by(|next, first| (&first.name, &first.pmu) == (&next.name, &next.pmu));
        Self { events, metrics }
    }

    /// All events, by name.
    #[must_use]
    pub fn events(&self) -> &[VendorEvent] {
        &self.events
    }

    /// The events of a name, whatever the size of its letters; several where PMUs of different kinds have one.
    #[must_use]
    pub fn events_called(&self, name: &str) -> &[VendorEvent] {
        let name = name.to_lowercase();
        let start = self.events.partition_point(|event| event.name < name);
        let rest = self.events.get(start..).unwrap_or_default();
        let count = rest.partition_point(|event| event.name == name);
        rest.get(..count).unwrap_or_default()
    }

    /// All metrics, by name.
    #[must_use]
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The metric of a name, whatever the size of its letters.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        let mut metrics = self.metrics.iter();
        metrics.find(|metric| metric.name.eq_ignore_ascii_case(name))
    }

    /// The metric that a formula refers to, whose letters count: that of the same PMU, if there are several.
    #[must_use]
    pub fn metric_of(&self, name: &str, pmu: Option<&str>) -> Option<&Metric> {
        let start = self
            .metrics
            .partition_point(|metric| metric.name.as_str() < name);
        let rest = self.metrics.get(start..).unwrap_or_default();
        let count = rest.partition_point(|metric| metric.name == name);
        let called = rest.get(..count).unwrap_or_default();
        let same = called.iter().find(|metric| metric.pmu.as_deref() == pmu);
        same.or_else(|| called.first())
    }

    /// The metrics that a word of `-M` means: that of this name, and all of a group of this name.
    #[must_use]
    pub fn metrics_for(&self, word: &str) -> Vec<&Metric> {
        let metrics = self.metrics.iter();
        metrics.filter(|metric| metric.answers_to(word)).collect()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.metrics.is_empty()
    }
}
