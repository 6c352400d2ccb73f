//! `sched replay`: replays the activity of the tasks of a recording, with a thread for each task.

mod threads;

use std::io::Write as _;

use clap::{ArgMatches, Command};
use rperf_analysis::sched::replay::{ReplayPlan, ReplayRecorder};
use rperf_analysis::{AllSamples, ObserverPass};
use rperf_view::sched::replay::{ReplayTimes, write_plan, write_precision};

use self::threads::{measure_precision, replay_once};
use super::common;
use super::recording::{check_and_dump, conclude};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::value;
use crate::cli::shared::analysis::Analysis;

const ABOUT: &str = "\
Replays the load of a recording, for example on another kernel or machine: a thread for each task runs and sleeps for as long as the task \
did, and wakes the threads of the tasks that it woke. Shows for each repetition the elapsed time in ms with a running average, and the CPU \
time of all threads with its average. A task that was woken by an interrupt sleeps as long as recorded; the idle task has no thread.";

/// The default number of repetitions.
const REPETITIONS: u32 = 10;
/// The maximum number of threads.
const MAX_THREADS: usize = 4096;
/// Before repetitions of at least this many seconds, a note is printed.
const LONG_SECONDS: u64 = 60;

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched replay")
        .long_about(ABOUT)
        .arg(
            value("repeat", "n")
                .short('r')
                .help("number of repetitions, 0 to show only the tasks, -1 to repeat until interrupted (default: 10)"),
        )
        .args(common())
        .arg(jobs::option())
}

/// Runs the command.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let repetitions = repetitions(matches)?;
    let plan = plan(matches, context)?;
    let mut out = context.stdout();
    // The extra time that runs (loops that use CPU time) and sleeps take on this machine.
    let precision = measure_precision();
    write_precision(&mut out, &precision)?;
    write_plan(&mut out, &plan)?;
    out.flush()?;
    let seconds = plan.longest_task_nanos() / 1_000_000_000;
    if seconds >= LONG_SECONDS && repetitions != Some(0) {
        context.note(format_args!(
            "a repetition takes {seconds} seconds or more; Ctrl-C ends it"
        ));
    }
    let mut times = ReplayTimes::default();
    // As in perf, a repetition has a share of 1/`weight` in the running averages. The weight is the number of repetitions; if
    // repeated until interrupted, it is the default number.
    let weight = repetitions.unwrap_or(REPETITIONS);
    let mut remaining = repetitions;
    while remaining != Some(0) {
        let replayed = replay_once(&plan, &precision).map_err(|error| {
            CliError::message(255, format!("sched replay: cannot start a thread: {error}"))
                .hint("'ulimit -u' and the pids.max of the cgroup limit the number of threads")
        })?;
        times.write(&mut out, replayed.elapsed, replayed.cpu_time, weight)?;
        out.flush()?;
        remaining = remaining.map(|remaining| remaining - 1);
    }
    Ok(ExitStatus::Ok)
}

/// Returns the number of repetitions; `None` to repeat until interrupted.
fn repetitions(matches: &ArgMatches) -> Result<Option<u32>, CliError> {
    let Some(word) = matches.get_one::<String>("repeat") else {
        return Ok(Some(REPETITIONS));
    };
    if word == "-1" {
        return Ok(None);
    }
    match word.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(CliError::usage(format!(
            "-r {word}: give a number of repetitions, or -1 to repeat until interrupted"
        ))),
    }
}

/// Reads the steps of the tasks; an error if no task has any, or if too many have.
fn plan(matches: &ArgMatches, context: &Context) -> Result<ReplayPlan, CliError> {
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = check_and_dump(&analysis, matches)?;
    let mut recorder = ReplayRecorder::new(&recording.layouts);
    let pass = ObserverPass::new(&recording.layouts, AllSamples).with_tasks();
    // `analysis.replay` is the reader that delivers the records in time order, not the replay of the tasks.
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut recorder)?;
    let plan = recorder.finish();
    let tasks = plan.tasks.iter();
    let active = tasks.filter(|task| !task.steps.is_empty()).count();
    let path = input.path.display();
    if active > MAX_THREADS {
        return Err(CliError::message(
            255,
            format!("{path}: {active} tasks would need as many threads; at most {MAX_THREADS} are started"),
        )
        .hint("record a shorter time, or fewer tasks"));
    }
    if active == 0 {
        return Err(CliError::message(
            255,
            format!("{path}: no task ran; there is nothing to replay"),
        ));
    }
    conclude(&analysis, delivered, &plan.losses, matches)?;
    Ok(plan)
}
