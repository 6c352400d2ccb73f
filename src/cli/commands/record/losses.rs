//! What a recording lost, where, and what would have kept it.

use rperf_session::{CutTraces, Missed, Request, Sampled, Summary};

use super::ring_size::human;
use crate::cli::context::Context;

/// A share of lost samples from which on perf warns of it.
const WORTH_A_WARNING: f64 = 0.05;
/// The largest rings that are suggested.
const LARGEST_RINGS: u64 = 64 << 20;
/// How many of several events are told of.
const EVENTS_TOLD: usize = 8;

/// Says what was lost, if anything: first in perf's words.
pub(super) fn print(context: &Context, request: &Request, recorded: &Summary) {
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
    if share > WORTH_A_WARNING {
        context.note("Warning:");
        context.note(format_args!(
            "Processed {all} samples and lost {:.2}%!",
            share * 100.0
        ));
        context.note("");
    }
    for (cpu, lost) in &recorded.lost_by_cpu {
        context.note(format_args!(
            "CPU {cpu}: {lost} records found the ring full"
        ));
    }
    for line in places(&recorded.lost_samples) {
        context.note(format_args!("samples lost of {line}"));
    }
    if stopped_to_be_read(request.details.overwrite, recorded) {
        context.note("hint: a ring that is written over stops while it is read for a file: nothing keeps what comes then, and fewer files lose less");
    } else if lost > 0 || recorded.lost_chunks > 0 {
        context.note(format_args!("hint: try {}", ways_out(request, recorded)));
    }
    for line in traces(&recorded.traces) {
        context.note(line);
    }
    for line in places(&recorded.throttled) {
        context.note(format_args!("throttled, by the number of times: {line}"));
    }
    if let Some(Sampled::Frequency(_)) = recorded.throttled.first().map(|missed| missed.rate) {
        context.note("hint: throttled events come faster than /proc/sys/kernel/perf_event_max_sample_rate allows: try a lower -F");
    } else if !recorded.throttled.is_empty() {
        context.note("hint: throttled events come faster than /proc/sys/kernel/perf_event_max_sample_rate allows: try a larger -c");
    }
}

/// Whether what was lost is what came to rings that are written over (`--overwrite`) while they were read, for want of no
/// room: they are never full, and the others were not.
fn stopped_to_be_read(overwrites: bool, recorded: &Summary) -> bool {
    let is_lossy = recorded.lost_chunks > 0 || !recorded.lost_samples.is_empty();
    overwrites && is_lossy && recorded.lost_by_cpu.is_empty()
}

/// What is missing of hardware traces: first in perf's words, then what keeps more.
fn traces(cut: &CutTraces) -> Vec<String> {
    let mut lines = Vec::new();
    let warning = |line: String| ["Warning:".to_owned(), line, String::new()];
    if cut.truncated > 0 {
        lines.extend(warning(format!(
            "AUX data lost {} times out of {}!",
            cut.truncated, cut.parts
        )));
        let larger = usize::try_from(cut.area_bytes.saturating_mul(4)).unwrap_or(usize::MAX);
        lines.push(format!(
            "hint: the areas for the trace were full: try larger ones (-m ,{})",
            human(larger)
        ));
    }
    if cut.gaps > 0 {
        lines.extend(warning(format!(
            "AUX data had gaps in it {} times out of {}!",
            cut.gaps, cut.parts
        )));
    }
    if cut.collided > 0 {
        lines.extend(warning(format!(
            "AUX data detected collision {} times out of {}!",
            cut.collided, cut.parts
        )));
    }
    lines
}

fn count(missed: &[Missed]) -> u64 {
    missed.iter().map(|missed| missed.count).sum()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "two decimals of a percentage are shown"
)]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// A line for each event: how many, and on which CPUs.
fn places(missed: &[Missed]) -> Vec<String> {
    let mut events: Vec<(&str, Vec<&Missed>)> = Vec::new();
    for one in missed {
        match events.iter_mut().find(|(event, _)| *event == one.event) {
            Some((_, places)) => places.push(one),
            None => events.push((&one.event, vec![one])),
        }
    }
    let total = |places: &[&Missed]| places.iter().map(|missed| missed.count).sum::<u64>();
    events.sort_by_key(|(event, places)| (std::cmp::Reverse(total(places)), *event));
    let more = events.split_off(events.len().min(EVENTS_TOLD));
    let mut lines: Vec<String> = events
        .into_iter()
        .map(|(event, mut places)| {
            places.sort_by_key(|missed| missed.cpu);
            let cpus = places
                .iter()
                .filter_map(|missed| Some((missed.cpu?, missed.count)));
            let cpus: Vec<String> = cpus.map(|(cpu, count)| format!("{cpu}: {count}")).collect();
            match cpus.is_empty() {
                true => format!("{event}: {}", total(&places)),
                false => format!("{event}: {} (CPU {})", total(&places), cpus.join(", ")),
            }
        })
        .collect();
    if !more.is_empty() {
        let lost: u64 = more.iter().map(|(_, places)| total(places)).sum();
        lines.push(format!("{} other events: {lost}", more.len()));
    }
    lines
}

/// The options that lose less, with values to try.
fn ways_out(request: &Request, recorded: &Summary) -> String {
    let lost = count(&recorded.lost_samples);
    // Where the kernel does not count lost samples, only how often records were lost is known: twice the room is tried.
    let (kept, all) = match lost {
        0 => (1, 2),
        lost => (recorded.samples.max(1), recorded.samples + lost),
    };
    let mut ways = Vec::new();
    let factor = all.div_ceil(kept).saturating_mul(2).next_power_of_two();
    let larger = recorded
        .ring_bytes
        .saturating_mul(factor)
        .min(LARGEST_RINGS);
    if larger > recorded.ring_bytes {
        let size = usize::try_from(larger).unwrap_or(usize::MAX);
        ways.push(format!("larger rings (-m {})", human(size)));
    }
    if request.compress {
        ways.push("leaving -z out".to_owned());
    }
    let worst = recorded.lost_samples.iter();
    match worst
        .max_by_key(|missed| missed.count)
        .map(|missed| missed.rate)
    {
        Some(Sampled::Frequency(rate)) => {
            let lower = u128::from(rate) * u128::from(kept) / u128::from(all);
            ways.push(format!("a lower rate (-F {})", lower.max(1)));
        }
        Some(Sampled::Period(period)) => {
            let longer = period.max(1).saturating_mul(all.div_ceil(kept));
            ways.push(format!("fewer samples (-c {longer})"));
        }
        None => {}
    }
    ways.push("fewer events".to_owned());
    ways.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(event: &str, cpu: Option<u32>, count: u64) -> Missed {
        Missed {
            event: event.to_owned(),
            cpu,
            count,
            rate: Sampled::Frequency(4000),
        }
    }

    #[test]
    fn traces_that_were_cut_name_the_size_to_try() {
        assert!(traces(&CutTraces::default()).is_empty());
        let mut cut = CutTraces {
            parts: 9,
            truncated: 2,
            area_bytes: 16 << 10,
            ..CutTraces::default()
        };
        let [title, said, empty, hint] = &traces(&cut)[..] else {
            panic!()
        };
        assert_eq!(
            [title, said, empty],
            ["Warning:", "AUX data lost 2 times out of 9!", ""]
        );
        assert!(hint.ends_with("(-m ,64K)"), "{hint}");
        cut.truncated = 0;
        (cut.gaps, cut.collided) = (1, 3);
        let lines = traces(&cut).concat();
        assert!(lines.contains("gaps in it 1 times") && lines.contains("collision 3 times"));
    }

    #[test]
    fn rings_that_are_written_over_are_never_full() {
        let mut recorded = Summary::default();
        recorded.lost_chunks = 1;
        recorded.lost_samples = vec![missed("a", Some(1), 2)];
        assert!(stopped_to_be_read(true, &recorded));
        assert!(!stopped_to_be_read(false, &recorded));
        recorded.lost_by_cpu.push((0, 3));
        assert!(!stopped_to_be_read(true, &recorded), "side-band was lost");
        assert!(!stopped_to_be_read(true, &Summary::default()));
    }

    #[test]
    fn places_are_told_by_event_the_most_first() {
        let lost = [
            missed("a", Some(1), 2),
            missed("b", None, 7),
            missed("a", Some(0), 1),
        ];
        assert_eq!(places(&lost), ["b: 7", "a: 3 (CPU 0: 1, 1: 2)"]);
        let many: Vec<_> = ('a'..='j')
            .map(|name| missed(&name.to_string(), None, 1))
            .collect();
        let lines = places(&many);
        assert_eq!(lines.len(), EVENTS_TOLD + 1);
        assert_eq!(lines.last().unwrap(), "2 other events: 2");
    }
}
