//! The words before the command: the program's own options, and which command follows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::context::{Globals, Program};
use super::error::CliError;
use super::pager::Paging;

/// The options before the command, for `--list-opts`.
pub(crate) const OPTIONS: &[&str] = &[
    "--help",
    "--version",
    "--exec-path",
    "--paginate",
    "--no-pager",
    "--debugfs-dir",
    "--buildid-dir",
    "--list-cmds",
    "--list-opts",
    "--debug",
];

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Run the command of this name with these words.
    Command(OsString, Vec<OsString>),
    /// No command at all: the list of commands, as an error.
    Nothing,
    /// `--list-cmds`.
    ListCommands,
    /// `--list-opts`.
    ListOptions,
    /// `--exec-path`: where the program lies.
    ExecPath,
}

/// Reads the words after the program's name up to the command.
pub(crate) fn parse(program: Program, words: &[OsString]) -> Result<(Globals, Task), CliError> {
    let mut globals = Globals::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (name, attached) = split(word);
        let mut value = |what: &str| match attached {
            Some(value) => Ok(value.to_owned()),
            None => rest
                .next()
                .cloned()
                .ok_or_else(|| misuse(program, format!("No {what} given for {name}."))),
        };
        let task = match (name.as_str(), attached.is_some()) {
            ("-h" | "--help", false) => Task::Command("help".into(), rest.cloned().collect()),
            ("-v" | "--version", false) => Task::Command("version".into(), rest.cloned().collect()),
            ("-vv", false) => Task::Command("version".into(), vec!["--build-options".into()]),
            ("--list-cmds", false) => Task::ListCommands,
            ("--list-opts", false) => Task::ListOptions,
            ("--exec-path", false) => Task::ExecPath,
            ("-p" | "--paginate", false) => {
                globals.paging = Paging::Always;
                continue;
            }
            ("--no-pager", false) => {
                globals.paging = Paging::Never;
                continue;
            }
            ("--buildid-dir", _) => {
                globals.buildid_dir = Some(PathBuf::from(value("directory")?));
                continue;
            }
            ("--debugfs-dir", _) => {
                globals.debugfs_dir = Some(existing_directory(value("directory")?)?);
                continue;
            }
            ("--debug", _) => {
                globals.verbose = debug(program, &value("variable")?)?;
                continue;
            }
            ("--exec-path", true) => {
                return Err(CliError::usage(format!(
                    "--exec-path takes no directory: {program} is one program"
                )));
            }
            ("--html-path", _) => {
                return Err(CliError::usage(format!(
                    "--html-path: there is no HTML manual; '{program} help COMMAND' prints it"
                )));
            }
            (option, _) if option.starts_with('-') => {
                return Err(misuse(
                    program,
                    format!("Unknown option: {}", word.display()),
                ));
            }
            _ => Task::Command(word.clone(), rest.cloned().collect()),
        };
        return Ok((globals, task));
    }
    Ok((globals, Task::Nothing))
}

/// Cuts `--name=value` in two.
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

fn existing_directory(path: OsString) -> Result<PathBuf, CliError> {
    let path = PathBuf::from(path);
    if path.is_dir() {
        return Ok(path);
    }
    Err(CliError::usage(format!(
        "--debugfs-dir {}: no such directory",
        path.display()
    )))
}

/// `--debug verbose[=N]`; perf's other variables steer parts that rperf does not have.
fn debug(program: Program, word: &OsStr) -> Result<u8, CliError> {
    let word = word.to_string_lossy();
    let (name, value) = word.split_once('=').unwrap_or((&word, "1"));
    if name != "verbose" {
        return Err(misuse(
            program,
            format!("Unknown option name '{name}' for --debug; there is 'verbose'"),
        ));
    }
    value.parse().map_err(|_| {
        misuse(
            program,
            format!("--debug verbose={value}: not a number from 0 to 255"),
        )
    })
}

fn misuse(program: Program, message: String) -> CliError {
    CliError::usage(message)
        .detail("")
        .detail(format!(" Usage: {program} {SYNOPSIS}"))
}

/// The shape of every command line.
pub(crate) const SYNOPSIS: &str = "[--version] [--help] [OPTIONS] COMMAND [ARGS]";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<(Globals, Task), CliError> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        parse(Program::new(None), &words)
    }

    #[test]
    fn options_before_the_command_are_separate_words_or_attached() -> Result<(), CliError> {
        for words in [
            &["--buildid-dir", "/c", "record", "-a"] as &[&str],
            &["--buildid-dir=/c", "record", "-a"],
        ] {
            let (globals, task) = read(words)?;
            assert_eq!(globals.buildid_dir, Some(PathBuf::from("/c")));
            assert_eq!(task, Task::Command("record".into(), vec!["-a".into()]));
        }
        Ok(())
    }

    #[test]
    fn the_last_word_on_the_pager_counts() -> Result<(), CliError> {
        assert_eq!(read(&["-p", "--no-pager"])?.0.paging, Paging::Never);
        assert_eq!(
            read(&["--no-pager", "-p", "report"])?.0.paging,
            Paging::Always
        );
        Ok(())
    }

    #[test]
    fn debug_takes_verbose_and_names_what_it_does_not_take() -> Result<(), CliError> {
        assert_eq!(read(&["--debug", "verbose=3", "record"])?.0.verbose, 3);
        assert_eq!(read(&["--debug=verbose", "record"])?.0.verbose, 1);
        assert!(read(&["--debug", "kmaps", "record"]).is_err());
        assert!(read(&["--debug", "verbose=many"]).is_err());
        assert!(read(&["--debug"]).is_err());
        assert!(read(&["--nosuch"]).is_err());
        Ok(())
    }
}
