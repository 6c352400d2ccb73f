//! `--objdump`: instructions in the words of another program.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use rperf_disasm::{Function, Told};
use rperf_insn::Syntax;
use rperf_resolve::Resolver;

use crate::cli::error::CliError;

/// What `program` prints of the code of `function`, which is at `place` in its object.
///
/// # Errors
///
/// Status 1: it can't be started, or prints no code.
pub(super) fn ask(
    program: &Path,
    resolver: &Resolver<'_>,
    function: &Function,
    place: &Range<u64>,
    syntax: Syntax,
) -> Result<Told, CliError> {
    let dso = function.symbol.dso;
    let object = &*resolver.world().dso(dso).path();
    let read = resolver.source(dso).filter(|read| *read != object);
    let mut said = String::new();
    for file in read.into_iter().chain([object]) {
        let mut command = Command::new(program);
        command
            .arg("-d")
            .arg(format!("--start-address={:#x}", place.start))
            .arg(format!("--stop-address={:#x}", place.end));
        if syntax == Syntax::Intel {
            command.args(["-M", "intel"]);
        }
        let output = command.arg(file).output().map_err(|error| {
            CliError::message(1, format!("--objdump {}: {error}", program.display()))
        })?;
        let told = Told::parse(&String::from_utf8_lossy(&output.stdout));
        if !told.is_empty() {
            return Ok(told);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        said = errors.lines().next().unwrap_or_default().to_owned();
    }
    let name = resolver.symbol_name(function.symbol);
    let error = format!(
        "--objdump {}: it prints no code of {name} in {}",
        program.display(),
        object.display()
    );
    let error = CliError::message(1, error);
    Err(match said.is_empty() {
        true => error,
        false => error.detail(said),
    })
}
