//! `kwork timehist`: each run of an interrupt, a softirq or a work item.

use std::io::{self, Write};

use clap::{ArgMatches, Command};
use rperf_analysis::ObserverPass;
use rperf_analysis::kwork::{Kwork, KworkMeasure, KworkRuns, KworkSink, KworkSpan};
use rperf_replay::FoldControl;
use rperf_resolve::Resolver;
use rperf_view::kwork::table::KworkColumns;
use rperf_view::kwork::timehist::{write_header, write_row};
use rperf_wire::SampleType;

use super::details::KworkDetails;
use super::recording::{KworkRecording, NeededEvents};
use super::table::{CLASSES, checked_classes};
use super::{DOUBTFUL, TIMES_PRINTED_BY, common, filters, selection, symbol_options, use_bpf};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, number, switch, value};
use crate::cli::output::Stdout;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude;
use crate::cli::shared::stack_line::StackLineFormatter;
use crate::cli::shared::time_range::time_intervals;
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Prints a row for each run of an interrupt handler, a softirq (s) or a work item (w): when it began and ended, how long it ran, and how long it was \
pending before (delay), in milliseconds. With -g and callchains, the row ends with the stack at the start of the run.";

/// The default of `--max-stack`.
const MAX_STACK: u64 = 5;

/// Symbols that are not shown in stacks: the function that calls the handlers of softirqs, and the label at the start of its
/// section, to which its addresses may resolve.
const HIDDEN: &[&str] = &["__do_softirq", "__softirqentry_text_start"];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("kwork timehist")
        .long_about(ABOUT)
        .arg(use_bpf())
        .args(filters("only this interrupt handler, softirq or function"))
        .arg(
            switch("call-graph")
                .short('g')
                .help("show the stack at the start if the recording has callchains"),
        )
        .arg(
            value("max-stack", "n")
                .value_parser(number)
                .help("show at most this many frames of a stack (default: 5)"),
        )
        .args(symbol_options())
        .args(common())
        .arg(jobs::option())
}

/// Prints the rows.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    // Not `Delay`, although delays are printed, too: it would refuse irq as the only class, since interrupts have no delays.
    let requested = checked_classes(matches, KworkColumns::Runtime)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open_for_rows(&input, &data, jobs(matches, context)?, context)?;
    let recording = KworkRecording::new(&analysis, NeededEvents::Runs, requested, &CLASSES)?;
    let selection = selection(matches, recording.classes)?;
    let resolver = analysis.resolver(&symbols);
    let details = KworkDetails {
        resolver: &resolver,
        intervals: time_intervals(matches, &analysis, TIMES_PRINTED_BY)?,
        stacks: stacks(matches, &analysis, &resolver),
    };
    let with_stacks = details.stacks.is_some();
    context.paginate("kwork")?;
    let mut rows = PrintedRows {
        line: Vec::new(),
        stdout: context.stdout(),
        result: Ok(()),
    };
    write_header(&mut rows.stdout)?;
    // `History`: runs with their delays.
    let mut runs = KworkRuns::new(KworkMeasure::History, selection, rows);
    let pass = ObserverPass::new(&recording.layouts, details);
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut runs)?;
    // `_skipped`: the counts of events without a counterpart.
    let (mut rows, _skipped, losses) = runs.finish();
    rows.result?;
    rows.stdout.flush()?;
    if with_stacks {
        report_symbol_problems(context, &resolver, context.verbosity(matches) > 0);
    }
    conclude(&analysis, delivered, &losses, DOUBTFUL, matches)
}

/// Returns how stacks are shown; `None` if they are not requested, or, with a note, if an event has no callchains.
fn stacks<'r>(
    matches: &ArgMatches,
    analysis: &Analysis<'_>,
    resolver: &'r Resolver<'r>,
) -> Option<StackLineFormatter<'r>> {
    if flag(matches, "call-graph") != Some(true) {
        return None;
    }
    let mut events = analysis.metadata().events.iter();
    if !events.all(|event| event.attr.sample_type.contains(SampleType::CALLCHAIN)) {
        analysis.context.note("Samples do not have callchains.");
        return None;
    }
    let most = matches.get_one::<u64>("max-stack").copied();
    let most = usize::try_from(most.unwrap_or(MAX_STACK)).unwrap_or(usize::MAX);
    Some(StackLineFormatter {
        resolver,
        hidden: HIDDEN,
        // As in perf, this limit counts hidden functions, too: a stack without them may show more frames than `--max-stack`.
        max_frames: most.saturating_add(HIDDEN.len()),
    })
}

/// Writes rows to stdout.
struct PrintedRows<'a> {
    /// The buffer of a row.
    line: Vec<u8>,
    stdout: Stdout<'a>,
    /// The result of the last write; the first error ends the analysis.
    result: io::Result<()>,
}

impl KworkSink for PrintedRows<'_> {
    /// Writes the row of a run: here, each span is a run, with its delay if known. The number of `work` is not printed.
    fn span(&mut self, _: usize, work: &Kwork, span: KworkSpan) -> FoldControl {
        self.line.clear();
        self.result =
            write_row(&mut self.line, work, &span).and_then(|()| self.stdout.write_all(&self.line));
        match self.result {
            Ok(()) => FoldControl::Continue,
            Err(_) => FoldControl::Stop,
        }
    }
}
