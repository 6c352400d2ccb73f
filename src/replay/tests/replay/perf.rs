//! The World against Linux perf itself, over recordings made up of random records.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use rperf_perfdata::PerfData;
use rperf_replay::{Flow, Replay};
use rperf_testkit::{Run, Scratch, real_perf, skip};

use crate::oracle::{Event, Look, Seen, Step, events, record};

/// perf keeps the mappings of a thread whose process id was given out again; rperf looks up by
/// process. Real threads don't outlive their process, so only main threads take part here.
fn main_threads_only(event: Event) -> Event {
    let Event::Step(time, step) = event else {
        return event;
    };
    let step = match step {
        Step::Sample {
            pid,
            kernel,
            address,
            ..
        } => Step::Sample {
            pid,
            tid: pid,
            kernel,
            address,
        },
        Step::Comm {
            pid, name, exec, ..
        } => Step::Comm {
            pid,
            tid: pid,
            name,
            exec,
        },
        Step::Fork {
            parent,
            child,
            exec,
        } => Step::Fork {
            parent,
            child: (child.0, child.0),
            exec,
        },
        other => other,
    };
    Event::Step(time, step)
}

/// Lines of `perf script -F comm,tid,ip,dso`: `one 3 2a (/bin/a)`.
fn perf_lines(perf: &std::path::Path, file: &[u8]) -> Vec<String> {
    let scratch = Scratch::new();
    let path = scratch.write("perf.data", file).expect("written");
    let path = path.to_str().expect("a plain path");
    let run = Run::new(perf).args(["script", "-f", "-i", path, "-F", "comm,tid,ip,dso"]);
    let outcome = run.finish().expect("perf runs");
    let text = outcome.stdout;
    let words = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

fn line((_, comm, place): &Seen, (tid, ip): (u32, u64)) -> String {
    let dso = place.as_ref().map_or("[unknown]", |(name, _)| name);
    format!("{comm} {tid} {ip:x} ({dso})")
}

fn rperf_lines(file: &[u8], asked: &[(u64, (u32, u64))]) -> Vec<String> {
    let data = PerfData::parse(file).expect("a sound file");
    let replay = Replay::open(&data).expect("a sound recording");
    let mut lines = Vec::new();
    let mut take = |block: Vec<Seen>| {
        for seen in block {
            let known = asked.iter().find(|(position, _)| *position == seen.0);
            lines.push(line(&seen, known.expect("a sample of the file").1));
        }
        Flow::Continue
    };
    replay
        .ordered(NonZeroUsize::MIN, &Look, &mut take)
        .expect("no threads are started");
    lines
}

#[test]
fn perf_sees_the_same() {
    let Some(perf) = real_perf() else {
        return skip("perf_sees_the_same", "there is no perf");
    };
    let config = ProptestConfig {
        cases: 100,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    // Always the same recordings: there are some on which perf 6.1 never ends.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let ran = TestRunner::new_with_rng(config, rng).run(&events(), |events| {
        let events: Vec<Event> = events.into_iter().map(main_threads_only).collect();
        let (file, delivered) = record(&events);
        let asked: Vec<_> = delivered
            .iter()
            .filter_map(|(position, step)| match step {
                Step::Sample { tid, address, .. } => Some((*position, (*tid, *address))),
                _ => None,
            })
            .collect();
        if !asked.is_empty() {
            prop_assert_eq!(rperf_lines(&file, &asked), perf_lines(&perf, &file));
        }
        Ok(())
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
}
