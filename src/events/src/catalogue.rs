//! What the machine at hand offers beside the events that every kernel knows.

/// Names found on the machine; empty where nothing could be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// PMUs by name and `perf_event_attr::type`, from `/sys/bus/event_source/devices`.
    pub pmus: Vec<(String, u32)>,
    /// Tracepoints as `system:name`, from the `events` folder of tracefs.
    pub tracepoints: Vec<String>,
}

impl Catalogue {
    /// Whether there is a PMU of this name.
    #[must_use]
    pub fn has_pmu(&self, name: &str) -> bool {
        self.pmus.iter().any(|(pmu, _)| pmu == name)
    }

    /// The tracepoints of this name in any system, as `system:name`.
    pub fn tracepoints_named(&self, name: &str) -> impl Iterator<Item = &str> {
        self.tracepoints
            .iter()
            .map(String::as_str)
            .filter(move |full| full.split_once(':').is_some_and(|(_, own)| own == name))
    }
}
