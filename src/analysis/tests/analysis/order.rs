//! Records are delivered in time order, from files and from live rounds (the records that one pass over all ring buffers reads).

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::{
    AllSamples, ContextSwitch, DeliveredCounts, EventContext, EventLayouts, LiveFeed, Loss,
    Observer, ObserverPass, PrepareSamples, TaskChange,
};
use rperf_perfdata::PerfData;
use rperf_replay::{EventIndex, FoldControl, LiveWorld, Sample, World};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::{Endian, Misc};

use crate::recording::{CYCLES, Recording, SWITCH, events, rounds, with_replay};

/// `cycles`, the event without a tracepoint format.
const CYCLES_EVENT: EventIndex = EventIndex(2);

/// Logs the delivered records.
#[derive(Default)]
struct Log {
    lines: Vec<(u64, String)>,
    /// The number of lines after which the log asks to stop; `None` for no limit.
    max_lines: Option<usize>,
}

impl Log {
    fn push(&mut self, at: &EventContext, text: String) {
        self.lines.push((at.time(), text));
    }
}

impl<D: std::fmt::Debug> Observer<D> for Log {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: D) {
        let text = match event {
            TypedEvent::SchedSwitch(event) => {
                let (prev, next) = (event.prev_pid(), event.next_pid());
                format!("switch {prev} {} {next}", event.prev_state())
            }
            TypedEvent::SchedWakeup(event) => format!("wakeup {}", event.pid()),
            other => format!("{other:?}"),
        };
        self.push(at, format!("{text} {detail:?}"));
    }

    fn sample(&mut self, at: &EventContext, detail: D) {
        assert_eq!(at.event, Some(CYCLES_EVENT));
        self.push(at, format!("sample of {} {detail:?}", at.task.tid));
    }

    fn task(&mut self, at: &EventContext, change: TaskChange<'_>) {
        let text = match change {
            TaskChange::Fork { parent, child } => format!("fork {} {}", parent.tid, child.tid),
            TaskChange::Exit(task) => format!("exit {}", task.tid),
            TaskChange::Comm {
                task,
                name,
                by_exec,
            } => {
                format!("comm {} {} {by_exec}", task.tid, name.escape_ascii())
            }
        };
        self.push(at, text);
    }

    fn switch(&mut self, at: &EventContext, switch: ContextSwitch) {
        self.push(at, format!("{switch:?} {} {:?}", at.task.tid, at.cpu));
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        let cpu = at.cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
        self.push(at, format!("lost {} on {cpu}", loss.records));
    }

    fn flow(&self) -> FoldControl {
        let enough = self
            .max_lines
            .is_some_and(|max_lines| self.lines.len() >= max_lines);
        if enough {
            FoldControl::Stop
        } else {
            FoldControl::Continue
        }
    }
}

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("threads")
}

/// Returns the records that a file delivers to a pass with this number of threads, and the counts.
fn of_file(file: &[u8], thread_count: usize) -> (Vec<(u64, String)>, DeliveredCounts) {
    with_replay(file, |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let mut log = Log::default();
        let pass = ObserverPass::new(&layouts, AllSamples)
            .with_tasks()
            .with_switches();
        let delivered = pass
            .run(replay, threads(thread_count), &mut log)
            .expect("memory");
        (log.lines, delivered)
    })
}

/// Returns the records that a file delivers if the records up to each FINISHED_ROUND are read as a live round, and the counts.
fn live(data: &PerfData<'_>) -> (Vec<(u64, String)>, DeliveredCounts) {
    let formats = data.metadata().formats().expect("descriptions");
    let layouts = EventLayouts::new(data.endian(), data.events(), &formats);
    let pass = ObserverPass::new(&layouts, AllSamples)
        .with_tasks()
        .with_switches();
    let mut feed = LiveFeed::new(LiveWorld::new(data.endian(), &events(data)));
    let mut log = Log::default();
    let mut total = DeliveredCounts::default();
    let mut add = |more: DeliveredCounts| {
        total.typed_events += more.typed_events;
        total.other_samples += more.other_samples;
        total.truncated += more.truncated;
        total.lost += more.lost;
    };
    for round in rounds(data) {
        feed.add_records(&round);
        feed.end_round();
        add(feed.deliver(&pass, &mut log));
    }
    feed.finish();
    add(feed.deliver(&pass, &mut log));
    (log.lines, total)
}

/// Records of two CPUs, in time order for each CPU. A triple is the time, the CPU, and the thread that runs there.
fn records_of_two_cpus(endian: Endian) -> Vec<u8> {
    let mut recording = Recording::new(endian);
    // From thread 7, which was preempted (`TASK_REPORT_MAX`, shown as `R+`), to thread 8.
    recording.switch(50, 0, (7, 0x100), 8);
    recording.sample(CYCLES, (60, 0, 8), &[]);
    recording.lost((70, 0, 8), 3);
    // Too short for a `sched_switch`: counted as truncated, not delivered.
    recording.sample(SWITCH, (80, 0, 8), &[0; 20]);
    // On CPU 1, the idle thread 0 wakes thread 7.
    recording.wakeup(10, 1, 0, 7);
    recording.fork((20, 1, 7), 9);
    recording.comm((30, 1, 9), b"new");
    recording.switch_record((40, 1, 9), Misc::SWITCH_OUT);
    recording.exit((90, 1, 9));
    recording.finish()
}

#[test]
fn records_of_all_types_are_delivered_in_time_order() {
    let expected = [
        (10, "wakeup 7 ()"),
        (20, "fork 7 9"),
        (30, "comm 9 new true"),
        (40, "Out 9 Some(1)"),
        (50, "switch 7 R+ 8 ()"),
        (60, "sample of 8 ()"),
        (70, "lost 3 on 0"),
        (90, "exit 9"),
    ];
    let expected = expected.map(|(time, text)| (time, text.to_owned()));
    let counts = DeliveredCounts {
        typed_events: 2,
        other_samples: 1,
        truncated: 1,
        lost: 3,
        invalidates_mapping_ids: false,
    };
    for endian in [Endian::Little, Endian::Big] {
        let file = records_of_two_cpus(endian);
        assert_eq!(of_file(&file, 1), (expected.to_vec(), counts), "{endian:?}");
        assert_eq!(
            with_replay(&file, |data, _| live(data)),
            (expected.to_vec(), counts),
            "{endian:?}"
        );
    }
}

#[test]
fn unselected_records_are_not_delivered() {
    let file = records_of_two_cpus(Endian::NATIVE);
    with_replay(&file, |_, replay| {
        let layouts = EventLayouts::empty(Endian::NATIVE);
        let mut log = Log::default();
        let pass = ObserverPass::new(&layouts, CyclesOfEvenTids).with_switches();
        let delivered = pass.run(replay, threads(1), &mut log).expect("memory");
        // The sample of `cycles`. Without layouts, the three samples of tracepoints would be passed to `sample`, too, but
        // `CyclesOfEvenTids` skips them.
        assert_eq!((delivered.typed_events, delivered.other_samples), (0, 1));
        assert_eq!(log.lines[0], (40, "Out 9 Some(1)".to_owned()));
        let mut log = Log::default();
        pass.run_without_samples(replay, &mut log);
        let times: Vec<u64> = log.lines.iter().map(|line| line.0).collect();
        assert_eq!(times, [40, 70]);
    });
}

/// Selects the samples of `cycles` in threads with an even id.
struct CyclesOfEvenTids;

impl PrepareSamples for CyclesOfEvenTids {
    type Detail = u32;

    fn prepare(&self, _: &World, sample: &Sample<'_>, _: Option<&TypedEvent<'_>>) -> Option<u32> {
        let is_selected = sample.event == CYCLES_EVENT && sample.tid.is_multiple_of(2);
        is_selected.then_some(sample.tid)
    }
}

#[test]
fn totals_of_losses_are_delivered_only_without_lost_records() {
    for (lost, expected) in [
        (Some(4), &["lost 4 on 1", "lost 2 on 1"][..]),
        (None, &["lost 2 on 1", "lost 5 on ?"]),
    ] {
        let mut recording = Recording::new(Endian::NATIVE);
        recording.sample(CYCLES, (60, 1, 8), &[]);
        if let Some(lost) = lost {
            recording.lost((70, 1, 8), lost);
        }
        recording.lost_samples(80, 1, 2);
        recording.sample(CYCLES, (90, 1, 8), &[]);
        // The second round delivers the records above, so that they precede the next record.
        recording.round();
        recording.round();
        // Time 0: the total that the recorder read at the end, for which the CPU has no meaning. It counts only in a file without
        // LOST records.
        recording.lost_samples(0, 0, 5);
        let file = recording.finish();
        for thread_count in [1, 3] {
            let (lines, delivered) = of_file(&file, thread_count);
            let lines = lines.iter().map(|(_, text)| text.as_str());
            let lines: Vec<&str> = lines.filter(|line| line.starts_with("lost")).collect();
            assert_eq!(lines, expected);
            assert_eq!(delivered.lost, if lost.is_some() { 6 } else { 7 });
        }
    }
}

#[test]
fn delivery_stops_when_the_observer_is_done() {
    let mut recording = Recording::new(Endian::NATIVE);
    (1..=5000).for_each(|time| recording.sample(CYCLES, (time, 0, 1), &[]));
    let file = recording.finish();
    with_replay(&file, |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let mut log = Log {
            max_lines: Some(10),
            ..Log::default()
        };
        let pass = ObserverPass::new(&layouts, AllSamples);
        pass.run(replay, threads(1), &mut log).expect("memory");
        // The pass asks for `flow` only once per block of at most 1024 samples, so more than 10 are delivered, but far from all.
        assert!((10..2000).contains(&log.lines.len()), "{}", log.lines.len());
    });
}

/// Returns the times of all records, sorted by time and position.
fn oracle(recording: &Recording) -> Vec<u64> {
    let mut records = recording.times_and_positions().to_vec();
    records.sort_unstable();
    records.into_iter().map(|(time, _)| time).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Rounds over two rings; the records of each ring are in time order.
    #[test]
    fn records_of_all_rings_are_delivered_in_order(
        rounds in proptest::collection::vec(proptest::collection::vec((0..2_u32, 0..6_u8, 1..40_u64), 0..40), 1..8),
        big in any::<bool>(),
    ) {
        let mut recording = Recording::new(if big { Endian::Big } else { Endian::Little });
        // Each ring is drained up to a different time in the round.
        let mut now = [1_u64; 2];
        for round in &rounds {
            for cpu in 0..2 {
                let slot = cpu as usize;
                for (_, kind, step) in round.iter().filter(|record| record.0 == cpu) {
                    now[slot] += step;
                    let at = (now[slot], cpu, 7);
                    match kind {
                        // Thread 7 sleeps (`TASK_INTERRUPTIBLE`).
                        0 => recording.switch(at.0, cpu, (7, 1), 8),
                        1 => recording.wakeup(at.0, cpu, 7, 8),
                        2 => recording.lost(at, 1),
                        3 => recording.fork(at, 9),
                        // Without `SWITCH_OUT`: switched in.
                        4 => recording.switch_record(at, Misc(0)),
                        _ => recording.sample(CYCLES, at, &[]),
                    }
                }
            }
            recording.round();
            // The records of the next round are later than all of this round.
            let latest = now[0].max(now[1]);
            now = [latest; 2];
        }
        let expected = oracle(&recording);
        let file = recording.finish();
        let (lines, delivered) = of_file(&file, 1);
        let times: Vec<u64> = lines.iter().map(|line| line.0).collect();
        prop_assert_eq!(times, expected);
        prop_assert_eq!(&of_file(&file, 3), &(lines.clone(), delivered));
        prop_assert_eq!(with_replay(&file, |data, _| live(data)), (lines, delivered));
    }
}
