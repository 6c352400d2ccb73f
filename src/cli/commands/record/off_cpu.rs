//! `--off-cpu`: the time that tasks spend off their CPUs, from context switches.

use clap::ArgMatches;
use rperf_events::{CallGraph, OFF_CPU, describe_off_cpu, off_cpu_event};
use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, OffCpu};
use rperf_session::{Request, Rewriter, Rewriting, may_profile_kernel};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Nanoseconds of a millisecond.
const NANOS: u64 = 1_000_000;

/// Makes samples of the time off CPUs out of those of context switches.
#[derive(Debug)]
pub(super) struct OffCpuTime {
    /// Whether records of switches were asked for too.
    keeps_switches: bool,
    /// Nanoseconds from which on a wait is a sample of its own.
    threshold: u64,
}

impl OffCpuTime {
    /// Adds the event to `request`, if it is wanted.
    pub(super) fn wanted(
        matches: &ArgMatches,
        context: &Context,
        request: &mut Request,
    ) -> Result<Option<Self>, CliError> {
        let threshold = matches.get_one::<u64>("off-cpu-thresh").copied();
        if flag(matches, "off-cpu") != Some(true) {
            return match threshold {
                None => Ok(None),
                Some(_) => Err(CliError::usage("--off-cpu-thresh is for --off-cpu alone")),
            };
        }
        let others = [
            (request.details.overwrite, "--overwrite"),
            (request.tail_synthesize, "--tail-synthesize"),
            (request.threads.is_some(), "--threads"),
            (request.details.per_thread, "--per-thread"),
            (request.details.no_samples, "--no-samples"),
            // What waits is added up by its callchain, which has to be whole.
            (
                request.call_graph == CallGraph::Deferred,
                "--call-graph fp,defer",
            ),
        ];
        if let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) {
            let error = CliError::usage(format!("--off-cpu does not go with {other}"));
            return Err(error.hint(format!("leave {other} out")));
        }
        if !may_profile_kernel() {
            let error = CliError::message(
                255,
                "--off-cpu needs to see the kernel switch tasks, which this user may not",
            );
            return Err(error.hint(format!(
                "run {} as root, or lower /proc/sys/kernel/perf_event_paranoid to 1",
                context.program
            )));
        }
        let keeps_switches = request.details.switch_events;
        request.events.push(off_cpu_event(request.call_graph));
        request.details.switch_events = true;
        Ok(Some(Self {
            keeps_switches,
            threshold: threshold.unwrap_or(0).saturating_mul(NANOS),
        }))
    }
}

impl Rewriting for OffCpuTime {
    fn describe(&self, events: &mut [EventDesc]) {
        for event in events.iter_mut().filter(|event| event.name == OFF_CPU) {
            describe_off_cpu(&mut event.attr);
        }
    }

    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        let index = events.iter().position(|event| event.name == OFF_CPU);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let event = EventIndex(index.unwrap_or(u32::MAX));
        let off_cpu = OffCpu::new(events, event, self.keeps_switches);
        Box::new(Switches(off_cpu.adding_up_below(self.threshold)))
    }
}

/// The tasks of one recording.
struct Switches(OffCpu);

impl Rewriter for Switches {
    fn note(&mut self, _records: &[u8]) {}

    fn note_end(&mut self) {}

    fn rewrite(&mut self, records: &[u8], _haste: bool, to: &mut Vec<u8>) {
        self.0.rewrite(records, to);
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.0.end(to);
    }
}
