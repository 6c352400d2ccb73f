//! `sched map`: which task runs on each CPU after each switch.

use std::io::{self, Write as _};

use clap::{ArgMatches, Command};
use rperf_analysis::sched::MAX_CPUS;
use rperf_analysis::sched::map::{MapRow, SwitchMap, TaskNameFilter};
use rperf_analysis::{AllSamples, ObserverPass};
use rperf_replay::FoldControl;
use rperf_sys::CpuList;
use rperf_tracepoint::typed::SchedSwitchLayout;
use rperf_view::sched::latency::write_losses;
use rperf_view::sched::map::MapColumns;

use super::common;
use super::recording::{check_and_dump, conclude, losses};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::words;
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, switch, value};
use crate::cli::shared::analysis::Analysis;

const ABOUT: &str = "\
Prints a row for each context switch, with a column for each CPU: * marks the CPU that switched, two characters stand for a \
task, a dot for the idle task. The row of a task's first switch has its name.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched map")
        .long_about(ABOUT)
        .arg(value("color-cpus", "cpus").help("highlight switches of these CPUs on a terminal"))
        .arg(value("color-pids", "pids").help("highlight these threads on a terminal"))
        .arg(
            switch("compact")
                .help("show only CPUs with switches, in the order of their first switch"),
        )
        .arg(value("cpus", "cpus").help("only switches of these CPUs: 0,2-3"))
        .arg(
            value("task-name", "comm[,comm...]").help(
                "only switches to and from tasks with these names; other tasks are shown as -",
            ),
        )
        .arg(switch("fuzzy-name").help("match parts of names with --task-name"))
        .args(common())
        .mut_arg("verbose", |verbose| {
            verbose.help(
                "name the task in every row, and list all stretches of time in which records were lost",
            )
        })
        .arg(jobs::option())
}

/// Prints the rows.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut columns = columns(matches, context)?;
    let names = task_names(matches)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open_for_rows(&input, &data, jobs(matches, context)?, context)?;
    // The dump is that of `-D`, if given.
    let recording = check_and_dump(&analysis, matches)?;
    // The number of the machine's CPUs, unlike `columns.cpus`, a list. 0 if unknown: rows of higher CPUs increase `cpu_count`.
    let cpus = data.features().nr_cpus();
    columns.cpu_count = cpus.map_or(0, |cpus| cpus.available.min(MAX_CPUS));
    context.paginate("sched")?;
    let mut stdout = context.stdout();
    // An error ends the pass and is returned after it.
    let mut written: io::Result<()> = Ok(());
    let mut line = Vec::new();
    let selected_cpus = columns.cpus.clone();
    let mut map = SwitchMap::new(selected_cpus, names, |row: &MapRow<'_>| {
        written = columns
            .write_row(&mut line, row)
            .and_then(|()| stdout.write_all(&line));
        line.clear();
        match written {
            Ok(()) => FoldControl::Continue,
            Err(_) => FoldControl::Stop,
        }
    });
    let pass = ObserverPass::new(&recording.layouts, AllSamples).with_tasks();
    let pass = pass.reading(&[SchedSwitchLayout::TRACEPOINTS]);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut map)?;
    // The stretches of time with losses, for the warning at the end; `losses` returns the numbers of records and of lost ones,
    // for the line below the rows.
    let lost_stretches = map.into_losses();
    written?;
    write_losses(&mut stdout, losses(&analysis))?;
    stdout.flush()?;
    conclude(&analysis, delivered, &lost_stretches, matches)
}

/// Returns the columns. `cpu_count` is 0 until the recording is open.
fn columns(matches: &ArgMatches, context: &Context) -> Result<MapColumns, CliError> {
    let tids = words(matches, "color-pids").unwrap_or_default();
    let tids = tids.iter().map(|word| {
        word.parse()
            .map_err(|_| CliError::usage(format!("--color-pids: '{word}' is not a thread id")))
    });
    Ok(MapColumns {
        cpu_count: 0,
        cpus: cpus(matches, "cpus")?,
        is_compact: flag(matches, "compact") == Some(true),
        with_names: context.verbosity(matches) > 0,
        color_cpus: cpus(matches, "color-cpus")?.unwrap_or_default(),
        color_tids: tids.collect::<Result<_, _>>()?,
        csi: context.output.is_terminal().then(|| context.output.csi()),
    })
}

/// Returns the selection of `--task-name`; `None` if it is not given.
fn task_names(matches: &ArgMatches) -> Result<Option<TaskNameFilter>, CliError> {
    let is_fuzzy = flag(matches, "fuzzy-name") == Some(true);
    let Some(names) = words(matches, "task-name") else {
        return match is_fuzzy {
            true => Err(CliError::usage("--fuzzy-name applies to --task-name")),
            false => Ok(None),
        };
    };
    let names = names.into_iter().map(String::into_bytes).collect();
    let names = TaskNameFilter::new(names, is_fuzzy);
    let names = names.ok_or_else(|| CliError::usage("--task-name: no name given"))?;
    Ok(Some(names))
}

/// Returns the list of CPUs of the option `--id`; `None` if it is not given.
fn cpus(matches: &ArgMatches, id: &str) -> Result<Option<Vec<u32>>, CliError> {
    let list = matches.get_one::<String>(id).map(|list| {
        CpuList::parse(list).map_err(|error| CliError::usage(format!("--{id} {list}: {error}")))
    });
    Ok(list.transpose()?.map(|cpus| cpus.numbers().to_vec()))
}
