//! The threads of a recording that waited for futexes, and the threads that held these: deadlocks (cycles of waits) and chains.

use std::collections::BTreeMap;

use clap::ArgMatches;
use rperf_analysis::lock::{
    ChainedWait, FUTEX_EVENTS, FUTEX_WAITS, FoundWaits, FutexDeadlocks, HeldWait, LockAggregation,
    LockColumn, LockSelection, WaitChain, WaitCycle,
};
use rperf_resolve::Resolver;
use rperf_view::lock::ContentionTable;
use rperf_view::lock::chains::WaitingThread;
use rperf_view::lock::recorded::{
    RecordedChain, RecordedDeadlock, RecordedWaits, write_recorded, write_recorded_json,
};

use super::super::analysis::{
    LockEvents, LockQuery, RowNames, RunQueueUse, capture_event, frame_text, process_by_tid,
    user_variable, without_owners,
};
use super::super::details::LockDetails;
use super::super::entries;
use super::max_stack;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{flag, is_given};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::{event_layouts, require_fields};
use crate::cli::symbol_options::SymbolSources;

/// The number of chains that are printed as text if `-E` is not given; JSON then has all of them.
const CHAINS: usize = 10;

/// Prints the deadlocks and chains in the recording of `-i`.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let resolver = analysis.resolver(&symbols);
    let layouts = event_layouts(&analysis)?;
    // The samples of this event, written by a BPF program, have the owners of futexes.
    let has_owners = capture_event(&analysis, FUTEX_WAITS).is_some();
    if !has_owners || !FUTEX_EVENTS.iter().all(|event| layouts.has(event)) {
        return Err(without_owners(&analysis));
    }
    require_fields(
        &analysis,
        |name| FUTEX_EVENTS.contains(&name),
        "lock record",
    )?;
    let query = query(max_stack(matches));
    // The world: the processes and threads of the recording.
    let mut deadlocks = FutexDeadlocks::new(process_by_tid(analysis.replay.world()));
    let details = LockDetails::new(&analysis, &resolver, &query)?;
    let pass = details.pass(&layouts, &[&FUTEX_EVENTS]);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut deadlocks)?;
    analysis.end_progress();
    // The times in which records were lost: there, waits and holders may be wrong.
    let lost_stretches = std::mem::take(&mut deadlocks.losses);
    let mut recorded = named(&deadlocks.finish(), &analysis, &resolver);
    let mut out = context.stdout();
    let most = is_given(matches, "entries").then(|| entries(matches));
    match flag(matches, "json") == Some(true) {
        true => {
            recorded.chains.truncate(most.unwrap_or(usize::MAX));
            write_recorded_json(&mut out, &recorded)?;
        }
        false => write_recorded(&mut out, &recorded, most.unwrap_or(CHAINS))?,
    }
    conclude(&analysis, delivered, &lost_stretches, "waits", matches)
}

/// Converts waits for output: with names of threads, locks and functions.
fn named(
    found_waits: &FoundWaits,
    analysis: &Analysis<'_>,
    resolver: &Resolver<'_>,
) -> RecordedWaits {
    let namer = WaitNamer {
        resolver,
        // Used only for the names of threads, which do not depend on the last three fields.
        names: RowNames {
            resolver,
            world: analysis.replay.world(),
            max_stack: 0,
            with_wakers: false,
            variables: None,
        },
    };
    let (cycles, chains) = (found_waits.cycles.iter(), found_waits.chains.iter());
    RecordedWaits {
        // The names of threads by their ids.
        names: namer.threads(&found_waits.cycles, &found_waits.chains),
        deadlocks: cycles.map(|cycle| namer.deadlock(cycle)).collect(),
        chains: chains.map(|chain| namer.chain(chain)).collect(),
        waits: found_waits.waits,
        unknown: found_waits.unknown_holders,
        skipped: found_waits.skipped_chains,
        end: found_waits.end,
        lost: losses(analysis).lost,
    }
}

/// Returns the query for [`LockDetails`]: no filters, and stacks of at most this number of frames. The fields that select events,
/// rows and columns are for `lock contention` and not used here.
fn query(max_stack: usize) -> LockQuery {
    LockQuery {
        events: LockEvents::Contention,
        combines_locks: false,
        shows_unended_waits: true,
        aggregation: LockAggregation::Owner,
        table: ContentionTable::Owners,
        selection: LockSelection::default(),
        run_queue: RunQueueUse::Ignored,
        lock_names: Vec::new(),
        cgroups: None,
        key: LockColumn::Total,
        entries: usize::MAX,
        stack_skip: 0,
        user_stack_skip: 0,
        max_stack,
        callstack_filter: None,
    }
}

/// Names threads, locks and functions.
struct WaitNamer<'n, 'r> {
    resolver: &'n Resolver<'r>,
    names: RowNames<'n, 'r>,
}

impl WaitNamer<'_, '_> {
    /// Returns the names of all threads in the cycles and chains.
    fn threads(&self, cycles: &[WaitCycle], chains: &[WaitChain]) -> BTreeMap<u32, String> {
        let in_cycles = cycles.iter().flat_map(|cycle| &cycle.waits);
        let in_cycles = in_cycles.map(|(tid, _)| *tid);
        let in_chains = chains.iter().flat_map(|chain| &chain.waits);
        let in_chains = in_chains.flat_map(|wait| [wait.tid, wait.holder]);
        in_cycles
            .chain(in_chains)
            .map(|tid| (tid, self.names.thread(tid)))
            .collect()
    }

    fn deadlock(&self, cycle: &WaitCycle) -> RecordedDeadlock {
        let waits = cycle.waits.iter();
        RecordedDeadlock {
            waits: waits.map(|(tid, wait)| (*tid, self.wait(wait))).collect(),
            count: cycle.count,
            from: cycle.from,
            until: cycle.until,
        }
    }

    fn chain(&self, chain: &WaitChain) -> RecordedChain {
        let waits = chain.waits.iter();
        RecordedChain {
            waits: waits.map(|wait| (wait.tid, self.chained(wait))).collect(),
            ends_in_deadlock: chain.ends_in_cycle,
            count: chain.count,
            total: chain.total,
            max: chain.max,
        }
    }

    fn wait(&self, wait: &HeldWait) -> WaitingThread {
        WaitingThread {
            object: wait.object,
            address: wait.address,
            variable: user_variable(self.resolver, wait.pid, wait.address),
            holder: wait.holder,
            has_timeout: wait.has_timeout,
            stack: self.stack(wait.pid, &wait.stack),
        }
    }

    fn chained(&self, wait: &ChainedWait) -> WaitingThread {
        WaitingThread {
            object: wait.object,
            address: wait.address,
            variable: user_variable(self.resolver, wait.pid, wait.address),
            holder: Some(wait.holder),
            // Equal waits are summed: timeouts and stacks are not kept.
            has_timeout: false,
            stack: Vec::new(),
        }
    }

    fn stack(&self, pid: u32, stack: &[u64]) -> Vec<String> {
        let named = stack
            .iter()
            .map(|ip| frame_text(self.resolver, Some(pid), *ip));
        named.collect()
    }
}
