//! Metrics that perf shows beside counts, those of events that every kernel knows.

use crate::{Event, Form, Metric, Role};

/// The counts of one unit that metrics are made of.
pub(crate) struct Counted<'a> {
    /// The events.
    pub(crate) events: &'a [Event],
    /// Indices of those that others are divided by, with their raw counts in this unit.
    pub(crate) bases: Vec<(usize, f64)>,
    /// Mean time of a run in nanoseconds.
    pub(crate) elapsed: f64,
}

impl Counted<'_> {
    /// The metrics of an event that was counted `value` times in this unit, before and after it was put into its own unit.
    pub(crate) fn metrics(&self, event: &Event, raw: f64, value: f64) -> Vec<Metric> {
        let percent_of = |base: Role, unit: &'static str| self.percent(event, raw, base, unit);
        let missed = || {
            let (base, unit) = event.role.missed()?;
            percent_of(base, unit)
        };
        let found = match event.role {
            Role::Clock => self.utilized(raw),
            Role::Cycles => {
                let clock = self.clock();
                clock.map(|clock| Metric::new(raw / clock, Form::Rate, "GHz"))
            }
            Role::Instructions => return self.of_instructions(event, raw),
            Role::CacheMisses => missed().map(|metric| Metric {
                form: Form::FinePercent,
                ..metric
            }),
            Role::BranchMisses | Role::LoadMisses(_) => missed(),
            Role::StalledFrontend => percent_of(Role::Cycles, "frontend cycles idle"),
            Role::StalledBackend => percent_of(Role::Cycles, "backend cycles idle"),
            Role::Time => None,
            Role::CacheReferences | Role::Branches | Role::Loads(_) | Role::Other => {
                let clock = self.clock();
                clock.map(|clock| Metric::per_second(value, clock))
            }
        };
        found.into_iter().collect()
    }

    fn of_instructions(&self, event: &Event, raw: f64) -> Vec<Metric> {
        let cycles = self.base(Role::Cycles, event);
        let per_cycle =
            cycles.map(|cycles| Metric::new(raw / cycles, Form::Ratio, "insn per cycle"));
        let stalls = [Role::StalledFrontend, Role::StalledBackend];
        let stalled = stalls.into_iter().filter_map(|role| self.base(role, event));
        let stalled = stalled.reduce(f64::max).filter(|_| raw > 0.0);
        let per_insn = stalled
            .map(|stalled| Metric::new(stalled / raw, Form::Ratio, "stalled cycles per insn"));
        per_cycle.into_iter().chain(per_insn).collect()
    }

    fn utilized(&self, raw: f64) -> Option<Metric> {
        (self.elapsed > 0.0).then(|| Metric::new(raw / self.elapsed, Form::Rate, "CPUs utilized"))
    }

    fn percent(&self, event: &Event, raw: f64, base: Role, unit: &'static str) -> Option<Metric> {
        let base = self.base(base, event)?;
        Some(Metric::new(100.0 * raw / base, Form::Percent, unit))
    }

    /// The count of the event of that role that looks at the same as `event`; `None` if there is none, or nothing to
    /// divide by.
    fn base(&self, role: Role, event: &Event) -> Option<f64> {
        self.find(|base| {
            base.role == role && base.side == event.side && base.cgroup == event.cgroup
        })
    }

    /// Nanoseconds of the first clock. Whatever side it is counted on, its time is that of all.
    fn clock(&self) -> Option<f64> {
        self.find(|base| base.role == Role::Clock)
    }

    fn find(&self, fits: impl Fn(&Event) -> bool) -> Option<f64> {
        let fitting = self
            .bases
            .iter()
            .find(|(index, _)| self.events.get(*index).is_some_and(&fits));
        fitting.map(|(_, raw)| *raw).filter(|raw| *raw > 0.0)
    }
}
