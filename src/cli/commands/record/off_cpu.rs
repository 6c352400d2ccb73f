//! `--off-cpu`: the time that tasks spend off CPU, from context switches.

use clap::ArgMatches;
use rperf_events::{CallGraph, OFF_CPU, describe_off_cpu, off_cpu_event};
use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};
use rperf_replay::EventIndex;
use rperf_rewrite::OffCpu;
use rperf_session::{RecordRequest, may_profile_kernel};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Nanoseconds per millisecond.
const NANOS: u64 = 1_000_000;

/// Turns samples of context switches into samples of off-CPU time.
#[derive(Debug)]
pub(super) struct OffCpuSampling {
    /// Whether records of context switches were requested, too.
    keeps_switches: bool,
    /// Shortest wait, in nanoseconds, that becomes a separate sample.
    threshold: u64,
}

impl OffCpuSampling {
    /// Adds the event to `request`, if `--off-cpu` is given.
    pub(super) fn requested(
        matches: &ArgMatches,
        context: &Context,
        request: &mut RecordRequest,
    ) -> Result<Option<Self>, CliError> {
        let threshold = matches.get_one::<u64>("off-cpu-thresh").copied();
        if flag(matches, "off-cpu") != Some(true) {
            return match threshold {
                None => Ok(None),
                Some(_) => Err(CliError::usage("--off-cpu-thresh needs --off-cpu")),
            };
        }
        let others = [
            (request.observe.details.overwrite, "--overwrite"),
            (request.synthesis.at_end, "--tail-synthesize"),
            (request.rings.threads.is_some(), "--threads"),
            (request.observe.details.scope.per_thread, "--per-thread"),
            (request.observe.details.no_samples, "--no-samples"),
            // Off-CPU time is summed up by callchain, which must be complete.
            (
                request.observe.call_graph == CallGraph::Deferred,
                "--call-graph fp,defer",
            ),
        ];
        if let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) {
            let error = CliError::usage(format!("--off-cpu cannot be combined with {other}"));
            return Err(error.hint(format!("omit {other}")));
        }
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
        let keeps_switches = request.observe.details.side_band.switches;
        request
            .observe
            .events
            .push(off_cpu_event(request.observe.call_graph));
        request.observe.details.side_band.switches = true;
        Ok(Some(Self {
            keeps_switches,
            threshold: threshold.unwrap_or(0).saturating_mul(NANOS),
        }))
    }
}

impl BuildRewriter for OffCpuSampling {
    fn describe(&self, events: &mut [EventDesc]) {
        for event in events.iter_mut().filter(|event| event.name == OFF_CPU) {
            describe_off_cpu(&mut event.attr);
        }
    }

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        let index = events.iter().position(|event| event.name == OFF_CPU);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let event = EventIndex(index.unwrap_or(u32::MAX));
        let off_cpu = OffCpu::new(events, event, self.keeps_switches);
        Box::new(off_cpu.adding_up_below(self.threshold))
    }
}
