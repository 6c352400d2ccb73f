//! Runs programs in a uniform environment: without the user's configuration, locale and time zone, and without a terminal.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::Scratch;

/// A program to run in the uniform environment of this module.
#[derive(Debug)]
pub struct Run {
    command: Command,
    input: Option<Vec<u8>>,
    /// The program's `HOME`, removed when the program has ended: `record` fills the build-id cache there.
    home: Scratch,
}

/// The result of a finished program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status; 128 + number for a signal, as in a shell.
    pub status: i32,
    /// The output on stdout; invalid UTF-8 is replaced.
    pub stdout: String,
    /// The output on stderr; invalid UTF-8 is replaced.
    pub stderr: String,
}

impl Run {
    /// Prepares `program` with an environment of the caller's `PATH`, an empty `HOME` of its own, and fixed values of `LC_ALL`,
    /// `TZ`, `COLUMNS` and `PERF_CONFIG`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear();
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command
            .env("PATH", path)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("COLUMNS", "80");
        let home = Scratch::new();
        command
            .env("PERF_CONFIG", "/dev/null")
            .env("HOME", home.path());
        Self {
            command,
            input: None,
            home,
        }
    }

    /// Adds arguments to the command line.
    #[must_use]
    pub fn args<W: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = W>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the directory to run in; by default, the caller's.
    #[must_use]
    pub fn within(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Sets the first word of the command line, `argv[0]`.
    #[must_use]
    pub fn arg0(mut self, name: &str) -> Self {
        use std::os::unix::process::CommandExt as _;
        self.command.arg0(name);
        self
    }

    /// Feeds these bytes to stdin through a pipe; otherwise stdin is `/dev/null`.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Runs the program to completion.
    ///
    /// # Errors
    ///
    /// It cannot be started, or its output cannot be read.
    pub fn finish(mut self) -> io::Result<Outcome> {
        let stdin = if self.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        self.command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = self.command.spawn()?;
        // The input is written while the output is read: otherwise, a program that writes much before it has read everything
        // would deadlock.
        let input = self.input.zip(child.stdin.take());
        let writer = input.map(|(input, mut stdin)| {
            // The program may exit without reading all input: the error is ignored.
            thread::spawn(move || drop(stdin.write_all(&input)))
        });
        let output = child.wait_with_output()?;
        if let Some(Err(panic)) = writer.map(thread::JoinHandle::join) {
            resume_unwind(panic);
        }
        drop(self.home);
        let signal = output.status.signal().map(|signal| 128 + signal);
        Ok(Outcome {
            status: output.status.code().or(signal).unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Returns the path of the first Linux perf in `PATH` that runs; `None` if there is none.
pub fn real_perf() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path)
        .map(|directory| directory.join("perf"))
        .filter(|path| path.is_file());
    candidates.find(|perf| {
        let version = Run::new(perf).args(["--version"]).finish();
        version
            .is_ok_and(|outcome| outcome.status == 0 && outcome.stdout.starts_with("perf version"))
    })
}

/// Prints that a test is skipped for lack of files that are not in every clone. Unlike [`skip`], never panics.
pub fn skip_for_lack_of(test: &str, files: &str) {
    eprintln!("skipped: {test}: {files} are missing");
}

/// Prints why a test is skipped.
///
/// # Panics
///
/// If `RPERF_CI` is set, as in continuous integration, where every test must run.
#[expect(
    clippy::panic,
    reason = "a skipped test is a failure where all must run"
)]
pub fn skip(test: &str, reason: &str) {
    if std::env::var_os("RPERF_CI").is_some() {
        panic!("{test} must not be skipped: {reason}");
    }
    eprintln!("skipped: {test}: {reason}");
}

/// Whether this user may read the events of tracefs. Calls [`skip`] if not.
pub fn may_trace(test: &str) -> bool {
    let may = Path::new("/sys/kernel/tracing/events/sched").is_dir();
    if !may {
        skip(test, "tracefs cannot be read");
    }
    may
}

/// Copies a program that the test executes.
///
/// Another process writes the copy. If this one wrote it, a child that another test starts meanwhile could inherit the open
/// file, and the program could not be executed until that child's exec (`ETXTBSY`).
///
/// # Panics
/// It cannot be copied.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp")
        .arg(from.as_ref())
        .arg(to.as_ref())
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "cp failed");
}

/// Writes a script that the test executes; by another process, as in [`copy_program`].
///
/// # Panics
/// It cannot be written.
pub fn write_program(path: impl AsRef<Path>, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]);
    shell.arg(path.as_ref()).stdin(Stdio::piped());
    let written = shell.spawn().and_then(|mut child| {
        let input = child.stdin.take();
        // The closure owns the pipe and closes it, so that `cat` ends.
        input.map_or(Ok(()), |mut pipe| pipe.write_all(text.as_bytes()))?;
        child.wait()
    });
    assert!(written.is_ok_and(|status| status.success()), "sh failed");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_a_program_is_removed_with_it() {
        let script = "echo \"$HOME\" && mkdir \"$HOME/.debug\"";
        let homes = [0, 1].map(|_| {
            let outcome = Run::new("sh").args(["-c", script]).finish().unwrap();
            assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
            PathBuf::from(outcome.stdout.trim())
        });
        assert_ne!(homes[0], homes[1]);
        assert!(
            homes
                .iter()
                .all(|home| home.is_absolute() && !home.exists())
        );
        // A test can set another `HOME`.
        let given = Run::new("sh").args(["-c", "echo $HOME"]);
        assert_eq!(given.env("HOME", "/x").finish().unwrap().stdout, "/x\n");
    }
}
