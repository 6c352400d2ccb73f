//! Lost records and samples, and options that reduce losses.

use rperf_events::EventSpec;
use rperf_names::counted;
use rperf_session::{EventLosses, RecordRequest, SampledRate, Summary, TraceStats};

use crate::cli::context::Context;
use crate::cli::live::lower_rate::TooFrequent;
use crate::cli::shared::sampling::ring_size::human;

/// The share of lost samples above which perf warns.
const MAX_LOST_SHARE: f64 = 0.05;
/// The size in bytes of the largest ring buffers that are suggested.
const MAX_SUGGESTED_RING: u64 = 64 << 20;
/// Maximum number of events that are listed.
const MAX_LISTED_EVENTS: usize = 8;

/// Prints the losses and throttlings, if there are any, with hints on how to avoid them. Warnings below a line `Warning:`
/// have perf's words.
pub(super) fn print(context: &Context, request: &RecordRequest, recorded: &Summary) {
    let lost = count(&recorded.lost_samples);
    if recorded.lost_chunks > 0 {
        context.note("Warning:");
        context.note(format_args!(
            "Processed {} events and lost {} chunks!",
            recorded.records, recorded.lost_chunks
        ));
        for line in ["", "Check IO/CPU overload!", ""] {
            context.note(line);
        }
    }
    let all = recorded.samples + lost;
    let share = share(lost, all);
    if share > MAX_LOST_SHARE {
        context.note("Warning:");
        context.note(format_args!(
            "Processed {all} samples and lost {:.2}%!",
            share * 100.0
        ));
        context.note("");
    }
    for (cpu, lost) in &recorded.lost_by_cpu {
        context.note(format_args!(
            "CPU {cpu}: {} lost, ring buffer full",
            counted(*lost, "record")
        ));
    }
    for line in lines(&recorded.lost_samples) {
        context.note(format_args!("samples lost of {line}"));
    }
    if were_all_while_paused(request.observe.details.overwrite, recorded) {
        context.note("hint: an overwritable ring buffer is paused while it is read, and records of that time are lost: write fewer files");
    } else if lost > 0 || recorded.lost_chunks > 0 {
        context.note(format_args!("hint: try {}", suggestions(request, recorded)));
    }
    for line in traces(&recorded.traces) {
        context.note(line);
    }
    for line in lines(&recorded.throttled) {
        context.note(format_args!("throttled, number of times per event: {line}"));
    }
    if let Some(most) = most(&recorded.throttled) {
        context.note(format_args!("hint: {}", throttling_hint(request, most)));
    }
}

/// Returns the event and CPU with the highest count of losses or throttlings.
fn most(lost: &[EventLosses]) -> Option<&EventLosses> {
    lost.iter().max_by_key(|lost| lost.count)
}

/// Describes an event with losses or throttlings, for the suggestion of a lower rate.
fn too_frequent<'m>(request: &RecordRequest, lost: &'m EventLosses) -> TooFrequent<'m> {
    let events = || request.observe.events.iter();
    // The variant of `SampledRate`; it distinguishes clocks and tracepoints from other events.
    let kind = |event: &EventSpec| std::mem::discriminant(&SampledRate::of(&event.attr));
    TooFrequent {
        event: &lost.event,
        rate: lost.rate,
        suits_all_events: match lost.rate {
            // -F would also apply to tracepoints, of which by default every hit is a sample.
            SampledRate::Frequency(_) => events().all(|event| event.tracepoint.is_none()),
            // The unit of -c is nanoseconds for clocks and the number of events for others, so all events must be of one kind.
            _ => events()
                .skip(1)
                .zip(events())
                .all(|(one, other)| kind(one) == kind(other)),
        },
    }
}

/// Returns how to avoid the throttling of an event.
fn throttling_hint(request: &RecordRequest, throttled: &EventLosses) -> String {
    const LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";
    let event = too_frequent(request, throttled);
    format!(
        "throttled events come faster than {LIMIT} allows: try {}, or raise that limit",
        // Half of the samples.
        event.option(1, 2)
    )
}

/// Whether all losses occurred while overwritable rings were paused for reading; false unless `overwrites` (`--overwrite`). In
/// this mode, the samples are in overwritable rings, which are never full. The rings of the side-band records (mappings, names,
/// ...) may be full; in this mode, `lost_by_cpu` and `lost_of_tasks` count only their losses.
fn were_all_while_paused(overwrites: bool, recorded: &Summary) -> bool {
    let is_lossy = recorded.lost_chunks > 0 || !recorded.lost_samples.is_empty();
    overwrites && is_lossy && recorded.lost_by_cpu.is_empty() && recorded.lost_of_tasks == 0
}

/// Returns warnings about losses of hardware traces in perf's words, with a hint for truncated ones. Each of the
/// `parts` is the data of one AUX record.
fn traces(stats: &TraceStats) -> Vec<String> {
    let mut lines = Vec::new();
    let warning = |line: String| ["Warning:".to_owned(), line, String::new()];
    if stats.truncated > 0 {
        lines.extend(warning(format!(
            "AUX data lost {} times out of {}!",
            stats.truncated, stats.parts
        )));
        let larger = usize::try_from(stats.area_bytes.saturating_mul(4)).unwrap_or(usize::MAX);
        lines.push(format!(
            "hint: the AUX areas were full: try larger ones (-m ,{})",
            human(larger)
        ));
    }
    if stats.gaps > 0 {
        lines.extend(warning(format!(
            "AUX data had gaps in it {} times out of {}!",
            stats.gaps, stats.parts
        )));
    }
    if stats.collided > 0 {
        lines.extend(warning(format!(
            "AUX data detected collision {} times out of {}!",
            stats.collided, stats.parts
        )));
    }
    lines
}

fn count(lost: &[EventLosses]) -> u64 {
    lost.iter().map(|lost| lost.count).sum()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "two decimals of a percentage are shown"
)]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Returns a line for each event, largest count first: the count, and the counts by CPU. After [`MAX_LISTED_EVENTS`] lines, one
/// more sums up the remaining events.
fn lines(lost: &[EventLosses]) -> Vec<String> {
    let mut events: Vec<(&str, Vec<&EventLosses>)> = Vec::new();
    for loss in lost {
        match events.iter_mut().find(|(event, _)| *event == loss.event) {
            Some((_, per_cpu)) => per_cpu.push(loss),
            None => events.push((&loss.event, vec![loss])),
        }
    }
    let total = |per_cpu: &[&EventLosses]| per_cpu.iter().map(|lost| lost.count).sum::<u64>();
    events.sort_by_key(|(event, per_cpu)| (std::cmp::Reverse(total(per_cpu)), *event));
    let more = events.split_off(events.len().min(MAX_LISTED_EVENTS));
    let mut lines: Vec<String> = events
        .into_iter()
        .map(|(event, mut per_cpu)| {
            per_cpu.sort_by_key(|lost| lost.cpu);
            let cpus = per_cpu
                .iter()
                .filter_map(|lost| Some((lost.cpu?, lost.count)));
            let cpus: Vec<String> = cpus.map(|(cpu, count)| format!("{cpu}: {count}")).collect();
            match cpus.is_empty() {
                true => format!("{event}: {}", total(&per_cpu)),
                false => format!("{event}: {} (CPU {})", total(&per_cpu), cpus.join(", ")),
            }
        })
        .collect();
    if !more.is_empty() {
        let lost: u64 = more.iter().map(|(_, per_cpu)| total(per_cpu)).sum();
        lines.push(format!(
            "{}: {lost}",
            counted(more.len() as u64, "other event")
        ));
    }
    lines
}

/// Returns ways to reduce losses, with options and values to try.
fn suggestions(request: &RecordRequest, recorded: &Summary) -> String {
    let lost = count(&recorded.lost_samples);
    // If the kernel does not count lost samples, their share is unknown: rings of four times the size are suggested.
    let (written, all) = match lost {
        0 => (1, 2),
        lost => (recorded.samples.max(1), recorded.samples + lost),
    };
    let mut ways = Vec::new();
    // Twice the size that would have held all samples.
    let factor = all.div_ceil(written).saturating_mul(2).next_power_of_two();
    let larger = recorded
        .ring_bytes
        .saturating_mul(factor)
        .min(MAX_SUGGESTED_RING);
    if larger > recorded.ring_bytes {
        let size = usize::try_from(larger).unwrap_or(usize::MAX);
        ways.push(format!("larger ring buffers (-m {})", human(size)));
    }
    if request.output.compress {
        ways.push("no compression (omit -z)".to_owned());
    }
    if let Some(most) = most(&recorded.lost_samples) {
        let event = too_frequent(request, most);
        ways.push(format!("fewer samples ({})", event.option(written, all)));
    }
    ways.push("fewer events".to_owned());
    ways.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(event: &str, cpu: Option<u32>, count: u64) -> EventLosses {
        EventLosses {
            event: event.to_owned(),
            cpu,
            count,
            rate: SampledRate::Frequency(4000),
        }
    }

    #[test]
    fn truncations_gaps_and_collisions_of_traces_are_reported() {
        assert!(traces(&TraceStats::default()).is_empty());
        let mut stats = TraceStats {
            parts: 9,
            truncated: 2,
            area_bytes: 16 << 10,
            ..TraceStats::default()
        };
        let [title, message, empty, hint] = &traces(&stats)[..] else {
            panic!()
        };
        assert_eq!(
            [title, message, empty],
            ["Warning:", "AUX data lost 2 times out of 9!", ""]
        );
        assert!(hint.ends_with("(-m ,64K)"), "{hint}");
        stats.truncated = 0;
        (stats.gaps, stats.collided) = (1, 3);
        let lines = traces(&stats).concat();
        assert!(lines.contains("gaps in it 1 times") && lines.contains("collision 3 times"));
    }

    #[test]
    fn losses_of_overwritable_rings_are_from_pauses_unless_side_band_was_lost() {
        let mut recorded = Summary::default();
        recorded.lost_chunks = 1;
        recorded.lost_samples = vec![loss("a", Some(1), 2)];
        let overwrites = true;
        assert!(were_all_while_paused(overwrites, &recorded));
        assert!(!were_all_while_paused(!overwrites, &recorded));
        recorded.lost_by_cpu.push((0, 3));
        assert!(
            !were_all_while_paused(overwrites, &recorded),
            "side-band was lost"
        );
        recorded.lost_by_cpu.clear();
        recorded.lost_of_tasks = 3;
        assert!(
            !were_all_while_paused(overwrites, &recorded),
            "side-band of a task was lost"
        );
        assert!(!were_all_while_paused(overwrites, &Summary::default()));
    }

    #[test]
    fn losses_are_listed_by_event_largest_first() {
        let lost = [
            loss("a", Some(1), 2),
            loss("b", None, 7),
            loss("a", Some(0), 1),
        ];
        assert_eq!(lines(&lost), ["b: 7", "a: 3 (CPU 0: 1, 1: 2)"]);
        let many: Vec<_> = ('a'..='j')
            .map(|name| loss(&name.to_string(), None, 1))
            .collect();
        let lines = lines(&many);
        assert_eq!(lines.len(), MAX_LISTED_EVENTS + 1);
        assert_eq!(lines.last().unwrap(), "2 other events: 2");
    }
}
