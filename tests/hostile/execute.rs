//! Runs programs with limits.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::Case;

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_rperf");

/// The factor by which an unoptimised build may be slower.
const SLOWNESS: u64 = if cfg!(debug_assertions) { 8 } else { 1 };
/// The soft limit of a run's CPU time, in seconds: SIGXCPU. The hard limit, SIGKILL, is 2 seconds higher.
const MAX_CPU_SECONDS: u64 = 5 * SLOWNESS;
/// A run that takes longer than this is killed.
const MAX_RUN_TIME: Duration = Duration::from_secs(20 * SLOWNESS);
/// The limit of a run's address space, in KiB.
const MAX_MEMORY_KIB: u64 = 1 << 20;
/// The largest file that a run may write, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;
/// The maximum number of bytes kept of each output of a run.
pub(crate) const KEPT_OUTPUT: usize = 1 << 20;

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None` if it was killed because it took too long.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

/// Runs the command of a case in `folder`, with limits.
pub(crate) fn run(case: &Case, folder: &Path) -> io::Result<Outcome> {
    // `ulimit -f` counts blocks of 512 bytes.
    let limits = format!(
        "ulimit -c 0; ulimit -f {}; ulimit -S -t {MAX_CPU_SECONDS}; ulimit -H -t {}; ulimit -v {MAX_MEMORY_KIB}; exec \"$@\"",
        MAX_FILE_BYTES / 512,
        MAX_CPU_SECONDS + 2
    );
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(limits)
        .args(["sh", BINARY])
        .args(&case.words);
    command.current_dir(folder).env_clear().envs(environment());
    command.envs(case.env.iter().map(|(name, value)| (*name, value)));
    let stdin = case
        .stdin
        .as_ref()
        .map(|name| File::open(folder.join(name)));
    command.stdin(stdin.transpose()?.map_or(Stdio::null(), Stdio::from));
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    command
        .stdout(File::create(&stdout)?)
        .stderr(File::create(&stderr)?);
    let begun = Instant::now();
    let status = end_of(command.process_group(0).spawn()?, MAX_RUN_TIME)?;
    let read = |path| {
        let mut bytes = fs::read(path)?;
        bytes.truncate(KEPT_OUTPUT);
        io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Outcome {
        status,
        stdout: read(stdout)?,
        stderr: read(stderr)?,
        took: begun.elapsed(),
    })
}

/// The environment of every run. A case can add variables.
#[expect(
    clippy::disallowed_methods,
    reason = "programs are searched in the caller's PATH"
)]
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    vec![
        ("PATH", path),
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("COLUMNS", "80".to_owned()),
        ("HOME", "home".to_owned()),
        ("PERF_CONFIG", "/dev/null".to_owned()),
        ("TMPDIR", "tmp".to_owned()),
        ("XDG_CACHE_HOME", "home/cache".to_owned()),
        ("RUST_BACKTRACE", "0".to_owned()),
    ]
}

/// Runs a program for at most `longest`, without other limits, and discards its output.
///
/// # Errors
///
/// If the program could not be started, failed, or was killed after `longest` (`TimedOut`).
pub(crate) fn finish(command: &mut Command, longest: Duration) -> io::Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match end_of(command.process_group(0).spawn()?, longest)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(io::Error::other(status.to_string())),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Waits for a child in its own process group to exit; `None` if the group was killed after `longest`.
fn end_of(mut child: Child, longest: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(300);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > longest {
            let group = format!("-{}", child.id());
            Command::new("kill")
                .args(["-KILL", "--", &group])
                .status()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_millis(5));
    }
}
