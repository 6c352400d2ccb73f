//! Built-in metrics, which perf shows next to counts: its shadow stats.

use crate::{CountedEvent, MetricValue, NumberFormat, Role};

/// The counts of one unit of aggregation, such as a CPU. Elsewhere in this file, a unit is the text after a number.
pub(crate) struct UnitCounts<'a> {
    /// The events.
    pub(crate) events: &'a [CountedEvent],
    /// Indices of the events (bases) that metrics of other events use, with their raw counts: before conversion to the event's
    /// unit, so those of clocks are nanoseconds.
    pub(crate) bases: Vec<(usize, f64)>,
    /// Mean time of a run in nanoseconds.
    pub(crate) elapsed: f64,
}

impl UnitCounts<'_> {
    /// The metrics of an event with the raw count `raw`, which is `value` in the event's unit.
    pub(crate) fn metrics(&self, event: &CountedEvent, raw: f64, value: f64) -> Vec<MetricValue> {
        let percent_of = |base: Role, unit: &'static str| self.percent(event, raw, base, unit);
        let miss_ratio = || {
            let (base, unit) = event.role.miss_ratio_base()?;
            percent_of(base, unit)
        };
        let metric = match event.role {
            Role::Clock => self.utilized(raw),
            Role::Cycles => {
                // Cycles per nanosecond.
                let clock = self.clock(event);
                clock.map(|clock| MetricValue::new(raw / clock, NumberFormat::Rate, "GHz"))
            }
            Role::Instructions => return self.of_instructions(event, raw),
            // As in perf, with one decimal more than the other ratios.
            Role::CacheMisses => miss_ratio().map(|metric| MetricValue {
                format: NumberFormat::FinePercent,
                ..metric
            }),
            Role::BranchMisses | Role::LoadMisses(_) => miss_ratio(),
            Role::StalledFrontend => percent_of(Role::Cycles, "frontend cycles idle"),
            Role::StalledBackend => percent_of(Role::Cycles, "backend cycles idle"),
            // A tool event such as `duration_time`: an elapsed time has no rate.
            Role::Time => None,
            Role::CacheReferences | Role::Branches | Role::Loads(_) | Role::Other => {
                let clock = self.clock(event);
                clock.map(|clock| MetricValue::per_second(value, clock))
            }
        };
        metric.into_iter().collect()
    }

    /// Instructions per cycle, and stalled cycles per instruction: of the frontend or the backend, whichever are more.
    fn of_instructions(&self, event: &CountedEvent, raw: f64) -> Vec<MetricValue> {
        let cycles = self.base(Role::Cycles, event);
        let per_cycle = cycles
            .map(|cycles| MetricValue::new(raw / cycles, NumberFormat::Ratio, "insn per cycle"));
        let stalls = [Role::StalledFrontend, Role::StalledBackend];
        let stalled = stalls.into_iter().filter_map(|role| self.base(role, event));
        let stalled = stalled.reduce(f64::max).filter(|_| raw > 0.0);
        let per_insn = stalled.map(|stalled| {
            MetricValue::new(
                stalled / raw,
                NumberFormat::Ratio,
                "stalled cycles per insn",
            )
        });
        per_cycle.into_iter().chain(per_insn).collect()
    }

    fn utilized(&self, raw: f64) -> Option<MetricValue> {
        (self.elapsed > 0.0)
            .then(|| MetricValue::new(raw / self.elapsed, NumberFormat::Rate, "CPUs utilized"))
    }

    fn percent(
        &self,
        event: &CountedEvent,
        raw: f64,
        base: Role,
        unit: &'static str,
    ) -> Option<MetricValue> {
        let base_count = self.base(base, event)?;
        Some(MetricValue::new(
            100.0 * raw / base_count,
            NumberFormat::Percent,
            unit,
        ))
    }

    /// The count of the first event with this role and the mode and cgroup of `event`; `None` if missing or zero.
    fn base(&self, role: Role, event: &CountedEvent) -> Option<f64> {
        self.find(|base| {
            base.role == role && base.mode == event.mode && base.cgroup == event.cgroup
        })
    }

    /// Nanoseconds of the first clock event with the cgroup of `event`, in any mode; `None` if missing or zero.
    fn clock(&self, event: &CountedEvent) -> Option<f64> {
        self.find(|base| base.role == Role::Clock && base.cgroup == event.cgroup)
    }

    /// The raw count of the first base that fits; `None` if missing or zero.
    fn find(&self, fits: impl Fn(&CountedEvent) -> bool) -> Option<f64> {
        let fitting = self
            .bases
            .iter()
            .find(|(index, _)| self.events.get(*index).is_some_and(&fits));
        fitting.map(|(_, raw)| *raw).filter(|raw| *raw > 0.0)
    }
}
