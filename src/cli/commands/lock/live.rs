//! `lock contention` of the running system: waits are summed by BPF programs in the kernel.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use clap::ArgMatches;
use rperf_analysis::lock::{self, LockKey, LockRow, LockStack, LockSums};
use rperf_bpf::{
    ContentionKey, ContentionLosses, ContentionOptions, ContentionSummary, Error, TaskSet, WaitKey,
    WaitSummary,
};
use rperf_replay::{LiveWorld, Order, World};
use rperf_resolve::Resolver;
use rperf_session::{Observation, RecordRequest, SynthesizedRecords, Target};
use rperf_sys::Proc;
use rperf_view::lock::{
    ContentionLayout, ContentionTable, MissingWaits, NamedRow, json, write_missing,
};
use rperf_wire::Endian;

use super::analysis::{LockQuery, RowNames, RunQueueUse, process_by_tid};
use super::cgroup_filter;
use super::contention::write_rows;
use super::details::{LockFunctions, frames_at};
use super::flame::FlameFile;
use super::live_owners::{LiveOwners, namespaced_threads};
use super::lock_names;
use super::output::{print_json, print_text};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::cgroups;
use crate::cli::live::kernel_offsets::{
    lock_layout, lock_owner_layout, namespace_layout, task_pid_offset,
};
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{PROC, explain, kernel_sums, target};
use crate::cli::options::{count, flag, is_given};
use crate::cli::shared::containers::container_of;
use crate::cli::symbol_options::SymbolSources;

/// The default of `--map-nr-entries`, as in perf.
const ENTRIES: u64 = 10240;

/// The ids of the options that ask for waits of the running system, and their names in messages.
const LIVE: [(&str, &str); 11] = [
    ("use-bpf", "-b"),
    ("all-cpus", "-a"),
    ("cpu", "-C"),
    ("pid", "-p"),
    ("tid", "--tid"),
    ("workload", "a command"),
    ("map-nr-entries", "-M"),
    ("lock-owner", "-o"),
    ("user", "--user"),
    ("cgroup-filter", "-G"),
    ("lock-cgroup", "--lock-cgroup"),
];

/// The options of [`LIVE`] that apply to a recording if `-i` is given.
const ALSO_RECORDED: [&str; 3] = ["lock-owner", "cgroup-filter", "lock-cgroup"];

/// Whether the options ask for waits of the running system instead of those of a recording.
pub(super) fn is_requested(matches: &ArgMatches) -> bool {
    live_option(matches).is_some()
}

/// Returns the first given option that asks for waits of the running system.
fn live_option(matches: &ArgMatches) -> Option<&'static str> {
    let has_input = is_given(matches, "input");
    let mut live = LIVE
        .iter()
        .filter(|(id, _)| !(has_input && ALSO_RECORDED.contains(id)));
    let given = live.find(|(id, _)| is_given(matches, id));
    given.map(|(_, option)| *option)
}

/// Refuses options that read a recording, if another option asks for waits of the running system.
///
/// # Errors
///
/// Status 129.
pub(super) fn refuse_reading_options(matches: &ArgMatches) -> Result<(), CliError> {
    let Some(live) = live_option(matches) else {
        return Ok(());
    };
    let mut reading = [("input", "-i"), ("dump-raw-trace", "-D")].into_iter();
    match reading.find(|(id, _)| is_given(matches, id)) {
        Some((_, option)) => Err(CliError::usage(format!(
            "{option} reads a recording, {live} shows the running system"
        ))),
        None => Ok(()),
    }
}

/// Sums waits until the workload or the observed tasks end, or until a signal, and prints or draws them.
pub(super) fn run(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
    layout: &ContentionLayout<'_>,
) -> Result<ExitStatus, CliError> {
    let symbols = SymbolSources::new(matches, context)?;
    let request = request(matches, context, query)?;
    let is_workload = matches!(request.observe.target, Target::Workload);
    let cgroup_paths = cgroups::paths();
    let options = options(matches, query, &cgroup_paths, context)?;
    let watched = watch(&request, &options, matches, context)?;
    let (summary, world) = (&watched.summary, watched.world.world());
    let failed = |error: Error| CliError::message(255, error.to_string());
    let resolver = symbols.live_resolver(context, world);
    let names = LiveNames {
        resolver: &resolver,
        world,
        owners: LiveOwners::new(Proc::new(PROC), process_by_tid(world), is_workload),
        cgroups: &cgroup_paths,
        summary,
        query,
    };
    let (rows, waits) = names.rows(watched.sums).map_err(failed)?;
    let with_stacks = count(matches, "verbose") > 0 && layout.table == ContentionTable::Callers;
    let row_names = RowNames {
        resolver: &resolver,
        world,
        max_stack: if with_stacks { query.max_stack } else { 0 },
        with_wakers: false,
        variables: query.variables(&resolver),
    };
    let rows = rows.into_iter().take(query.entries);
    let rows: Vec<NamedRow> = rows.map(|row| names.named(row, &row_names)).collect();
    let missing = missing_waits(summary.losses().map_err(failed)?);
    if let Some(file) = FlameFile::given(matches) {
        file.write_rows(&rows, &resolver, context)?;
    } else if flag(matches, "json") == Some(true) {
        print_json(matches, context, |out| {
            json::write_rows(out, &rows, missing.total())
        })?;
    } else {
        let is_text = layout.separator.is_none() && !context.output.is_quiet();
        let shows_missing = is_text && (missing.total() > 0 || context.verbosity(matches) > 0);
        print_text(matches, context, |out| {
            write_rows(out, layout, &rows, context)?;
            match shows_missing {
                true => write_missing(out, &missing, waits),
                false => Ok(()),
            }
        })?;
    }
    Ok(watched.status)
}

/// Returns the request for an observation of the selected tasks.
fn request(
    matches: &ArgMatches,
    context: &Context,
    query: &LockQuery,
) -> Result<RecordRequest, CliError> {
    let with_futexes = with_futexes(matches, query);
    let target = target::target(matches, context, "watching")?;
    let kinds = SynthesizedRecords {
        tasks: true,
        mappings: with_futexes,
        cgroups: false,
    };
    let mut request = kernel_sums::request(target, kinds, matches, context)?;
    // Locks in user space are named by their variables, which are found through data mappings.
    request.observe.details.samples.data =
        with_futexes && query.table == ContentionTable::Addresses;
    Ok(request)
}

/// Whether waits for futexes are summed: with `--user`, or if `-Y` names a type of futex.
fn with_futexes(matches: &ArgMatches, query: &LockQuery) -> bool {
    let flags = query.selection.flags.iter().flatten();
    // The flags of futexes are above those of the kernel's locks (`LCB_F_*`).
    let mut futexes = flags.filter(|flags| **flags >= lock::FUTEX);
    flag(matches, "user") == Some(true) || futexes.next().is_some()
}

/// For each type of futex: its flag in rows, and its flag in the BPF programs.
const FUTEX_FLAGS: [(u64, u32); 2] = [
    (lock::FUTEX, rperf_bpf::FUTEX),
    (lock::FUTEX_PI, rperf_bpf::FUTEX_PI),
];

/// The results of an observation that has ended.
struct Watched {
    summary: ContentionSummary,
    sums: BTreeMap<WaitKey, WaitSummary>,
    world: LiveWorld,
    status: ExitStatus,
}

/// Sums waits until the workload or the observed tasks end, or until a signal.
fn watch(
    request: &RecordRequest,
    options: &ContentionOptions,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Watched, CliError> {
    let mut reporter = RecordReporter::new(context, matches).detailed_from_second_v();
    // The only event of the request is a `bpf-output` event.
    let explained = |error| explain::explain(context, "bpf-output", error);
    let mut observation = Observation::open(request, &mut reporter).map_err(explained)?;
    let mut world = LiveWorld::new(Endian::NATIVE, observation.events());
    let summary = start(options, request, &observation)?;
    let started = observation.start(request, &mut |records| world.add(records));
    started.map_err(explained)?;
    let has_workload = request.observe.workload.is_some();
    let status = kernel_sums::watch(&mut observation, has_workload, &mut |observation| {
        observation.drain(&mut |records| world.add(records));
        // As at a FINISHED_ROUND record, the World (processes and mappings over time) applies the records of earlier drains.
        world.end_round();
        Ok(())
    })?;
    let sums = summary.read();
    world.apply_all();
    Ok(Watched {
        sums: sums.map_err(|error| CliError::message(255, error.to_string()))?,
        summary,
        world,
        status,
    })
}

fn missing_waits(losses: ContentionLosses) -> MissingWaits {
    MissingWaits {
        tasks: losses.tasks,
        stacks: losses.stacks,
        times: losses.times,
        rows: losses.entries,
    }
}

fn options(
    matches: &ArgMatches,
    query: &LockQuery,
    cgroups: &HashMap<u64, PathBuf>,
    context: &Context,
) -> Result<ContentionOptions, CliError> {
    let failed = |error: Error| CliError::message(255, format!("lock contention: {error}"));
    let table = query.table;
    let needs_names = table == ContentionTable::Addresses || !query.lock_names.is_empty();
    // The offsets by which BPF programs recognize the kernel's locks that have names.
    let lock_layout = needs_names.then(lock_layout).flatten();
    let key = match table {
        ContentionTable::Callers => ContentionKey::Stack,
        ContentionTable::Threads => ContentionKey::Thread,
        ContentionTable::Addresses => ContentionKey::Lock,
        ContentionTable::Cgroups => ContentionKey::Cgroup,
        ContentionTable::Owners => ContentionKey::Owner(lock_owner_layout().map_err(failed)?),
    };
    let with_futexes = with_futexes(matches, query);
    let has_futex_owners = with_futexes && table == ContentionTable::Owners;
    let namespaces = has_futex_owners.then(namespace_layout).transpose();
    // Locks without a name are named by their callers.
    let needs_callers = matches!(table, ContentionTable::Callers | ContentionTable::Addresses);
    let entries = matches.get_one::<u64>("map-nr-entries").copied();
    let selected = query.selection.flags.as_ref();
    let is_separate = query.run_queue == RunQueueUse::Separate;
    // The BPF programs need it to sum the time in run queues separately from the waits.
    let pid_offset = is_separate.then(task_pid_offset).transpose();
    Ok(ContentionOptions {
        // If the target is not the whole system, `start` replaces `tasks` or `cpus`.
        tasks: TaskSet::All,
        excluded_process: Some(std::process::id()),
        key,
        with_stacks: needs_callers || query.callstack_filter.is_some(),
        cpus: None,
        locks: lock_names::live_filter(query, lock_layout.as_ref(), context)?,
        lock_layout,
        task_pid_offset: pid_offset.map_err(failed)?,
        with_futexes,
        namespace_layout: namespaces.map_err(failed)?,
        flags: selected.map(|all| all.iter().filter_map(|flags| bpf_flags(*flags)).collect()),
        cgroups: selected_cgroups(query, cgroups)?,
        max_stack: u32::try_from(query.max_stack).unwrap_or(u32::MAX),
        stack_skip: u8::try_from(query.stack_skip).unwrap_or(u8::MAX),
        max_entries: u32::try_from(entries.unwrap_or(ENTRIES)).unwrap_or(u32::MAX),
    })
}

/// Converts the flags of a wait from those in rows to those of the BPF programs; `None` if the programs have no such flags.
fn bpf_flags(flags: u64) -> Option<u32> {
    let futex = FUTEX_FLAGS.iter().find(|(in_rows, _)| *in_rows == flags);
    futex.map_or_else(|| flags.try_into().ok(), |(_, bpf)| Some(*bpf))
}

/// Returns the ids of the cgroups of `-G`.
fn selected_cgroups(
    query: &LockQuery,
    paths: &HashMap<u64, PathBuf>,
) -> Result<Option<Vec<u64>>, CliError> {
    let paths = paths.iter();
    cgroup_filter::ids(query, paths.map(|(id, path)| (*id, path.as_path())))
}

/// Starts the programs for the target of `request`.
fn start(
    options: &ContentionOptions,
    request: &RecordRequest,
    observation: &Observation,
) -> Result<ContentionSummary, CliError> {
    let started = (|| {
        let mut options = options.clone();
        match &request.observe.target {
            Target::Cpus(None) => {}
            Target::Cpus(Some(cpus)) => options.cpus = Some(cpus.numbers().to_vec()),
            _ => {
                // The threads are added once the programs have started. `follow` includes their children.
                options.tasks = TaskSet::Threads {
                    threads: Vec::new(),
                    follow: Some(task_pid_offset()?),
                    // Only applies to `threads`, which is empty.
                    from_exec: false,
                }
            }
        }
        let summary = ContentionSummary::start(&options)?;
        let proc = Proc::new(&request.roots.proc);
        if options.namespace_layout.is_some() {
            let threads = namespaced_threads(&proc).unwrap_or_default();
            summary.add_thread_ids(&threads)?;
        }
        // Until its exec, the process of the workload runs rperf: waits before the exec are not summed.
        let from_exec = matches!(request.observe.target, Target::Workload);
        match &request.observe.target {
            Target::Workload => {
                let threads: Vec<u32> = observation.workload_pid().into_iter().collect();
                summary.add_threads(&threads, from_exec)?;
            }
            Target::Threads(threads) => summary.add_threads(threads, from_exec)?,
            Target::Processes(processes) => {
                for process in processes {
                    let threads = proc.threads(*process).unwrap_or_default();
                    summary.add_threads(&threads, from_exec)?;
                }
            }
            // CPUs: the tasks are not limited. No option of `lock` selects another target.
            _ => {}
        }
        Ok(summary)
    })();
    started.map_err(|error: Error| {
        CliError::message(255, format!("lock contention: {error}"))
            .hint("'lock record' and 'lock contention -i' work without BPF programs")
    })
}

/// Turns sums into rows with names.
struct LiveNames<'n, 'r> {
    resolver: &'n Resolver<'r>,
    world: &'n World,
    owners: LiveOwners,
    cgroups: &'n HashMap<u64, PathBuf>,
    summary: &'n ContentionSummary,
    query: &'n LockQuery,
}

impl LiveNames<'_, '_> {
    /// Returns the rows in the order of the query, and the number of their waits.
    fn rows(
        &self,
        sums: impl IntoIterator<Item = (WaitKey, WaitSummary)>,
    ) -> Result<(Vec<LockRow>, u64), Error> {
        let functions = LockFunctions::new(self.resolver);
        let mut rows: Vec<LockRow> = Vec::new();
        let mut by_key: HashMap<LockKey, usize> = HashMap::new();
        let mut waits = 0;
        for (key, sum) in sums {
            let stack = match key.stack {
                Some(number) => self.summary.stack(number)?,
                None => Vec::new(),
            };
            let frames = frames_at(self.resolver, key.process, &stack);
            if functions.is_excluded(&frames, self.query.callstack_filter.as_deref()) {
                continue;
            }
            waits += sum.count;
            let callers = LockStack {
                // Only keys of futexes have a process; their stacks are those of user space.
                process: key.process,
                frames: match key.process {
                    Some(_) => self.query.user_callers(self.world, &frames),
                    None => {
                        // The BPF programs have skipped the innermost frames.
                        let skip = 0;
                        functions.callers(&frames, skip)
                    }
                },
            };
            let row_key = self.key(key, sum.lock, &callers);
            let row = LockRow::of_sums(row_key, sums_of(sum), callers, stack);
            match by_key.get(&row.key) {
                Some(index) => {
                    if let Some(first) = rows.get_mut(*index) {
                        first.merge(&row);
                    }
                }
                None => {
                    by_key.insert(row.key.clone(), rows.len());
                    rows.push(row);
                }
            }
        }
        rows.sort_by(|left, right| {
            let column = self.query.key;
            let order = column.value(right).cmp(&column.value(left));
            order.then_with(|| left.break_tie(right))
        });
        Ok((rows, waits))
    }

    /// Returns the key of the row of a sum. `lock` is the address of the lock of the first wait that was summed.
    fn key(&self, key: WaitKey, lock: u64, callers: &LockStack) -> LockKey {
        match (self.query.table, key.process) {
            (ContentionTable::Callers, _) => LockKey::Caller(callers.clone()),
            (ContentionTable::Threads, _) => {
                LockKey::Thread(u32::try_from(key.value).unwrap_or_default())
            }
            (ContentionTable::Addresses, None) => LockKey::Address(key.value),
            (ContentionTable::Addresses, Some(pid)) => LockKey::UserAddress {
                pid,
                address: key.value,
            },
            (ContentionTable::Owners, process) => {
                LockKey::Owner(self.owners.owner(key.value, process, lock))
            }
            (ContentionTable::Cgroups, _) => LockKey::Cgroup(key.value),
        }
    }

    /// Returns a row with its name.
    fn named(&self, row: LockRow, names: &RowNames<'_, '_>) -> NamedRow {
        let name = match &row.key {
            LockKey::Cgroup(id) => Some(match self.cgroups.get(id) {
                Some(path) => path.display().to_string(),
                None => format!("cgroup:{id}"),
            }),
            LockKey::Owner(Some(tid)) => self.unobserved_name(*tid),
            _ => None,
        };
        let mut named = names.named(row);
        if let Some(name) = name {
            named.container = container_of(&name);
            named.name = name;
        }
        if let (LockKey::Owner(Some(tid)), Some(waiting)) = (&named.row.key, named.row.process) {
            // Set only if the process of the owner is known and is not that of the waiting thread.
            let process = self.owners.process(*tid);
            named.owner_process = process.filter(|process| *process != waiting);
        }
        named
    }

    /// Returns the name of a thread that was not observed; `None` if it was observed or has ended. The name of an unobserved
    /// thread in the World is empty or `:TID`.
    fn unobserved_name(&self, tid: u32) -> Option<String> {
        let comm = self.world.comm(self.world.comm_last(tid, Order::MAX));
        let is_observed = !comm.is_empty() && comm != format!(":{tid}");
        let name = (!is_observed).then(|| self.owners.name(tid));
        name.flatten()
    }
}

fn sums_of(sum: WaitSummary) -> LockSums {
    LockSums {
        count: sum.count,
        total: sum.total,
        max: sum.max,
        min: sum.min,
        waits_by_power: sum.buckets,
        flags: match FUTEX_FLAGS.iter().find(|(_, bpf)| *bpf == sum.flags) {
            Some((in_rows, _)) => *in_rows,
            None => u64::from(sum.flags),
        },
        address: sum.lock,
        lock_name: sum.name.as_ref().map(lock_names::text),
        run_queue: sum.run_queue_time,
    }
}
