//! The options that reduce the number of samples of an event.

use rperf_events::split_modifiers;
use rperf_session::SampledRate;

/// The shortest period of a clock event in nanoseconds (`perf_swevent_start_hrtimer` of the kernel).
const MIN_NANOSECONDS: u64 = 10_000;

/// An event with too many samples.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TooFrequent<'a> {
    /// The name of the event.
    pub(crate) event: &'a str,
    /// The sampling rate of the event.
    pub(crate) rate: SampledRate,
    /// Whether one `-F` or `-c` suits all events of the recording: `-F` also applies to tracepoints, of which by default every
    /// hit is a sample, and the unit of `-c` depends on the event (nanoseconds for clock events).
    pub(crate) suits_all_events: bool,
}

impl TooFrequent<'_> {
    /// Returns the option that reduces the samples, or their bytes, from `all` to about `target`: `-F 1000`,
    /// `-e cpu-clock/freq=1000/`. For a tracepoint sampled by period, it is `--filter`, for which the user must find a condition.
    pub(crate) fn option(self, target: u64, all: u64) -> String {
        let longer = |period: u64| {
            let factor = u128::from(all.div_ceil(target.max(1)).max(1));
            ("-c", "period", u128::from(period.max(1)) * factor)
        };
        let (option, term, value) = match self.rate {
            SampledRate::Frequency(rate) => {
                let lower = u128::from(rate) * u128::from(target) / u128::from(all.max(1));
                ("-F", "freq", lower.max(1))
            }
            SampledRate::Period(period) => longer(period),
            SampledRate::Nanoseconds(period) => longer(period.max(MIN_NANOSECONDS)),
            // A period would keep one event in N, and so separate events that belong together.
            SampledRate::Tracepoint(_) => {
                return "--filter with a condition on its fields".to_owned();
            }
        };
        // Breakpoints take no terms: their rate can be set only for all events.
        if self.suits_all_events || self.event.starts_with("mem:") {
            return format!("{option} {value}");
        }
        format!("-e {}", with_term(self.event, &format!("{term}={value}")))
    }
}

/// Adds a term to an event: `cpu/cycles/u` to `cpu/cycles,TERM/u`, `cycles:u` to `cycles/TERM/u`, `sched:sched_switch` to
/// `sched:sched_switch/TERM/`.
fn with_term(event: &str, term: &str) -> String {
    if let Some((pmu_terms, modifiers)) = event.rsplit_once('/') {
        // `cpu//` has no other terms.
        let comma = if pmu_terms.ends_with('/') { "" } else { "," };
        return format!("{pmu_terms}{comma}{term}/{modifiers}");
    }
    let (name, modifiers) = split_modifiers(event).unwrap_or((event, ""));
    format!("{name}/{term}/{modifiers}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_fit_the_kind_of_event() {
        let option = |event, rate, suits_all_events| {
            let event = TooFrequent {
                event,
                rate,
                suits_all_events,
            };
            event.option(10, 25)
        };
        for (event, rate, for_all_events, for_this_event) in [
            (
                "cycles",
                SampledRate::Frequency(4000),
                "-F 1600",
                "-e cycles/freq=1600/",
            ),
            (
                "faults",
                SampledRate::Period(2),
                "-c 6",
                "-e faults/period=6/",
            ),
            (
                "cpu-clock:u",
                SampledRate::Nanoseconds(1),
                "-c 30000",
                "-e cpu-clock/period=30000/u",
            ),
            (
                "cpu/event=0x3c/u",
                SampledRate::Frequency(4000),
                "-F 1600",
                "-e cpu/event=0x3c,freq=1600/u",
            ),
            (
                "cpu//",
                SampledRate::Frequency(4000),
                "-F 1600",
                "-e cpu/freq=1600/",
            ),
            (
                "sched:sched_switch",
                SampledRate::Frequency(100),
                "-F 40",
                "-e sched:sched_switch/freq=40/",
            ),
            (
                "sched:sched_switch:u",
                SampledRate::Frequency(100),
                "-F 40",
                "-e sched:sched_switch/freq=40/u",
            ),
            ("mem:0x1000/8:w", SampledRate::Period(1), "-c 3", "-c 3"),
            (
                "sched:sched_switch",
                SampledRate::Tracepoint(1),
                "--filter with a condition on its fields",
                "--filter with a condition on its fields",
            ),
        ] {
            assert_eq!(option(event, rate, true), for_all_events);
            assert_eq!(option(event, rate, false), for_this_event);
        }
    }
}
