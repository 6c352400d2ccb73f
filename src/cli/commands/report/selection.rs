//! Which samples a report counts.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::ArgMatches;
use rperf_hist::{Choice, Parallelism, Select};
use rperf_perfdata::Described;
use rperf_replay::{Replay, Sample, World};
use rperf_resolve::{Filter, Frame, Resolver};
use rperf_sys::CpuList;
use rperf_wire::SampleType;

use super::settings::no_latency;
use crate::cli::error::CliError;
use crate::cli::filter::{CPU_HINT, Wanted};
use crate::cli::options::flag;
use crate::cli::switches::{SwitchOptions, Switched};

/// The options that choose samples.
pub(super) struct Selection {
    wanted: Wanted,
    switches: SwitchOptions,
    /// Whether idle processors count.
    idle: bool,
    /// The socket, -1 for processors of which it is not known.
    pub(super) socket: Option<i32>,
    /// How many threads may have run.
    levels: Option<CpuList>,
}

impl Selection {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let socket = matches.get_one::<u64>("socket-filter");
        Ok(Self {
            wanted: Wanted::new(matches)?,
            switches: SwitchOptions::new(matches),
            idle: flag(matches, "idle") != Some(false),
            socket: socket.map(|socket| i32::try_from(*socket).unwrap_or(i32::MAX)),
            levels: levels(matches)?,
        })
    }

    /// The stretches of time, as they were given.
    pub(super) fn time(&self) -> Option<&str> {
        self.wanted.time()
    }

    /// The same for one recording; `None` if all samples count. `sockets` are those of its processors.
    ///
    /// # Errors
    ///
    /// What is asked for that the recording does not tell.
    pub(super) fn of(
        &self,
        replay: &Replay<'_>,
        sockets: &[i32],
        parallelism: Option<&Arc<Parallelism>>,
        threads: NonZeroUsize,
    ) -> Result<Option<Selected>, CliError> {
        let recording = replay.data().described();
        let switch = self.switches.find(recording)?;
        if self.socket.is_some() {
            has_cpus(recording)?;
        }
        let levels = self.levels.as_ref();
        if levels.is_some() && parallelism.is_none() {
            return Err(no_latency());
        }
        let selected = Selected {
            chosen: self.wanted.filter(recording, false)?.non_empty(),
            switched: Switched::find(replay, switch, threads),
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
            "--parallelism takes numbers of threads, 1 or 2-4: {error}"
        ))
    })?;
    Ok(Some(levels))
}

fn has_cpus(recording: Described<'_>) -> Result<(), CliError> {
    let kinds = recording.events.iter().map(|event| event.attr.sample_type);
    if kinds.into_iter().all(|kind| kind.contains(SampleType::CPU)) {
        return Ok(());
    }
    let message = "--socket-filter: the samples do not tell their CPU";
    Err(CliError::message(255, message).hint(CPU_HINT))
}

/// The samples that are chosen.
pub(super) struct Selected {
    chosen: Option<Filter>,
    switched: Option<Switched>,
    idle: bool,
    socket: Option<OnSocket>,
    /// How many threads may have run, and how many did.
    levels: Option<(CpuList, Arc<Parallelism>)>,
}

/// A socket, and those that processors are on.
struct OnSocket {
    socket: i32,
    sockets: Vec<i32>,
}

impl Selected {
    fn is_needed(&self) -> bool {
        let asked = [
            self.chosen.is_some(),
            self.switched.is_some(),
            !self.idle,
            self.socket.is_some(),
            self.levels.is_some(),
        ];
        asked.contains(&true)
    }
}

impl Select for Selected {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice {
        // The idle task of every processor is thread 0.
        if !self.idle && sample.tid == 0 {
            return Choice::Ignored;
        }
        let is_on = |switched: &Switched| switched.shows(sample.order);
        if !self.switched.as_ref().is_none_or(is_on) {
            return Choice::Ignored;
        }
        let choice = match &self.chosen {
            Some(chosen) => chosen.sample(world, sample),
            None => Choice::Counted,
        };
        let on_socket = |wanted: &OnSocket| wanted.holds(sample.cpu);
        let at_level = |(wanted, threads): &(CpuList, Arc<Parallelism>)| {
            wanted.numbers().contains(&threads.at(sample.order))
        };
        let accepted =
            self.socket.as_ref().is_none_or(on_socket) && self.levels.as_ref().is_none_or(at_level);
        match choice {
            Choice::Counted if !accepted => Choice::Filtered,
            choice => choice,
        }
    }

    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice {
        match &self.chosen {
            Some(chosen) => chosen.place(resolver, frame),
            None => Choice::Counted,
        }
    }
}

impl OnSocket {
    fn holds(&self, cpu: u32) -> bool {
        let socket = self.sockets.get(cpu as usize).copied();
        socket.unwrap_or(-1) == self.socket
    }
}
