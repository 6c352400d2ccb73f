//! `lock deadlock`: which threads of running processes, or of a recording, wait for each other.

mod recording;
mod snapshot;

use std::collections::BTreeMap;
use std::io;

use clap::{ArgMatches, Command};
use rperf_events::{EventSpec, Sampling};
use rperf_replay::{LiveWorld, Machine, Order};
use rperf_resolve::{AddressContext, Resolver, StackOptions, UnsampledStack, UserStacks};
use rperf_session::{KernelRoots, Observation, ObserveOptions, RecordRequest, Target};
use rperf_sys::{Proc, read_process_memory, thread_registers, uname};
use rperf_view::lock::chains::{
    ProcessState, ProcessWaits, ThreadName, WaitingThread, write_json, write_waits,
};
use rperf_wire::{Endian, Regs, RegsAbi, U64s};

use self::snapshot::{FoundWait, Snapshot, still_waits};
use super::analysis::{frame_text, user_variable};
use super::machine_threads::is_java;
use super::{VERBOSE, common};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::jobs;
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{PROC, explain, target};
use crate::cli::options::{count, flag, is_given, number, switch, unsupported, value};
use crate::cli::pmus::machine_pmus;
use crate::cli::symbol_options::SymbolSources;
use crate::cli::tracefs::MachineTracepoints;

const ABOUT: &str = "\
Shows which threads of running processes (-p) wait for locks of others, and marks those that wait in a circle: deadlocks. With -i the same of a \
recording of 'lock record --user': deadlocks with their times, and for how long threads waited through others. Holders are read from the memory of \
the process: mutexes of glibc, its read-write locks that a writer holds, locks with priority inheritance, robust mutexes, mutexes of musl that store the thread, and, \
with glibc on x86-64, joined threads. Holders of other locks are unknown. \
If a holder of a lock in shared memory is a thread of another process, that process is looked at, too. \
With -p, threads in a circle, or with -v all that wait, stop for a moment, as for a debugger, while their registers are read.";

/// The default maximum number of frames.
const MAX_STACK: usize = 16;
/// The maximum number of bytes copied from the top of a stack.
const STACK_BYTES: usize = 1 << 16;

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock deadlock")
        .long_about(ABOUT)
        .args([
            value("pid", "pid[,pid...]")
                .short('p')
                .help("the processes to look at"),
            value("max-stack", "n")
                .value_parser(number)
                .help("maximum number of frames of a thread (default: 16)"),
            value("entries", "n")
                .short('E')
                .value_parser(number)
                .help("show only the first n chains of a recording (default: 10)"),
            switch("json").help("print waits, deadlocks and chains as JSON"),
            jobs::option(),
            unsupported("dump-raw-trace", "use 'script -D'").short('D'),
        ])
        .args(common(VERBOSE))
}

/// Prints what the threads of the processes, or of a recording, wait for.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    match (is_given(matches, "pid"), is_given(matches, "input")) {
        (true, true) => {
            return Err(CliError::usage(
                "lock deadlock: -p looks at running processes, -i at a recording",
            ));
        }
        (false, true) => return recording::run(matches, context),
        (false, false) => {
            return Err(CliError::usage("lock deadlock: no process given").hint(
                "-p PID looks at a running process, -i FILE at a recording of 'lock record --user'",
            ));
        }
        (true, false) => {}
    }
    if is_given(matches, "entries") {
        return Err(CliError::usage("lock deadlock: -E is for recordings (-i)"));
    }
    let symbols = SymbolSources::new(matches, context)?;
    // "watching" is only for the note about a missing target; here `-p` is given.
    let Target::Processes(pids) = target::target(matches, context, "watching")? else {
        return Err(CliError::usage("lock deadlock: no process given"));
    };
    let proc = Proc::new(PROC);
    let snapshot = Snapshot::take(&proc, &pids)
        .map_err(|failure| unreadable_error(failure.pid, &failure.error))?;
    let read_pids: Vec<u32> = snapshot.processes.keys().copied().collect();
    let world = world(&read_pids, matches, context)?;
    let resolver = symbols.live_resolver(context, world.world());
    let reader = WaitReader {
        proc: &proc,
        resolver: &resolver,
        max_stack: max_stack(matches),
        is_verbose: count(matches, "verbose") > 0,
    };
    let waits = reader.waits(&snapshot, &pids);
    let mut out = context.stdout();
    match flag(matches, "json") == Some(true) {
        true => write_json(&mut out, &waits)?,
        false => write_waits(&mut out, &waits, reader.is_verbose)?,
    }
    Ok(ExitStatus::Ok)
}

/// Returns the maximum number of frames.
fn max_stack(matches: &ArgMatches) -> usize {
    let most = matches.get_one::<u64>("max-stack");
    most.map_or(MAX_STACK, |most| {
        usize::try_from(*most).unwrap_or(usize::MAX)
    })
}

/// The error for a requested process whose threads cannot be read.
fn unreadable_error(pid: u32, error: &io::Error) -> CliError {
    let failed = CliError::message(255, format!("process {pid}: {error}"));
    match error.kind() {
        io::ErrorKind::NotFound => failed.hint("'ps -e' lists the running processes"),
        io::ErrorKind::PermissionDenied => {
            failed.hint("run as root, or as the owner of the process if its memory may be read (kernel.yama.ptrace_scope)")
        }
        _ => failed,
    }
}

/// Returns the processes with their mappings.
fn world(pids: &[u32], matches: &ArgMatches, context: &Context) -> Result<LiveWorld, CliError> {
    let tracepoints = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    let roots = KernelRoots {
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: tracepoints.tracefs,
    };
    let mut observe = ObserveOptions::new(
        Target::Processes(pids.to_vec()),
        vec![EventSpec::side_band_only()],
    );
    // The event has no samples. The kernel checks frequencies, but not periods, against `perf_event_max_sample_rate`.
    observe.sampling = Sampling::Period(1);
    // Variables are in mappings of data, which are not recorded by default.
    observe.details.samples.data = true;
    let request = RecordRequest::observing(observe, roots);
    let mut reporter = RecordReporter::new(context, matches).detailed_from_second_v();
    // `bpf-output` is the name of the event `EventSpec::side_band_only`.
    let explained = |error| explain::explain(context, "bpf-output", error);
    let mut observation = Observation::open(&request, &mut reporter).map_err(explained)?;
    let mut world = LiveWorld::new(Endian::NATIVE, observation.events());
    let started = observation.start(&request, &mut |records| world.add(records));
    started.map_err(explained)?;
    world.apply_all();
    Ok(world)
}

/// Names the waits of a snapshot, and reads the stacks of waiting threads.
struct WaitReader<'r, 'w> {
    proc: &'r Proc,
    resolver: &'r Resolver<'w>,
    max_stack: usize,
    is_verbose: bool,
}

impl WaitReader<'_, '_> {
    /// Names processes, threads and locks, and reads stacks. `requested` are the processes that the user asked for.
    fn waits(&self, snapshot: &Snapshot, requested: &[u32]) -> ProcessWaits {
        let waits = snapshot.waits.iter().map(|(tid, wait)| {
            let waiting = WaitingThread {
                object: wait.object,
                address: wait.address,
                variable: user_variable(self.resolver, wait.pid, wait.address),
                holder: wait.holder.map(|holder| holder.tid),
                has_timeout: wait.has_timeout,
                stack: Vec::new(),
            };
            (*tid, waiting)
        });
        let mut named = ProcessWaits {
            processes: self.processes(snapshot, requested),
            names: self.names(snapshot),
            waits: waits.collect(),
        };
        let in_cycles = named.chains().cycles.concat();
        for (tid, waiting) in &mut named.waits {
            if !self.is_verbose && !in_cycles.contains(tid) {
                continue;
            }
            if let Some(wait) = snapshot.waits.get(tid) {
                waiting.stack = self.stack(*tid, wait).unwrap_or_default();
            }
        }
        named
    }

    fn processes(&self, snapshot: &Snapshot, requested: &[u32]) -> Vec<ProcessState> {
        let read = snapshot.processes.iter();
        let read = read.map(|(pid, process)| (*pid, Some(process.names.len())));
        let unreadable = snapshot.unreadable.iter().map(|pid| (*pid, None));
        let states = read.chain(unreadable).map(|(pid, threads)| ProcessState {
            pid,
            threads,
            // A process that was not requested is looked at because one of its threads holds a lock.
            is_holder: !requested.contains(&pid),
            is_java: threads.is_some() && is_java(self.proc, pid),
        });
        let mut states: Vec<ProcessState> = states.collect();
        states.sort_by_key(|state| (state.is_holder, state.pid));
        states
    }

    /// Returns the names of the threads that were read, of all holders, and of the main threads of processes that cannot be read.
    fn names(&self, snapshot: &Snapshot) -> BTreeMap<u32, ThreadName> {
        let mut names = BTreeMap::new();
        for (pid, process) in &snapshot.processes {
            for (tid, comm) in &process.names {
                let comm = comm.clone();
                names.insert(*tid, ThreadName { pid: *pid, comm });
            }
        }
        let holders = snapshot.waits.values().filter_map(|wait| wait.holder);
        let holders = holders.map(|holder| (holder.pid, holder.tid));
        for (pid, tid) in holders.chain(snapshot.unreadable.iter().map(|pid| (*pid, *pid))) {
            if let Ok(status) = self.proc.status(pid, tid) {
                let comm = String::from_utf8_lossy(&status.name).into_owned();
                names.entry(tid).or_insert(ThreadName { pid, comm });
            }
        }
        names
    }

    /// The process, at the end of the observation.
    fn at(&self, pid: u32) -> AddressContext {
        AddressContext {
            machine: Machine::Host,
            pid,
            order: Order::MAX,
        }
    }

    /// Returns the frames of a waiting thread; `None` if it has run since the snapshot, or cannot be stopped or read.
    fn stack(&self, tid: u32, wait: &FoundWait) -> Option<Vec<String>> {
        if !still_waits(self.proc, tid, wait) {
            return None;
        }
        let pid = wait.pid;
        let registers = thread_registers(tid).ok()??;
        let values: Vec<u8> = registers
            .values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        let registers = Regs {
            abi: RegsAbi::Bits64,
            mask: registers.mask,
            values: U64s::new(&values, Endian::NATIVE),
        };
        // The number of the stack pointer in perf's register masks of x86-64 and arm64.
        let stack_pointer = if cfg!(target_arch = "x86_64") { 7 } else { 31 };
        let mut bytes = vec![0; STACK_BYTES];
        let read = read_process_memory(pid, registers.get(stack_pointer)?, &mut bytes).ok()?;
        let options = StackOptions {
            machine: uname().ok()?.machine,
            endian: Endian::NATIVE,
            // The options below only apply to recorded callchains.
            limit: None,
            keeps_outermost: false,
            has_lbr_call_stacks: false,
        };
        let copy = UnsampledStack {
            at: self.at(pid),
            registers,
            bytes: bytes.get(..read)?,
        };
        let frames = UserStacks::new(self.resolver, options).frames(&copy, self.max_stack);
        let named = frames
            .into_iter()
            .map(|ip| frame_text(self.resolver, Some(pid), ip));
        Some(named.collect())
    }
}
