//! The table of sums by work item, interrupt or softirq that `kwork report` and `kwork latency` print.

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::ObserverPass;
use rperf_analysis::kwork::{
    KworkClass, KworkMeasure, KworkRuns, KworkSortKey, KworkTable, KworkTotals,
};
use rperf_view::kwork::json;
use rperf_view::kwork::table::{KworkColumns, write};

use super::details::KworkDetails;
use super::recording::{KworkRecording, NeededEvents};
use super::{
    DOUBTFUL, TIMES_PRINTED_BY, classes, common, filters, selection, symbol_options, use_bpf,
};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, switch, value};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::shared::time_range::time_intervals;
use crate::cli::symbol_options::SymbolSources;

/// The classes whose events are pairs of begin and end.
pub(super) const CLASSES: [KworkClass; 3] =
    [KworkClass::Irq, KworkClass::Softirq, KworkClass::Workqueue];

/// A subcommand that prints a table of work: `kwork report` or `kwork latency`.
pub(super) struct TableCommand {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The help of `-s`.
    pub(super) sort_help: &'static str,
    pub(super) columns: KworkColumns,
}

impl TableCommand {
    /// Returns the subcommand with the common options and `more`.
    pub(super) fn command_with(&self, more: impl IntoIterator<Item = Arg>) -> Command {
        Command::new(self.name)
            .long_about(self.about)
            .arg(use_bpf())
            .args(filters("only this interrupt handler, softirq or function"))
            .arg(
                value("sort", "key[,key...]")
                    .short('s')
                    .help(self.sort_help),
            )
            .args(more)
            .arg(
                switch("json").help(
                    "print counts, sums and the distribution of times as JSON, in nanoseconds",
                ),
            )
            .args(symbol_options())
            .args(common())
            .arg(jobs::option())
    }

    /// Prints the table, with rows sorted by `keys`.
    pub(super) fn run(
        &self,
        keys: &[KworkSortKey],
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<ExitStatus, CliError> {
        let requested = checked_classes(matches, self.columns)?;
        let is_default = requested.is_none();
        let symbols = SymbolSources::for_recording(matches, context)?;
        let input = Input::open(matches, context)?;
        let data = input.parse(context)?;
        let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
        let (needed, measure) = match self.columns {
            KworkColumns::Runtime => (NeededEvents::Runs, KworkMeasure::Runtime),
            KworkColumns::Delay => (NeededEvents::Delays, KworkMeasure::Delay),
        };
        let recording = KworkRecording::new(&analysis, needed, requested, &CLASSES)?;
        // Rows that are equal by `keys` are in the order of these classes.
        let class_order = recording.classes.clone();
        let mut selection = selection(matches, recording.classes)?;
        if is_default && self.columns == KworkColumns::Delay {
            // As in perf, interrupts are also read if -k is not given. They have no raise event, so each of them only counts as
            // a skipped entry (one without a raise), and in the time span.
            selection.classes = CLASSES.to_vec();
        }
        let is_json = flag(matches, "json") == Some(true);
        let resolver = analysis.resolver(&symbols);
        let details = KworkDetails {
            resolver: &resolver,
            intervals: time_intervals(matches, &analysis, TIMES_PRINTED_BY)?,
            // Stacks are not shown: rows are sums of many events.
            stacks: None,
        };
        let with_distributions = is_json;
        let totals = KworkTotals::new(with_distributions);
        let mut runs = KworkRuns::new(measure, selection, totals);
        let pass = ObserverPass::new(&recording.layouts, details);
        let delivered = pass.run(&analysis.replay, analysis.jobs, &mut runs)?;
        let table = runs.into_table(keys, &class_order);
        analysis.end_progress();
        context.paginate("kwork")?;
        self.print(&table, is_json, matches, &analysis)?;
        // `DOUBTFUL` names the numbers that lost records can make wrong.
        conclude(&analysis, delivered, &table.losses, DOUBTFUL, matches)
    }

    fn print(
        &self,
        table: &KworkTable,
        is_json: bool,
        matches: &ArgMatches,
        analysis: &Analysis<'_>,
    ) -> Result<(), CliError> {
        let (mut out, losses) = (analysis.context.stdout(), losses(analysis));
        if is_json {
            let measure = match self.columns {
                KworkColumns::Runtime => "runtime",
                KworkColumns::Delay => "delay",
            };
            json::write(&mut out, table, measure, losses.lost)?;
        } else {
            let with_summary = flag(matches, "with-summary") == Some(true);
            write(&mut out, table, self.columns, with_summary, losses)?;
        }
        Ok(())
    }
}

/// Returns the classes of `-k`; `None` if it is not given.
///
/// # Errors
///
/// The classes include sched; or `columns` are those of delays, and irq is the only class.
pub(super) fn checked_classes(
    matches: &ArgMatches,
    columns: KworkColumns,
) -> Result<Option<Vec<KworkClass>>, CliError> {
    let requested = classes(matches)?;
    let listed = requested.as_deref().unwrap_or_default();
    if listed.contains(&KworkClass::Sched) {
        return Err(
            CliError::usage("-k sched: run times of tasks are shown by 'kwork top'")
                .hint("'sched timehist -s' and 'sched latency' also show delays"),
        );
    }
    if columns == KworkColumns::Delay && listed == [KworkClass::Irq] {
        return Err(CliError::usage(
            "-k irq: interrupts have no delay: the kernel has no event at which they become pending",
        ));
    }
    Ok(requested)
}
