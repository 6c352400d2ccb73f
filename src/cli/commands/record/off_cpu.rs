//! `--off-cpu`: the time that tasks spend off CPU, summed up by BPF programs or from context switches.

use std::sync::{Arc, OnceLock};

use clap::ArgMatches;
use rperf_bpf::{Error, OffCpuPrograms};
use rperf_events::{CallGraph, OFF_CPU, describe_off_cpu, off_cpu_bpf_output, off_cpu_event};
use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};
use rperf_replay::EventIndex;
use rperf_rewrite::{OffCpu, OffCpuSums, describe_waits};
use rperf_session::{RecordRequest, may_profile_kernel};

use super::off_cpu_programs::{self, BpfWaits};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Nanoseconds per millisecond.
const NANOS_PER_MILLI: u64 = 1_000_000;
/// The default of `--off-cpu-thresh`, as in perf 7.2.
const THRESHOLD_MILLIS: u64 = 500;

/// Turns samples of context switches, or waits that BPF programs report, into samples of off-CPU time.
#[derive(Debug)]
pub(super) struct OffCpuSampling {
    /// Whether the recording keeps records of context switches, because other options requested them.
    keeps_switches: bool,
    /// Shortest wait, in nanoseconds, that becomes a sample of its own; shorter ones are summed up.
    threshold: u64,
    /// The BPF programs, if they sum up the waits; `None` if context switches are sampled.
    programs: Option<Arc<OffCpuPrograms>>,
    /// The error of reading the sums of the programs, if any.
    failure: Arc<OnceLock<Error>>,
    /// The parts of callchains that samples have.
    callchains: Callchains,
}

/// Whether the kernel part and the user part of callchains are recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Callchains {
    pub(super) kernel: bool,
    pub(super) user: bool,
}

impl OffCpuSampling {
    /// Sets up `--off-cpu`: loads the BPF programs, or else requests samples and records of context switches, and adds the
    /// off-CPU event to `request`. `None` if the option is not given.
    pub(super) fn requested(
        matches: &ArgMatches,
        context: &Context,
        request: &mut RecordRequest,
    ) -> Result<Option<Self>, CliError> {
        let given_millis = matches.get_one::<u64>("off-cpu-thresh").copied();
        if flag(matches, "off-cpu") != Some(true) {
            return match given_millis {
                None => Ok(None),
                Some(_) => Err(CliError::usage("--off-cpu-thresh needs --off-cpu")),
            };
        }
        let conflicts = [
            (request.observe.details.overwrite, "--overwrite"),
            (request.synthesis.at_end, "--tail-synthesize"),
            (request.rings.threads.is_some(), "--threads"),
            (request.observe.details.scope.per_thread, "--per-thread"),
            (request.observe.details.no_samples, "--no-samples"),
            // Off-CPU time is summed up by callchain, which must be complete; this option records the user part later.
            (
                request.observe.call_graph == CallGraph::Deferred,
                "--call-graph fp,defer",
            ),
        ];
        if let Some((_, option)) = conflicts.iter().find(|(is_given, _)| *is_given) {
            let error = CliError::usage(format!("--off-cpu cannot be combined with {option}"));
            return Err(error.hint(format!("omit {option}")));
        }
        let threshold = given_millis
            .unwrap_or(THRESHOLD_MILLIS)
            .saturating_mul(NANOS_PER_MILLI);
        let sampling = Self {
            // Read before `observe_switches` requests these records for its own use.
            keeps_switches: request.observe.details.side_band.switches,
            threshold,
            programs: off_cpu_programs::load(matches, context, request, threshold),
            failure: Arc::default(),
            // `--user-callchains` excludes the kernel part, `--kernel-callchains` the user part.
            callchains: Callchains {
                kernel: !request.observe.details.samples.user_callchains,
                user: !request.observe.details.samples.kernel_callchains,
            },
        };
        match sampling.programs.clone() {
            Some(programs) => {
                request.observe.events.push(off_cpu_bpf_output());
                request.observe.off_cpu = Some(programs);
            }
            None => sampling.observe_switches(context, request)?,
        }
        Ok(Some(sampling))
    }

    /// Adds the event that is sampled at each context switch, and requests records of context switches.
    fn observe_switches(
        &self,
        context: &Context,
        request: &mut RecordRequest,
    ) -> Result<(), CliError> {
        if !may_profile_kernel() {
            let error = CliError::message(
                255,
                "--off-cpu needs context switch events of the kernel, which this user may not open",
            );
            return Err(error.hint(format!(
                "run {} as root, or lower /proc/sys/kernel/perf_event_paranoid to 1",
                context.program
            )));
        }
        request
            .observe
            .events
            .push(off_cpu_event(request.observe.call_graph));
        request.observe.details.side_band.switches = true;
        Ok(())
    }

    /// Reports what the programs lost, and why their sums could not be read.
    pub(super) fn report(&self, context: &Context) {
        if let Some(programs) = &self.programs {
            off_cpu_programs::report(context, programs, self.failure.get());
        }
    }
}

/// How the recording's records are rewritten: first `describe` adapts the events, then `build` creates the rewriter.
impl BuildRewriter for OffCpuSampling {
    fn describe(&self, events: &mut [EventDesc]) {
        for event in events.iter_mut().filter(|event| event.name == OFF_CPU) {
            match self.programs {
                Some(_) => describe_waits(&mut event.attr),
                None => describe_off_cpu(&mut event.attr),
            }
        }
    }

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        let index = events.iter().position(|event| event.name == OFF_CPU);
        let index = index.and_then(|index| u32::try_from(index).ok());
        // No event has the index `u32::MAX`: without an off-CPU event, the rewriter finds no samples of it.
        let event = EventIndex(index.unwrap_or(u32::MAX));
        if let Some(programs) = &self.programs {
            let waits = BpfWaits::new(
                Arc::clone(programs),
                self.callchains,
                Arc::clone(&self.failure),
            );
            return Box::new(OffCpuSums::new(events, event, waits));
        }
        let off_cpu = OffCpu::new(events, event, self.keeps_switches);
        Box::new(off_cpu.adding_up_below(self.threshold))
    }
}
