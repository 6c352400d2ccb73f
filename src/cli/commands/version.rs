//! `rperf version [--build-options]`, also `--version`, `-v` and `-vv`.

use std::io::Write as _;

use clap::{ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::{count, counter, flag, switch};

/// What perf calls a built-in feature, whether this program has it, and where it comes from.
const FEATURES: &[(&str, bool, &str)] = &[
    (
        "dwarf",
        false,
        "source lines and unwinding by DWARF are to come",
    ),
    ("libelf", true, "symbol tables, read in process"),
    ("zlib", true, "compressed sections of object files"),
    ("zstd", false, "compressed recordings are to come"),
    ("demangle", true, "C++ and Rust names, in process"),
    ("libslang", false, "the terminal browser is to come"),
    ("libpython", false, "scripts are to come"),
    ("bpf", false, "no BPF programs are loaded"),
];

/// The options.
pub(super) fn command() -> Command {
    Command::new("version")
        .long_about("Prints the version on one line; with --build-options also what is built in.")
        .arg(switch("build-options").help("display the build options"))
        .arg(
            counter("verbose")
                .short('v')
                .help("the same as --build-options"),
        )
}

/// Prints the version.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let mut out = context.stdout();
    writeln!(
        out,
        "{} version {}",
        context.program,
        env!("CARGO_PKG_VERSION")
    )?;
    if flag(matches, "build-options") == Some(true) || count(matches, "verbose") > 0 {
        let width = FEATURES
            .iter()
            .map(|(name, ..)| name.len())
            .max()
            .unwrap_or_default()
            + 2;
        for (name, on, note) in FEATURES {
            let state = if *on { "on " } else { "OFF" };
            writeln!(out, "{name:>width$}: [ {state} ]  # {note}")?;
        }
    }
    Ok(Exit::Ok)
}
