//! `rperf buildid-list`: which builds of which files a recording, a file or the running kernel stands for.

mod kernel;
mod recorded;

pub(super) use self::recorded::{Object, hit_objects};

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use clap::{ArgMatches, Command};
use rperf_safefs::open_regular;
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::files::DiskFiles;
use crate::cli::input;
use crate::cli::options::{counter, flag, switch, value};

const ABOUT: &str = "\
Prints the build-ids of a recording: one line for each object, its id and its name. With the name of an ELF file after -i it \
prints that file's id alone. Symbols are only right where the ids of recording and file are equal.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("buildid-list")
        .long_about(ABOUT)
        .arg(
            switch("with-hits")
                .short('H')
                .help("show only objects that samples hit"),
        )
        .arg(
            value("input", "file")
                .short('i')
                .help("the recording (default: perf.data) or the ELF file to read"),
        )
        .arg(input::force())
        .arg(
            switch("kernel")
                .short('k')
                .help("show the id of the running kernel"),
        )
        .arg(
            switch("kernel-maps")
                .short('m')
                .help("show where the running kernel and its modules lie, with their ids"),
        )
        .arg(
            counter("verbose")
                .short('v')
                .help("name the objects that have no id"),
        )
}

/// Prints the ids.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    let input = matches.get_one::<String>("input").map(Path::new);
    if on("kernel") {
        kernel::print_id(context)?;
    } else if on("kernel-maps") {
        kernel::print_maps(context)?;
    } else if let Some(path) = input.filter(|path| is_elf(path)) {
        let id = id_of_file(path)?;
        writeln!(context.stdout(), "{id}")?;
    } else {
        recorded::print(matches, context)?;
    }
    context.stdout().flush()?;
    Ok(Exit::Ok)
}

/// Whether it begins as ELF files do. What can't be read is left to the reader of recordings, which says why.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    // A pipe would lose what is read from it here.
    let read = |mut file: File| file.read_exact(&mut magic);
    open_regular(path).and_then(read).is_ok() && magic == *b"\x7fELF"
}

fn id_of_file(path: &Path) -> Result<BuildId, CliError> {
    let shown = path.display();
    let bytes = DiskFiles.read(path).map_err(|error| {
        CliError::failure(255, anyhow::Error::new(error).context(shown.to_string()))
    })?;
    build_id_of_elf(&bytes).ok_or_else(|| {
        CliError::message(255, format!("{shown} has no build-id"))
            .hint("link it with -Wl,--build-id")
    })
}
