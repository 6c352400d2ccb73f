//! Writes counts to a file or pipe (`stat record`).
//!
//! ```text
//! EVENT_UPDATE…  names (only to a pipe), units, scales and CPUs of events
//! THREAD_MAP     threads
//! CPU_MAP        CPUs
//! STAT_CONFIG    settings
//! STAT…          each reading, cumulative and unscaled
//! STAT_ROUND     time of the readings, after each interval or, without intervals, at the end
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rperf_count::CounterReading;
use rperf_events::GroupPosition;
use rperf_perfdata::{EventDesc, FeatureId, FeatureSet};
use rperf_safefs::PathOrigin;
use rperf_sys::Counter;
use rperf_wire::{
    Attr, SampleType, Stat, StatConfig, StatRound, ThreadMap, ThreadMapEntry, UserRecord,
};

use super::kernel::RunningKernel;
use super::open::{OpenCounters, OpenEvent};
use super::{CountRequest, EventReadings};
use crate::Error;
use crate::counted_output::write_error;
use crate::header::{HeaderInputs, groups};
use crate::output::Replacement;
use crate::output_stream::OutputStream;
use crate::synthesize::{self, RecordBuffer};
use crate::tasks::CpuTasks;

/// Options of the output.
#[derive(Debug, Clone)]
pub struct CountOutput {
    /// The file, or the name of the pipe in messages.
    pub output: PathBuf,
    /// Whether the user gave the name.
    pub naming: PathOrigin,
    /// The pipe, if counts are written to one.
    pub stream: Option<Arc<File>>,
    /// Settings of the count, for readers.
    pub config: StatConfig,
    /// Names of threads by thread id, if the counts are by thread (`--per-thread`).
    pub threads: BTreeMap<u32, String>,
    /// The command line for the header.
    pub command_line: Vec<String>,
    /// The version for the header.
    pub version: String,
}

/// Type of a round: the readings at one time, which a STAT_ROUND record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatRoundKind {
    /// An interval (`PERF_STAT_ROUND_TYPE__INTERVAL`).
    Interval = 0,
    /// The end of a count without intervals (`PERF_STAT_ROUND_TYPE__FINAL`).
    Final = 1,
}

/// The attr as it is written. `perf script` refuses streams of events that have sample fields but no samples.
fn described_attr(attr: &Attr, is_stream: bool) -> Attr {
    let mut attr = attr.clone();
    if is_stream {
        attr.sample_type = SampleType::default();
    }
    attr
}

/// The output of counts.
pub(super) struct CountWriter<'a> {
    options: &'a CountOutput,
    output_sink: OutputStream,
    /// `None` for a pipe.
    replacement: Option<Replacement>,
    features: FeatureSet,
    /// Counter ids by event and counter; `None` for a counter that is not open.
    ids: Vec<Vec<Option<u64>>>,
    /// The index of each observed thread in THREAD_MAP, by thread id. Unlike [`CountOutput::threads`], not names.
    threads: BTreeMap<u32, u32>,
    records: RecordBuffer,
}

impl<'a> CountWriter<'a> {
    /// Starts the file or pipe with the metadata.
    pub(super) fn begin(
        request: &CountRequest,
        options: &'a CountOutput,
        opened: &OpenCounters<RunningKernel>,
        cpu_tasks: &CpuTasks,
    ) -> Result<Self, Error> {
        let ids: Vec<Vec<Option<u64>>> = (0..)
            .zip(&opened.events)
            .map(|(index, event)| ids(index, event))
            .collect();
        let events = request.events.iter().zip(&opened.events).zip(&ids);
        let described = events.map(|((requested, event), ids)| EventDesc {
            attr: described_attr(&event.attr, options.stream.is_some()),
            ids: ids.iter().flatten().copied().collect(),
            name: name_with_cgroup(&event.spec.name, requested.cgroup.as_deref()),
        });
        let described: Vec<EventDesc> = described.collect();
        let grouped = opened.events.iter();
        let grouped = grouped.map(|event| (&event.spec.group, event.leader));
        let grouped: Vec<(&GroupPosition, Option<usize>)> = grouped.collect();
        let about = HeaderInputs {
            proc: &request.proc,
            sysfs: &request.sysfs,
            version: &options.version,
            command_line: &options.command_line,
            events: &described,
        };
        let mut features = about.features();
        // The feature has no data: it only marks a file with counts.
        features.opaque(FeatureId::STAT, &[]);
        groups(&grouped, &mut features);
        let (output_sink, replacement) = match &options.stream {
            Some(stream) => (
                OutputStream::pipe(stream.clone(), &described, &features),
                None,
            ),
            None => {
                let (replacement, file) = Replacement::create(&options.output, options.naming)?;
                (OutputStream::file(file, &described), Some(replacement))
            }
        };
        let tasks = cpu_tasks.tasks.iter().zip(0..);
        let threads = tasks.filter_map(|(task, index)| Some((u32::try_from(*task).ok()?, index)));
        let mut writer = Self {
            options,
            output_sink: output_sink
                .map_err(|error| write_error(error).with_path(&options.output))?,
            replacement,
            features,
            ids,
            threads: threads.collect(),
            // No trailers (`sample_id_all`): only records of the kernel's types have them, and none is written here.
            records: RecordBuffer::new(0),
        };
        writer.describe(request, opened, cpu_tasks);
        writer.flush()?;
        Ok(writer)
    }

    /// Replaces the old file; does nothing for a pipe. Called after the workload has started: if it cannot be started, the old
    /// file is kept.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.replacement
            .as_mut()
            .map_or(Ok(()), Replacement::commit)
    }

    /// Writes the readings at `elapsed` after the start.
    pub(super) fn round(
        &mut self,
        round: StatRoundKind,
        readings: &EventReadings,
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

    /// Whether a write failed because the reader closed the pipe, which is no error.
    pub(super) fn is_reader_gone(&self, error: &Error) -> bool {
        self.options.stream.is_some() && error.is_broken_pipe()
    }

    /// Completes the file or pipe.
    pub(super) fn finish(self) -> Result<(), Error> {
        let path = &self.options.output;
        let finished = self.output_sink.finish(&self.features);
        // `Err`: the data are incomplete. `Ok(Some(…))`: they are complete, but the features could not be written.
        let features_error = finished.map_err(|error| write_error(error).with_path(path))?;
        features_error.map_or(Ok(()), |cause| {
            Err(Error::Output {
                path: path.clone(),
                cause,
            })
        })
    }

    /// Adds the records before the first reading: EVENT_UPDATE to STAT_CONFIG.
    fn describe(
        &mut self,
        request: &CountRequest,
        opened: &OpenCounters<RunningKernel>,
        cpu_tasks: &CpuTasks,
    ) {
        let to = &mut self.records;
        let requested = request.events.iter().zip(&opened.events);
        for ((requested, event), ids) in requested.zip(&self.ids) {
            let Some(id) = ids.iter().flatten().next() else {
                continue;
            };
            if self.options.stream.is_some() {
                let name = name_with_cgroup(&event.spec.name, requested.cgroup.as_deref());
                synthesize::name(to, *id, &name);
            }
            synthesize::unit_and_scale(to, *id, &event.spec);
            if let Some(cpus) = &requested.cpus {
                synthesize::event_cpus(to, *id, cpus.numbers());
            } else if event.spec.tool.is_some() {
                // A tool event has a single slot in `counters`, so `cpus` has at most one element: the first observed CPU.
                let cpus: Vec<u32> = event.counters.iter().filter_map(|at| at.cpu).collect();
                if !cpus.is_empty() {
                    synthesize::event_cpus(to, *id, &cpus);
                }
            }
        }
        // The entry of a task in THREAD_MAP: its id, -1 for all tasks of a CPU, and its name.
        let entry = |task: &i32| {
            let thread = u32::try_from(*task).ok();
            let name = thread.and_then(|thread| self.options.threads.get(&thread));
            ThreadMapEntry {
                pid: i64::from(*task).cast_unsigned(),
                comm: name.map_or(Vec::new(), |name| name.clone().into_bytes()),
            }
        };
        let threads = cpu_tasks.tasks.iter().map(entry).collect();
        put(to, &UserRecord::ThreadMap(ThreadMap { threads }));
        synthesize::cpu_map(to, cpu_tasks);
        put(to, &UserRecord::StatConfig(self.options.config.clone()));
    }

    fn flush(&mut self) -> Result<(), Error> {
        let written = self.output_sink.write_data(&self.records.take());
        written.map_err(|error| write_error(error).with_path(&self.options.output))
    }
}

fn put(to: &mut RecordBuffer, record: &UserRecord<'_>) {
    to.user(record.kind(), |to| record.encode_body(to));
}

/// Returns a reading as a STAT record. As in perf, it has the CPU's number, and the thread's index in THREAD_MAP.
fn stat(id: u64, cell: &CounterReading, threads: &BTreeMap<u32, u32>) -> UserRecord<'static> {
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

/// Base of ids of tool events: far above the kernel's ids, which count up from 1.
const TOOL_EVENT_IDS: u64 = 1 << 63;

/// Returns the id of each counter of an event, `None` if it is not open. A tool event has one id, which is not from the kernel.
fn ids(index: u64, event: &OpenEvent<Counter>) -> Vec<Option<u64>> {
    if event.spec.tool.is_some() {
        return vec![Some(TOOL_EVENT_IDS | index)];
    }
    let counters = event.counters.iter();
    let id = |counter: &Counter| counter.id().ok();
    counters
        .map(|slot| slot.counter.as_ref().and_then(id))
        .collect()
}

/// Returns the name of an event in a file, followed by a tab and its cgroup, as the format has no field for cgroups.
fn name_with_cgroup(name: &str, cgroup: Option<&str>) -> String {
    cgroup.map_or_else(|| name.to_owned(), |cgroup| format!("{name}\t{cgroup}"))
}
