//! `rperf data`: checks and converts recordings.

mod check;
mod check_report;
mod convert;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{counter, flag, switch};
use crate::cli::{input, symbol_options};

const ABOUT: &str = "\
'data convert' converts a recording to the format of another tool. --to-json writes an object per sample, as Linux perf \
does. --to-folded writes one stack per line, the input of flame graph tools. --to-firefox, --to-perfetto, --to-pprof and \
--to-speedscope write files for profiler.firefox.com, ui.perfetto.dev, 'go tool pprof' and speedscope.app. --to-ctf writes a \
trace for babeltrace and Trace Compass. --to-otlp writes OpenTelemetry profiles, --otlp sends them to a collector. --to-parquet \
and --to-ndjson write tables for databases, with a row for each sample, stack, frame, mapping, thread and loss. --to-perf \
turns a trace.dat of trace-cmd or the text of 'script', given with -i, into a perf.data. Output is compressed if the file name ends in .gz and the \
tool can read that; - is the standard output.

'data check' reads a complete recording: header, event descriptions, every record and every header feature. It prints \
one line per kind of fault (for faults of records, with the offset of the first one), and a summary line. The exit status \
is 0 without faults, 1 with faults, and 255 for a file that cannot be read as a recording. Records lost while recording, and records \
unknown to this version, are reported as notes and are not faults.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("data")
        .long_about(ABOUT)
        .arg(
            switch("force")
                .short('f')
                .help("do not check the owner of the file; convert: overwrite the output file"),
        )
        .arg(input::option())
        .arg(
            counter("verbose")
                .short('v')
                .help("convert: report problems with symbol tables and debug information"),
        )
        .args(convert::options())
        .args(symbol_options::args::all())
        .arg(
            switch("quiet")
                .short('q')
                .help("print only errors; check: print nothing, set the exit status"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("word"))
}

/// Runs the subcommand.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let program = context.program;
    let arguments = matches.get_many::<String>("words").unwrap_or_default();
    let arguments: Vec<&str> = arguments.map(String::as_str).collect();
    match arguments.split_first() {
        Some((&"check", files)) => {
            convert::refuse_options(matches, context)?;
            check_report::run(files, matches, context)
        }
        Some((&"convert", [])) => convert::run(matches, context),
        Some((&"convert", [more, ..])) => Err(CliError::usage(format!(
            "{program} data convert: unexpected word '{more}'"
        ))
        .hint(format!("-i {more} reads this file"))),
        None => Err(CliError::usage(format!(
            "{program} data: no subcommand given: use 'data convert' or 'data check'"
        ))),
        Some((word, _)) => Err(CliError::usage(format!(
            "{program} data: unknown subcommand '{word}': use 'data convert' or 'data check'"
        ))),
    }
}

/// Whether a switch is on.
fn is_set(matches: &ArgMatches, id: &str) -> bool {
    flag(matches, id) == Some(true)
}
