//! The words before the command: global options, and the command's name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::{Arg, Command};

use super::context::{Globals, ProgramName};
use super::error::CliError;
use super::options::{attached, switch, value};
use super::pager::Paging;
use rperf_safefs::Folder;

/// The options before the command, for `--list-opts`, completion and the manual page. Command lines are parsed by [`parse`],
/// without clap.
pub(crate) fn options() -> Command {
    Command::new("command")
        .arg(
            switch("help")
                .short('h')
                .help("show the list of commands, or the manual of the given command"),
        )
        .arg(
            switch("version")
                .short('v')
                .help("show the version; -vv also shows build options"),
        )
        .arg(attached("exec-path", "directory").help(
            "print the directory of external commands (PERF_EXEC_PATH), or that of the program if there is none; with =DIRECTORY, look for external commands (perf-NAME) there",
        ))
        .arg(
            switch("paginate")
                .short('p')
                .help("use the pager even if the configuration turns it off"),
        )
        .arg(switch("no-pager").help("do not use a pager"))
        .arg(
            value("debugfs-dir", "directory")
                .help("read tracepoints from this directory instead of the mounted tracefs"),
        )
        .arg(
            value("buildid-dir", "directory")
                .help("directory of the build-id cache (default: ~/.debug)"),
        )
        .arg(switch("list-cmds").help("print all command names on one line"))
        .arg(
            switch("list-opts")
                .help("print these options on one line; after a command, those of the command"),
        )
        .arg(
            value("debug", "variable[=n]").help(
                "verbose: the same as n times -v after the command (default: 1); perf-event-open: print every call and its attr; stderr: accepted without effect, since messages are always printed on stderr",
            ),
        )
        .arg(
            Arg::new("words")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}

/// The task requested by the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestedTask {
    /// Run this command with these words.
    Command(OsString, Vec<OsString>),
    /// No command: prints the list of commands, as an error.
    Nothing,
    /// `--list-cmds`.
    ListCommands,
    /// `--list-opts`.
    ListOptions,
    /// `--exec-path`: print the directory of external commands.
    ExecPath,
}

/// Parses the words after the program's name up to the command.
pub(crate) fn parse(
    program: ProgramName,
    words: &[OsString],
) -> Result<(Globals, RequestedTask), CliError> {
    let mut reader = GlobalsParser {
        program,
        words: words.iter(),
        globals: Globals::default(),
    };
    while let Some(word) = reader.words.next() {
        let task = if word.as_bytes().starts_with(b"-") {
            reader.option(word)?
        } else {
            Some(RequestedTask::Command(word.clone(), reader.rest()))
        };
        if let Some(task) = task {
            return Ok((reader.globals, task));
        }
    }
    Ok((reader.globals, RequestedTask::Nothing))
}

/// The state of one pass over the words.
struct GlobalsParser<'a> {
    program: ProgramName,
    words: std::slice::Iter<'a, OsString>,
    globals: Globals,
}

impl GlobalsParser<'_> {
    /// Parses one option; returns a task if the option requests one. `attached`, here and below, is the value after `=`, not the
    /// function of this name.
    fn option(&mut self, word: &OsStr) -> Result<Option<RequestedTask>, CliError> {
        let (name, attached) = split(word);
        let task = match (name.as_str(), attached) {
            ("-h" | "--help", None) => RequestedTask::Command("help".into(), self.rest()),
            ("-v" | "--version", None) => RequestedTask::Command("version".into(), self.rest()),
            ("-vv", None) => {
                RequestedTask::Command("version".into(), vec!["--build-options".into()])
            }
            ("--list-cmds", None) => RequestedTask::ListCommands,
            ("--list-opts", None) => RequestedTask::ListOptions,
            ("--exec-path", None) => RequestedTask::ExecPath,
            _ => return self.setting(word, &name, attached).map(|()| None),
        };
        Ok(Some(task))
    }

    /// Parses an option that affects how the command runs.
    fn setting(
        &mut self,
        word: &OsStr,
        name: &str,
        attached: Option<&OsStr>,
    ) -> Result<(), CliError> {
        let program = self.program;
        match (name, attached) {
            ("-p" | "--paginate", None) => self.globals.paging = Paging::Always,
            ("--no-pager", None) => self.globals.paging = Paging::Never,
            ("--buildid-dir", _) => {
                self.globals.buildid_dir = Some(self.value(name, "directory", attached)?.into());
            }
            ("--debugfs-dir", _) => {
                let directory = self.value(name, "directory", attached)?;
                self.globals.debugfs_dir = Some(existing_directory(name, directory)?);
            }
            ("--debug", _) => {
                let word = self.value(name, "variable", attached)?;
                debug(program, &word, &mut self.globals)?;
            }
            ("--exec-path", Some(directory)) => {
                self.globals.exec_path = Some(existing_directory(name, directory.to_owned())?);
            }
            ("--html-path", _) => {
                let alternative = format!("'{program} help COMMAND' shows a manual page");
                return Err(CliError::usage(format!(
                    "--html-path: there are no manual pages in HTML; {alternative}"
                )));
            }
            _ => {
                return Err(misuse(
                    program,
                    format!("Unknown option: {}", word.display()),
                ));
            }
        }
        Ok(())
    }

    /// Returns the value of an option: attached, or the next word.
    fn value(
        &mut self,
        name: &str,
        value_name: &str,
        attached: Option<&OsStr>,
    ) -> Result<OsString, CliError> {
        let value = attached
            .map(OsStr::to_owned)
            .or_else(|| self.words.next().cloned());
        value.ok_or_else(|| misuse(self.program, format!("No {value_name} given for {name}.")))
    }

    /// Returns the remaining words.
    fn rest(&self) -> Vec<OsString> {
        self.words.as_slice().to_vec()
    }
}

/// Splits `--name=value`.
fn split(word: &OsStr) -> (String, Option<&OsStr>) {
    let bytes = word.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        Some(equals) if bytes.starts_with(b"--") => (
            String::from_utf8_lossy(&bytes[..equals]).into_owned(),
            Some(OsStr::from_bytes(&bytes[equals + 1..])),
        ),
        _ => (word.to_string_lossy().into_owned(), None),
    }
}

fn existing_directory(option: &str, path: OsString) -> Result<PathBuf, CliError> {
    let path = PathBuf::from(path);
    if Folder::open(&path).is_ok() {
        return Ok(path);
    }
    Err(CliError::usage(format!(
        "{option} {}: no such directory",
        path.display()
    )))
}

/// Variables of perf's `--debug` for which rperf has no messages.
const UNSUPPORTED_VARIABLES: [&str; 4] =
    ["data-convert", "kmaps", "ordered-events", "type-profile"];

/// Parses `--debug VARIABLE[=N]`.
fn debug(program: ProgramName, word: &OsStr, globals: &mut Globals) -> Result<(), CliError> {
    let word = word.to_string_lossy();
    let (name, value) = word.split_once('=').unwrap_or((&word, "1"));
    let level: u8 = value.parse().map_err(|_| {
        misuse(
            program,
            format!("--debug {name}={value}: not a number from 0 to 255"),
        )
    })?;
    match name {
        "verbose" => globals.verbose = level,
        "perf-event-open" => globals.shows_perf_event_open = level > 0,
        // Messages are always written to stderr, from browsers too.
        "stderr" if level > 0 => {}
        "stderr" => {
            return Err(misuse(
                program,
                "--debug stderr=0: messages are always written to stderr".to_owned(),
            ));
        }
        _ if UNSUPPORTED_VARIABLES.contains(&name) => {
            return Err(misuse(
                program,
                format!(
                    "--debug {name}: {program} has no such messages; -v after the command shows what it does"
                ),
            ));
        }
        _ => {
            return Err(misuse(
                program,
                format!(
                    "Unknown option name '{name}' for --debug; there are verbose, perf-event-open, stderr"
                ),
            ));
        }
    }
    Ok(())
}

fn misuse(program: ProgramName, message: String) -> CliError {
    CliError::usage(message)
        .detail("")
        .detail(format!(" Usage: {program} {SYNOPSIS}"))
}

/// The synopsis of the command line.
pub(crate) const SYNOPSIS: &str = "[--version] [--help] [OPTIONS] COMMAND [ARGS]";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<(Globals, RequestedTask), CliError> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(ProgramName::new(None), &words)
    }

    #[test]
    fn options_before_the_command_are_separate_words_or_attached() -> Result<(), CliError> {
        for words in [
            &["--buildid-dir", "/c", "record", "-a"] as &[&str],
            &["--buildid-dir=/c", "record", "-a"],
        ] {
            let (globals, task) = read(words)?;
            assert_eq!(globals.buildid_dir, Some(PathBuf::from("/c")));
            assert_eq!(
                task,
                RequestedTask::Command("record".into(), vec!["-a".into()])
            );
        }
        Ok(())
    }

    #[test]
    fn every_declared_option_is_accepted() {
        for arg in crate::cli::options::options(&options()) {
            let long = format!("--{}", arg.get_long().unwrap_or_default());
            // The value of the option; for an option without a value, the command, which `parse` does not check.
            let value = match long.as_str() {
                "--debug" => "verbose",
                _ => "/",
            };
            let short = arg.get_short().map(|short| format!("-{short}"));
            for word in [long].into_iter().chain(short) {
                let parsed = read(&[&word, value]);
                assert!(parsed.is_ok(), "{word}");
            }
        }
    }

    #[test]
    fn exec_path_with_a_directory_precedes_a_command() -> Result<(), CliError> {
        let (globals, task) = read(&["--exec-path=/", "daemon", "-v"])?;
        assert_eq!(globals.exec_path, Some(PathBuf::from("/")));
        assert_eq!(
            task,
            RequestedTask::Command("daemon".into(), vec!["-v".into()])
        );
        assert_eq!(read(&["--exec-path"])?.1, RequestedTask::ExecPath);
        assert!(read(&["--exec-path=/nosuch", "daemon"]).is_err());
        Ok(())
    }

    #[test]
    fn the_last_pager_option_applies() -> Result<(), CliError> {
        assert_eq!(read(&["-p", "--no-pager"])?.0.paging, Paging::Never);
        assert_eq!(
            read(&["--no-pager", "-p", "report"])?.0.paging,
            Paging::Always
        );
        Ok(())
    }

    #[test]
    fn debug_accepts_its_variables_and_refuses_others() -> Result<(), CliError> {
        assert_eq!(read(&["--debug", "verbose=3", "record"])?.0.verbose, 3);
        assert_eq!(read(&["--debug=verbose", "record"])?.0.verbose, 1);
        let calls = read(&["--debug", "perf-event-open", "record"])?.0;
        assert!(calls.shows_perf_event_open && calls.verbose == 0);
        assert!(
            !read(&["--debug", "perf-event-open=0"])?
                .0
                .shows_perf_event_open
        );
        assert!(read(&["--debug=stderr=1", "report"]).is_ok());
        for (word, reason) in [
            ("kmaps", "no such messages"),
            ("ordered-events=1", "no such messages"),
            ("stderr=0", "always written to stderr"),
            ("nosuch", "Unknown option name 'nosuch'"),
        ] {
            let text = read(&["--debug", word, "record"]).map_err(|error| error.text());
            assert!(
                matches!(&text, Err(text) if text.contains(reason)),
                "{word}: {text:?}"
            );
        }
        assert!(read(&["--debug", "verbose=many"]).is_err());
        assert!(read(&["--debug"]).is_err());
        assert!(read(&["--nosuch"]).is_err());
        Ok(())
    }
}
