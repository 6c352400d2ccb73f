//! The options that `trace` shares with `trace -i`, and the events of a live trace.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ArgMatches;
use rperf_analysis::trace::{FILE_CALLS, RUN_TIME_EVENT, TraceOptions, TraceSwitch};
use rperf_events::{
    Catalogue, EventFilter, EventSpec, RecordDetails, SampleFields, Sampling, SideBand, TaskScope,
};
use rperf_session::{
    KernelRoots, ObserveOptions, RecordRequest, RingOptions, SynthesisOptions, SynthesizedRecords,
    Target,
};
use rperf_sys::Proc;
use rperf_syscalls::{Abi, ArgumentKind, ArgumentOptions, Syscall, SyscallTable};
use rperf_view::trace::{RESULT_COLUMN, SummaryMode, SummaryOptions, TraceLayout};

use super::selection::{Selection, shown_name};
use super::stacks::StackSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::events::parsed;
use crate::cli::live::{PROC, cgroups, explain, target, workload};
use crate::cli::options::{flag, given_value, is_given};
use crate::cli::pmus::machine_pmus;
use crate::cli::shared::sampling::ring_size;
use crate::cli::tracefs::MachineTracepoints;

/// Pages of each ring buffer: 2 MiB hold about 15,000 calls.
const RING_PAGES: usize = 512;

/// The parsed options, except target and events.
pub(super) struct TraceSettings {
    pub(super) options: TraceOptions,
    pub(super) layout: TraceLayout,
    pub(super) summary: SummaryOptions,
    /// Numbers of the calls that are recorded: those that are shown, and, if lines show the file names of descriptors, those that
    /// change what descriptors refer to. `None` for all.
    pub(super) recorded_calls: Option<BTreeSet<u32>>,
    /// The time from the start until events are enabled; `None` if they are enabled at once.
    pub(super) delay: Option<Duration>,
    /// Whether system calls are traced.
    pub(super) traces_calls: bool,
    /// The stacks and page faults that are shown.
    pub(super) stacks: StackSettings,
    /// Whether structures are formatted with the kernel's types even if rperf has a table for them.
    pub(super) prefers_kernel_types: bool,
    /// Ids of threads that are not traced.
    pub(super) excluded_threads: Vec<u32>,
    /// The maximum size in bytes of captured buffers, and of texts other than paths.
    pub(super) string_size: u32,
}

impl TraceSettings {
    /// Parses and checks the options.
    pub(super) fn new(
        matches: &ArgMatches,
        abi: Abi,
        selection: &Selection,
        context: &Context,
    ) -> Result<Self, CliError> {
        let on = |id| flag(matches, id) == Some(true);
        let (sums_up, prints_lines) = output_kinds(matches);
        check_combination(matches, sums_up, prints_lines)?;
        let stacks = StackSettings::new(matches, context)?;
        let options = options(matches, abi, selection, &stacks, context)?;
        let mode = summary_mode(matches, sums_up)?;
        Ok(Self {
            options,
            layout: layout(matches, selection, context),
            summary: SummaryOptions {
                by_error: on("errno-summary"),
                has_run_times: on("sched"),
                mode,
            },
            recorded_calls: selection
                .calls
                .as_ref()
                .map(|calls| recorded_calls(calls, SyscallTable::of(abi), prints_lines)),
            delay: delay(matches)?,
            traces_calls: selection.traces_calls,
            stacks,
            prefers_kernel_types: on("force-btf"),
            excluded_threads: excluded_threads(matches)?,
            string_size: string_size(matches)?,
        })
    }

    /// Returns the calls that are recorded, with their numbers.
    pub(super) fn recorded_syscalls(&self) -> Vec<(u32, &'static Syscall)> {
        let mut calls = SyscallTable::of(self.options.abi).all();
        if let Some(recorded) = &self.recorded_calls {
            calls.retain(|(number, _)| recorded.contains(number));
        }
        calls
    }
}

/// Returns the options of the observer, which prints lines and counts calls. The caller replaces the defaults of `names_files`,
/// and for a live trace those of `hidden_process` and `structures`.
fn options(
    matches: &ArgMatches,
    abi: Abi,
    selection: &Selection,
    stacks: &StackSettings,
    context: &Context,
) -> Result<TraceOptions, CliError> {
    let setting = |name| context.config.flag(name);
    let on = |id| flag(matches, id) == Some(true);
    let (sums_up, prints_lines) = output_kinds(matches);
    let (is_json, is_tree) = (on("json"), on("exec-tree"));
    Ok(TraceOptions {
        abi,
        selected_calls: selection
            .calls
            .as_ref()
            .map(|calls| calls.iter().copied().collect()),
        min_duration: min_duration(matches)?,
        min_stack: stacks.min_stack,
        failed_only: on("failure"),
        max_events: matches.get_one::<u64>("max-events").copied(),
        prints_lines,
        sums_up,
        with_details: is_json || is_tree,
        switch: event_switch(matches)?,
        sums_run_times: on("sched"),
        event_limits: selection.limits.clone().into_iter().collect(),
        // The trace ends with the limits (`nr=`) of its events only if every event that it shows has one.
        ends_with_limits: !selection.traces_calls
            && !stacks.shows_faults()
            && selection
                .events()
                .all(|event| selection.limits.contains_key(&shown_name(event))),
        hidden_process: None,
        excluded_threads: excluded_threads(matches)?.into_iter().collect(),
        names_files: true,
        structures: None,
        shows_run_times: selection
            .events()
            .any(|event| shown_name(event) == RUN_TIME_EVENT),
        arguments: ArgumentOptions {
            show_zeros: setting("trace.show_zeros") == Some(true),
            // The tree finds arguments and fields of structures by their names.
            hides_names: !is_tree && setting("trace.show_arg_names") == Some(false),
            ..ArgumentOptions::default()
        },
    })
}

/// Returns whether calls are summed up, and whether lines are printed.
fn output_kinds(matches: &ArgMatches) -> (bool, bool) {
    let on = |id| flag(matches, id) == Some(true);
    let sums_up = on("summary") || on("with-summary") || on("errno-summary");
    (sums_up, on("with-summary") || !sums_up)
}

/// Returns the layout of lines.
fn layout(matches: &ArgMatches, selection: &Selection, context: &Context) -> TraceLayout {
    let setting = |name| context.config.flag(name);
    let on = |id| flag(matches, id) == Some(true);
    let is_one_thread = on("no-inherit")
        && given_value::<String>(matches, "tid").is_some_and(|list| !list.contains(','));
    TraceLayout {
        full_time: on("time"),
        shows_comm: flag(matches, "comm") != Some(false),
        shows_task: !is_one_thread,
        shows_time: setting("trace.show_timestamp") != Some(false),
        // A page fault has a duration, 0; other events have none.
        shows_duration: (selection.traces_calls || is_given(matches, "pf"))
            && setting("trace.show_duration") != Some(false),
        result_column: result_column(context),
        is_json: on("json"),
    }
}

/// Refuses options that do not go together.
fn check_combination(
    matches: &ArgMatches,
    sums_up: bool,
    prints_lines: bool,
) -> Result<(), CliError> {
    let on = |id| flag(matches, id) == Some(true);
    let (is_json, is_tree) = (on("json"), on("exec-tree"));
    if is_tree && (sums_up || is_json || matches.contains_id("max-events")) {
        return Err(CliError::usage("--exec-tree prints no lines and no sums")
            .hint("leave out -s, -S, --errno-summary, --json and --max-events"));
    }
    let hiding_options = ["failure", "duration", "switch-on", "switch-off"];
    if let Some(option) = hiding_options
        .into_iter()
        .find(|id| is_tree && is_given(matches, id))
    {
        return Err(CliError::usage(format!(
            "--exec-tree needs all calls of processes: leave out --{option}"
        )));
    }
    if on("bpf-summary") && (!sums_up || on("with-summary")) {
        return Err(CliError::usage("--bpf-summary needs -s, without -S"));
    }
    if is_json && sums_up {
        return Err(
            CliError::usage("--json prints calls and events, not their sums")
                .hint("leave out -s, -S and --errno-summary"),
        );
    }
    if on("sched") && !sums_up {
        return Err(CliError::usage("--sched needs -s or -S"));
    }
    if matches.contains_id("max-events") && !prints_lines {
        return Err(CliError::usage(
            "--max-events ends a trace by its lines: use -S",
        ));
    }
    Ok(())
}

/// Returns the calls to record: if lines are printed and a shown call has a descriptor as argument, also [`FILE_CALLS`], which
/// change what descriptors refer to.
fn recorded_calls(
    shown: &BTreeSet<u32>,
    table: &SyscallTable,
    prints_lines: bool,
) -> BTreeSet<u32> {
    let has_fds = |number: &u32| {
        let arguments = table.get(*number).and_then(|call| call.arguments.as_ref());
        arguments.is_some_and(|arguments| {
            let mut kinds = arguments.iter().map(|argument| argument.kind);
            kinds.any(|kind| matches!(kind, ArgumentKind::Fd | ArgumentKind::DirFd))
        })
    };
    let mut recorded = shown.clone();
    if prints_lines && shown.iter().any(has_fds) {
        recorded.extend(FILE_CALLS.iter().filter_map(|name| table.number(name)));
    }
    recorded
}

/// Returns `--delay`; `None` if it is not given or 0.
fn delay(matches: &ArgMatches) -> Result<Option<Duration>, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(None);
    };
    let millis = word.parse::<u32>().ok();
    let millis = millis.ok_or_else(|| {
        CliError::usage(format!("-D: '{word}' is not a number of milliseconds")).hint("-D 500")
    })?;
    Ok((millis > 0).then(|| Duration::from_millis(millis.into())))
}

/// Returns the column of results: the setting `trace.args_alignment`, otherwise the default.
fn result_column(context: &Context) -> usize {
    let set = context.config.text("trace.args_alignment");
    let set = set.and_then(|column| column.trim().parse().ok());
    set.map_or(RESULT_COLUMN, |column: usize| column.min(MAX_RESULT_COLUMN))
}

/// The maximum of `trace.args_alignment`, which limits the padding of lines.
const MAX_RESULT_COLUMN: usize = 1000;

/// Returns `--string-size`.
fn string_size(matches: &ArgMatches) -> Result<u32, CliError> {
    let size = matches.get_one::<u64>("string-size").copied();
    let default = match flag(matches, "exec-tree") {
        // The tree shows command lines, whose words may be long.
        Some(true) => TREE_STRING_SIZE,
        _ => STRING_SIZE,
    };
    match size.unwrap_or(default) {
        size @ 0..=MAX_STRING_SIZE => Ok(u32::try_from(size).unwrap_or(u32::MAX)),
        size => Err(
            CliError::usage(format!("--string-size: {size} bytes are too many"))
                .hint(format!("at most {MAX_STRING_SIZE}")),
        ),
    }
}

/// The default of `--string-size` in bytes, as in strace and perf.
const STRING_SIZE: u64 = 32;
/// The default of `--string-size` with `--exec-tree`.
const TREE_STRING_SIZE: u64 = 400;
/// The maximum of `--string-size`.
const MAX_STRING_SIZE: u64 = 4096;

/// Returns `--summary-mode`.
fn summary_mode(matches: &ArgMatches, sums_up: bool) -> Result<SummaryMode, CliError> {
    let Some(mode) = matches.get_one::<String>("summary-mode") else {
        return Ok(SummaryMode::Thread);
    };
    if !sums_up {
        return Err(CliError::usage("--summary-mode needs -s or -S"));
    }
    match mode.as_str() {
        "thread" => Ok(SummaryMode::Thread),
        "total" => Ok(SummaryMode::Total),
        "cgroup" => Ok(SummaryMode::Cgroup),
        word => {
            let message = format!("--summary-mode: cannot sum up by '{word}'");
            Err(CliError::usage(message).hint("the modes are thread, total and cgroup"))
        }
    }
}

/// Returns `--duration` in nanoseconds; 0 if it is not given.
fn min_duration(matches: &ArgMatches) -> Result<u64, CliError> {
    let Some(word) = matches.get_one::<String>("duration") else {
        return Ok(0);
    };
    let millis = word.parse::<f64>().ok();
    let millis = millis.filter(|millis| (0.0..1e9).contains(millis));
    let millis = millis.ok_or_else(|| {
        CliError::usage(format!(
            "--duration: '{word}' is not a number of milliseconds"
        ))
        .hint("--duration 5 or --duration 0.1")
    })?;
    Ok((millis * 1e6) as u64)
}

/// Returns the system call interface of this machine.
pub(super) fn native_abi() -> Result<Abi, CliError> {
    Abi::native().ok_or_else(|| {
        let name = std::env::consts::ARCH;
        CliError::message(
            255,
            format!("trace: there is no table of system calls for {name}"),
        )
    })
}

/// Returns the request and the settings of a live trace.
pub(super) fn build(
    matches: &ArgMatches,
    context: &Context,
) -> Result<(RecordRequest, TraceSettings), CliError> {
    let abi = native_abi()?;
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    let target = target::target(matches, context, "tracing")?;
    let catalogue = pmus.catalogue(&machine);
    let mut selection = Selection::new(matches, SyscallTable::of(abi), Some(&catalogue))?;
    selection.attach_filters(matches, &machine.tracefs)?;
    let mut settings = TraceSettings::new(matches, abi, &selection, context)?;
    settings.options.names_files = sees_all_threads(&target, matches);
    // The filter of `task_filter` excludes only the first thread of this process. Calls of its other threads, which read /proc,
    // are recorded, but not shown.
    settings.options.hidden_process =
        matches!(target, Target::Cpus(_) | Target::User(_)).then(std::process::id);
    let events = all_events(&selection, &settings, &target, &catalogue)?;
    let workload = workload::find(matches, context);
    let program = workload.map_err(|(word, cause)| {
        let cause = explain::exec_reason(&cause);
        CliError::message(255, format!("{word}: {cause}"))
    })?;
    let cgroups = cgroups::cgroups(matches, &target, events.len())?;
    let needs_mappings = settings.stacks.needs_mappings(&events);
    let observe = ObserveOptions {
        workload: program,
        cgroups,
        sampling: Sampling::Period(1),
        details: details(matches, &settings),
        ..ObserveOptions::new(target, events)
    };
    let pages = ring_size::pages(matches, context)?;
    let roots = KernelRoots {
        proc: PROC.into(),
        sysfs: pmus.sysfs.root().to_owned(),
        tracefs: machine.tracefs,
    };
    let request = RecordRequest {
        rings: RingOptions {
            pages: pages.or(Some(RING_PAGES)),
            ..RingOptions::default()
        },
        synthesis: SynthesisOptions {
            kinds: SynthesizedRecords {
                tasks: true,
                mappings: needs_mappings,
                cgroups: false,
            },
            ..SynthesisOptions::default()
        },
        ..RecordRequest::observing(observe, roots)
    };
    Ok((request, settings))
}

fn details(matches: &ArgMatches, settings: &TraceSettings) -> RecordDetails {
    RecordDetails {
        scope: TaskScope {
            no_inherit: flag(matches, "no-inherit") == Some(true),
            delayed: settings.delay.is_some(),
            ..TaskScope::default()
        },
        samples: SampleFields {
            data: settings.stacks.shows_faults(),
            ..SampleFields::default()
        },
        side_band: SideBand {
            no_bpf: true,
            ..SideBand::default()
        },
        ..RecordDetails::default()
    }
}

/// Returns an event that never happens, for a trace whose calls are summed up in the kernel (`--bpf-summary`).
pub(super) fn dummy_event(context: &Context) -> Result<Vec<EventSpec>, CliError> {
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let pmus = machine_pmus(context);
    parsed("dummy", &pmus.catalogue(&machine))
}

/// Returns all events to open.
fn all_events(
    selection: &Selection,
    settings: &TraceSettings,
    target: &Target,
    catalogue: &Catalogue<'_>,
) -> Result<Vec<EventSpec>, CliError> {
    let task_filter = task_filter(target, &settings.excluded_threads);
    let recorded = settings.recorded_calls.as_ref();
    let mut events = events(selection, recorded, task_filter.as_deref(), catalogue)?;
    if settings.options.sums_run_times && !settings.options.shows_run_times {
        events.extend(parsed(RUN_TIME_EVENT, catalogue)?);
    }
    events.extend(settings.stacks.fault_events(catalogue)?);
    settings.stacks.apply(&mut events);
    add_switches(&mut events, settings.options.switch.as_ref(), catalogue)?;
    Ok(events)
}

/// Returns the events of system calls, if these are traced, and those of `-e`, with their filters. `task_filter` is added to the
/// filter of each tracepoint.
fn events(
    selection: &Selection,
    recorded: Option<&BTreeSet<u32>>,
    task_filter: Option<&str>,
    catalogue: &Catalogue<'_>,
) -> Result<Vec<EventSpec>, CliError> {
    let mut events = Vec::new();
    if selection.traces_calls {
        events.extend(parsed("raw_syscalls:sys_enter", catalogue)?);
        events.extend(parsed("raw_syscalls:sys_exit", catalogue)?);
        let call_filter = recorded.and_then(kernel_filter);
        let task_filter = task_filter.map(str::to_owned);
        let terms: Vec<String> = call_filter.into_iter().chain(task_filter).collect();
        for event in &mut events {
            event.filter = (!terms.is_empty()).then(|| terms.join(" && "));
        }
    }
    let others = selection.events().cloned().map(|mut event| {
        if event.tracepoint.is_some() {
            let filters: Vec<&str> = [event.filter.as_deref(), task_filter]
                .into_iter()
                .flatten()
                .collect();
            event.filter = (!filters.is_empty()).then(|| EventFilter::join(&filters));
        }
        event
    });
    events.extend(others);
    Ok(events)
}

/// Adds the events of `--switch-on` and `--switch-off`, unless `-e` has them.
fn add_switches(
    events: &mut Vec<EventSpec>,
    switch: Option<&TraceSwitch>,
    catalogue: &Catalogue<'_>,
) -> Result<(), CliError> {
    let names = switch.map(|switch| [switch.on.as_ref(), switch.off.as_ref()]);
    for name in names.into_iter().flatten().flatten() {
        if !events.iter().any(|event| event.name == *name) {
            events.extend(parsed(name, catalogue)?);
        }
        // Still missing: `name` is a short form of another name, or the name of several events.
        if !events.iter().any(|event| event.name == *name) {
            return Err(CliError::usage(format!(
                "--switch-on and --switch-off take the full name of one event, such as sched:sched_switch, and '{name}' is none"
            )));
        }
    }
    Ok(())
}

/// Reads `--switch-on`, `--switch-off` and `--show-on-off-events`.
fn event_switch(matches: &ArgMatches) -> Result<Option<TraceSwitch>, CliError> {
    let (on, off) = (
        matches.get_one::<String>("switch-on"),
        matches.get_one("switch-off"),
    );
    let shows_events = flag(matches, "show-on-off-events") == Some(true);
    if on.is_none() && off.is_none() {
        return match shows_events {
            true => Err(CliError::usage(
                "--show-on-off-events needs --switch-on or --switch-off",
            )),
            false => Ok(None),
        };
    }
    Ok(Some(TraceSwitch {
        on: on.cloned(),
        off: off.cloned(),
        shows_events,
    }))
}

/// The maximum length of a filter of calls in bytes. The kernel takes at most a page (`PAGE_SIZE`), and terms that
/// exclude tasks follow.
const LONGEST_FILTER: usize = 3000;

/// Returns the kernel's filter for calls; `None` if it would be too long: then other calls are recorded, but not shown.
fn kernel_filter(calls: &BTreeSet<u32>) -> Option<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in calls {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let terms = ranges.into_iter().map(|(first, last)| match first == last {
        true => format!("id == {first}"),
        false => format!("(id >= {first} && id <= {last})"),
    });
    let terms: Vec<String> = terms.collect();
    let filter = match terms.is_empty() {
        // No system call has the number -2. Returns of rt_sigreturn(2) have -1.
        true => "id == -2".to_owned(),
        false => format!("({})", terms.join(" || ")),
    };
    (filter.len() <= LONGEST_FILTER).then_some(filter)
}

/// Whether all threads of each traced process are traced. Otherwise, threads that are not traced may change what its
/// descriptors refer to.
fn sees_all_threads(target: &Target, matches: &ArgMatches) -> bool {
    if flag(matches, "no-inherit") == Some(true) {
        return false;
    }
    let Target::Threads(threads) = target else {
        return !matches!(target, Target::Cpus(Some(_)));
    };
    let proc = Proc::new(PROC);
    let threads_of_process = |thread: &u32| proc.threads(proc.process_of(*thread).ok()?).ok();
    threads.iter().all(|thread| {
        let siblings = threads_of_process(thread);
        siblings.is_some_and(|siblings| siblings.iter().all(|tid| threads.contains(tid)))
    })
}

/// Returns the threads of `--filter-pids`.
fn excluded_threads(matches: &ArgMatches) -> Result<Vec<u32>, CliError> {
    let given = matches.get_one::<String>("filter-pids");
    let given = given.into_iter().flat_map(|list| list.split(','));
    let numbers = given.map(|word| {
        let number = word.trim().parse::<u32>();
        number.map_err(|_| CliError::usage(format!("--filter-pids: '{word}' is not a thread id")))
    });
    numbers.collect()
}

/// Returns the kernel filter that excludes the threads of `--filter-pids` and, if CPUs or a user are traced, the first thread of
/// this process, whose writes of lines would be traced. `None` if no thread is excluded.
fn task_filter(target: &Target, excluded: &[u32]) -> Option<String> {
    let mut tids = excluded.to_vec();
    if matches!(target, Target::Cpus(_) | Target::User(_)) {
        tids.push(std::process::id());
    }
    let terms: Vec<String> = tids
        .iter()
        .map(|tid| format!("common_pid != {tid}"))
        .collect();
    (!terms.is_empty()).then(|| terms.join(" && "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_calls_are_one_range() {
        let filter = |calls: &[u32]| kernel_filter(&calls.iter().copied().collect());
        let ranges = filter(&[1, 2, 3, 7, 9, 10]);
        assert_eq!(
            ranges.as_deref(),
            Some("((id >= 1 && id <= 3) || id == 7 || (id >= 9 && id <= 10))")
        );
        assert_eq!(filter(&[]).as_deref(), Some("id == -2"));
        let odd: Vec<u32> = (0..2000).map(|index| index * 2 + 1).collect();
        assert_eq!(filter(&odd), None);
    }
}
