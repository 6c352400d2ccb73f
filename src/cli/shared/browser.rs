//! Requests of the browser (the interactive screen in the terminal), for the commands that have one: showing the output of other
//! commands, saving reports.

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use clap::ArgMatches;
use rperf_safefs::Folder;
use rperf_tui::{PreparedScreen, ReaderMessage, ShownFunction, TextScreen};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{flag, given_value};

/// The maximum number of bytes that are read from another command's stdout, and from its stderr.
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
/// The options with a value that are passed to `script`: they select samples, or affect how addresses are resolved to functions.
const PASSED_VALUES: &[&str] = &[
    "vmlinux",
    "kallsyms",
    "symfs",
    "debuginfod",
    "itrace",
    "dsos",
    "comms",
    "pid",
    "tid",
    "cpu",
    "time",
    "switch-on",
    "switch-off",
];
/// The switches that are passed to `script`: they select samples, affect how addresses are resolved, change the format of a
/// sample, or are needed to open the recording (`force`).
const PASSED_SWITCHES: &[&str] = &[
    "force",
    "ignore-vmlinux",
    "demangle",
    "demangle-kernel",
    "inline",
    "mark-truncated",
    "show-on-off-events",
    "full-source-path",
    "ns",
];
/// The filters of samples that `script` does not have, besides `--no-idle`.
const OTHER_FILTERS: &[&str] = &[
    "parallelism",
    "socket-filter",
    "exclude-other",
    "hide-unresolved",
];

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
        let mut words = vec!["script".to_owned()];
        words.extend(passed_options(self.matches));
        let mut title = match function {
            None => "Samples".to_owned(),
            Some(function) => format!("Samples of {}", function.symbol),
        };
        let user_symbols = given_value::<String>(self.matches, "symbols");
        // The function replaces the user's `--symbols`. This adds no samples: with that option, the report shows only functions
        // that it selects, and `function` is one of these.
        let symbols = function.map(|function| &function.symbol).or(user_symbols);
        if let Some(symbols) = symbols {
            words.extend(["-S".to_owned(), symbols.clone()]);
        }
        let ignored = ignored_filters(self.matches);
        if !ignored.is_empty() {
            title = format!("{title}, {} not applied", ignored.join(", "));
        }
        self.output_of(&title, &words, limit)
    }

    /// Shows the output of another command for this recording on a scrollable screen: at most [`MAX_OUTPUT_BYTES`], and at most
    /// `limit` samples. If there is no output, shows the command's messages as a notice.
    fn output_of(
        &self,
        title: &str,
        words: &[String],
        limit: Option<u64>,
    ) -> Result<ReaderMessage, CliError> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).arg("-i").arg(self.path);
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

/// Returns the given options that are passed on to `script`.
fn passed_options(matches: &ArgMatches) -> Vec<String> {
    let values = PASSED_VALUES.iter().filter_map(|id| {
        let value = given_value::<String>(matches, id)?;
        Some(format!("--{id}={value}"))
    });
    let switches = PASSED_SWITCHES.iter().filter_map(|id| {
        let prefix = if flag(matches, id)? { "" } else { "no-" };
        Some(format!("--{prefix}{id}"))
    });
    values.chain(switches).collect()
}

/// Returns the given filters of samples that `script` does not have.
fn ignored_filters(matches: &ArgMatches) -> Vec<String> {
    let filters = OTHER_FILTERS.iter().filter(|id| {
        let given = matches.try_contains_id(id).unwrap_or(false);
        // For a filter with a value, which is not a flag, `flag` returns `None`.
        given && flag(matches, id) != Some(false)
    });
    let filters = filters.map(|id| format!("--{id}"));
    let no_idle = (flag(matches, "idle") == Some(false)).then(|| "--no-idle".to_owned());
    filters.chain(no_idle).collect()
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
    use clap::Command;

    use super::{ArgMatches, ignored_filters, passed_options, truncate};
    use crate::cli::filter::args as filter_args;
    use crate::cli::options::{switch, value};
    use crate::cli::symbol_options::args as symbol_args;
    use crate::cli::{input, itrace};

    /// These words, parsed by a command with the options of `report`.
    fn parsed(words: &[&str]) -> ArgMatches {
        let command = Command::new("report")
            .args(filter_args::common())
            .args([filter_args::switch_on(), filter_args::switch_off()])
            .args(symbol_args::all())
            .args([
                itrace::option(),
                input::force(),
                filter_args::show_switches(),
            ])
            .args(["full-source-path", "ns", "idle", "hide-unresolved"].map(switch))
            .args([value("socket-filter", "socket"), value("sort", "key")]);
        let words = std::iter::once("report").chain(words.iter().copied());
        command.try_get_matches_from(words).unwrap()
    }

    #[test]
    fn options_for_samples_and_names_are_passed_to_script() {
        let words = [
            "--vmlinux=vm",
            "--kallsyms=list",
            "--symfs=root",
            "--debuginfod=servers",
            "--itrace=b",
            "--dsos=libc.so.6",
            "--comms=a,b",
            "--pid=1",
            "--tid=2",
            "--cpu=0-1",
            "--time=10%/2",
            "--switch-on=x",
            "--switch-off=y",
            "--force",
            "--ignore-vmlinux",
            "--demangle-kernel",
            "--inline",
            "--mark-truncated",
            "--show-on-off-events",
            "--full-source-path",
            "--ns",
        ];
        assert_eq!(passed_options(&parsed(&words)), words);
        // The parser of options turns `--no-demangle` into `--demangle=false`.
        let passed = passed_options(&parsed(&["--demangle=false", "--sort=comm"]));
        assert_eq!(passed, ["--no-demangle"]);
    }

    #[test]
    fn filters_that_script_lacks_are_named() {
        let words = [
            "--socket-filter=0",
            "--idle=false",
            "--hide-unresolved=false",
        ];
        let ignored = ignored_filters(&parsed(&words));
        assert_eq!(ignored, ["--socket-filter", "--no-idle"]);
        assert!(ignored_filters(&parsed(&["--idle"])).is_empty());
    }

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
