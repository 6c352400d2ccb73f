//! The BPF programs of `--off-cpu`, and the waits of tasks that they report, with callchains.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use clap::ArgMatches;
use rperf_bpf::{Error, OffCpuLosses, OffCpuOptions, OffCpuPrograms, OffCpuWait};
use rperf_events::CallGraph;
use rperf_names::{counted, is_or_are, was_or_were};
use rperf_rewrite::{KernelWait, WaitSource};
use rperf_session::{RecordRequest, Target};
use rperf_sys::{Proc, Sysctl};
use rperf_wire::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

use super::off_cpu::Callchains;
use crate::cli::context::Context;
use crate::cli::live::PROC;
use crate::cli::live::kernel_offsets::task_pid_offset;

/// The function of the kernel that switches tasks.
const SWITCH_FUNCTION: &str = "__schedule";
/// An upper limit of the size of [`SWITCH_FUNCTION`] in bytes.
const SWITCH_FUNCTION_SIZE: u64 = 0x4000;
/// The maximum number of sums that the BPF map holds.
const MAX_SUMS: u32 = 1 << 16;
/// The maximum number of frames of a stack if kernel.perf_event_max_stack cannot be read: its default.
const MAX_STACK: u32 = 127;

/// Loads the programs; `None` if the options need a sample at each switch, or, with a note, if the programs cannot be loaded.
/// Waits of at least `threshold` nanoseconds are reported one by one, shorter ones in sums.
pub(super) fn load(
    matches: &ArgMatches,
    context: &Context,
    request: &RecordRequest,
    threshold: u64,
) -> Option<Arc<OffCpuPrograms>> {
    if needs_switches(matches, request) {
        return None;
    }
    let loaded = task_pid_offset().and_then(|task_pid| {
        OffCpuPrograms::load(OffCpuOptions {
            task_pid,
            all_tasks: matches!(request.observe.target, Target::Cpus(_) | Target::Everyone),
            follows_children: follows_children(request),
            max_stack: max_stack(request),
            max_sums: MAX_SUMS,
            threshold,
        })
    });
    match loaded {
        Ok(programs) => Some(Arc::new(programs)),
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            context.note(format_args!(
                "--off-cpu records each context switch, since the kernel cannot sum up waits: {first}"
            ));
            None
        }
    }
}

/// Whether an option needs a sample at each switch: sums of waits by task and callchain are not enough.
fn needs_switches(matches: &ArgMatches, request: &RecordRequest) -> bool {
    let (observe, output) = (&request.observe, &request.output);
    let samples = &observe.details.samples;
    // `-D` switches the events on and off; these are not context switches.
    let has_timed_switches = observe.switches.is_some();
    !matches!(
        observe.call_graph,
        CallGraph::None | CallGraph::FramePointers
    ) || matches!(observe.target, Target::Cpus(Some(_)))
        || !observe.cgroups.is_empty()
        || has_timed_switches
        || matches.contains_id("control")
        || matches.contains_id("unwind")
        || output.rotation.is_some()
        || !output.switch_events.is_empty()
        || observe.details.side_band.cgroups
        || samples.user_regs != 0
        || samples.intr_regs != 0
}

/// Whether tasks that are created by observed tasks are also observed: not with `-t`, as for events.
fn follows_children(request: &RecordRequest) -> bool {
    let is_threads = matches!(request.observe.target, Target::Threads(_));
    !is_threads && !request.observe.details.scope.no_inherit
}

/// Returns the maximum number of frames of a stack, by default the kernel's limit.
fn max_stack(request: &RecordRequest) -> u32 {
    match request.observe.max_stack {
        0 => {
            let limit = Sysctl::new(&request.roots.proc).perf_event_max_stack();
            limit
                .and_then(|limit| u32::try_from(limit).ok())
                .unwrap_or(MAX_STACK)
        }
        frames => frames.into(),
    }
}

/// Reports what the programs lost, and the error if their sums or losses could not be read; `failure` is that of the sums.
pub(super) fn report(context: &Context, programs: &OffCpuPrograms, failure: Option<&Error>) {
    let losses = programs.losses();
    if let Some(error) = failure.or(losses.as_ref().err()) {
        context.warn(format_args!(
            "--off-cpu: the sums of waits could not be read: {error}"
        ));
    }
    let losses = losses.unwrap_or_default();
    let OffCpuLosses {
        tasks,
        waits,
        nanos,
        stacks,
    } = losses;
    if tasks > 0 {
        context.warn(format_args!(
            "--off-cpu: {} {} not observed, since too many ran at a time",
            counted(tasks, "task"),
            was_or_were(tasks)
        ));
    }
    if waits > 0 {
        let seconds = nanos / 1_000_000_000;
        context.warn(format_args!(
            "--off-cpu: {} ({seconds} s) {} missing, since the kernel's map was full\nhint: record fewer tasks, or for a shorter time",
            counted(waits, "wait"),
            is_or_are(waits)
        ));
    }
    if stacks > 0 {
        context.warn(format_args!(
            "--off-cpu: {} of waits {} missing, since the kernel's map had no room",
            counted(stacks, "stack"),
            is_or_are(stacks)
        ));
    }
}

/// The waits that the programs report: single long ones, and sums of all others.
#[derive(Debug)]
pub(super) struct BpfWaits {
    programs: Arc<OffCpuPrograms>,
    callchains: Callchains,
    /// Stacks by number, innermost frame first.
    stacks: HashMap<u32, Vec<u64>>,
    /// The address of [`SWITCH_FUNCTION`], once looked up; `Some(None)` if unknown.
    switch_function: Option<Option<u64>>,
    /// The error of reading the sums, if any.
    failure: Arc<OnceLock<Error>>,
}

impl BpfWaits {
    pub(super) fn new(
        programs: Arc<OffCpuPrograms>,
        callchains: Callchains,
        failure: Arc<OnceLock<Error>>,
    ) -> Self {
        Self {
            programs,
            callchains,
            stacks: HashMap::new(),
            switch_function: None,
            failure,
        }
    }

    fn with_callchain(&mut self, wait: OffCpuWait) -> KernelWait {
        let place = wait.place;
        let mut callchain = Vec::new();
        if let Some(number) = place.kernel_stack.filter(|_| self.callchains.kernel) {
            let frames = self.stack(number);
            let frames = self.without_program(&frames);
            if !frames.is_empty() {
                callchain.push(PERF_CONTEXT_KERNEL);
                callchain.extend(frames);
            }
        }
        if let Some(number) = place.user_stack.filter(|_| self.callchains.user) {
            callchain.push(PERF_CONTEXT_USER);
            callchain.extend(self.stack(number));
        }
        KernelWait {
            process: place.process,
            thread: place.thread,
            nanos: wait.nanos,
            callchain,
        }
    }

    fn stack(&mut self, number: u32) -> Vec<u64> {
        let programs = &self.programs;
        let stack = self.stacks.entry(number);
        stack
            .or_insert_with(|| programs.stack(number).unwrap_or_default())
            .clone()
    }

    /// Removes the innermost frames up to, but not including, [`SWITCH_FUNCTION`]: the BPF program and the tracing code that
    /// calls it. Keeps all frames if the function is not among them.
    fn without_program(&mut self, frames: &[u64]) -> Vec<u64> {
        let start = *self.switch_function.get_or_insert_with(|| {
            Proc::new(PROC)
                .kernel_symbol(SWITCH_FUNCTION)
                .ok()
                .flatten()
        });
        let is_switch = |frame: &u64| {
            start.is_some_and(|start| (start..start + SWITCH_FUNCTION_SIZE).contains(frame))
        };
        let first = frames.iter().position(is_switch).unwrap_or_default();
        frames.get(first..).unwrap_or_default().to_vec()
    }
}

impl WaitSource for BpfWaits {
    fn wait(&mut self, raw: &[u8]) -> Option<KernelWait> {
        OffCpuWait::decode(raw).map(|wait| self.with_callchain(wait))
    }

    fn sums(&mut self) -> Vec<KernelWait> {
        self.programs.end();
        match self.programs.sums() {
            Ok(sums) => {
                let sums = sums.into_iter();
                sums.map(|wait| self.with_callchain(wait)).collect()
            }
            Err(error) => {
                self.failure.get_or_init(|| error);
                Vec::new()
            }
        }
    }
}
