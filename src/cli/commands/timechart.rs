//! `rperf timechart`: draws the activity of CPUs and tasks over time. In this module, a `chart` is the analysed activity, and a
//! `picture` (of the type [`TimeChart`]) is its drawing.

mod args;
mod arrows;
mod calls;
mod input;
mod picture;
mod record;
mod stack_names;
mod tasks;

use std::io::{self, Write};
use std::path::Path;

use clap::ArgMatches;
use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_analysis::ObserverPass;
use rperf_analysis::timechart::{SwitchCallchains, TimechartObserver};
use rperf_flame::TimeChart;

pub(super) use self::args::command;
use self::args::{ChartFormat, ChartParts, OutputFormat, TimechartRequest};
use self::input::{TimechartRecording, no_samples};
use self::picture::ChartBuilder;
pub(super) use self::record::{command as record_command, run as record};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude;
use crate::cli::shared::perfetto_trace::{TraceContent, write_trace};
use crate::cli::shared::subcommands;
use crate::cli::symbol_options::SymbolSources;

/// What lost records can make wrong in a Perfetto file, for a warning that first names a CPU, to which `its` refers. Pictures
/// have a warning of their own ([`TimechartRecording::warn`]).
const DOUBTFUL: &str = "states of its tasks";

/// Returns the complete name of an abbreviated subcommand, as Linux perf does.
pub(super) fn full_name(word: &str) -> &str {
    subcommands::full_name(word, &["record"])
}

/// Draws the chart, or writes the events in Perfetto's format if the output file has an extension of that format.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let request = TimechartRequest::new(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = TimechartRecording::new(&analysis, &request)?;
    let OutputFormat::Picture(format) = request.format else {
        return write_events(&recording, &request, &analysis, matches);
    };
    let resolver = analysis.resolver(&symbols);
    let stacks = SwitchCallchains {
        is_wanted: recording.has_stacks,
    };
    let mut observer = TimechartObserver::new(&recording.layouts, request.options.clone());
    // `with_tasks` adds the records of the creation, exit and renames of tasks.
    let pass = ObserverPass::new(&recording.layouts, stacks).with_tasks();
    // Counts of the samples that the observer got and of those with truncated raw data, for warnings.
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut observer)?;
    let Some(chart) = observer.finish() else {
        return Err(no_samples(&analysis, request.options.range));
    };
    analysis.end_progress();
    let builder = ChartBuilder::new(&chart, &request, &resolver, &analysis)?;
    let picture = builder.build();
    write_to(&request.output, context, |out| {
        write_picture(&picture, format, out)
    })?;
    announce(
        chart.end.saturating_sub(chart.start),
        &request.output,
        context,
    );
    if recording.has_stacks {
        let is_verbose = context.verbosity(matches) > 0;
        report_symbol_problems(context, &resolver, is_verbose);
    }
    recording.warn(&chart, delivered, &request, context);
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}

fn write_picture(picture: &TimeChart, format: ChartFormat, out: &mut dyn Write) -> io::Result<()> {
    match format {
        ChartFormat::Svg => picture.write_svg(out),
        ChartFormat::Html => picture.write_html(out),
        ChartFormat::CompressedSvg => {
            let mut out = GzEncoder::new(out, Compression::default());
            picture.write_svg(&mut out)?;
            out.finish().map(|_| ())
        }
    }
}

/// Writes the selected events in Perfetto's format.
fn write_events(
    recording: &TimechartRecording,
    request: &TimechartRequest,
    analysis: &Analysis<'_>,
    matches: &ArgMatches,
) -> Result<ExitStatus, CliError> {
    let range = request.options.range;
    let content = TraceContent {
        // Without `-P` and `-T`, both.
        has_tasks: request.parts != ChartParts::Power,
        has_power: request.parts != ChartParts::Tasks,
        range: (range.first, range.last),
        // Without events, an error is returned below instead.
        may_be_empty: false,
    };
    let summary = write_trace(&request.output, analysis, &recording.layouts, content)?;
    let Some((first, last)) = summary.times else {
        return Err(no_samples(analysis, range));
    };
    analysis.end_progress();
    announce(last - first, &request.output, analysis.context);
    conclude(
        analysis,
        summary.delivered,
        &summary.losses,
        DOUBTFUL,
        matches,
    )
}

/// Prints a note with the time span and the file that was written, unless the file is the standard output.
fn announce(nanos: u64, path: &Path, context: &Context) {
    if path == Path::new("-") {
        return;
    }
    context.note(format_args!(
        "Written {:.1} seconds of trace to {}.",
        nanos as f64 / 1e9,
        path.display()
    ));
}
