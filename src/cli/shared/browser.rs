//! Requests of the browser shared by several commands: showing the output of other commands, saving reports.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use clap::ArgMatches;
use rperf_safefs::Folder;
use rperf_tui::{PreparedScreen, ReaderMessage, ShownFunction, TextScreen};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::given_value;

/// The maximum number of bytes that are read from another command's stdout, and from its stderr.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// The options for symbol sources that are passed on to the other command.
const SYMBOL_OPTIONS: &[&str] = &["vmlinux", "kallsyms", "symfs"];

/// Runs other commands on the same recording and shows their output.
pub(crate) struct CommandRunner<'o> {
    pub(crate) matches: &'o ArgMatches,
    pub(crate) context: &'o Context,
    /// The recording.
    pub(crate) path: &'o Path,
}

impl CommandRunner<'_> {
    /// Shows individual samples: all, or those of a function.
    pub(crate) fn samples(
        &self,
        function: Option<&ShownFunction>,
    ) -> Result<ReaderMessage, CliError> {
        let limit = given_value::<u64>(self.matches, "samples").copied();
        match function {
            None => self.output_of("Samples", &["script"], limit),
            Some(function) => {
                let title = format!("Samples of {}", function.symbol);
                self.output_of(&title, &["script", "-S", &function.symbol], limit)
            }
        }
    }

    /// Shows the output of another command for this recording on a scrollable screen: at most [`MAX_OUTPUT_BYTES`], and at most
    /// `limit` samples. If there is no output, shows the command's messages as a notice.
    fn output_of(
        &self,
        title: &str,
        words: &[&str],
        limit: Option<u64>,
    ) -> Result<ReaderMessage, CliError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).arg("-i").arg(self.path);
        for option in SYMBOL_OPTIONS {
            if let Some(value) = self.matches.get_one::<String>(option) {
                command.arg(format!("--{option}={value}"));
            }
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        // Stdout and stderr are read at the same time: the command would wait for ever if either pipe were full.
        let stderr = child.stderr.take();
        let stderr_reader = thread::spawn(move || {
            let mut messages = Vec::new();
            if let Some(stderr) = stderr {
                // A read error ends the messages.
                let _ = stderr.take(MAX_OUTPUT_BYTES).read_to_end(&mut messages);
            }
            messages
        });
        let mut text = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut text)?;
        }
        child.wait()?;
        let messages = stderr_reader.join().unwrap_or_default();
        if text.is_empty() {
            let notice = String::from_utf8_lossy(&messages).into_owned();
            return Ok(ReaderMessage::Notice(notice));
        }
        if let Some(limit) = limit {
            truncate(&mut text, usize::try_from(limit).unwrap_or(usize::MAX));
        }
        let name = self.context.program;
        Ok(shown(
            &format!("{title} ({name} {})", words.join(" ")),
            &text,
        ))
    }
}

/// Truncates the text of `script` to the first `limit` samples. The frames of a sample are indented by tabs, and an empty line
/// follows them.
fn truncate(text: &mut Vec<u8>, limit: usize) {
    let mut end = 0;
    let mut samples = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        samples += usize::from(!line.starts_with(b"\t") && line != b"\n");
        if samples > limit {
            return text.truncate(end);
        }
        end += line.len();
    }
}

/// Returns a scrollable screen of text.
pub(crate) fn shown(title: &str, text: &[u8]) -> ReaderMessage {
    let lines = String::from_utf8_lossy(text);
    let lines = lines.lines().map(str::to_owned).collect();
    ReaderMessage::Shown(PreparedScreen::new(TextScreen::new(title, lines)))
}

/// Writes to the first unused name of perf.hist.0, perf.hist.1, … in the current folder.
pub(crate) fn save(text: &str) -> Result<ReaderMessage, CliError> {
    let folder = Folder::open(Path::new("."))?;
    for number in 0.. {
        let name = format!("perf.hist.{number}");
        match folder.create_file(name.as_ref(), 0o666) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                return Ok(ReaderMessage::Notice(format!("{name} was written.")));
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("failed to write {name}"));
                return Err(error.into());
            }
        }
    }
    Ok(ReaderMessage::Notice(
        "No unused file name is left.".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_limited_with_their_frames() {
        let truncated = |limit| {
            let mut text = b"a 1:\n\tf\n\tg\n\nb 2:\n\tf\n\n c 3: x\n d 4: y\n".to_vec();
            truncate(&mut text, limit);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(truncated(0), "");
        assert_eq!(truncated(1), "a 1:\n\tf\n\tg\n\n");
        assert_eq!(truncated(3), "a 1:\n\tf\n\tg\n\nb 2:\n\tf\n\n c 3: x\n");
        assert_eq!(truncated(9).lines().count(), 9);
    }
}
