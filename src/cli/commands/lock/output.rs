//! Where the tables of `lock` are written: to the file of `--output`; on stdout, which a pager needs, if stdout and stderr are
//! terminals; otherwise on stderr, as in perf.

use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, ArgMatches};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{given_value, value};
use crate::cli::output::OutputStreams;
use crate::cli::output_file::write_to;
use crate::cli::record_dump;

/// The `--output` option, as in perf 7.2.
pub(super) fn option() -> Arg {
    value("output", "file").help(
        "write the table to this file instead of the standard error; - is the standard output",
    )
}

/// Refuses `-D` with `--json`, if both print on stdout.
///
/// # Errors
///
/// Status 129.
pub(super) fn refuse_dump_with_json(matches: &ArgMatches) -> Result<(), CliError> {
    let has_file = file(matches).is_some_and(|path| path != Path::new("-"));
    let hint = "both print on the standard output; --output FILE writes JSON to a file";
    match has_file {
        true => Ok(()),
        false => record_dump::refuse_with_json(matches, hint),
    }
}

/// Prints text: to the file of `--output`; otherwise, if stdout and stderr are terminals, on stdout, through the pager if one is
/// enabled; otherwise on stderr.
pub(super) fn print_text(
    matches: &ArgMatches,
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if let Some(path) = file(matches) {
        return write_to(path, context, write);
    }
    if context.output.is_terminal() && OutputStreams::shows_errors_on_terminal() {
        context.paginate("lock")?;
        write(&mut context.stdout())?;
    } else {
        let mut text = Vec::new();
        write(&mut text)?;
        OutputStreams::error(&String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Prints JSON: to the file of `--output`, otherwise on stdout.
pub(super) fn print_json(
    matches: &ArgMatches,
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    match file(matches) {
        Some(path) => write_to(path, context, write),
        None => Ok(write(&mut context.stdout())?),
    }
}

fn file(matches: &ArgMatches) -> Option<&Path> {
    given_value::<String>(matches, "output").map(Path::new)
}
