//! The scripts that are installed with perf, or in the folder of `PERF_EXEC_PATH`: `script report NAME`,
//! `script record NAME`, `script NAME`.
//!
//! Each consists of a shell script `bin/NAME-report` and usually also `bin/NAME-record`, which call perf. They are run by
//! bash if their first line names it, otherwise by sh, with a function `perf` that calls this program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rperf_safefs::Folder;
use rperf_sys::Signals;

use super::interpreter::{EXEC_PATH, exec_path};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// Maximum size of a script in bytes.
const MAX_SCRIPT: u64 = 1 << 20;
/// Runs the script `$3` with a function `perf`, which calls the program `$1` and adds the options `$2` to calls of its command
/// `script`. The words after these are those of the script; `$0` is its name.
const SHELL: &str = r#"own=$1 options=$2 file=$3; shift 3
perf() {
    if [ "$1" = script ]; then shift; eval '"$own" script '"$options"' "$@"'; else "$own" "$@"; fi
}
. "$file""#;
/// The options added to calls of `script` in a record script: none, since it calls `record`.
const NO_OPTIONS: &str = "";

/// An installed script.
#[derive(Debug)]
pub(super) struct InstalledScript {
    pub(super) name: String,
    /// The text after `args:` in the report script.
    pub(super) arguments: String,
    /// The text after `description:`.
    pub(super) description: String,
    report: PathBuf,
    record: Option<PathBuf>,
}

/// How an installed script is called.
pub(super) struct ScriptCall<'a> {
    /// `record`, `report`, or empty for both at once.
    pub(super) verb: &'a str,
    /// The words after the script's name.
    pub(super) words: Vec<OsString>,
    /// The recording of `-i`, if given before the name.
    pub(super) input: Option<OsString>,
    /// Whether `-f` is given.
    pub(super) force: bool,
    /// Whether `-a` is given.
    pub(super) all_cpus: bool,
}

/// The installed scripts, sorted by language and name.
pub(super) fn installed(context: &Context) -> Vec<InstalledScript> {
    let scripts = PathBuf::from(exec_path(context)).join("scripts");
    let Ok(languages) = Folder::open(&scripts).and_then(|folder| folder.names()) else {
        return Vec::new();
    };
    let folders = languages
        .iter()
        .map(|language| scripts.join(language).join("bin"));
    folders
        .flat_map(|folder| of_folder(&folder).unwrap_or_default())
        .collect()
}

fn of_folder(path: &std::path::Path) -> std::io::Result<Vec<InstalledScript>> {
    let folder = Folder::open(path)?;
    let names = folder.names()?;
    let scripts = names.iter().filter_map(|file| {
        let name = file.to_str()?.strip_suffix("-report")?;
        let text = folder.read(file, MAX_SCRIPT).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let record = OsString::from(format!("{name}-record"));
        Some(InstalledScript {
            name: name.to_owned(),
            arguments: comment(&text, "args:"),
            description: comment(&text, "description:"),
            report: path.join(file),
            record: folder.has_file(&record).then(|| path.join(&record)),
        })
    });
    Ok(scripts.collect())
}

/// The text after `key` in the first comment that begins with `key`; empty if there is none.
fn comment(text: &str, key: &str) -> String {
    let comments = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix('#'));
    let mut values = comments.filter_map(|comment| comment.trim_start().strip_prefix(key));
    values.next().unwrap_or_default().trim().to_owned()
}

impl InstalledScript {
    /// Runs the report script, the record script, or both.
    ///
    /// # Errors
    ///
    /// Status 129: the words do not fit the script. Status 255: a script is missing or cannot be read, or a shell cannot be
    /// started.
    pub(super) fn run(
        &self,
        call: ScriptCall<'_>,
        context: &Context,
    ) -> Result<ExitStatus, CliError> {
        match call.verb {
            "report" => {
                let mut words = call.words;
                let input = take_input(&mut words)?.or(call.input);
                let options = options(input.as_deref(), call.force);
                let shell = self
                    .shell(&self.report, &options, context)?
                    .args(words)
                    .spawn();
                finish(check_started(shell)?)
            }
            "record" => {
                let all = call.all_cpus.then(|| OsString::from("-a"));
                let words = all.into_iter().chain(call.words);
                let record = self.record()?;
                let shell = self.shell(record, NO_OPTIONS, context)?.args(words).spawn();
                finish(check_started(shell)?)
            }
            _ => self.run_live(call, context),
        }
    }

    /// Records to a pipe that the report reads. Ctrl-C ends the recording.
    fn run_live(&self, call: ScriptCall<'_>, context: &Context) -> Result<ExitStatus, CliError> {
        if call.input.is_some() {
            return Err(input_of_recording_script(&self.name));
        }
        let (report_words, mut record_words) = split(&self.name, &self.arguments, call.words)?;
        // Without a command to record, the whole system is recorded.
        if record_words.is_empty() || call.all_cpus {
            record_words.insert(0, "-a".into());
        }
        let record = self.record()?;
        let mut recorder = self.shell(record, NO_OPTIONS, context)?;
        recorder.args(["-q", "-o", "-"]).args(record_words);
        let options = options(Some(OsStr::new("-")), call.force);
        let mut reporter = self.shell(&self.report, &options, context)?;
        reporter.args(report_words);
        run_both(recorder, reporter)
    }

    /// The path of the record script.
    ///
    /// # Errors
    ///
    /// Status 255: there is none.
    fn record(&self) -> Result<&std::path::Path, CliError> {
        self.record.as_deref().ok_or_else(|| {
            CliError::message(
                255,
                format!("script {}: there is no {}-record", self.name, self.name),
            )
        })
    }

    /// Returns the shell that runs the record script or the report script. `options` are added to the script's calls of the
    /// command `script`.
    fn shell(
        &self,
        script: &std::path::Path,
        options: &str,
        context: &Context,
    ) -> Result<Command, CliError> {
        let text = rperf_safefs::read(script, MAX_SCRIPT);
        let text =
            text.map_err(|error| CliError::message(255, format!("{}: {error}", script.display())))?;
        let first_line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let names_bash = first_line.windows(4).any(|name| name == b"bash");
        let needs_bash = first_line.starts_with(b"#!") && names_bash;
        let mut shell = Command::new(if needs_bash { "bash" } else { "sh" });
        shell.arg("-c").arg(SHELL).arg(&self.name);
        shell.arg(std::env::current_exe()?).arg(options).arg(script);
        shell.env(EXEC_PATH, exec_path(context));
        Ok(shell)
    }
}

/// Splits the words after the name of a script into those of its report script and those of its record script. `arguments`
/// is [`InstalledScript::arguments`].
///
/// With `--`, the record script gets it and the words after it. Without `--`, all words are for the report script if `name` ends
/// in `top`. For other scripts, the report script gets the required arguments (`<…>`), and the words `tx`, `rx`, `debug` and
/// `dev=…` (of `netdev-times`) that directly follow, if `arguments` lists them; the record script gets the rest.
///
/// # Errors
///
/// Status 129: required arguments are missing.
pub(super) fn split(
    name: &str,
    arguments: &str,
    mut words: Vec<OsString>,
) -> Result<(Vec<OsString>, Vec<OsString>), CliError> {
    if let Some(end) = words.iter().position(|word| word == "--") {
        let record_words = words.split_off(end);
        return Ok((words, record_words));
    }
    let required = arguments.matches('<').count();
    if words.len() < required {
        let usage = format!("script {name} {arguments}: arguments are missing");
        return Err(CliError::usage(usage));
    }
    let named: Vec<&str> = arguments.split([' ', '[', ']']).collect();
    let is_named = |word: &OsString| {
        let text = word.to_string_lossy();
        let key = text.split_inclusive('=').next().unwrap_or_default();
        matches!(key, "tx" | "rx" | "debug" | "dev=") && named.contains(&key)
    };
    let optional = words
        .iter()
        .skip(required)
        .take_while(|word| is_named(word))
        .count();
    let report_count = match name.ends_with("top") {
        true => words.len(),
        false => required + optional,
    };
    let record_words = words.split_off(report_count);
    Ok((words, record_words))
}

/// Runs a recorder that writes to a pipe, and a reporter that reads from it. Ctrl-C ends the recording.
pub(super) fn run_both(
    mut recorder: Command,
    mut reporter: Command,
) -> Result<ExitStatus, CliError> {
    recorder.stdout(Stdio::piped());
    let mut recorder = check_started(recorder.spawn())?;
    let stream = recorder.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let started = check_started(reporter.stdin(stream).spawn());
    // The command holds the reading end of the pipe. If this process kept it open, the recorder would not get SIGPIPE when
    // the reporter ends first.
    drop(reporter);
    // From here on, Ctrl-C does not end this process. SIGINT is blocked only now, after both children are started, because they
    // would inherit the blocked signal.
    let signals = Signals::block(&[libc::SIGINT]).ok();
    let report_status = started.and_then(finish);
    let record_status = finish(recorder)?;
    match report_status? {
        ExitStatus::Ok => Ok(match record_status {
            // The recorder was ended by the closed pipe, so its status is ignored.
            ExitStatus::Signal(libc::SIGPIPE) => ExitStatus::Ok,
            // Ctrl-C ended the recording. Later commands of the record script may have failed, so its status is
            // ignored.
            _ if was_interrupted(signals.as_ref()) => ExitStatus::Ok,
            status => status,
        }),
        failed => Ok(failed),
    }
}

/// The error for `-i` with a script that records.
pub(super) fn input_of_recording_script(name: &str) -> CliError {
    let message = format!("script {name}: -i names a recording, but the script makes its own");
    CliError::usage(message).hint(format!("script report {name}"))
}

/// Options of `script` for a report, quoted for the shell.
fn options(input: Option<&OsStr>, force: bool) -> String {
    let mut options = String::new();
    if let Some(input) = input {
        let quoted = input.to_string_lossy().replace('\'', r"'\''");
        options += &format!("-i '{quoted}' ");
    }
    if force {
        options += "-f";
    }
    options
}

/// Removes the first `-i FILE` or `--input FILE` from the words of a report, and returns the file. FILE may be attached.
pub(super) fn take_input(words: &mut Vec<OsString>) -> Result<Option<OsString>, CliError> {
    let is_input_option = |word: &OsString| {
        let bytes = word.as_bytes();
        bytes.starts_with(b"-i") || bytes == b"--input" || bytes.starts_with(b"--input=")
    };
    let Some(index) = words.iter().position(is_input_option) else {
        return Ok(None);
    };
    let word = words.remove(index);
    let bytes = word.as_bytes();
    let short = bytes.strip_prefix(b"-i").filter(|path| !path.is_empty());
    let attached = bytes.strip_prefix(b"--input=").or(short);
    match attached {
        Some(path) => Ok(Some(OsStr::from_bytes(path).to_owned())),
        None if index < words.len() => Ok(Some(words.remove(index))),
        None => Err(CliError::usage("-i: the name of a recording is missing")),
    }
}

/// Whether Ctrl-C was pressed while SIGINT was blocked; takes the pending signal.
fn was_interrupted(signals: Option<&Signals>) -> bool {
    signals.is_some_and(|signals| matches!(signals.next(), Ok(Some(_))))
}

fn check_started(child: std::io::Result<Child>) -> Result<Child, CliError> {
    child.map_err(|error| CliError::message(255, format!("the script cannot be started: {error}")))
}

/// Waits for a child process, and returns its status.
fn finish(mut child: Child) -> Result<ExitStatus, CliError> {
    let status = child.wait()?;
    Ok(match (status.code(), status.signal()) {
        (Some(0), _) => ExitStatus::Ok,
        (Some(code), _) => ExitStatus::Child(u8::try_from(code).unwrap_or(1)),
        (None, signal) => ExitStatus::Signal(signal.unwrap_or(libc::SIGKILL)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn words_are_split_between_report_and_record_script() {
        for (name, arguments, given, report_words, record_words) in [
            (
                "netdev-times",
                "[tx] [rx] [dev=] [debug]",
                "tx dev=eth0 sleep 1",
                "tx dev=eth0",
                "sleep 1",
            ),
            ("rw-by-file", "<comm>", "cat cat file", "cat", "cat file"),
            ("syscall-counts", "[comm]", "ls -l", "", "ls -l"),
            ("syscall-counts", "[comm]", "ls -- ls -l", "ls", "-- ls -l"),
            ("sctop", "[comm] [interval]", "5", "5", ""),
        ] {
            let parts = split(name, arguments, words(given)).unwrap();
            assert_eq!(
                parts,
                (words(report_words), words(record_words)),
                "{name} {given}"
            );
        }
        assert!(split("rw-by-file", "<comm>", Vec::new()).is_err());
    }

    #[test]
    fn input_is_taken_from_the_words() {
        for given in ["a -i f b", "a -if b", "a --input f b", "a --input=f b"] {
            let mut rest = words(given);
            assert_eq!(
                take_input(&mut rest).unwrap().as_deref(),
                Some(OsStr::new("f")),
                "{given}"
            );
            assert_eq!(rest, words("a b"));
        }
        assert!(take_input(&mut words("-i")).is_err());
        assert_eq!(take_input(&mut words("a b")).unwrap(), None);
    }

    #[test]
    fn comments_describe_a_script() {
        let text = "#!/bin/sh\n# description: counts\n#args: [comm]\nperf script\n";
        assert_eq!(comment(text, "description:"), "counts");
        assert_eq!(comment(text, "args:"), "[comm]");
        assert_eq!(comment(text, "other:"), "");
    }
}
