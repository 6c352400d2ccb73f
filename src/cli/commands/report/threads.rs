//! `--threads`: what was counted in each thread, as the kernel told when it ended.

use clap::ArgMatches;
use rperf_perfdata::PerfData;
use rperf_replay::{Replay, What};
use rperf_view::report::{ThreadCount, ThreadCounts, ThreadLayout};
use rperf_wire::{Read, Record};

use crate::cli::error::CliError;
use crate::cli::options::flag;

/// How counts are to be laid out, if they are wanted.
///
/// # Errors
///
/// Words of `--pretty` that are no layouts.
pub(super) fn layout(matches: &ArgMatches) -> Result<Option<ThreadLayout>, CliError> {
    let layout = match matches.get_one::<String>("pretty").map(String::as_str) {
        None | Some("normal") => ThreadLayout::Normal,
        Some("raw") => ThreadLayout::Raw,
        Some(word) => {
            let message = format!("--pretty takes normal or raw, not '{word}'");
            return Err(CliError::usage(message));
        }
    };
    Ok((flag(matches, "threads") == Some(true)).then_some(layout))
}

/// The counts of all threads, in the order in which they ended. A thread is told of once for each processor.
pub(super) fn counts(replay: &Replay<'_>, data: &PerfData<'_>) -> ThreadCounts {
    let mut counted = ThreadCounts::default();
    for turn in replay.turns() {
        let What::Kernel { side, .. } = &turn.what else {
            continue;
        };
        let Some(event) = side.event.map(|event| event.0 as usize) else {
            continue;
        };
        // What cannot be decoded was counted when the file was opened.
        let Ok(Record::Read(read)) = Record::decode(&side.raw, data.endian()) else {
            continue;
        };
        let name = data.events().get(event).map(|event| event.name.as_str());
        add(&mut counted, &read, event, name.unwrap_or_default());
    }
    for thread in &mut counted.threads {
        thread.counts.resize(counted.events.len(), 0);
    }
    counted
}

fn add(counted: &mut ThreadCounts, read: &Read<'_>, event: usize, name: &str) {
    let ThreadCounts { events, threads } = counted;
    let known = events.iter().position(|(_, place)| *place == event);
    let column = known.unwrap_or_else(|| {
        events.push((name.to_owned(), event));
        events.len() - 1
    });
    let ids = (read.pid, read.tid);
    let known = threads
        .iter()
        .rposition(|thread| (thread.pid, thread.tid) == ids);
    let row = known.unwrap_or_else(|| {
        threads.push(ThreadCount {
            pid: read.pid,
            tid: read.tid,
            counts: Vec::new(),
        });
        threads.len() - 1
    });
    let counts = &mut threads[row].counts;
    if counts.len() <= column {
        counts.resize(column + 1, 0);
    }
    counts[column] = counts[column].saturating_add(read.words.get(0).unwrap_or_default());
}
