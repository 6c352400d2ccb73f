//! One run after another, and what is shown of them.

use std::process::Command;
use std::time::Duration;

use clap::ArgMatches;
use rperf_count::{Event, Sheet};
use rperf_session::{
    Control, CountWatch, Counted, Error, Happened, Readings, Target, Watch, count,
};
use rperf_sys::{Ended, signal_text, sync_disks};
use rperf_view::stat::Times;

use super::hints;
use super::output::Sink;
use super::plan::{Plan, workload_failed};
use super::show::{self, Look};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{control, explain, said};
use crate::cli::options::flag;

/// The runs of a plan.
pub(super) struct Runs<'a> {
    plan: &'a Plan,
    context: &'a Context,
    matches: &'a ArgMatches,
    sink: &'a mut Sink,
    look: Look,
    control: Option<Control>,
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        context: &'a Context,
        matches: &'a ArgMatches,
        sink: &'a mut Sink,
    ) -> Result<Self, CliError> {
        Ok(Self {
            plan,
            context,
            matches,
            sink,
            look: Look::new(matches, context),
            control: control::control(matches)?,
        })
    }

    /// Runs all of them and shows the table; how the last workload ended.
    pub(super) fn run(mut self) -> Result<Option<Ended>, CliError> {
        let plan = self.plan;
        let mut sheet: Option<Sheet<'_>> = None;
        let mut times = Vec::new();
        let mut done = 0;
        let mut last;
        loop {
            last = self.one()?;
            done += 1;
            times.push(last.elapsed);
            let events = || rows(plan, &last.readings);
            let all = sheet.get_or_insert_with(|| Sheet::new(events(), &plan.grouping));
            all.add(last.elapsed, &last.readings.cells);
            let enough = last.signal.is_some() || plan.runs.is_some_and(|runs| done >= runs);
            // For ever means that each run has a table of its own.
            if plan.runs.is_none()
                && let Some(sheet) = sheet.take()
            {
                self.show(&sheet, &last, &times)?;
                times.clear();
            }
            if enough {
                break;
            }
        }
        if let Some(sheet) = sheet {
            self.show(&sheet, &last, &times)?;
        }
        Ok(last.ended)
    }

    /// One run, with what goes before and after it.
    fn one(&mut self) -> Result<Counted, CliError> {
        self.shell("pre")?;
        if flag(self.matches, "sync") == Some(true) {
            sync_disks();
        }
        let mut watch = Watcher {
            said: said::Said::new(self.context, self.matches),
            verbose: self.context.verbosity(self.matches) > 0,
            context: self.context,
            plan: self.plan,
            look: &self.look,
            sink: self.sink,
            number: 0,
            failed: None,
        };
        let counted = count(&self.plan.request, self.control.as_mut(), &mut watch);
        let failed = watch.failed.take();
        let counted = counted.map_err(|error| self.explain(error))?;
        failed.map_or(Ok(()), Err)?;
        self.shell("post")?;
        self.say(&counted);
        Ok(counted)
    }

    fn explain(&self, error: Error) -> CliError {
        match error {
            Error::Workload { program, cause } => {
                workload_failed(&program.to_string_lossy(), &cause)
            }
            other => explain::explain(self.context, "", other),
        }
    }

    /// Lets the shell run the command of an option.
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

    /// What happened to the workload, and with `-v` what was read.
    fn say(&self, counted: &Counted) {
        if let Some(Ended::Signaled(signal)) = counted.ended {
            let words = crate::cli::live::workload::given(self.matches);
            let name = words.first().map(|word| word.to_string_lossy());
            self.context.note(format_args!(
                "{}: {}",
                name.unwrap_or_default(),
                signal_text(signal)
            ));
        }
        if self.context.verbosity(self.matches) > 0 {
            hints::readings(self.context, &counted.readings);
        }
    }

    /// The table of everything, unless intervals have shown it.
    fn show(
        &mut self,
        sheet: &Sheet<'_>,
        last: &Counted,
        times: &[Duration],
    ) -> Result<(), CliError> {
        let in_intervals = self.plan.request.interval.is_some();
        if in_intervals && flag(self.matches, "summary") != Some(true) {
            return Ok(());
        }
        let alone = self.plan.request.target == Target::Workload;
        let usage = last.usage.filter(|_| alone);
        let table = show::table(self.plan, sheet);
        let whole = Times {
            elapsed: sheet.elapsed(),
            used: usage.map(|usage| (usage.user, usage.system)),
        };
        let text = self.look.whole(self.plan.subject(), &table, whole, times)?;
        self.sink.write(&text)?;
        if !self.look.is_for_programs() && !self.sink.is_nothing() {
            hints::below(self.context, self.plan, &table);
            let verbose = self.context.verbosity(self.matches) > 0;
            hints::meaning(self.context, self.plan, verbose);
        }
        Ok(())
    }
}

/// The events as rows show them, as they were opened.
fn rows(plan: &Plan, readings: &Readings) -> Vec<Event> {
    let opened = readings.events.iter().zip(&readings.supported);
    let shown = plan.shown.iter().zip(opened);
    shown
        .map(|(shown, (spec, supported))| shown.counted(spec, *supported))
        .collect()
}

/// Told while a run goes on.
struct Watcher<'a> {
    said: said::Said<'a>,
    verbose: bool,
    context: &'a Context,
    plan: &'a Plan,
    look: &'a Look,
    sink: &'a mut Sink,
    /// Intervals so far.
    number: u64,
    /// Why an interval could not be written.
    failed: Option<CliError>,
}

impl Watch for Watcher<'_> {
    fn tell(&mut self, happened: Happened<'_>) {
        match happened {
            Happened::NotSupported {
                event,
                refused: Some(part),
                ..
            } => self.context.warn(format_args!(
                "the kernel refuses {event} because of its {part}"
            )),
            Happened::NotSupported {
                event,
                grouped: false,
                ..
            } if self.verbose => {
                // As in perf, in two lines.
                self.context.warn("");
                self.context
                    .note(format_args!("{event} event is not supported by the kernel."));
            }
            Happened::NotSupported {
                event,
                grouped: true,
                ..
            } => self.context.warn(format_args!(
                "{event} can't be counted together with its group, which is counted without it"
            )),
            Happened::GroupBroken { leader } => self.context.warn(format_args!(
                "the group of {leader} does not fit on the counters: its events are counted one by one"
            )),
            other => self.said.tell(other),
        }
    }
}

impl CountWatch for Watcher<'_> {
    fn interval(&mut self, at: Duration, took: Duration, readings: &Readings) {
        let mut sheet = Sheet::new(rows(self.plan, readings), &self.plan.grouping);
        sheet.add(took, &readings.cells);
        let table = show::table(self.plan, &sheet);
        let subject = self.plan.subject();
        let text = self.look.interval(subject, (self.number, at), &table);
        self.number += 1;
        let written = text.map_err(CliError::from);
        let written = written.and_then(|text| match self.look.clears() {
            true => self.sink.write_screen(&text),
            false => self.sink.write(&text),
        });
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}
