//! The sample filters of a report.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::ArgMatches;
use rperf_hist::{Parallelism, SampleTreatment, SelectSamples};
use rperf_lines::SwitchedSamples;
use rperf_perfdata::Metadata;
use rperf_replay::{Replay, Sample, World};
use rperf_resolve::{Frame, Resolver, SampleCriteria};
use rperf_sys::CpuList;
use rperf_wire::SampleType;

use super::settings::no_latency;
use crate::cli::error::CliError;
use crate::cli::filter::{CPU_HINT, RequestedFilters};
use crate::cli::options::flag;
use crate::cli::switches::SwitchOptions;

/// The options that select samples, before a recording is read.
pub(super) struct SampleSelection {
    filters: RequestedFilters,
    /// `--switch-on` and `--switch-off`.
    switches: SwitchOptions,
    /// Whether samples of idle tasks count.
    idle: bool,
    /// The value of `--socket-filter`.
    pub(super) socket: Option<i32>,
    /// The values of `--parallelism`: numbers of threads, in the syntax of a list of CPUs.
    levels: Option<CpuList>,
}

impl SampleSelection {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let socket = matches.get_one::<u64>("socket-filter");
        Ok(Self {
            filters: RequestedFilters::new(matches)?,
            switches: SwitchOptions::new(matches),
            idle: flag(matches, "idle") != Some(false),
            socket: socket.map(|socket| i32::try_from(*socket).unwrap_or(i32::MAX)),
            levels: levels(matches)?,
        })
    }

    /// The time ranges, as given.
    pub(super) fn time(&self) -> Option<&str> {
        self.filters.time()
    }

    /// The filter for one recording; `None` if all samples count. `sockets` are the sockets of its CPUs; `parallelism` is the
    /// number of running threads over time, `None` if the recording has no context switches.
    ///
    /// # Errors
    ///
    /// Invalid times, or a filter on data that the recording lacks.
    pub(super) fn of(
        &self,
        replay: &Replay<'_>,
        sockets: &[i32],
        parallelism: Option<&Arc<Parallelism>>,
        threads: NonZeroUsize,
    ) -> Result<Option<SampleSelector>, CliError> {
        let recording = replay.data().metadata();
        let switch = self.switches.find(recording)?;
        if self.socket.is_some() {
            check_cpus(recording)?;
        }
        let levels = self.levels.as_ref();
        if levels.is_some() && parallelism.is_none() {
            // The message names both latencies and parallelism.
            return Err(no_latency());
        }
        // Times in `--time` (other than percentages) are of the recording's clock; they do not count from the first sample.
        let relative_times = false;
        let selected = SampleSelector {
            chosen: self.filters.filter(recording, relative_times)?.non_empty(),
            switched: SwitchedSamples::find(replay, switch, threads),
            idle: self.idle,
            socket: self.socket.map(|socket| OnSocket {
                socket,
                sockets: sockets.to_vec(),
            }),
            levels: levels.cloned().zip(parallelism.cloned()),
        };
        Ok(selected.is_needed().then_some(selected))
    }
}

fn levels(matches: &ArgMatches) -> Result<Option<CpuList>, CliError> {
    let Some(list) = matches.get_one::<String>("parallelism") else {
        return Ok(None);
    };
    let levels = CpuList::parse(list);
    let levels = levels.map_err(|error| {
        CliError::usage(format!(
            "--parallelism: {error}; give numbers of threads: 1 or 2-4"
        ))
    })?;
    Ok(Some(levels))
}

fn check_cpus(recording: Metadata<'_>) -> Result<(), CliError> {
    let mut events = recording.events.iter();
    if events.all(|event| event.attr.sample_type.contains(SampleType::CPU)) {
        return Ok(());
    }
    let message = "--socket-filter: the samples have no CPU";
    Err(CliError::message(255, message).hint(CPU_HINT))
}

/// Selects the samples of one recording.
pub(super) struct SampleSelector {
    /// The filters by thread, CPU, time, symbol and the like; `None` without any.
    chosen: Option<SampleCriteria>,
    /// The samples that `--switch-on` and `--switch-off` show.
    switched: Option<SwitchedSamples>,
    /// Whether samples of idle tasks count.
    idle: bool,
    socket: Option<OnSocket>,
    /// The values of `--parallelism`, and the parallelism over time.
    levels: Option<(CpuList, Arc<Parallelism>)>,
}

/// The socket whose samples are counted, and the socket of each CPU by its number; -1 if that is unknown.
struct OnSocket {
    socket: i32,
    sockets: Vec<i32>,
}

impl SampleSelector {
    fn is_needed(&self) -> bool {
        let filters = [
            self.chosen.is_some(),
            self.switched.is_some(),
            !self.idle,
            self.socket.is_some(),
            self.levels.is_some(),
        ];
        filters.contains(&true)
    }
}

impl SelectSamples for SampleSelector {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> SampleTreatment {
        // `Ignored` samples do not count for the total; `Filtered` ones do. The idle task of every CPU is thread 0.
        // `sample.order` is the sample's position in the time order of the records.
        if !self.idle && sample.tid == 0 {
            return SampleTreatment::Ignored;
        }
        let is_on = |switched: &SwitchedSamples| switched.shows(sample.order);
        if !self.switched.as_ref().is_none_or(is_on) {
            return SampleTreatment::Ignored;
        }
        let choice = match &self.chosen {
            Some(chosen) => chosen.sample(world, sample),
            None => SampleTreatment::Counted,
        };
        let on_socket = |filter: &OnSocket| filter.holds(sample.cpu);
        let at_level = |(levels, parallelism): &(CpuList, Arc<Parallelism>)| {
            levels.numbers().contains(&parallelism.at(sample.order))
        };
        let accepted =
            self.socket.as_ref().is_none_or(on_socket) && self.levels.as_ref().is_none_or(at_level);
        match choice {
            SampleTreatment::Counted if !accepted => SampleTreatment::Filtered,
            choice => choice,
        }
    }

    fn frame(&self, resolver: &Resolver<'_>, frame: &Frame) -> SampleTreatment {
        match &self.chosen {
            Some(chosen) => chosen.frame(resolver, frame),
            None => SampleTreatment::Counted,
        }
    }
}

impl OnSocket {
    fn holds(&self, cpu: u32) -> bool {
        let socket = self.sockets.get(cpu as usize).copied();
        socket.unwrap_or(-1) == self.socket
    }
}
