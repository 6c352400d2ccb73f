//! Metrics of event groups, the field `metric` of `script`. Metrics and rules are those of `perf stat` 6.1.

use std::ops::Range;

use rperf_count::Role;
use rperf_perfdata::Metadata;
use rperf_wire::{Attr, AttrFlags};

/// Counts of a recording's groups. Samples must be added in order.
#[derive(Debug, Clone, Default)]
pub struct GroupMetrics {
    events: Vec<RecordedEvent>,
    /// The counts of all groups since they were last cleared. As in perf, all are cleared by the first sample of each
    /// group and its first sample after each report, and by the very first sample of each single event.
    counts: Vec<RoleCount>,
}

/// A metric.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupMetric {
    /// The value.
    pub value: f64,
    /// Its number format.
    pub form: MetricFormat,
    /// Its unit.
    pub unit: String,
    /// Whether the start of the metric's line (the sample's fields and `metric:`) is printed twice, on the same line. perf's
    /// `script` does so where `perf stat` would begin a new line.
    pub repeats_start: bool,
}

impl GroupMetric {
    /// Creates a metric that does not repeat the start of its line.
    fn new(value: f64, form: MetricFormat, unit: &str) -> Self {
        Self {
            value,
            form,
            unit: unit.to_owned(),
            repeats_start: false,
        }
    }
}

/// Number format of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricFormat {
    /// `%7.2f `.
    Ratio,
    /// `%7.2f%%`.
    Percent,
    /// `%8.3f %%`.
    FinePercent,
    /// `%8.3f`.
    Rate,
}

/// An event of the recording.
#[derive(Debug, Clone)]
struct RecordedEvent {
    role: Role,
    /// The bits `exclude_kernel`, `_user`, `_hv`, `_host` and `_idle`, as in perf. Only counts of events with equal bits are
    /// combined.
    excluded: u64,
    /// The index of its group's leader, or its own if it has no group.
    leader: usize,
    /// For a leader, the indices of its group's events, its own first; empty for a single event.
    group: Range<usize>,
    /// For a leader, the number of samples of its group since its metrics were last reported.
    seen: usize,
    /// Its latest count.
    value: f64,
}

/// Counts of events with equal role, CPU and [`RecordedEvent::excluded`].
#[derive(Debug, Clone)]
struct RoleCount {
    role: Role,
    cpu: u32,
    excluded: u64,
    mean: f64,
    /// Number of counts.
    number: f64,
}

/// The role of an event; `Other` if the upper half of `config` is set, as for events of hybrid PMUs.
fn role(attr: &Attr) -> Role {
    match attr.config >> 32 {
        0 => Role::of(attr),
        _ => Role::Other,
    }
}

impl GroupMetrics {
    /// Creates the metrics of a recording's events. Events without a group have no metrics.
    #[must_use]
    pub fn new(recording: Metadata<'_>) -> Self {
        let excluded = AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_USER
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::EXCLUDE_HOST
            | AttrFlags::EXCLUDE_IDLE;
        let event = |(index, attr): (usize, &Attr)| RecordedEvent {
            role: role(attr),
            excluded: (attr.flags & excluded).0,
            leader: index,
            group: 0..0,
            seen: 0,
            value: 0.0,
        };
        let attrs = recording.events.iter().map(|event| &event.attr);
        let mut events: Vec<_> = attrs.enumerate().map(event).collect();
        for group in recording.features.group_desc().unwrap_or_default() {
            // perf's number of members includes the leader.
            let (leader, group_size) = (group.leader as usize, group.members as usize);
            let group_range = leader..leader.saturating_add(group_size).min(events.len());
            for event in events.get_mut(group_range.clone()).unwrap_or_default() {
                event.leader = leader;
            }
            if let Some(event) = events.get_mut(leader) {
                event.group = group_range;
            }
        }
        Self {
            events,
            counts: Vec::new(),
        }
    }

    /// Adds a sample of the event with index `event`. Once the group has had as many samples as it has events since its
    /// last report, no matter which of its events they belong to, calls `report` with the metrics of its events; those of the
    /// leader are omitted, as in perf.
    pub fn add(
        &mut self,
        event: usize,
        period: u64,
        cpu: u32,
        mut report: impl FnMut(GroupMetric),
    ) {
        let Some(leader) = self.events.get(event).map(|event| event.leader) else {
            return;
        };
        let Some(leader) = self.events.get_mut(leader) else {
            return;
        };
        leader.seen += 1;
        let (is_first, is_last) = (leader.seen == 1, leader.seen == leader.group.len());
        let members = leader.group.clone().skip(1);
        if is_last {
            leader.seen = 0;
        }
        if is_first {
            self.counts.clear();
        }
        self.count(event, period as f64, cpu);
        if is_last {
            for member in members {
                self.member_metrics(member, cpu, &mut report);
            }
        }
    }

    fn count(&mut self, event: usize, value: f64, cpu: u32) {
        let Some(event) = self.events.get_mut(event) else {
            return;
        };
        event.value = value;
        let (role, excluded) = (event.role, event.excluded);
        let same = |count: &&mut RoleCount| {
            (count.role, count.cpu, count.excluded) == (role, cpu, excluded)
        };
        match self.counts.iter_mut().find(same) {
            Some(count) => {
                count.number += 1.0;
                count.mean += (value - count.mean) / count.number;
            }
            None => self.counts.push(RoleCount {
                role,
                cpu,
                excluded,
                mean: value,
                number: 1.0,
            }),
        }
    }

    /// Reports the metrics of one member of the group.
    fn member_metrics(&self, member: usize, cpu: u32, report: &mut impl FnMut(GroupMetric)) {
        let Some(event) = self.events.get(member) else {
            return;
        };
        let group_event = GroupEvent {
            event,
            cpu,
            counts: &self.counts,
        };
        let metric = match event.role.miss_ratio_base() {
            Some((all, unit)) => group_event.misses(all, unit),
            None => group_event.metric(),
        };
        metric.map(&mut *report);
        group_event.stalls().map(report);
    }
}

/// An event of a group, with the counts of all groups.
struct GroupEvent<'m> {
    event: &'m RecordedEvent,
    cpu: u32,
    counts: &'m [RoleCount],
}

impl GroupEvent<'_> {
    /// Returns the mean count of events with this role on the same CPU and with equal [`RecordedEvent::excluded`].
    fn mean(&self, role: Role) -> Option<f64> {
        let key = (role, self.cpu, self.event.excluded);
        let mut counts = self.counts.iter();
        let same = |count: &&RoleCount| (count.role, count.cpu, count.excluded) == key;
        counts.find(same).map(|count| count.mean)
    }

    /// Returns the event's count as a fraction of `base`, times `scale`; 0 if `base` is 0.
    fn fraction(&self, base: f64, scale: f64) -> f64 {
        match base == 0.0 {
            true => 0.0,
            false => self.event.value / base * scale,
        }
    }

    /// Returns misses in percent of all accesses or branches, which are counted by events with the role `all`.
    fn misses(&self, all: Role, unit: &str) -> Option<GroupMetric> {
        let form = match self.event.role {
            Role::CacheMisses => MetricFormat::FinePercent,
            _ => MetricFormat::Percent,
        };
        Some(GroupMetric::new(
            self.fraction(self.mean(all)?, 100.0),
            form,
            unit,
        ))
    }

    /// Returns the metric of an event that does not count misses.
    fn metric(&self) -> Option<GroupMetric> {
        let cycles = self.mean(Role::Cycles).filter(|cycles| *cycles != 0.0);
        let of_cycles = self.fraction(cycles.unwrap_or_default(), 100.0);
        match self.event.role {
            Role::Instructions => {
                let ratio = self.event.value / cycles?;
                Some(GroupMetric::new(
                    ratio,
                    MetricFormat::Ratio,
                    "insn per cycle",
                ))
            }
            Role::StalledFrontend => (of_cycles != 0.0).then(|| {
                GroupMetric::new(of_cycles, MetricFormat::Percent, "frontend cycles idle")
            }),
            // As in perf, 0 % is shown for the backend, but not for the frontend.
            Role::StalledBackend => Some(GroupMetric::new(
                of_cycles,
                MetricFormat::Percent,
                "backend cycles idle",
            )),
            // For clocks perf shows the CPUs utilized, which requires the elapsed time, unknown in
            // a recording.
            Role::Clock => None,
            Role::Cycles => {
                let time = self.mean(Role::Clock).filter(|time| *time != 0.0)?;
                Some(GroupMetric::new(
                    self.event.value / time,
                    MetricFormat::Rate,
                    "GHz",
                ))
            }
            _ => {
                // Clocks count nanoseconds.
                let per_second = 1e9;
                let (rate, prefix) = scaled(self.fraction(self.mean(Role::Clock)?, per_second));
                Some(GroupMetric::new(
                    rate,
                    MetricFormat::Rate,
                    &format!("{prefix}/sec"),
                ))
            }
        }
    }

    /// Returns stalled cycles per instruction, for an event that counts instructions: the cycles of the frontend or of the
    /// backend, whichever are more.
    fn stalls(&self) -> Option<GroupMetric> {
        let instructions = self.event.value;
        if self.event.role != Role::Instructions || instructions == 0.0 {
            return None;
        }
        let stalled = [Role::StalledFrontend, Role::StalledBackend];
        let [front, back] = stalled.map(|role| self.mean(role).unwrap_or_default());
        let stalled = front.max(back);
        (stalled != 0.0).then(|| GroupMetric {
            repeats_start: true,
            ..GroupMetric::new(
                stalled / instructions,
                MetricFormat::Ratio,
                "stalled cycles per insn",
            )
        })
    }
}

/// Returns the scaled rate and the prefix of its unit.
fn scaled(mut rate: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for next in ["K", "M", "G"] {
        if rate > 1000.0 {
            rate /= 1000.0;
            prefix = next;
        }
    }
    (rate, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics of one group of events with these roles.
    fn group(roles: &[Role]) -> GroupMetrics {
        let event = |role: &Role| RecordedEvent {
            role: *role,
            excluded: 0,
            leader: 0,
            group: 0..0,
            seen: 0,
            value: 0.0,
        };
        let mut events: Vec<_> = roles.iter().map(event).collect();
        events[0].group = 0..roles.len();
        GroupMetrics {
            events,
            counts: Vec::new(),
        }
    }

    fn reported_metrics(
        metrics: &mut GroupMetrics,
        samples: &[(usize, u64, u32)],
    ) -> Vec<(f64, String)> {
        let mut reported = Vec::new();
        for (event, period, cpu) in samples {
            metrics.add(*event, *period, *cpu, |metric| {
                reported.push((metric.value, metric.unit))
            });
        }
        reported
    }

    /// [`GroupMetrics::add`] checks only how many samples a group has, not of which events; here the events take turns.
    #[test]
    fn metrics_are_reported_after_a_sample_of_each_event() {
        let mut metrics = group(&[Role::Cycles, Role::Instructions]);
        let samples = [
            (0, 100, 1),
            (1, 250, 1),
            (0, 100, 1),
            (1, 50, 1),
            (0, 100, 1),
        ];
        let per_cycle = |value: f64| (value, "insn per cycle".to_owned());
        assert_eq!(
            reported_metrics(&mut metrics, &samples),
            [per_cycle(2.5), per_cycle(0.5)]
        );
        // The second event's sample follows the last one above, but on another CPU, which has no count of cycles.
        assert_eq!(reported_metrics(&mut metrics, &[(1, 50, 2)]), []);
        // There is no event 7.
        assert_eq!(reported_metrics(&mut metrics, &[(7, 50, 2)]), []);
    }

    #[test]
    fn rates_by_time() {
        let mut metrics = group(&[Role::Clock, Role::Cycles, Role::Other]);
        let samples = [(0, 2_000_000, 0), (1, 5_000_000, 0), (2, 10, 0)];
        assert_eq!(
            reported_metrics(&mut metrics, &samples),
            [(2.5, "GHz".to_owned()), (5.0, "K/sec".to_owned())]
        );
        assert_eq!(scaled(999.0), (999.0, ""));
        assert_eq!(scaled(2e9), (2.0, "G"));
    }

    #[test]
    fn a_single_event_has_no_metric() {
        let mut metrics = group(&[Role::Cycles, Role::Instructions]);
        metrics.events[0].group = 0..0;
        metrics.events[1].leader = 1;
        let samples = [(0, 100, 0), (1, 100, 0), (1, 100, 0)];
        assert_eq!(reported_metrics(&mut metrics, &samples), []);
    }
}
