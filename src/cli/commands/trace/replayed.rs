//! `trace -i`: the lines of a recording.

use clap::ArgMatches;
use rperf_analysis::trace::{TraceObserver, TraceSamples};
use rperf_analysis::{EventLayouts, ObserverPass};
use rperf_syscalls::{Abi, SyscallTable};

use super::selection::Selection;
use super::{TracePrinter, TraceSettings, request};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::processors;
use crate::cli::live::workload;
use crate::cli::options::is_given;
use crate::cli::shared::analysis::Analysis;

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
];

/// Prints the calls of the recording.
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
    let analysis = Analysis::open_for_rows(&input, &data, processors(), context)?;
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
    let selection = Selection::new(matches, table, None)?;
    let settings = TraceSettings::new(matches, abi, &selection, context)?;
    let samples = TraceSamples::new(metadata.endian, metadata.events, &*metadata.formats()?);
    if !samples.has_calls() {
        let path = input.path.display();
        let message = format!(
            "{path}: the recording has no raw_syscalls:sys_enter or raw_syscalls:sys_exit events"
        );
        return Err(CliError::message(255, message)
            .hint(format!("record with '{} trace record'", context.program)));
    }
    let printer = TracePrinter::open(matches, settings.layout, context)?;
    let mut observer = TraceObserver::new(settings.options.clone(), printer);
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
