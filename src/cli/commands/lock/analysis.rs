//! Reads the waits of a recording, adds them up and names the rows.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use clap::ArgMatches;
use rperf_analysis::lock::{
    CONTENTION_EVENTS, FUTEX, FUTEX_EVENTS, FUTEX_WAITS, LOCK_WAITS, LOCKDEP_EVENTS,
    LockAggregation, LockColumn, LockContention, LockKey, LockRow, LockSelection,
};
use rperf_analysis::{DeliveredCounts, EventLayouts};
use rperf_replay::{EventIndex, Order, World};
use rperf_resolve::{Frame, Resolver};
use rperf_view::lock::{ContentionTable, NamedRow, NamedThread, SequenceChecks, json};
use rperf_wire::{AttrFlags, Endian};

use super::details::{LockDetails, address_context, user_callers};
use super::flame::FlameFile;
use super::lock_names::{self, KernelVariables};
use super::output::{print_json, print_text, refuse_dump_with_json};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{count, flag};
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::containers::container_of;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::recorded_fields::{
    event_layouts, require_cgroups, require_fields, without_event,
};
use crate::cli::symbol_options::SymbolSources;

/// Which tracepoints are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockEvents {
    /// Those of waits: `lock:contention_*` and futex(2).
    Contention,
    /// Also those of lockdep, if recorded.
    All,
}

/// Whether the run-queue time of waits, in which the thread can run but waits for a CPU, is computed, and whether it is a part of
/// the waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunQueueUse {
    /// It is not computed, and is a part of the waits.
    Ignored,
    /// It is computed if the events of the scheduler were recorded, and is also a part of the waits.
    Shown,
    /// It is computed and subtracted from the waits; the events of the scheduler must have been recorded.
    Separate,
}

/// How waits are read and summed.
pub(super) struct LockQuery {
    pub(super) events: LockEvents,
    /// Whether locks of one name share a row.
    pub(super) combines_locks: bool,
    /// Whether rows are shown that have waits, but none that ended.
    pub(super) shows_unended_waits: bool,
    pub(super) aggregation: LockAggregation,
    /// Which columns `lock contention` has after the numbers.
    pub(super) table: ContentionTable,
    pub(super) selection: LockSelection,
    /// Whether the run-queue time of waits is computed, and whether it is a part of the waits.
    pub(super) run_queue: RunQueueUse,
    /// Names of locks that are selected in addition to the addresses of `selection`.
    pub(super) lock_names: Vec<String>,
    /// The paths of the cgroups whose waits are selected; all if `None`.
    pub(super) cgroups: Option<Vec<String>>,
    /// The column to sort by, highest first.
    pub(super) key: LockColumn,
    /// The maximum number of rows.
    pub(super) entries: usize,
    /// The number of innermost frames that are skipped when the caller is determined.
    pub(super) stack_skip: usize,
    /// The same for stacks of user programs.
    pub(super) user_stack_skip: usize,
    /// The maximum number of frames that are read and shown. Waits with equal frames share a row of callers.
    pub(super) max_stack: usize,
    /// Selects waits whose stack has a function with one of these words in its name; `None` selects all waits.
    pub(super) callstack_filter: Option<Vec<String>>,
}

impl LockQuery {
    /// Whether samples need the cgroups of threads.
    pub(super) fn needs_cgroups(&self) -> bool {
        self.aggregation == LockAggregation::Cgroup || self.cgroups.is_some()
    }

    /// Returns the addresses of user frames from the caller on.
    pub(super) fn user_callers(&self, world: &World, frames: &[Frame]) -> Vec<u64> {
        let frames = frames.get(self.user_stack_skip..);
        user_callers(world, frames.unwrap_or_default())
    }

    /// Returns the kernel's variables if locks are named by variables: only in the table of lock addresses of `lock contention`.
    /// As in perf, the locks of `lock report` and `lock info` are named by callers.
    pub(super) fn variables<'n, 'r>(
        &self,
        resolver: &'n Resolver<'r>,
    ) -> Option<KernelVariables<'n, 'r>> {
        let names_locks =
            self.events == LockEvents::Contention && self.table == ContentionTable::Addresses;
        names_locks.then(|| KernelVariables::new(resolver))
    }
}

/// The rows with the names of locks or callers, and what is printed below them.
pub(super) struct LockTable {
    pub(super) rows: Vec<NamedRow>,
    /// How many rows have events in an impossible order.
    pub(super) checks: SequenceChecks,
}

impl LockTable {
    /// Whether the checks are shown: as in perf, if there are bad sequences or with `-v`, but not with `-q`.
    pub(super) fn shows_checks(&self, matches: &ArgMatches, context: &Context) -> bool {
        let is_bad = self.checks.sequences.total() > 0;
        !context.output.is_quiet() && (is_bad || context.verbosity(matches) > 0)
    }
}

/// Reads the recording and prints its rows: as a flame graph, as JSON, or as text by `write`.
pub(super) fn print(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
    write: impl FnOnce(&mut dyn Write, &LockTable) -> io::Result<()>,
) -> Result<ExitStatus, CliError> {
    refuse_dump_with_json(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    record_dump::print(&analysis, matches, "lock")?;
    let resolver = analysis.resolver(&symbols);
    let (contention, delivered) = read(&analysis, &resolver, query)?;
    let with_stacks = count(matches, "verbose") > 0 && query.aggregation == LockAggregation::Caller;
    let names = RowNames {
        resolver: &resolver,
        world: analysis.replay.world(),
        max_stack: if with_stacks { query.max_stack } else { 0 },
        with_wakers: count(matches, "verbose") > 0 || flag(matches, "json") == Some(true),
        variables: query.variables(&resolver),
    };
    let table = table(&contention, query, &names);
    if let Some(file) = FlameFile::given(matches) {
        file.write_rows(&table.rows, &resolver, context)?;
    } else if flag(matches, "json") == Some(true) {
        let lost = losses(&analysis).lost;
        print_json(matches, context, |out| {
            json::write_rows(out, &table.rows, lost)
        })?;
    } else {
        print_text(matches, context, |out| write(out, &table))?;
    }
    conclude(&analysis, delivered, &contention.losses, "waits", matches)
}

/// Reads and sums the waits.
pub(super) fn read(
    analysis: &Analysis<'_>,
    resolver: &Resolver<'_>,
    query: &LockQuery,
) -> Result<(LockContention, DeliveredCounts), CliError> {
    let layouts = event_layouts(analysis)?;
    let has = |events: &[&str]| events.iter().all(|event| layouts.has(event));
    let with_lockdep = query.events == LockEvents::All && layouts.has("lock:lock_acquire");
    let with_user = has(&FUTEX_EVENTS);
    let with_kernel = has(&CONTENTION_EVENTS);
    if !with_lockdep && !with_user && !with_kernel {
        return Err(without_events(analysis, |event| layouts.has(event)));
    }
    // Waits for futexes have the flag `FUTEX`, which is above all flags of waits for the kernel's locks.
    let is_of_kernel = |flags: &u64| *flags < FUTEX;
    let wants_kernel = query
        .selection
        .flags
        .as_ref()
        .is_none_or(|flags| flags.iter().any(is_of_kernel));
    if !with_lockdep && !with_kernel && wants_kernel && layouts.has("lock:lock_acquire") {
        analysis.context.warn(format_args!(
            "only waits for futexes are shown: locks of the kernel were recorded with the events of lockdep, which 'lock report' shows"
        ));
    }
    let reads_switches = reads_switches(analysis, &layouts, query.run_queue)?;
    // Whether these events are needed, and their names.
    let all: [(bool, &'static [&'static str]); 4] = [
        (reads_switches, &SCHED_EVENTS),
        (with_kernel, &CONTENTION_EVENTS),
        (with_lockdep, &LOCKDEP_EVENTS),
        (with_user, &FUTEX_EVENTS),
    ];
    let needed = all.into_iter().filter(|(is_needed, _)| *is_needed);
    let needed: Vec<_> = needed.map(|(_, events)| events).collect();
    let is_read = |name: &str| needed.iter().any(|events| events.contains(&name));
    require_fields(analysis, is_read, "lock record")?;
    if query.needs_cgroups() {
        // The events at which waits begin.
        let begins = [CONTENTION_EVENTS[0], FUTEX_EVENTS[0]];
        require_cgroups(analysis, &begins, "lock record")?;
    }
    let mut contention = contention(analysis, resolver, query)?;
    // Computes what is needed of each sample, such as its stack, before `contention` gets the sample.
    let details = LockDetails::new(analysis, resolver, query)?;
    let mut pass = details.pass(&layouts, &needed);
    if reads_switches {
        pass = pass.with_switches();
    }
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut contention)?;
    contention.finish();
    analysis.end_progress();
    Ok((contention, delivered))
}

/// Creates the analysis of a query.
///
/// # Errors
///
/// Owners are requested and the recording has none, or it has no lock of a requested name.
fn contention(
    analysis: &Analysis<'_>,
    resolver: &Resolver<'_>,
    query: &LockQuery,
) -> Result<LockContention, CliError> {
    // Samples written by the BPF program of `lock record --owners`: one for each wait for a lock of the kernel.
    let has_lock_records = capture_event(analysis, LOCK_WAITS).is_some();
    let has_owners = has_lock_records || capture_event(analysis, FUTEX_WAITS).is_some();
    if query.aggregation == LockAggregation::Owner && !has_owners {
        return Err(without_owners(analysis));
    }
    let selection = lock_names::selection(query, resolver, has_lock_records)?;
    let mut contention = LockContention::new(query.aggregation, selection)
        .with_threads(process_by_tid(analysis.replay.world()));
    if has_lock_records {
        contention = contention.with_lock_records();
    }
    if query.run_queue == RunQueueUse::Separate {
        contention = contention.separating_run_queue();
    }
    Ok(contention)
}

/// Whether events of the scheduler are read, for the run-queue time of waits.
///
/// # Errors
///
/// Events of the scheduler are needed, and the recording has none.
fn reads_switches(
    analysis: &Analysis<'_>,
    layouts: &EventLayouts,
    run_queue: RunQueueUse,
) -> Result<bool, CliError> {
    let has = has_switches(analysis, layouts);
    match run_queue {
        RunQueueUse::Ignored => Ok(false),
        RunQueueUse::Separate if !has => Err(without_switches(analysis)),
        _ => Ok(has),
    }
}

/// Whether a recording has switches and wakeups of threads.
pub(super) fn has_switches(analysis: &Analysis<'_>, layouts: &EventLayouts) -> bool {
    let mut events = analysis.metadata().events.iter();
    let has_switch_records =
        events.any(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH));
    let [switch, wakeups @ ..] = SCHED_EVENTS;
    (has_switch_records || layouts.has(switch)) && wakeups.iter().any(|event| layouts.has(event))
}

/// Returns the error for a recording without switches and wakeups.
pub(super) fn without_switches(analysis: &Analysis<'_>) -> CliError {
    let (path, program) = (analysis.input.path.display(), analysis.context.program);
    let message = format!("{path}: the recording has no switches and wakeups of threads");
    let error = CliError::message(255, message);
    without_event(
        analysis,
        error.hint(format!("record with '{program} lock record --holders'")),
    )
}

/// The tracepoints of the scheduler that are read, the one of switches first.
pub(super) const SCHED_EVENTS: [&str; 3] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
];

/// Returns the event of this name, whose samples are waits that a BPF program captured; `None` if there is none, or if the
/// recording has another byte order than this machine: the samples are decoded in that of this machine.
pub(super) fn capture_event(analysis: &Analysis<'_>, name: &str) -> Option<EventIndex> {
    let recording = analysis.metadata();
    let mut events = recording.events.iter();
    let place = events.position(|event| event.name == name)?;
    let place = u32::try_from(place).ok()?;
    (recording.endian == Endian::NATIVE).then_some(EventIndex(place))
}

/// Returns the error for a recording without owners.
pub(super) fn without_owners(analysis: &Analysis<'_>) -> CliError {
    let (path, program) = (analysis.input.path.display(), analysis.context.program);
    let error = CliError::message(255, format!("{path}: the recording has no owners of locks"));
    let error = error.hint(format!(
            "'{program} lock record --user' records those of futexes, 'lock record --owners' those of locks of the kernel, as root; they are shown on machines of the same byte order. 'lock contention -b -o' shows those of the running system"
        ));
    without_event(analysis, error)
}

/// Returns the process of each thread of a recording.
pub(super) fn process_by_tid(world: &World) -> HashMap<u32, u32> {
    let threads = world.threads();
    threads.map(|thread| (thread.tid, thread.pid)).collect()
}

/// Returns the error for a recording without an event of waits.
fn without_events(analysis: &Analysis<'_>, has: impl Fn(&str) -> bool) -> CliError {
    let (path, program) = (analysis.input.path.display(), analysis.context.program);
    let mut events = CONTENTION_EVENTS.iter();
    let event = events.find(|event| !has(event)).unwrap_or(&"lock");
    let message = format!("{path}: the recording has no {event} events");
    let hint = match has("lock:lock_acquire") {
        true => format!("it has those of lockdep, which '{program} lock report' shows"),
        false => format!("record with '{program} lock record'"),
    };
    without_event(analysis, CliError::message(255, message).hint(hint))
}

/// Names the rows, combines them if requested, and drops those that are not shown.
fn table(contention: &LockContention, query: &LockQuery, names: &RowNames<'_, '_>) -> LockTable {
    let rows = contention.rows(query.key).into_iter();
    let mut rows: Vec<NamedRow> = rows.map(|row| names.named(row)).collect();
    if query.combines_locks {
        rows = combined(rows, query.key);
    }
    let mut table = LockTable {
        rows: Vec::new(),
        checks: SequenceChecks {
            sequences: contention.bad_sequences(),
            ..SequenceChecks::default()
        },
    };
    for row in rows {
        let is_full = table.rows.len() == query.entries;
        // As in perf, `lock report` checks no rows after the last one shown, `lock contention` all.
        if is_full && query.events != LockEvents::Contention {
            break;
        }
        let checks = &mut table.checks;
        checks.total += 1;
        checks.bad += usize::from(row.row.is_broken);
        let is_waiting = query.shows_unended_waits && row.row.contended > 0;
        if !is_full && (row.row.acquired > 0 || is_waiting) {
            table.rows.push(row);
        }
    }
    table
}

/// Merges rows with the same name, and sorts them by `key`.
fn combined(rows: Vec<NamedRow>, key: LockColumn) -> Vec<NamedRow> {
    let mut merged: Vec<NamedRow> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for row in rows {
        match by_name.get(&row.name) {
            Some(place) => {
                if let Some(first) = merged.get_mut(*place) {
                    first.row.merge(&row.row);
                }
            }
            None => {
                by_name.insert(row.name.clone(), merged.len());
                merged.push(row);
            }
        }
    }
    merged.sort_by(|left, right| {
        let order = key.value(&right.row).cmp(&key.value(&left.row));
        order.then_with(|| left.row.break_tie(&right.row))
    });
    merged
}

/// Names callers, locks and threads.
pub(super) struct RowNames<'n, 'r> {
    pub(super) resolver: &'n Resolver<'r>,
    pub(super) world: &'n World,
    /// The maximum number of frames below a row.
    pub(super) max_stack: usize,
    /// Whether rows have the threads that ended their waits (wakers), and also those that had the locks (owners).
    pub(super) with_wakers: bool,
    /// The kernel's variables, if locks are named by variables instead of callers.
    pub(super) variables: Option<KernelVariables<'n, 'r>>,
}

impl RowNames<'_, '_> {
    /// Returns a row with the name of its thread, cgroup, lock or caller.
    pub(super) fn named(&self, row: LockRow) -> NamedRow {
        let name = match (&row.key, &row.class) {
            (LockKey::Thread(tid) | LockKey::Owner(Some(tid)), _) => self.thread(*tid),
            (LockKey::Owner(None), _) => "Unknown".to_owned(),
            (LockKey::Cgroup(id), _) => match self.world.cgroup(*id) {
                Some(path) => path.to_owned(),
                None => format!("cgroup:{id}"),
            },
            // Only rows of lockdep's events have the class of the lock.
            (_, Some(class)) => String::from_utf8_lossy(class).into_owned(),
            (LockKey::Address(_), None) if let Some(name) = self.lock(&row) => name,
            (LockKey::UserAddress { pid, address }, None)
                if let Some(name) = self.user_lock(*pid, *address) =>
            {
                name
            }
            _ if row.caller == 0 => "Unknown".to_owned(),
            _ => symbol_text(self.resolver, row.process, row.caller)
                .unwrap_or_else(|| format!("{:#x}", row.caller)),
        };
        let frames = row.full_stack.iter().take(self.max_stack);
        let stack = frames.map(|ip| frame_text(self.resolver, row.process, *ip));
        let threads = [&row.wakers, &row.owners].map(|threads| self.threads(threads));
        let [wakers, owners] = threads;
        NamedRow {
            stack: stack.collect(),
            wakers,
            owners,
            // Set by `lock contention` of the running system, which knows the processes of owners.
            owner_process: None,
            container: match row.key {
                LockKey::Cgroup(_) => container_of(&name),
                _ => None,
            },
            name,
            row,
        }
    }

    /// Returns threads with their names, most waits first; none if they are not shown.
    fn threads(&self, waits: &BTreeMap<u32, u64>) -> Vec<NamedThread> {
        if !self.with_wakers {
            return Vec::new();
        }
        let threads = waits.iter().map(|(tid, waits)| NamedThread {
            tid: *tid,
            comm: self.thread(*tid),
            waits: *waits,
        });
        let mut threads: Vec<_> = threads.collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.waits));
        threads
    }

    /// Returns the name of the row's lock of the kernel; `None` if it is unknown, or if locks are named by callers.
    fn lock(&self, row: &LockRow) -> Option<String> {
        let variables = self.variables.as_ref()?;
        let known = row.lock_name.clone();
        known.or_else(|| variables.at(row.address))
    }

    /// Returns the variable at the address of a process; `None` if there is none, or if locks are named by callers.
    fn user_lock(&self, pid: u32, address: u64) -> Option<String> {
        self.variables.as_ref()?;
        user_variable(self.resolver, pid, address)
    }

    /// Returns the last name of a thread; `:TID` if unknown.
    pub(super) fn thread(&self, tid: u32) -> String {
        match self.world.comm(self.world.comm_last(tid, Order::MAX)) {
            "" => format!(":{}", tid.cast_signed()),
            name => name.to_owned(),
        }
    }
}

/// Returns `symbol+0xOFFSET` of an address of a process, or of the kernel if `process` is `None`. Returns `None` if the address
/// is 0 or has no symbol.
fn symbol_text(resolver: &Resolver<'_>, process: Option<u32>, address: u64) -> Option<String> {
    let (at, mode) = address_context(process);
    let frame = resolver.locate(at, mode, address);
    let id = frame.symbol.filter(|_| address != 0)?;
    let offset = frame.address.wrapping_sub(resolver.symbol(id)?.start);
    Some(format!("{}+{offset:#x}", resolver.symbol_name(id)))
}

/// Returns the text of a frame below a row: the address, and `symbol+0xOFFSET` if it has a symbol.
pub(super) fn frame_text(resolver: &Resolver<'_>, process: Option<u32>, address: u64) -> String {
    let symbol = symbol_text(resolver, process, address).unwrap_or_default();
    format!("{address:#x}  {symbol}")
}

/// Returns the name of the variable at an address of a process, with an offset unless the variable begins there. `None` if there
/// is no variable: a lock on the heap, or in a mapping that is not recorded.
pub(super) fn user_variable(resolver: &Resolver<'_>, pid: u32, address: u64) -> Option<String> {
    let (at, mode) = address_context(Some(pid));
    let frame = resolver.locate_data(at, mode, address);
    let id = frame.symbol?;
    let offset = frame.address.checked_sub(resolver.symbol(id)?.start)?;
    let name = resolver.symbol_name(id);
    Some(match offset {
        0 => name.to_owned(),
        offset => format!("{name}+{offset:#x}"),
    })
}
