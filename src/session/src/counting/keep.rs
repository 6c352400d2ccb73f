//! Counts kept in a file or pipe while they are made (`stat record`).
//!
//! ```text
//! EVENT_UPDATE…  names, units, scales and CPUs of events
//! THREAD_MAP     whom, CPU_MAP where, STAT_CONFIG how it was counted
//! STAT…          each counter as it was read, from the start on and unscaled
//! STAT_ROUND     when that was, after an interval or at the end; STAT… STAT_ROUND and so on
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rperf_count::Cell;
use rperf_events::Group;
use rperf_perfdata::{EventDesc, FeatureId, FeatureSet};
use rperf_safefs::Naming;
use rperf_sys::Counter;
use rperf_wire::{Stat, StatConfig, StatRound, ThreadMap, ThreadMapEntry, UserRecord};

use super::kernel::Running;
use super::open::{OpenEvent, Opened};
use super::{CountRequest, Readings};
use crate::Error;
use crate::header::{About, groups};
use crate::medium::Medium;
use crate::output::Replacement;
use crate::sink::write_error;
use crate::synthesize::{self, Records};
use crate::tasks::Places;

/// Where counts are kept.
#[derive(Debug, Clone)]
pub struct Keep {
    /// The file, or what a pipe is called in messages.
    pub output: PathBuf,
    /// Whether the user gave that name.
    pub naming: Naming,
    /// The pipe, if it is one.
    pub stream: Option<Arc<File>>,
    /// How it is counted, for who reads it.
    pub config: StatConfig,
    /// Names of threads, where rows are of threads.
    pub threads: BTreeMap<u32, String>,
    /// The command line for the header.
    pub command_line: Vec<String>,
    /// The version for the header.
    pub version: String,
}

/// What ends with a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// An interval (`PERF_STAT_ROUND_TYPE__INTERVAL`).
    Interval = 0,
    /// The count (`PERF_STAT_ROUND_TYPE__FINAL`).
    Final = 1,
}

/// Counts that are being kept.
pub(super) struct Kept<'a> {
    keep: &'a Keep,
    medium: Medium,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    features: FeatureSet,
    /// By event and place the id of the counter.
    ids: Vec<Vec<Option<u64>>>,
    /// Which one of those observed a thread is.
    threads: BTreeMap<u32, u32>,
    records: Records,
}

impl<'a> Kept<'a> {
    /// Begins the file or pipe with what is known before anything is counted.
    pub(super) fn begin(
        request: &CountRequest,
        keep: &'a Keep,
        (opened, places): (&Opened<Running>, &Places),
    ) -> Result<Self, Error> {
        let ids: Vec<Vec<Option<u64>>> = (0..).zip(&opened.events).map(ids).collect();
        let events = request.events.iter().zip(&opened.events).zip(&ids);
        let described = events.map(|((wanted, event), ids)| EventDesc {
            attr: event.attr.clone(),
            ids: ids.iter().flatten().copied().collect(),
            name: kept_name(&event.spec.name, wanted.cgroup.as_deref()),
        });
        let described: Vec<EventDesc> = described.collect();
        let placed = opened.events.iter();
        let placed = placed.map(|event| (&event.spec.group, event.leader));
        let placed: Vec<(&Group, Option<usize>)> = placed.collect();
        let about = About {
            proc: &request.proc,
            sysfs: &request.sysfs,
            version: &keep.version,
            command_line: &keep.command_line,
            events: &described,
        };
        let mut features = about.features();
        features.opaque(FeatureId::STAT, &[]);
        groups(&placed, &mut features);
        let (medium, replacement) = match &keep.stream {
            Some(stream) => (Medium::pipe(stream.clone(), &described, &features), None),
            None => {
                let (replacement, file) = Replacement::create(&keep.output, keep.naming)?;
                (Medium::file(file, &described), Some(replacement))
            }
        };
        let tasks = places.tasks.iter().zip(0..);
        let threads = tasks.filter_map(|(task, index)| Some((u32::try_from(*task).ok()?, index)));
        let mut kept = Self {
            keep,
            medium: medium.map_err(|error| write_error(error).at(&keep.output))?,
            replacement,
            features,
            ids,
            threads: threads.collect(),
            records: Records::new(0),
        };
        kept.describe(request, opened, places);
        kept.flush()?;
        Ok(kept)
    }

    /// Puts the file in the place of an older one.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.replacement
            .as_mut()
            .map_or(Ok(()), Replacement::commit)
    }

    /// Keeps what the counters said `elapsed` after the start.
    pub(super) fn round(
        &mut self,
        round: Round,
        readings: &Readings,
        elapsed: Duration,
    ) -> Result<(), Error> {
        for (ids, cells) in self.ids.iter().zip(&readings.cells) {
            for (id, cell) in ids.iter().zip(cells) {
                if let Some(id) = id {
                    put(&mut self.records, &stat(*id, cell, &self.threads));
                }
            }
        }
        let end = StatRound {
            kind: round as u64,
            time: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        };
        put(&mut self.records, &UserRecord::StatRound(end));
        self.flush()
    }

    /// Whether a write failed because nobody reads the pipe any more, which is no failure.
    pub(super) fn is_reader_gone(&self, error: &Error) -> bool {
        self.keep.stream.is_some() && error.is_broken_pipe()
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<(), Error> {
        let path = &self.keep.output;
        let finished = self.medium.finish(&self.features);
        let lost = finished.map_err(|error| write_error(error).at(path))?;
        lost.map_or(Ok(()), |cause| {
            Err(Error::Output {
                path: path.clone(),
                cause,
            })
        })
    }

    fn describe(&mut self, request: &CountRequest, opened: &Opened<Running>, places: &Places) {
        let to = &mut self.records;
        let wanted = request.events.iter().zip(&opened.events);
        for ((wanted, event), ids) in wanted.zip(&self.ids) {
            let Some(id) = ids.iter().flatten().next() else {
                continue;
            };
            if self.keep.stream.is_some() {
                let name = kept_name(&event.spec.name, wanted.cgroup.as_deref());
                synthesize::name(to, *id, &name);
            }
            synthesize::unit_and_scale(to, *id, &event.spec);
            if let Some(cpus) = &wanted.cpus {
                synthesize::event_cpus(to, *id, cpus.numbers());
            } else if event.spec.tool.is_some() {
                let cpus: Vec<u32> = event.counters.iter().filter_map(|at| at.cpu).collect();
                if !cpus.is_empty() {
                    synthesize::event_cpus(to, *id, &cpus);
                }
            }
        }
        let name = |task: &i32| {
            let thread = u32::try_from(*task).ok();
            let name = thread.and_then(|thread| self.keep.threads.get(&thread));
            ThreadMapEntry {
                pid: i64::from(*task).cast_unsigned(),
                comm: name.map_or(Vec::new(), |name| name.clone().into_bytes()),
            }
        };
        let threads = places.tasks.iter().map(name).collect();
        put(to, &UserRecord::ThreadMap(ThreadMap { threads }));
        synthesize::cpu_map(to, places);
        put(to, &UserRecord::StatConfig(self.keep.config.clone()));
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.medium.write_data(&self.records.take());
        written.map_err(|error| write_error(error).at(&self.keep.output))
    }
}

fn put(to: &mut Records, record: &UserRecord<'_>) {
    to.user(record.kind(), |to| record.encode_body(to));
}

/// One reading. perf writes the CPU's number, and of a thread its place in THREAD_MAP.
fn stat(id: u64, cell: &Cell, threads: &BTreeMap<u32, u32>) -> UserRecord<'static> {
    let thread = cell.thread.and_then(|thread| threads.get(&thread));
    UserRecord::Stat(Stat {
        id,
        cpu: cell.cpu.unwrap_or(u32::MAX),
        thread: thread.copied().unwrap_or_default(),
        value: cell.counts.value,
        enabled: cell.counts.enabled,
        running: cell.counts.running,
    })
}

/// What times, which are no events of the kernel, have for ids, each behind the other. The kernel counts from 1 on.
const TIMES: u64 = 1 << 63;

/// By place the id of the counter.
fn ids((index, event): (u64, &OpenEvent<Counter>)) -> Vec<Option<u64>> {
    if event.spec.tool.is_some() {
        return vec![Some(TIMES | index)];
    }
    let counters = event.counters.iter();
    let id = |counter: &Counter| counter.id().ok();
    counters
        .map(|placed| placed.counter.as_ref().and_then(id))
        .collect()
}

/// The name of an event in a file: behind it and a tab that of its cgroup, for which the format has no place.
fn kept_name(name: &str, cgroup: Option<&str>) -> String {
    cgroup.map_or_else(|| name.to_owned(), |cgroup| format!("{name}\t{cgroup}"))
}
