//! `rperf data`: what is done with a recording as a whole.

mod check;
mod checking;
mod convert;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::{flag, not_yet, switch};
use crate::cli::{input, symbol_options};

const ABOUT: &str = "\
'data convert' writes a recording in the format of another tool: that of --to-json is Linux perf's, an object for each \
sample; --to-folded writes a stack in each line, as flame graphs are made of; --to-firefox, --to-perfetto, --to-pprof and \
--to-speedscope write files for profiler.firefox.com, ui.perfetto.dev, 'go tool pprof' and speedscope.app, with all names in \
them. A file name that ends in .gz is compressed for those that read that; - is the standard output.

'data check' reads a recording from its first byte to its last: the header, the descriptions of events, every record and \
every header feature. It prints a line for everything that is wrong with the file, with the place, and one that counts what \
is there. The status is 0 for a recording that is whole, 1 for one that can be read in part, and 255 for a file that is none. \
What was lost before it was written, and what this version does not know, is told of in notes, and is no fault of the file.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("data")
        .long_about(ABOUT)
        .arg(
            switch("force")
                .short('f')
                .help("read the file whoever owns it; convert: replace what is there"),
        )
        .arg(input::option())
        .arg(not_yet("verbose", "").short('v'))
        .args(convert::options())
        .args(symbol_options::args::all())
        .arg(
            switch("quiet")
                .short('q')
                .help("print nothing but errors; check: only end with the status"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("word"))
}

/// Does what the first word says.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let program = context.program;
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    match words.split_first() {
        Some((&"check", words)) => {
            convert::refuse(matches, context)?;
            checking::run(words, matches, context)
        }
        Some((&"convert", [])) => convert::run(matches, context),
        Some((&"convert", [more, ..])) => Err(CliError::usage(format!(
            "{program} data convert: '{more}' is no option"
        ))
        .hint(format!("-i {more} reads a file of that name"))),
        None => Err(CliError::usage(format!(
            "{program} data: what is to be done with the data? 'convert' and 'check' are what there is"
        ))),
        Some((word, _)) => Err(CliError::usage(format!(
            "{program} data: '{word}' is none of its commands; 'convert' and 'check' are"
        ))),
    }
}

/// Whether a switch was given.
fn is_set(matches: &ArgMatches, id: &str) -> bool {
    flag(matches, id) == Some(true)
}
