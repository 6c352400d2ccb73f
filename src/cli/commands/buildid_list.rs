//! `rperf buildid-list`: the build-ids of a recording, a file or the running kernel.

mod availability;
mod kernel;
mod recorded;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use clap::{ArgMatches, Command};
use rperf_safefs::open_regular;
use rperf_symbol::{BuildId, Files as _, build_id_of_elf};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input;
use crate::cli::options::{counter, flag, switch, value};
use rperf_input::DiskFiles;

const ABOUT: &str = "\
Prints build-id and path of the objects in a recording that have a build-id. If -i names an ELF file, its build-id is printed. \
Symbols of a file can be trusted only if its build-id is that of the recording.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("buildid-list")
        .long_about(ABOUT)
        .arg(
            switch("with-hits")
                .short('H')
                .help("list only objects with samples"),
        )
        .arg(
            value("input", "file")
                .short('i')
                .help("recording (default: perf.data) or ELF file to read"),
        )
        .arg(input::force())
        .arg(
            switch("kernel")
                .short('k')
                .help("show the build-id of the running kernel"),
        )
        .arg(
            switch("kernel-maps")
                .short('m')
                .help("show build-ids and addresses of the running kernel and its modules"),
        )
        .arg(switch("missing").help(
            "show where the recorded build of each object is: 'cached', 'installed'; 'differs' for another build, 'gone' for no file",
        ))
        .arg(
            counter("verbose")
                .short('v')
                .help("list the objects without a build-id"),
        )
}

/// Prints the build-ids.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let is_set = |name| flag(matches, name) == Some(true);
    let input = matches.get_one::<String>("input").map(Path::new);
    if is_set("kernel") {
        kernel::print_id(context)?;
    } else if is_set("kernel-maps") {
        kernel::print_maps(context)?;
    } else if let Some(path) = input.filter(|path| is_elf(path)) {
        let id = id_of_file(path)?;
        writeln!(context.stdout(), "{id}")?;
    } else {
        recorded::print(matches, context)?;
    }
    context.stdout().flush()?;
    Ok(ExitStatus::Ok)
}

/// Whether the file begins like an ELF file. If it can't be read, the reader of recordings reports that.
fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read_magic = |mut file: File| file.read_exact(&mut magic);
    // Pipes are not opened: bytes read here would be lost.
    open_regular(path).and_then(read_magic).is_ok() && magic == *b"\x7fELF"
}

fn id_of_file(path: &Path) -> Result<BuildId, CliError> {
    let file = path.display();
    let bytes = DiskFiles.read(path).map_err(|error| {
        CliError::failure(255, anyhow::Error::new(error).context(file.to_string()))
    })?;
    build_id_of_elf(&bytes).ok_or_else(|| {
        CliError::message(255, format!("{file} has no build-id"))
            .hint("link it with -Wl,--build-id")
    })
}
