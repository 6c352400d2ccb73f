//! How a command ends: [`Exit`] for the status, [`CliError`] for what went wrong.
//!
//! This file is the one place that turns an error into text and into an exit status.

use std::fmt::Write as _;
use std::process::ExitCode;

use rperf_view::terminal::one_line;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Status 0.
    Ok,
    /// The exit status of the workload, passed on.
    Child(u8),
    /// Status 129: the command line was not understood.
    Usage,
    /// Another failure. perf uses 1, 244 (no such target), 254 (lookups) and 255 (open, read).
    Failure(u8),
    /// The process ends by this signal, so that a shell sees 128 + signal.
    Signal(i32),
}

impl Exit {
    /// The status as the shell shows it.
    pub(crate) fn status(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Child(status) | Exit::Failure(status) => status,
            Exit::Usage => 129,
            Exit::Signal(signal) => u8::try_from(128 + signal).unwrap_or(255),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.status())
    }
}

/// What kind of error it is; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line was not understood: 129.
    Usage,
    /// Everything else, with its status.
    Failure(u8),
}

/// An error as the user sees it: what failed, its causes, and what to do about it.
///
/// Message, details and hints are a line each. Newlines in them come out of names and are escaped, so that no name looks like
/// a line of ours; text of several lines is given with [`CliError::details`].
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    error: anyhow::Error,
    details: Vec<String>,
    hints: Vec<String>,
}

impl CliError {
    /// A mistake on the command line, exit status 129.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, anyhow::Error::msg(message.into()))
    }

    /// A failure with perf's exit status for this kind of failure.
    pub(crate) fn failure(status: u8, error: impl Into<anyhow::Error>) -> Self {
        Self::new(Kind::Failure(status), error.into())
    }

    /// A failure described by its message alone.
    pub(crate) fn message(status: u8, message: impl Into<String>) -> Self {
        Self::new(Kind::Failure(status), anyhow::Error::msg(message.into()))
    }

    fn new(kind: Kind, error: anyhow::Error) -> Self {
        Self {
            kind,
            error,
            details: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Adds a line below the message.
    #[must_use]
    pub(crate) fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// Adds the lines of a text of our own, whose newlines come out of no name.
    #[must_use]
    pub(crate) fn details(self, text: &str) -> Self {
        text.lines().fold(self, Self::detail)
    }

    /// Adds a way out, printed on a line of its own as `hint: …`.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whether it names a way out.
    pub(crate) fn has_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    /// How the process ends after this error.
    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            Kind::Usage => Exit::Usage,
            Kind::Failure(status) => Exit::Failure(status),
        }
    }

    /// The text for stderr, each line ended: message and causes, details, hints.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut last = String::new();
        for (depth, cause) in self.error.chain().enumerate() {
            let cause = one_line(&cause.to_string()).into_owned();
            // Some errors repeat their source in their own text.
            if depth > 0 && last.ends_with(&cause) {
                continue;
            }
            if depth > 0 {
                text.push_str(": ");
            }
            text.push_str(&cause);
            last = cause;
        }
        text.push('\n');
        for line in &self.details {
            text.push_str(&one_line(line));
            text.push('\n');
        }
        for hint in &self.hints {
            // A String takes every write.
            let _ = writeln!(text, "hint: {}", one_line(hint));
        }
        text
    }
}

/// Errors of the libraries are failures to open, read or write something: perf's 255.
impl<E: Into<anyhow::Error>> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::failure(255, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_on_one_line_and_hints_below() {
        let cause = std::io::Error::other("device gone");
        let outer = anyhow::Error::new(cause).context("failed to open perf.data");
        let error = CliError::from(outer).hint("record again");
        assert_eq!(
            error.text(),
            "failed to open perf.data: device gone\nhint: record again\n"
        );
        assert_eq!(error.exit().status(), 255);
    }

    #[test]
    fn names_begin_no_line() {
        let forged = "a\nhint: run me";
        let error = CliError::message(255, format!("{forged}: bad")).hint(forged);
        let error = error.detail(forged).details("one\ntwo");
        let name = "a\\x0ahint: run me";
        assert_eq!(
            error.text(),
            format!("{name}: bad\n{name}\none\ntwo\nhint: {name}\n")
        );
    }

    #[test]
    fn statuses_are_those_of_perf() {
        assert_eq!(Exit::Usage.status(), 129);
        assert_eq!(Exit::Signal(9).status(), 137);
        assert_eq!(Exit::Signal(13).status(), 141);
        assert_eq!(CliError::usage("no").exit(), Exit::Usage);
        assert_eq!(CliError::message(244, "no").exit(), Exit::Failure(244));
    }
}
