//! The pager: text for a terminal is piped through `pager.CMD`, `PERF_PAGER`, `core.pager`, `PAGER` or the system's default.

use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rperf_sys::{forget_pager, note_pager};

use super::context::Context;
use super::error::CliError;

/// Pager use according to the options before the command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Paging {
    /// No option: the configuration decides; by default the pager is used.
    #[default]
    Configured,
    /// `-p`, `--paginate`: even if `pager.CMD` is false.
    Always,
    /// `--no-pager`.
    Never,
}

/// The pager of this process, if started.
#[derive(Debug, Default)]
pub(crate) struct Pager(Mutex<Option<Child>>);

impl Pager {
    /// Starts the pager and redirects stdout to it, if stdout is a terminal and paging is enabled for `command`.
    pub(crate) fn start(&self, context: &Context, command: &str) -> Result<(), CliError> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() || !context.output.is_terminal() {
            return Ok(());
        }
        let Some(program) = choose(context, command) else {
            return Ok(());
        };
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&program).stdin(Stdio::piped());
        if context.var("LESS").is_none() {
            // Options of less: quit if the text fits one screen, keep colours, chop long lines, do not clear the screen.
            shell.env("LESS", "FRSX");
        }
        let mut child = shell
            .spawn()
            .map_err(|error| CliError::failure(255, error).hint("use --no-pager"))?;
        if let Some(stdin) = child.stdin.take() {
            // If memory is exhausted, this process ends without `Pager::wait`: the handler of that error closes the pipe
            // and waits for the pager instead.
            note_pager(child.id(), &stdin);
            context.output.redirect(Box::new(stdin));
        }
        *running = Some(child);
        Ok(())
    }

    /// Waits until the pager exits. Stdout must be finished first: a pager such as `less -F` waits for the end of its input.
    pub(crate) fn wait(&self) {
        let child = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            forget_pager();
            // Its exit status does not matter: the text was shown, or the user quit.
            let _ = child.wait();
        }
    }
}

/// Returns the pager's command line; `None` if paging is off, the pager is `cat`, or there is none.
fn choose(context: &Context, command: &str) -> Option<OsString> {
    // A boolean, or the pager's command line.
    let configured = context.config.text(&format!("pager.{command}"));
    let is_enabled = match context.globals.paging {
        Paging::Never => false,
        Paging::Always => true,
        Paging::Configured => {
            configured.is_none_or(|value| super::config::boolean(value) != Some(false))
        }
    };
    if !is_enabled {
        return None;
    }
    let of_command = configured
        .filter(|value| super::config::boolean(value).is_none())
        .map(OsString::from);
    let program = of_command
        .or_else(|| context.var("PERF_PAGER"))
        .or_else(|| context.config.text("core.pager").map(OsString::from))
        .or_else(|| context.var("PAGER"))
        .or_else(|| installed(context))?;
    (program != "cat").then_some(program)
}

/// Returns `pager`, otherwise `less`, if installed.
fn installed(context: &Context) -> Option<OsString> {
    let path = context.var("PATH")?;
    let names = ["pager", "less"].into_iter();
    let mut present =
        names.filter(|name| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    present.next().map(OsString::from)
}
