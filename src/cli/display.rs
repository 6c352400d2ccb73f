//! The terminal for a browser: detecting, opening and restoring it.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::Receiver;
use std::thread::{self, Scope, ScopedJoinHandle};

use clap::ArgMatches;
use rperf_sys::{Signals, TerminalBackup, exit_by_signal, poll};
use rperf_tui::{Restorer, Screen, Session, Terminal, Theme};

use super::context::Context;
use super::error::CliError;
use super::options::flag;

/// The signals that end this process after the terminal is restored.
const FATAL_SIGNALS: &[i32] = &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// The terminal while a browser uses it, until dropped. Messages for stderr are held until then.
pub(crate) struct BrowserTerminal<'c> {
    context: &'c Context,
    /// `None` once restored.
    terminal: Option<Terminal>,
    theme: Theme,
    /// Restores the terminal if memory runs out while this value lives.
    _backup: TerminalBackup,
}

/// Whether a command opens the browser: with `--tui`, yes; with `--no-tui`, no; with neither, if `by_default` is set and there is
/// a terminal.
///
/// # Errors
///
/// Status 129: `--tui` without a terminal.
pub(crate) fn browses(
    matches: &ArgMatches,
    context: &Context,
    command: &str,
    by_default: bool,
) -> Result<bool, CliError> {
    match flag(matches, "tui") {
        Some(true) if !can_browse(context) => Err(no_terminal(context, command)),
        Some(given) => Ok(given),
        None => Ok(by_default && can_browse(context)),
    }
}

/// Whether stdin and stdout are a terminal with cursor control.
fn can_browse(context: &Context) -> bool {
    let term = context.var("TERM");
    let is_dumb = term.is_none_or(|term| term == "dumb");
    !is_dumb && context.output.is_terminal() && io::stdin().is_terminal()
}

/// The error for `--tui` without a terminal.
fn no_terminal(context: &Context, command: &str) -> CliError {
    let text = format!("{} {command}: --tui needs a terminal", context.program);
    CliError::usage(text).hint("use --stdio, or set TERM to the type of your terminal")
}

impl<'c> BrowserTerminal<'c> {
    /// Opens the terminal. Must be called before threads are started, so that they inherit the blocked signals.
    ///
    /// # Errors
    ///
    /// The terminal cannot be set up.
    pub(crate) fn open(context: &'c Context) -> Result<Self, CliError> {
        let signals = Signals::block(FATAL_SIGNALS)?;
        let out = context.output.terminal()?;
        let backup = TerminalBackup::save(&io::stdin(), &out, Terminal::restoring_text())?;
        let terminal = Terminal::enter(Box::new(out))?;
        let restorer = terminal.restorer();
        let thread = thread::Builder::new().spawn(move || restore_and_die(signals, &restorer));
        thread.map_err(no_thread)?;
        // Nothing may fail from here on: only the drop of `BrowserTerminal` releases the messages.
        context.output.hold_messages();
        Ok(Self {
            context,
            terminal: Some(terminal),
            theme: Theme::new(context.var("NO_COLOR").is_none()),
            _backup: backup,
        })
    }

    /// Returns the theme.
    pub(crate) fn theme(&self) -> Theme {
        self.theme
    }

    /// Returns a function that restores the terminal and ends this process by the given signal, for threads that read signals
    /// themselves.
    pub(crate) fn process_ender(&self) -> impl Fn(i32) + Send + Sync + use<> {
        let restorer = self.terminal.as_ref().map(Terminal::restorer);
        move |signal| {
            if let Some(restorer) = &restorer {
                restorer.restore();
            }
            exit_by_signal(signal);
        }
    }

    /// Runs a session that starts with the screen `first` and receives `messages`.
    ///
    /// # Errors
    ///
    /// The terminal cannot be read or written.
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

/// Starts a thread that does the work of a browser, such as reading the recording.
///
/// # Errors
///
/// Status 255: the thread cannot be started.
pub(crate) fn spawn_browser_thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, CliError> {
    let thread = thread::Builder::new().spawn_scoped(scope, work);
    thread.map_err(no_thread)
}

fn no_thread(error: io::Error) -> CliError {
    let error = anyhow::Error::new(error).context("cannot start a thread for the browser");
    CliError::failure(255, error).hint("use --stdio, which needs less memory")
}

impl Drop for BrowserTerminal<'_> {
    fn drop(&mut self) {
        // Restores the terminal before the held messages are printed.
        self.terminal = None;
        self.context.output.release_messages();
    }
}

/// Waits for a signal, restores the terminal and ends the process by that signal, even if other threads are busy.
fn restore_and_die(signals: Signals, restorer: &Restorer) {
    loop {
        // The result is not needed: `next` returns the pending signal, if any.
        let _ = poll(&[signals.as_fd()], -1);
        if let Ok(Some(signal)) = signals.next() {
            restorer.restore();
            // Unblocks the signals in this thread.
            drop(signals);
            return exit_by_signal(signal);
        }
    }
}
