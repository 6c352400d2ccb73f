//! `--objdump`: disassembly by an external program.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use rperf_disasm::{ObjdumpListing, SampledFunction};
use rperf_insn::Syntax;
use rperf_resolve::Resolver;

use crate::cli::error::CliError;

/// Returns the parsed output of `program` for the code of `function`. `range` has the addresses that disassemblers print: for a
/// mapped file the virtual addresses of its sections, not those of a process. The file with the object's symbols is tried first,
/// then the object.
///
/// # Errors
///
/// Status 1: the program can't be started, or prints no code.
pub(crate) fn run_objdump(
    program: &Path,
    resolver: &Resolver<'_>,
    function: &SampledFunction,
    range: &Range<u64>,
    syntax: Syntax,
) -> Result<ObjdumpListing, CliError> {
    let dso = function.symbol.dso;
    // The world holds the processes, mappings and DSOs of the recording.
    let object = &*resolver.world().dso(dso).path();
    // The symbols may come from a debug file, which may have no code.
    let symbol_file = resolver.symbol_file(dso).filter(|file| *file != object);
    // The first line of stderr for the file tried last, which is the object.
    let mut objdump_message = String::new();
    for file in symbol_file.into_iter().chain([object]) {
        let mut command = Command::new(program);
        command
            .arg("-d")
            .arg(format!("--start-address={:#x}", range.start))
            .arg(format!("--stop-address={:#x}", range.end));
        if syntax == Syntax::Intel {
            command.args(["-M", "intel"]);
        }
        let output = command.arg(file).output().map_err(|error| {
            CliError::message(1, format!("--objdump {}: {error}", program.display()))
        })?;
        let listing = ObjdumpListing::parse(&String::from_utf8_lossy(&output.stdout));
        if !listing.is_empty() {
            return Ok(listing);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        objdump_message = errors.lines().next().unwrap_or_default().to_owned();
    }
    let name = resolver.symbol_name(function.symbol);
    let error = format!(
        "--objdump {}: it printed no code of {name} in {}",
        program.display(),
        object.display()
    );
    let error = CliError::message(1, error);
    Err(match objdump_message.is_empty() {
        true => error,
        false => error.detail(objdump_message),
    })
}
