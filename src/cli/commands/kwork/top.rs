//! `kwork top`: the CPU time of tasks without the interrupts and softirqs in their context.

use clap::{ArgMatches, Command};
use rperf_analysis::ObserverPass;
use rperf_analysis::kwork::{KworkClass, KworkTop, TopSortKey};
use rperf_replay::{Sample, World};
use rperf_resolve::TimeIntervals;
use rperf_tracepoint::typed::TypedEvent;
use rperf_view::kwork::top::write;

use super::recording::{KworkRecording, NeededEvents, no_event};
use super::{DOUBTFUL, TIMES_PRINTED_BY, classes, common, filters, selection, sort_keys, use_bpf};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::value;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude;
use crate::cli::shared::time_range::time_intervals;

const ABOUT: &str = "\
Shows how much of the time of all CPUs was idle (id), in interrupts (hi) and in softirqs (si), how much of the time of each CPU was in \
tasks, and the CPU time of each task without the interrupts and softirqs that ran in its context. Needs context switches: \
'kwork -k sched,irq,softirq record'.";

const SORT: &str =
    "sort keys: rate and runtime (highest first), tid (lowest first); default: rate,runtime";

/// The classes that are read if `-k` is not given, as far as the recording has their events.
const DEFAULT_CLASSES: [KworkClass; 3] = [KworkClass::Sched, KworkClass::Irq, KworkClass::Softirq];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kwork top")
        .long_about(ABOUT)
        .arg(use_bpf())
        .args(filters("only tasks of this name"))
        .arg(value("sort", "key[,key...]").short('s').help(SORT))
        .args(common())
        .arg(jobs::option())
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let keys = sort_keys(
        matches,
        &TopSortKey::DEFAULT,
        "rate, runtime and tid",
        TopSortKey::named,
    )?;
    let requested = classes(matches)?;
    check_classes(requested.as_deref())?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording =
        KworkRecording::new(&analysis, NeededEvents::Runs, requested, &DEFAULT_CLASSES)?;
    // Without `-k`, classes that lack events are omitted, but the class sched is needed.
    if !recording.classes.contains(&KworkClass::Sched) {
        return Err(no_event(&analysis, "sched:sched_switch"));
    }
    let mut top = KworkTop::new(selection(matches, recording.classes)?);
    let samples = SamplesInTime(time_intervals(matches, &analysis, TIMES_PRINTED_BY)?);
    let pass = ObserverPass::new(&recording.layouts, samples);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut top)?;
    let table = top.into_table(&keys);
    analysis.end_progress();
    context.paginate("kwork")?;
    write(&mut context.stdout(), &table)?;
    // `DOUBTFUL` names the numbers that lost records can make wrong.
    conclude(&analysis, delivered, &table.losses, DOUBTFUL, matches)
}

/// Refuses `-k` with the class workqueue, which is not shown, or without the class sched.
fn check_classes(requested: Option<&[KworkClass]>) -> Result<(), CliError> {
    let Some(requested) = requested else {
        return Ok(());
    };
    if requested.contains(&KworkClass::Workqueue) {
        return Err(CliError::usage(
            "-k workqueue: work items run in tasks; 'kwork report -k workqueue' shows their run times",
        ));
    }
    match requested.contains(&KworkClass::Sched) {
        true => Ok(()),
        false => {
            Err(CliError::usage("-k: 'kwork top' needs the class sched")
                .hint("-k sched,irq,softirq"))
        }
    }
}

/// Selects the samples in these intervals; all if `None`.
struct SamplesInTime(Option<TimeIntervals>);

impl rperf_analysis::PrepareSamples for SamplesInTime {
    type Detail = ();

    fn prepare(&self, _: &World, sample: &Sample<'_>, _: Option<&TypedEvent<'_>>) -> Option<()> {
        let intervals = self.0.as_ref();
        let is_selected = intervals.is_none_or(|intervals| intervals.contain(sample.order.time));
        is_selected.then_some(())
    }
}
