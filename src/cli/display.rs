//! The terminal for a browser: whether there is one, and how it is opened and given back.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::Receiver;
use std::thread::{self, Scope, ScopedJoinHandle};

use clap::ArgMatches;
use rperf_sys::{Signals, TerminalBackup, die_by, poll};
use rperf_tui::{Restorer, Screen, Session, Terminal, Theme};

use super::context::Context;
use super::error::CliError;
use super::options::flag;

/// The signals that end this process, after the terminal is given back.
const DEADLY: &[i32] = &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The terminal in a browser's hands, until dropped. What is said on stderr meanwhile is said then.
pub(crate) struct Display<'c> {
    context: &'c Context,
    /// None after it was given back.
    terminal: Option<Terminal>,
    theme: Theme,
    _backup: TerminalBackup,
}

/// Whether a command browses what nothing else keeps it from: as `--tui` says; otherwise where there is a terminal, if it
/// `usually` does.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(crate) fn browses(
    matches: &ArgMatches,
    context: &Context,
    command: &str,
    usually: bool,
) -> Result<bool, CliError> {
    match flag(matches, "tui") {
        Some(true) if !can_browse(context) => Err(no_terminal(context, command)),
        Some(wanted) => Ok(wanted),
        None => Ok(usually && can_browse(context)),
    }
}

/// Whether there is a terminal to browse on: one that shows more than lines, for keys as well as for text.
fn can_browse(context: &Context) -> bool {
    let term = context.var("TERM");
    let is_dumb = term.is_none_or(|term| term == "dumb");
    !is_dumb && context.output.is_terminal() && io::stdin().is_terminal()
}

/// The refusal of `--tui` where there is no terminal.
fn no_terminal(context: &Context, command: &str) -> CliError {
    let text = format!(
        "{} {command}: --tui needs a terminal for keys and text",
        context.program
    );
    CliError::usage(text).hint("--stdio prints text; TERM must name a terminal that is not 'dumb'")
}

impl<'c> Display<'c> {
    /// Takes the terminal. Threads that are started before do not hold signals back: make this first.
    ///
    /// # Errors
    ///
    /// The terminal cannot be set up.
    pub(crate) fn open(context: &'c Context) -> Result<Self, CliError> {
        let signals = Signals::hold(DEADLY)?;
        let out = context.output.terminal()?;
        let backup = TerminalBackup::save(&io::stdin(), &out, Terminal::restoring_text())?;
        let terminal = Terminal::enter(Box::new(out))?;
        context.output.hold();
        let restorer = terminal.restorer();
        let thread = thread::Builder::new().spawn(move || restore_and_die(signals, &restorer));
        thread.map_err(no_thread)?;
        Ok(Self {
            context,
            terminal: Some(terminal),
            theme: Theme::new(context.var("NO_COLOR").is_none()),
            _backup: backup,
        })
    }

    /// How things look on it.
    pub(crate) fn theme(&self) -> Theme {
        self.theme
    }

    /// What ends this process by a signal that another thread was given, after the terminal is given back.
    pub(crate) fn ender(&self) -> impl Fn(i32) + Send + Sync + use<> {
        let restorer = self.terminal.as_ref().map(Terminal::restorer);
        move |signal| {
            if let Some(restorer) = &restorer {
                restorer.restore();
            }
            die_by(signal);
        }
    }

    /// Runs a session that begins with `first` and hears of `messages`.
    ///
    /// # Errors
    ///
    /// The terminal cannot be read or written to.
    pub(crate) fn run<M>(
        &mut self,
        first: Box<dyn Screen<M>>,
        messages: Receiver<M>,
    ) -> Result<(), CliError> {
        if let Some(terminal) = &mut self.terminal {
            terminal.run(&mut Session::new(first, messages, self.theme))?;
        }
        Ok(())
    }
}

/// Starts the thread that answers a browser. Without it there is nothing to show: text needs less.
///
/// # Errors
///
/// Status 255: no thread can be started.
pub(crate) fn started<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, CliError> {
    let thread = thread::Builder::new().spawn_scoped(scope, work);
    thread.map_err(no_thread)
}

fn no_thread(error: io::Error) -> CliError {
    let error = anyhow::Error::new(error).context("cannot start a thread for the browser");
    CliError::failure(255, error).hint("--stdio prints text and needs less memory")
}

impl Drop for Display<'_> {
    fn drop(&mut self) {
        self.terminal = None;
        self.context.output.release();
    }
}

/// Waits for a signal, gives the terminal back and ends the process by that signal, whatever other threads are at.
fn restore_and_die(signals: Signals, restorer: &Restorer) {
    loop {
        // Interrupted or not, the signal is there or isn't.
        let _ = poll(&[signals.as_fd()], -1);
        if let Ok(Some(signal)) = signals.next() {
            restorer.restore();
            // This thread takes signals again.
            drop(signals);
            return die_by(signal);
        }
    }
}
