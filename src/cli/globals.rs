//! The words before the command: the program's own options, and which command follows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::{Arg, Command};

use super::context::{Globals, Program};
use super::error::CliError;
use super::options::{switch, value};
use super::pager::Paging;
use rperf_safefs::Folder;

/// The options before the command, for `--list-opts`, completion and the manual page. [`parse`] reads them.
pub(crate) fn options() -> Command {
    Command::new("command")
        .arg(
            switch("help")
                .short('h')
                .help("show the list of commands, or the manual of the command that follows"),
        )
        .arg(
            switch("version")
                .short('v')
                .help("show the version; -vv also shows what is built in"),
        )
        .arg(switch("exec-path").help("print the directory of the program"))
        .arg(
            switch("paginate")
                .short('p')
                .help("use the pager, whatever the configuration says"),
        )
        .arg(switch("no-pager").help("use no pager"))
        .arg(
            value("debugfs-dir", "directory")
                .help("read tracepoints below this directory instead of the mounted tracefs"),
        )
        .arg(
            value("buildid-dir", "directory")
                .help("directory of the build-id cache (default: ~/.debug)"),
        )
        .arg(switch("list-cmds").help("print the names of all commands on one line"))
        .arg(
            switch("list-opts")
                .help("print these options on one line; after a command, its options"),
        )
        .arg(
            value("debug", "verbose[=n]")
                .help("the same as n times -v after the command (default: 1)"),
        )
        .arg(
            Arg::new("words")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}

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
    let mut reader = Reader {
        program,
        words: words.iter(),
        globals: Globals::default(),
    };
    while let Some(word) = reader.words.next() {
        let task = if word.as_bytes().starts_with(b"-") {
            reader.option(word)?
        } else {
            Some(Task::Command(word.clone(), reader.rest()))
        };
        if let Some(task) = task {
            return Ok((reader.globals, task));
        }
    }
    Ok((reader.globals, Task::Nothing))
}

/// One run over the words.
struct Reader<'a> {
    program: Program,
    words: std::slice::Iter<'a, OsString>,
    globals: Globals,
}

impl Reader<'_> {
    /// One option; a task where it asks for one itself.
    fn option(&mut self, word: &OsStr) -> Result<Option<Task>, CliError> {
        let (name, attached) = split(word);
        let task = match (name.as_str(), attached) {
            ("-h" | "--help", None) => Task::Command("help".into(), self.rest()),
            ("-v" | "--version", None) => Task::Command("version".into(), self.rest()),
            ("-vv", None) => Task::Command("version".into(), vec!["--build-options".into()]),
            ("--list-cmds", None) => Task::ListCommands,
            ("--list-opts", None) => Task::ListOptions,
            ("--exec-path", None) => Task::ExecPath,
            _ => return self.setting(word, &name, attached).map(|()| None),
        };
        Ok(Some(task))
    }

    /// An option that says how the command runs.
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
                self.globals.debugfs_dir = Some(existing_directory(self.value(
                    name,
                    "directory",
                    attached,
                )?)?);
            }
            ("--debug", _) => {
                self.globals.verbose = debug(program, &self.value(name, "variable", attached)?)?
            }
            ("--exec-path", _) => {
                return Err(CliError::usage(format!(
                    "--exec-path takes no directory: {program} is one program"
                )));
            }
            ("--html-path", _) => {
                let instead = format!("'{program} help COMMAND' prints it");
                return Err(CliError::usage(format!(
                    "--html-path: there is no HTML manual; {instead}"
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

    /// The value of an option: attached, or the next word.
    fn value(
        &mut self,
        name: &str,
        what: &str,
        attached: Option<&OsStr>,
    ) -> Result<OsString, CliError> {
        let value = attached
            .map(OsStr::to_owned)
            .or_else(|| self.words.next().cloned());
        value.ok_or_else(|| misuse(self.program, format!("No {what} given for {name}.")))
    }

    /// The words not read yet.
    fn rest(&self) -> Vec<OsString> {
        self.words.as_slice().to_vec()
    }
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
    if Folder::open(&path).is_ok() {
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
    fn every_declared_option_is_understood() {
        for arg in crate::cli::options::options(&options()) {
            let long = format!("--{}", arg.get_long().unwrap_or_default());
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
