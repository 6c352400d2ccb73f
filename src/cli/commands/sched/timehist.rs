//! `sched timehist`: how long each task waited, was delayed and ran between two switches.

mod args;
mod stacks;

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_analysis::ObserverPass;
use rperf_analysis::sched::MAX_CPUS;
use rperf_analysis::sched::timehist::{TimeHistory, TimeRow, TimeRows};
use rperf_replay::FoldControl;
use rperf_tracepoint::typed::{SchedMigrateTaskLayout, SchedSwitchLayout, SchedWakeupLayout};
use rperf_view::sched::timehist::TimeTable;
use rperf_wire::SampleType;

use self::args::TimehistRequest;
pub(in crate::cli::commands) use self::args::command;
use self::stacks::SwitchStacks;
use super::recording::{check_and_dump, conclude};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::output::Stdout;
use crate::cli::shared::analysis::Analysis;
use crate::cli::symbol_options::SymbolSources;

/// The number of CPUs that perf assumes if the recording does not contain a valid number.
const DEFAULT_CPUS: u32 = 4;

/// Prints rows, the summary, or both.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut request = TimehistRequest::new(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open_for_rows(&input, &data, jobs(matches, context)?, context)?;
    let recording = check_and_dump(&analysis, matches)?;
    let events = data.events().iter();
    let mut sample_types = events.map(|event| event.attr.sample_type);
    if request.columns.stacks && !sample_types.all(|fields| fields.contains(SampleType::CALLCHAIN))
    {
        context.note("Samples do not have callchains.");
        request.columns.stacks = false;
    }
    let cpus = data.features().nr_cpus().map(|cpus| cpus.online);
    let cpus = cpus
        .filter(|cpus| (1..=MAX_CPUS).contains(cpus))
        .unwrap_or(DEFAULT_CPUS);
    request.options.cpu_count = cpus;
    context.paginate("sched")?;
    let resolver = analysis.resolver(&symbols);
    let mut rows = PrintedRows {
        table: TimeTable::new(request.columns, cpus),
        is_summary_only: request.is_summary_only,
        line: Vec::new(),
        stdout: context.stdout(),
        result: Ok(()),
    };
    if !request.is_summary_only {
        rows.table.write_header(&mut rows.stdout)?;
    }
    let stacks = SwitchStacks::new(&resolver, request.columns.stacks, request.max_stack);
    let mut history = TimeHistory::new(&recording.layouts, request.options, rows);
    let mut pass = ObserverPass::new(&recording.layouts, stacks).with_tasks();
    // The summary needs all typed events: the number of CPUs that it prints depends on their CPU numbers.
    if !request.with_summary {
        pass = pass.reading(&[
            SchedSwitchLayout::TRACEPOINTS,
            SchedWakeupLayout::TRACEPOINTS,
            SchedMigrateTaskLayout::TRACEPOINTS,
        ]);
    }
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut history)?;
    let (mut rows, summary, losses) = history.finish();
    rows.result?;
    if request.with_summary {
        let mut text = Vec::new();
        rows.table.write_summary(&mut text, &summary)?;
        rows.stdout.write_all(&text)?;
    }
    rows.stdout.flush()?;
    if request.columns.stacks {
        report_symbol_problems(context, &resolver, context.verbosity(matches) > 0);
    }
    conclude(&analysis, delivered, &losses, matches)
}

/// Writes rows to stdout. Each method returns whether the pass continues ([`FoldControl`]): it stops after an error, which
/// `result` keeps.
struct PrintedRows<'a> {
    table: TimeTable,
    is_summary_only: bool,
    line: Vec<u8>,
    stdout: Stdout<'a>,
    result: io::Result<()>,
}

impl PrintedRows<'_> {
    fn print(&mut self) -> FoldControl {
        self.result = self.stdout.write_all(&self.line);
        self.line.clear();
        match self.result {
            Ok(()) => FoldControl::Continue,
            Err(_) => FoldControl::Stop,
        }
    }
}

impl TimeRows for PrintedRows<'_> {
    fn row(&mut self, row: &TimeRow<'_>) -> FoldControl {
        if self.is_summary_only {
            return FoldControl::Continue;
        }
        if let Err(error) = self.table.write_row(&mut self.line, row) {
            self.result = Err(error);
            return FoldControl::Stop;
        }
        self.print()
    }

    fn lost(&mut self, time: u64, cpu: Option<u32>, records: u64) -> FoldControl {
        // Losses are printed even if rows are not (`--summary`).
        if let Err(error) = self.table.write_lost(&mut self.line, time, cpu, records) {
            self.result = Err(error);
            return FoldControl::Stop;
        }
        self.print()
    }
}
