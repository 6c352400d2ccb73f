//! `trace -i`: the lines of a recording.

use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::trace::{
    AddressNames, AddressOptions, TraceObserver, TraceSamples, is_page_fault,
};
use rperf_analysis::{EventLayouts, ObserverPass};
use rperf_perfdata::Metadata;
use rperf_syscalls::{Abi, SyscallTable};
use rperf_view::trace::SummaryMode;
use rperf_wire::SampleType;

use super::addresses::AddressSymbolizer;
use super::selection::Selection;
use super::{TracePrinter, TraceSettings, kernel_summary, request};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::default_jobs;
use crate::cli::live::workload;
use crate::cli::options::is_given;
use crate::cli::shared::analysis::Analysis;
use crate::cli::symbols::search_paths;

/// Options that only a live trace has.
const LIVE: &[&str] = &[
    "delay",
    "filter",
    "all-cpus",
    "cpu",
    "cgroup",
    "pid",
    "tid",
    "uid",
    "no-inherit",
    "mmap-pages",
    "filter-pids",
    "string-size",
    "bpf-summary",
    "exec-tree",
    "pf",
    "call-graph",
    "kernel-syscall-graph",
    "force-btf",
];

/// Options of `record` that leave out calls or threads.
const LIMITS: &[&str] = &[
    "--filter",
    "--cpu",
    "--tid",
    "--no-inherit",
    "--per-thread",
    "--overwrite",
    "--cgroup",
];
/// The letters of short options of `record` that leave out calls or threads. One word may combine several letters. A value in
/// the same word (`-oout`) may also contain such a letter, which then counts as a limit.
const SHORT_LIMITS: &[char] = &['C', 't', 'i', 'G'];

/// Whether the recording seems to have all calls of all threads of its processes. Otherwise, file descriptors get no names, since
/// a missing call may have closed or reopened them. A recording does not store the filters of events, so the recorded command
/// line is searched for filters and for the other options that leave out calls.
fn has_all_calls(metadata: &Metadata<'_>) -> bool {
    let mut call_events = metadata
        .events
        .iter()
        .filter(|event| event.name.starts_with("raw_syscalls:"));
    let samples_every_call =
        call_events.all(|event| event.attr.sample_period == 1 && !event.attr.is_freq());
    let words = metadata.features.cmdline();
    samples_every_call && words.is_some_and(|words| has_no_limits(&words))
}

/// Whether a recorded command line has no option of [`LIMITS`] or [`SHORT_LIMITS`].
fn has_no_limits(words: &[String]) -> bool {
    let options = words.iter().take_while(|word| *word != "--");
    let mut options = options.filter(|word| word.starts_with('-'));
    !options.any(|word| match word.starts_with("--") {
        true => {
            let name = word.split('=').next().unwrap_or_default();
            // Names may be abbreviated (`--no-inh`). An ambiguous abbreviation counts as a limit, too.
            LIMITS.iter().any(|limit| limit.starts_with(name))
        }
        false => word.contains(SHORT_LIMITS),
    })
}

/// Returns the names of frames and of addresses of page faults. There are no names if the recording has neither callchains nor
/// page faults.
fn addresses(
    analysis: &Analysis<'_>,
    settings: &TraceSettings,
    context: &Context,
) -> AddressOptions {
    let metadata = analysis.metadata();
    let mut events = metadata.events.iter();
    let has_addresses = events.any(|event| {
        event.attr.sample_type.contains(SampleType::CALLCHAIN) || is_page_fault(event)
    });
    let names = has_addresses.then(|| {
        let paths = search_paths(context, metadata.features);
        let world = analysis.replay.world();
        let names = AddressSymbolizer::new(world, metadata, paths, settings.stacks.max_stack);
        Box::new(names) as Box<dyn AddressNames>
    });
    AddressOptions {
        names,
        // Page faults of a recording are always shown: `--pf` applies to live traces.
        shows_faults: true,
    }
}

/// Refuses a recording that has no system calls although calls are traced, or lacks an event of `--switch-on` or `--switch-off`.
fn check_events(
    path: &Path,
    samples: &TraceSamples,
    settings: &TraceSettings,
    context: &Context,
) -> Result<(), CliError> {
    let path = path.display();
    if settings.traces_calls && !samples.has_calls() {
        let message = format!(
            "{path}: the recording has no raw_syscalls:sys_enter or raw_syscalls:sys_exit events"
        );
        return Err(CliError::message(255, message)
            .hint(format!("record with '{} trace record'", context.program)));
    }
    let switch = settings.options.switch.iter();
    let mut switch_names = switch.flat_map(|switch| switch.on.iter().chain(&switch.off));
    if let Some(name) = switch_names.find(|name| !samples.has_event(name)) {
        let message = format!("{path}: the recording has no event '{name}' to switch at");
        return Err(CliError::message(255, message).hint(format!(
            "'{} evlist' shows its events; --switch-on and --switch-off do not take system calls",
            context.program
        )));
    }
    Ok(())
}

/// Prints the calls and other events of the recording.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    if let Some(option) = LIVE.iter().find(|id| is_given(matches, id)) {
        return Err(CliError::usage(format!(
            "--{option} applies to live traces, not to -i"
        )));
    }
    if let Some(word) = workload::workload_words(matches).first() {
        let word = word.to_string_lossy();
        return Err(CliError::usage(format!(
            "-i runs no command: unexpected word '{word}'"
        )));
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open_for_rows(&input, &data, default_jobs(), context)?;
    let metadata = analysis.metadata();
    let abi = match metadata.features.arch() {
        Some(name) => Abi::of_machine(&name).ok_or_else(|| {
            let path = input.path.display();
            CliError::message(
                255,
                format!("{path}: there is no table of system calls for {name}"),
            )
        })?,
        None => request::native_abi()?,
    };
    let table = SyscallTable::of(abi);
    // With `-i`, `-e` selects system calls only: without a catalogue of events, it refuses other events.
    let catalogue = None;
    let selection = Selection::new(matches, table, catalogue)?;
    let mut settings = TraceSettings::new(matches, abi, &selection, context)?;
    if settings.summary.mode == SummaryMode::Cgroup {
        return Err(kernel_summary::no_cgroups());
    }
    settings.options.names_files = has_all_calls(&metadata);
    let samples = TraceSamples::new(metadata.events, &*metadata.formats()?);
    check_events(&input.path, &samples, &settings, context)?;
    let addresses = addresses(&analysis, &settings, context);
    let samples = samples.with_addresses(metadata.events, addresses);
    let printer = TracePrinter::open(matches, settings.layout)?;
    let mut observer = TraceObserver::new(settings.options.clone(), printer);
    // `samples` has its own readers of the fields: no event needs a layout.
    let layouts = EventLayouts::empty(metadata.endian);
    let pass = ObserverPass::new(&layouts, samples).with_tasks();
    pass.run(&analysis.replay, analysis.jobs, &mut observer)?;
    let (printer, summary) = observer.finish();
    analysis.end_progress();
    let sums_up = settings.options.sums_up;
    printer.finish(sums_up.then_some((&summary, table, settings.summary)))?;
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}

#[cfg(test)]
mod tests {
    use super::has_no_limits;

    #[test]
    fn options_that_leave_out_calls_are_found_in_command_lines() {
        let has_all = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            has_no_limits(&words)
        };
        assert!(has_all("perf record -R -e raw_syscalls:sys_enter -- ls -C"));
        assert!(has_all("rperf trace record -a -o x"));
        assert!(!has_all("perf record --filter id==1 -a"));
        assert!(!has_all("perf record -aC0"));
        assert!(!has_all("perf record --no-inherit true"));
        assert!(!has_all("perf record --no-inh true"));
        assert!(!has_all("perf record --ti=5"));
        assert!(has_all("perf record --filename --call-graph=fp true"));
    }
}
