//! `rperf data check`: whether a recording is whole.

mod check;

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::{self, Opened};
use crate::cli::options::{flag, switch, value};

const ABOUT: &str = "\
'data check' reads a recording from its first byte to its last: the header, the descriptions of events, every record and \
every header feature. It prints a line for everything that is wrong with the file, with the place, and one that counts what \
is there.

The status is 0 for a recording that is whole, 1 for one that can be read in part, and 255 for a file that is none. What was \
lost before it was written, and what this version does not know, is told of in notes, and is no fault of the file.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("data")
        .long_about(ABOUT)
        .arg(
            value("input", "file")
                .short('i')
                .help("the recording to check (default: perf.data)"),
        )
        .arg(input::force())
        .arg(
            switch("quiet")
                .short('q')
                .help("print nothing, only end with the status"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("word"))
}

/// Checks the recording.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let file = file(matches, context)?;
    let opened = Opened::named(file, flag(matches, "force") == Some(true), context)?;
    let input = match opened {
        Opened::Whole(input) => input,
        Opened::Stream(stream) => stream.spool(context)?,
    };
    let data = input.read(context)?;
    let checked = check::check(&data)?;
    if flag(matches, "quiet") != Some(true) {
        let out = &mut context.stdout();
        let shown = input.path.display();
        for fault in &checked.faults {
            writeln!(out, "{shown}: {fault}")?;
        }
        for note in &checked.notes {
            writeln!(out, "{shown}: note: {note}")?;
        }
        writeln!(out, "{shown}: {}", checked.summary())?;
        out.flush()?;
    }
    Ok(match checked.faults.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// The file that is named, in either way.
fn file(matches: &ArgMatches, context: &Context) -> Result<Option<PathBuf>, CliError> {
    let program = context.program;
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let named = matches.get_one::<String>("input").map(PathBuf::from);
    match (&words[..], named) {
        (["check"], named) => Ok(named),
        (["check", file], None) => Ok(Some(file.into())),
        (["check", _, more, ..], _) | (["check", more], Some(_)) => Err(CliError::usage(format!(
            "{program} data check: one file at a time; '{more}' is one too many"
        ))),
        (["convert", ..], _) => Err(CliError::usage(format!(
            "{program} data: 'convert' is not built yet; meanwhile: 'script' prints the samples"
        ))),
        ([], _) => Err(CliError::usage(format!(
            "{program} data: what is to be done with the data? 'check' is what there is"
        ))),
        ([word, ..], _) => Err(CliError::usage(format!(
            "{program} data: '{word}' is none of its commands; 'check' is"
        ))),
    }
}
