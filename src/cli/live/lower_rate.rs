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
        // A term of the event takes precedence over `-F` and `-c`.
        let suits_all_events = self.suits_all_events && !terms(self.event).any(is_rate);
        // Breakpoints take no terms: their rate can be set only for all events.
        if suits_all_events || self.event.starts_with("mem:") {
            return format!("{option} {value}");
        }
        let event = with_rate(self.event, &format!("{term}={value}"));
        format!("-e {event}")
    }
}

/// Sets the term for the rate of an event: `cpu/cycles/u` becomes `cpu/cycles,TERM/u`, `cycles:u` becomes `cycles/TERM/u`,
/// `cycles/freq=1/` becomes `cycles/TERM/`, `sched:sched_switch` becomes `sched:sched_switch/TERM/`.
fn with_rate(event: &str, term: &str) -> String {
    let (name, modifiers) = match (event.split_once('/'), event.rsplit_once('/')) {
        (Some((name, _)), Some((_, modifiers))) => (name, modifiers),
        _ => split_modifiers(event).unwrap_or((event, "")),
    };
    let kept = terms(event).filter(|term| !is_rate(term));
    let all: Vec<&str> = kept.chain([term]).collect();
    format!("{name}/{}/{modifiers}", all.join(","))
}

/// The terms of an event: `event=1` and `freq=2` of `cpu/event=1,freq=2/u`.
fn terms(event: &str) -> impl Iterator<Item = &str> {
    let between_slashes = event.split('/').nth(1).unwrap_or_default();
    between_slashes.split(',').filter(|term| !term.is_empty())
}

/// Whether a term is the sampling rate of its event.
fn is_rate(term: &str) -> bool {
    term.starts_with("freq=") || term.starts_with("period=")
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
            (
                "cpu/freq=4000,event=0x3c/u",
                SampledRate::Frequency(4000),
                "-e cpu/event=0x3c,freq=1600/u",
                "-e cpu/event=0x3c,freq=1600/u",
            ),
            (
                "faults/period=2/",
                SampledRate::Period(2),
                "-e faults/period=6/",
                "-e faults/period=6/",
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
