//! How a command ends: [`ExitStatus`] for the status, [`CliError`] for the error.

use std::fmt::Write as _;
use std::process::ExitCode;

use rperf_view::terminal::one_line;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Status 0.
    Ok,
    /// The exit status of the workload.
    Child(u8),
    /// Status 129: the command line is invalid.
    Usage,
    /// Another failure. perf uses, for example, 1, 244 (no such process), 254 (`probe`: no such function or event) and 255 (open,
    /// read).
    Failure(u8),
    /// The process raises this signal, which ends it; the shell shows 128 + signal.
    Signal(i32),
}

impl ExitStatus {
    /// Returns the status as the shell shows it.
    pub(crate) fn status(self) -> u8 {
        match self {
            ExitStatus::Ok => 0,
            ExitStatus::Child(status) | ExitStatus::Failure(status) => status,
            ExitStatus::Usage => 129,
            ExitStatus::Signal(signal) => u8::try_from(128 + signal).unwrap_or(255),
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        ExitCode::from(exit.status())
    }
}

/// The kind of error; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The command line is invalid: 129.
    Usage,
    /// Everything else, with its status.
    Failure(u8),
}

/// An error as shown to the user: the message and its causes, details and hints.
///
/// The message, each detail and each hint are one line. Newlines in them come from names and are escaped, so that a name cannot
/// imitate a line of output; text of several lines is added with [`CliError::details`].
#[derive(Debug)]
pub(crate) struct CliError {
    kind: ErrorKind,
    error: anyhow::Error,
    details: Vec<String>,
    hints: Vec<String>,
}

impl CliError {
    /// Creates an error in the command line, exit status 129.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, anyhow::Error::msg(message.into()))
    }

    /// Creates a failure with the exit status that perf has for it.
    pub(crate) fn failure(status: u8, error: impl Into<anyhow::Error>) -> Self {
        Self::new(ErrorKind::Failure(status), error.into())
    }

    /// Creates a failure from a message.
    pub(crate) fn message(status: u8, message: impl Into<String>) -> Self {
        Self::new(
            ErrorKind::Failure(status),
            anyhow::Error::msg(message.into()),
        )
    }

    fn new(kind: ErrorKind, error: anyhow::Error) -> Self {
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

    /// Adds the lines of a text whose newlines do not come from names.
    #[must_use]
    pub(crate) fn details(self, text: &str) -> Self {
        text.lines().fold(self, Self::detail)
    }

    /// Adds a hint, printed on a line of its own as `hint: …`.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whether the error has hints.
    pub(crate) fn has_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    /// Returns how the process ends after this error.
    pub(crate) fn exit(&self) -> ExitStatus {
        match self.kind {
            ErrorKind::Usage => ExitStatus::Usage,
            ErrorKind::Failure(status) => ExitStatus::Failure(status),
        }
    }

    /// Returns the text for stderr, each line terminated: message and causes, details, hints.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut last = String::new();
        for (depth, cause) in self.error.chain().enumerate() {
            let cause = without_error_numbers(&one_line(&cause.to_string()));
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
            // Writing to a String cannot fail.
            let _ = writeln!(text, "hint: {}", one_line(hint));
        }
        text
    }
}

/// Removes the numbers that the standard library appends to the system's messages: ` (os error 2)`.
pub(crate) fn without_error_numbers(text: &str) -> String {
    const START: &str = " (os error ";
    let mut parts = text.split(START);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = rest.len() < part.len();
        match rest.strip_prefix(')') {
            Some(after) if has_number => plain.push_str(after),
            _ => {
                plain.push_str(START);
                plain.push_str(part);
            }
        }
    }
    plain
}

/// Other errors, such as those of the libraries, are failures with status 255.
impl<E: Into<anyhow::Error>> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::failure(255, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_on_one_line_and_hints_below() {
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
    fn system_messages_have_no_numbers() {
        let error = std::io::Error::from_raw_os_error(2);
        let error = CliError::from(anyhow::Error::new(error).context("failed to open x"));
        assert_eq!(
            error.text(),
            "failed to open x: No such file or directory\n"
        );
        let named = "a (os error 2) b (os error c), (os error ): d (os error 13)";
        let plain = "a b (os error c), (os error ): d";
        assert_eq!(without_error_numbers(named), plain);
    }

    #[test]
    fn newlines_in_names_are_escaped() {
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
    fn exit_statuses_match_perf() {
        assert_eq!(ExitStatus::Usage.status(), 129);
        assert_eq!(ExitStatus::Signal(9).status(), 137);
        assert_eq!(ExitStatus::Signal(13).status(), 141);
        assert_eq!(CliError::usage("no").exit(), ExitStatus::Usage);
        assert_eq!(
            CliError::message(244, "no").exit(),
            ExitStatus::Failure(244)
        );
    }
}
