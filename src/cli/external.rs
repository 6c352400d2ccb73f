//! External commands: programs named `perf-NAME` in the directory of `--exec-path`, or of `PERF_EXEC_PATH`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use super::context::Context;
use super::error::{CliError, ExitStatus};

/// The environment variable that names the directory if the option is not given, as in perf.
const VARIABLE: &str = "PERF_EXEC_PATH";

/// Returns the directory of external commands; `None` if neither the option nor the variable is given.
pub(super) fn directory(context: &Context) -> Option<PathBuf> {
    let variable = || context.var(VARIABLE).map(PathBuf::from);
    context.globals.exec_path.clone().or_else(variable)
}

/// Replaces this process with the external command `name`. Returns only on failure: `None` if there is no such command, otherwise
/// the error.
pub(super) fn run(
    context: &Context,
    name: &str,
    arguments: &[OsString],
) -> Option<Result<ExitStatus, CliError>> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let program = directory(context)?.join(format!("perf-{name}"));
    if !program.is_file() {
        return None;
    }
    let error = Command::new(&program).args(arguments).exec();
    let error = anyhow::Error::new(error).context(program.display().to_string());
    Some(Err(CliError::from(error)))
}
