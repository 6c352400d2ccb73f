//! The parts that all tests use: the program, a temporary folder, and the ending of a test.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rperf_safefs::Folder;

use crate::cli::context::Context;
use crate::cli::live::explain::reason;

/// Time limit of one run of the program.
const LIMIT: Duration = Duration::from_secs(60);
/// The interval at which a running program is polled.
const PAUSE: Duration = Duration::from_millis(5);
/// The maximum size of stdout and of stderr of a run, in bytes; more is an error.
const MAX_OUTPUT: u64 = 64 << 20;
/// Maximum number of lines of output in the details of a failure.
const SHOWN_LINES: usize = 20;

/// The ending of a test that does not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestEnding {
    /// The machine or the user's rights do not allow the test, for this reason.
    Skip(String),
    /// The program or the machine does not work, for this reason.
    Failed(String),
}

impl From<io::Error> for TestEnding {
    fn from(error: io::Error) -> Self {
        Self::Failed(reason(&error))
    }
}

/// The result of a test.
pub(super) type TestResult = Result<(), TestEnding>;

/// Ends a test as skipped.
pub(super) fn skip(reason: impl Into<String>) -> TestResult {
    Err(TestEnding::Skip(reason.into()))
}

/// Ends a test as failed.
pub(super) fn failed(reason: impl Into<String>) -> TestResult {
    Err(TestEnding::Failed(reason.into()))
}

/// Properties of the program and of its environment that all tests use.
pub(super) struct TestEnvironment {
    /// This program.
    pub(super) program: PathBuf,
    /// The folder in which temporary folders are created.
    pub(super) temporary: PathBuf,
    /// `--debugfs-dir`.
    pub(super) debugfs: Option<PathBuf>,
    /// `PATH`, in which a test looks for other programs.
    pub(super) search: Option<OsString>,
    /// `DEBUGINFOD_URLS`, only for the details: runs of the program do not get it.
    pub(super) debuginfod: Option<OsString>,
    /// Number of `-v`.
    pub(super) verbosity: u8,
}

impl TestEnvironment {
    pub(super) fn new(context: &Context, verbosity: u8) -> io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            temporary: std::env::temp_dir(),
            debugfs: context.globals.debugfs_dir.clone(),
            search: context.var("PATH"),
            debuginfod: context.var("DEBUGINFOD_URLS"),
            verbosity,
        })
    }
}

/// One run of a test: its environment, its folder and its details.
pub(super) struct TestRun<'a> {
    pub(super) environment: &'a TestEnvironment,
    /// The details, lines that `-v` prints.
    details: String,
    folder: Option<TestFolder>,
}

impl<'a> TestRun<'a> {
    pub(super) fn new(environment: &'a TestEnvironment) -> Self {
        Self {
            environment,
            details: String::new(),
            folder: None,
        }
    }

    /// Adds a line to the details.
    pub(super) fn log(&mut self, line: impl fmt::Display) {
        self.details.push_str(&line.to_string());
        self.details.push('\n');
    }

    /// Returns the details.
    pub(super) fn into_details(self) -> String {
        self.details
    }

    /// Runs this program in the test's temporary folder. `line` is its arguments, separated by one blank each; the argument
    /// `PROGRAM` is replaced by the program's path.
    pub(super) fn run(&mut self, line: &str) -> Result<ProgramOutput, TestEnding> {
        let environment = self.environment;
        let program = environment.program.display().to_string();
        self.log(format_args!(
            "$ rperf {}",
            line.replace("PROGRAM", &program)
        ));
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => TestFolder::create(environment)?,
        };
        let folder = self.folder.insert(folder);
        let output = folder.run(environment, line)?;
        let lines: Vec<&str> = output.stderr.lines().collect();
        lines.iter().for_each(|line| self.log(line));
        let status = output.status;
        self.log(format_args!(
            "{status}, {} lines",
            output.stdout.lines().count()
        ));
        Ok(output)
    }

    /// Runs the program as [`TestRun::run`] does, and returns what it wrote to stdout; a status other than 0 is a failure.
    pub(super) fn succeed(&mut self, line: &str) -> Result<String, TestEnding> {
        let output = self.run(line)?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => {
                self.log_output(&output.stdout);
                let command = line.split(' ').next().unwrap_or_default();
                Err(TestEnding::Failed(format!("{command}: {}", output.status)))
            }
        }
    }

    /// Fails unless the text contains all parts.
    pub(super) fn expect(&mut self, text: &str, parts: &[&str]) -> TestResult {
        match parts.iter().find(|part| !text.contains(**part)) {
            None => Ok(()),
            Some(missing) => {
                self.log_output(text);
                failed(format!("the output lacks '{}'", missing.trim()))
            }
        }
    }

    /// The size of a file of the temporary folder, in bytes.
    pub(super) fn size_of(&self, name: &str) -> io::Result<u64> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(folder.open()?.find(name.as_ref())?.metadata().len())
    }

    fn log_output(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for line in lines.iter().take(SHOWN_LINES) {
            self.log(format_args!("| {line}"));
        }
        let more = lines.len().saturating_sub(SHOWN_LINES);
        if more > 0 {
            self.log(format_args!("| ... {more} more lines"));
        }
    }
}

/// The output of a run of the program, and its status.
pub(super) struct ProgramOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A private folder, removed with its contents when dropped: the working directory and `HOME` of the program in a test.
struct TestFolder {
    parent: Folder,
    name: OsString,
}

impl TestFolder {
    fn create(environment: &TestEnvironment) -> Result<Self, TestEnding> {
        let path = &environment.temporary;
        let create = || {
            let parent = Folder::open(path)?;
            let name = rperf_safefs::temporary_name("rperf-test".as_ref())?;
            // `PERF_CONFIG` names this empty file, so the user's configuration has no influence on tests.
            parent
                .create_folder(&name, 0o700)?
                .create_file("config".as_ref(), 0o600)?;
            Ok(Self { parent, name })
        };
        create().map_err(|error: io::Error| {
            let reason = reason(&error);
            TestEnding::Failed(format!("{}: no temporary folder: {reason}", path.display()))
        })
    }

    fn path(&self) -> PathBuf {
        self.parent.path().join(&self.name)
    }

    fn open(&self) -> io::Result<Folder> {
        Folder::open_own(&self.path())
    }

    fn run(&self, environment: &TestEnvironment, line: &str) -> Result<ProgramOutput, TestEnding> {
        let path = std::path::absolute(self.path())?;
        let folder = self.open()?;
        // Files instead of pipes: the output is read only after the program ends, and a full pipe would block the program.
        let names = ["stdout", "stderr"];
        let create = |name: &str| {
            let _ = folder.remove_file(name.as_ref());
            folder.create_file(name.as_ref(), 0o600)
        };
        let [stdout, stderr] = names.map(create);
        let mut command = Command::new(&environment.program);
        let words = line.split(' ').map(|word| match word {
            "PROGRAM" => environment.program.clone().into_os_string(),
            word => word.into(),
        });
        command.args(words).current_dir(&path).env("HOME", &path);
        command
            .env("PERF_CONFIG", path.join("config"))
            .env_remove("DEBUGINFOD_URLS");
        command.stdin(Stdio::null()).stdout(stdout?).stderr(stderr?);
        let status = wait(command.spawn()?)?;
        let read = |name: &str| {
            let bytes = folder.read(name.as_ref(), MAX_OUTPUT)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let [stdout, stderr] = names.map(read);
        let (stdout, stderr): (Result<_, io::Error>, _) = (stdout, stderr);
        Ok(ProgramOutput {
            status,
            stdout: stdout?,
            stderr: stderr?,
        })
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the temporary directory.
        let _ = self.parent.remove_tree(&self.name);
    }
}

/// Waits until the program ends; after the time limit, kills it and fails.
fn wait(mut child: Child) -> Result<ExitStatus, TestEnding> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            let seconds = LIMIT.as_secs();
            return Err(TestEnding::Failed(format!(
                "the program did not end within {seconds} seconds"
            )));
        }
        sleep(PAUSE);
    }
}
