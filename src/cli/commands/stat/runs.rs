//! Counts as often as `-r` requests, and prints the tables of counts.

use std::process::Command;
use std::time::Duration;

use clap::ArgMatches;
use rperf_count::{Aggregator, CountedEvent};
use rperf_names::{counted, was_or_were};
use rperf_session::{
    Control, CountObserver, CountSummary, Error, EventReadings, SessionNotice, SessionObserver,
    Target, count,
};
use rperf_sys::{WaitStatus, signal_text, sync_disks};
use rperf_view::stat::Times;

use super::hints;
use super::output::StatOutput;
use super::plan::{StatPlan, exit_status, workload_failed};
use super::tables::{self, TableFormat};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{control, explain};
use crate::cli::options::flag;

/// The runs of a plan.
pub(super) struct StatRuns<'a> {
    plan: &'a StatPlan,
    context: &'a Context,
    matches: &'a ArgMatches,
    sink: &'a mut StatOutput,
    format: TableFormat,
    control: Option<Control>,
    /// The number of intervals printed in all runs so far, which determines when the heading is repeated.
    intervals: u64,
}

impl<'a> StatRuns<'a> {
    pub(super) fn new(
        plan: &'a StatPlan,
        context: &'a Context,
        matches: &'a ArgMatches,
        sink: &'a mut StatOutput,
    ) -> Result<Self, CliError> {
        Ok(Self {
            plan,
            context,
            matches,
            sink,
            format: TableFormat::new(matches, context),
            control: control::control(matches)?,
            intervals: 0,
        })
    }

    /// Executes all runs and shows their tables. The status is that of the last workload, or the signal that ended the last run.
    pub(super) fn run(mut self) -> Result<ExitStatus, CliError> {
        let plan = self.plan;
        let mut aggregator: Option<Aggregator<'_>> = None;
        let mut elapsed_times = Vec::new();
        let mut done = 0;
        let mut last;
        loop {
            last = self.run_once()?;
            done += 1;
            elapsed_times.push(last.elapsed);
            let events = || counted_events(plan, &last.readings);
            let sums =
                aggregator.get_or_insert_with(|| Aggregator::new(events(), &plan.aggregation));
            sums.add(last.elapsed, &last.readings.cells);
            let enough = last.signal.is_some() || plan.runs.is_some_and(|runs| done >= runs);
            // With endless repetition (-r 0) each run has its own table.
            if plan.runs.is_none()
                && let Some(aggregator) = aggregator.take()
            {
                self.show(&aggregator, &last, &elapsed_times)?;
                elapsed_times.clear();
            }
            if enough {
                break;
            }
        }
        if let Some(aggregator) = aggregator {
            self.show(&aggregator, &last, &elapsed_times)?;
        }
        // The process ends by the signal, so that ^C also ends a shell's loop around it.
        let interrupted = last.signal.map(ExitStatus::Signal);
        let ended = || last.workload_status.map_or(ExitStatus::Ok, exit_status);
        Ok(interrupted.unwrap_or_else(ended))
    }

    /// Counts once, between the commands of `--pre` and `--post`.
    fn run_once(&mut self) -> Result<CountSummary, CliError> {
        self.shell("pre")?;
        if flag(self.matches, "sync") == Some(true) {
            sync_disks();
        }
        let mut reporter = StatReporter {
            reporter: RecordReporter::new(self.context, self.matches).doing("counting"),
            verbose: self.context.verbosity(self.matches) > 0,
            context: self.context,
            plan: self.plan,
            format: &self.format,
            sink: self.sink,
            intervals: &mut self.intervals,
            failed: None,
        };
        let summary = count(&self.plan.request, self.control.as_mut(), &mut reporter);
        let failed = reporter.failed.take();
        let summary = summary.map_err(|error| self.explain(error))?;
        failed.map_or(Ok(()), Err)?;
        self.shell("post")?;
        self.report_end(&summary);
        Ok(summary)
    }

    fn explain(&self, error: Error) -> CliError {
        match error {
            Error::Workload { program, cause } => {
                workload_failed(&program.to_string_lossy(), &cause)
            }
            other => {
                // The names of events appear only in the message for a workload, which is handled above.
                let event_names = "";
                explain::explain(self.context, event_names, other)
            }
        }
    }

    /// Runs the command of `--pre` or `--post`, if given, in a shell. A status other than 0 is an error.
    fn shell(&self, option: &str) -> Result<(), CliError> {
        let Some(command) = self.matches.get_one::<String>(option) else {
            return Ok(());
        };
        let status = Command::new("/bin/sh").args(["-c", command]).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(CliError::message(
                u8::try_from(status.code().unwrap_or(255)).unwrap_or(255),
                format!("--{option}: '{command}' failed ({status})"),
            )),
        }
    }

    /// Reports the signal that killed the workload, if any, and with `-v` the readings.
    fn report_end(&self, summary: &CountSummary) {
        if let Some(WaitStatus::Signaled(signal)) = summary.workload_status {
            let words = crate::cli::live::workload::workload_words(self.matches);
            let name = words.first().map(|word| word.to_string_lossy());
            self.context.note(format_args!(
                "{}: {}",
                name.unwrap_or_default(),
                signal_text(signal)
            ));
        }
        if self.context.verbosity(self.matches) > 0 {
            hints::print_readings(self.context, &summary.readings);
        }
    }

    /// Shows the final table; after intervals only with `--summary`. `elapsed_times` are those of the runs in the table.
    fn show(
        &mut self,
        aggregator: &Aggregator<'_>,
        last: &CountSummary,
        elapsed_times: &[Duration],
    ) -> Result<(), CliError> {
        let in_intervals = self.plan.request.interval.is_some();
        if in_intervals && flag(self.matches, "summary") != Some(true) {
            return Ok(());
        }
        let is_workload = self.plan.request.target == Target::Workload;
        let usage = last.usage.filter(|_| is_workload);
        let table = tables::table(self.plan, aggregator);
        let measured = Times {
            elapsed: aggregator.elapsed(),
            cpu_times: usage.map(|usage| (usage.user, usage.system)),
        };
        let text = self
            .format
            .final_table(self.plan.subject(), &table, measured, elapsed_times)?;
        self.sink.write(&text)?;
        if !self.format.is_for_programs() && !self.sink.is_nothing() {
            hints::explain_missing_counts(self.context, self.plan, &table);
            let verbose = self.context.verbosity(self.matches) > 0;
            hints::explain_scope(self.context, self.plan, verbose);
        }
        Ok(())
    }
}

/// Returns the events of the rows, with the attributes that they were opened with.
fn counted_events(plan: &StatPlan, readings: &EventReadings) -> Vec<CountedEvent> {
    let opened = readings.events.iter().zip(&readings.supported);
    let row_events = plan.row_events.iter().zip(opened);
    row_events
        .map(|(row_event, (spec, supported))| row_event.counted(spec, *supported))
        .collect()
}

/// Reports notices during a run, and prints the table of each interval.
struct StatReporter<'a> {
    reporter: RecordReporter<'a>,
    verbose: bool,
    context: &'a Context,
    plan: &'a StatPlan,
    format: &'a TableFormat,
    sink: &'a mut StatOutput,
    /// The number of intervals printed so far, with those of earlier runs.
    intervals: &'a mut u64,
    /// The first error of writing an interval.
    failed: Option<CliError>,
}

impl SessionObserver for StatReporter<'_> {
    fn on_event(&mut self, notice: SessionNotice<'_>) {
        match notice {
            SessionNotice::NotSupported {
                event,
                refused: Some(part),
                ..
            } => self.context.warn(format_args!(
                "the kernel refuses {event} because of its {part}"
            )),
            SessionNotice::NotSupported {
                event,
                grouped: false,
                ..
            } if self.verbose => {
                // As in perf, the word `Warning:` is on a line of its own.
                self.context.warn("");
                self.context
                    .note(format_args!("{event} event is not supported by the kernel."));
            }
            SessionNotice::NotSupported {
                event,
                grouped: true,
                ..
            } => self.context.warn(format_args!(
                "{event} can't be counted in its group, which is counted without it"
            )),
            SessionNotice::GroupBroken { leader } => self.context.warn(format_args!(
                "the group of {leader} needs more counters than there are: its events are counted separately"
            )),
            SessionNotice::TasksNotCounted { lost } => self.context.warn(format_args!(
                "{} {} not counted: BPF programs observe at most 32768 at a time",
                counted(lost, "task"),
                was_or_were(lost)
            )),
            other => self.reporter.on_event(other),
        }
    }
}

impl CountObserver for StatReporter<'_> {
    fn interval(&mut self, at: Duration, took: Duration, readings: &EventReadings) {
        let mut aggregator =
            Aggregator::new(counted_events(self.plan, readings), &self.plan.aggregation);
        aggregator.add(took, &readings.cells);
        let table = tables::table(self.plan, &aggregator);
        let subject = self.plan.subject();
        let text = self
            .format
            .interval_table(subject, *self.intervals, at, &table);
        *self.intervals += 1;
        let written = text.map_err(CliError::from);
        let written = written.and_then(|text| match self.format.clears_screen() {
            true => self.sink.write_screen(&text),
            false => self.sink.write(&text),
        });
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}
