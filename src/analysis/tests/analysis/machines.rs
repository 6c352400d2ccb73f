//! State machines over records (durations and running threads), compared with simple loops over all records.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::{
    Durations, EventPair, FilteredSamples, KeyedEvent, running_threads, sample_times,
};
use rperf_replay::EventIndex;
use rperf_resolve::{Resolver, SampleCriteria};
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::{Endian, Misc};

use crate::recording::{CYCLES, Recording, with_replay};

const SWITCHED: EventIndex = EventIndex(0);
const WOKEN: EventIndex = EventIndex(1);

/// A sample of a recording: time, CPU, thread, whether it is a wakeup, and the thread that is woken or switched to.
type SchedEvent = (u64, u32, u32, bool, u32);

fn recording(endian: Endian, events: &[SchedEvent]) -> Vec<u8> {
    let mut recording = Recording::new(endian);
    for (time, cpu, tid, is_wakeup, other) in events {
        match is_wakeup {
            true => recording.wakeup(*time, *cpu, *tid, *other),
            // 1: the state of the previous thread, sleeping.
            false => recording.switch(*time, *cpu, (*tid, 1), *other),
        }
    }
    // A sample of an event that neither begins nor ends a span (a duration).
    recording.sample(CYCLES, (1, 0, 1), &[]);
    recording.finish()
}

/// Returns the end and the duration of each span: from a wakeup to the next switch with the same key, if no other wakeup with
/// this key is between them.
fn oracle(events: &[SchedEvent], key: impl Fn(&SchedEvent) -> u32) -> Vec<(u64, u64)> {
    let mut sorted: Vec<&SchedEvent> = events.iter().collect();
    sorted.sort_by_key(|event| event.0);
    let mut open = BTreeMap::new();
    let mut spans = Vec::new();
    for event in sorted {
        let (time, _, _, is_wakeup, _) = *event;
        if is_wakeup {
            open.insert(key(event), time);
        } else if let Some(begin) = open.remove(&key(event)) {
            spans.push((time, time - begin));
        }
    }
    spans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn durations_are_from_the_last_begin(
        events in proptest::collection::vec((1..500_u64, 0..2_u32, 1..4_u32, any::<bool>(), 1..4_u32), 0..60),
        by_field in any::<bool>(),
        threads in 1..3_usize,
        big in any::<bool>(),
    ) {
        let file = recording(if big { Endian::Big } else { Endian::Little }, &events);
        let (actual, counts) = with_replay(&file, |data, replay| {
            let files = MemoryFiles::default();
            let resolver = Resolver::new(replay.world(), &files, SearchPaths::new(None));
            let formats = data.metadata().formats().expect("descriptions");
            let keyed = |event: EventIndex, field: &str| {
                let attr = &data.events()[event.0 as usize].attr;
                let tracepoint = formats.of_event(attr).expect("a description");
                let reader = tracepoint.reader(field).expect("a field");
                // Without fields, the key is the thread.
                let key = if by_field { vec![reader] } else { Vec::new() };
                KeyedEvent { event, key }
            };
            let pair = EventPair { from: keyed(WOKEN, "pid"), to: keyed(SWITCHED, "next_pid") };
            let filter = FilteredSamples { filter: &SampleCriteria::default(), resolver: &resolver };
            let threads = NonZeroUsize::new(threads).expect("threads");
            // Has no effect: the thread ids above do not include the idle task (0).
            let with_idle = true;
            let times = sample_times(replay, WOKEN, filter, with_idle, threads);
            assert_eq!(times.len(), events.iter().filter(|(.., is_wakeup, _)| *is_wakeup).count());
            let durations = Durations::measure(replay, &pair, filter, threads).expect("memory");
            let spans = durations.spans.iter().map(|span| (span.end, span.nanos));
            (spans.collect::<Vec<_>>(), durations.counts)
        });
        let expected = oracle(&events, |&(_, _, tid, _, other)| if by_field { other } else { tid });
        prop_assert_eq!(counts.complete, expected.len() as u64);
        prop_assert_eq!(actual, expected);
    }

    #[test]
    fn threads_run_from_a_switch_in_to_a_switch_out_or_an_exit(
        events in proptest::collection::vec((1..500_u64, 0..2_u32, 0..4_u32, 0..4_u8), 0..60),
    ) {
        let mut recording = Recording::new(Endian::NATIVE);
        for (time, cpu, tid, kind) in &events {
            let at = (*time, *cpu, *tid);
            match kind {
                // Switched in.
                0 => recording.switch_record(at, Misc(0)),
                1 => recording.switch_record(at, Misc::SWITCH_OUT),
                2 => recording.switch_record(at, Misc(Misc::SWITCH_OUT.0 | Misc::SWITCH_OUT_PREEMPT.0)),
                _ => recording.exit(at),
            }
        }
        let file = recording.finish();
        let steps = with_replay(&file, |_, replay| running_threads(replay)).expect("switches");
        let actual: Vec<(u64, u32)> = steps.iter().map(|(order, count)| (order.time, *count)).collect();
        let mut sorted = events;
        sorted.sort_by_key(|event| event.0);
        let mut running = BTreeSet::new();
        let mut expected = Vec::new();
        for (time, _, tid, kind) in sorted {
            let changed = match kind {
                // The idle task (0) is not counted.
                0 => tid != 0 && running.insert(tid),
                _ => running.remove(&tid),
            };
            if changed {
                expected.push((time, running.len() as u32));
            }
        }
        prop_assert_eq!(actual, expected);
    }
}
