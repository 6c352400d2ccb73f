//! The command to profile: forked early, executed when everything is ready.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use crate::Signals;

/// A program that was looked up, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    argv: Vec<OsString>,
    /// Whether its standard output is redirected to stderr.
    stdout_to_stderr: bool,
}

impl Program {
    /// Looks up `argv[0]`: directly if it contains a slash, otherwise in the folders of `search`, the value of `PATH`; in `/bin`
    /// and `/usr/bin` if `search` is `None`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no match; [`io::ErrorKind::PermissionDenied`] if there are matches, but none is
    /// executable; [`io::ErrorKind::InvalidInput`] if `argv` is empty; otherwise what stat(2) reports.
    pub fn find(argv: Vec<OsString>, search: Option<&OsStr>) -> io::Result<Self> {
        let word = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        if word.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let candidates: Vec<PathBuf> = if word.as_bytes().contains(&b'/') {
            vec![word.into()]
        } else {
            let search = search.unwrap_or(OsStr::new("/bin:/usr/bin"));
            std::env::split_paths(search)
                .map(|directory| directory.join(word))
                .collect()
        };
        // Of several failures other than NotFound, the last is returned.
        let mut failure = io::ErrorKind::NotFound.into();
        for path in candidates {
            match check_executable(&path) {
                Ok(()) => {
                    return Ok(Self {
                        path,
                        argv,
                        stdout_to_stderr: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Redirects the program's standard output to standard error, for a caller that writes its own data to standard output.
    #[must_use]
    pub fn stdout_to_stderr(self) -> Self {
        Self {
            stdout_to_stderr: true,
            ..self
        }
    }

    /// The path of the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn check_executable(path: &Path) -> io::Result<()> {
    let metadata = match fs::metadata(path) {
        // A component of the search path is a file.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(io::ErrorKind::NotFound.into());
        }
        other => other?,
    };
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// How a process terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStatus {
    /// Normally, with this status.
    Exited(u8),
    /// By a signal.
    Signaled(i32),
}

/// Processor time of a terminated process and the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time in user space.
    pub user: Duration,
    /// Time in the kernel.
    pub system: Duration,
}

/// A forked child that executes its program at [`Workload::start`].
///
/// Until then its name is `perf-exec`, as in perf. If dropped before [`Workload::start`], the child
/// exits without running anything. If dropped while the program runs, the child gets SIGTERM, unless
/// [`Workload::detach`] was called.
#[derive(Debug)]
pub struct Workload {
    pid: i32,
    /// A byte written here starts the program; if closed without a byte, the child exits. `None` after [`Workload::start`]
    /// or [`Workload::stop`].
    start: Option<fs::File>,
    /// The child writes a byte when it is ready. If exec fails, the error as four bytes follows, otherwise the end of file.
    report: fs::File,
    ended: Option<(WaitStatus, Usage)>,
    /// Whether the program keeps running when this value is dropped.
    is_detached: bool,
}

/// Everything the child needs after the fork, allocated before it.
struct ChildSetup {
    path: CString,
    argv: Vec<CString>,
    /// `/bin/sh PATH ARGS`: the command that runs a script without `#!` line, as execvp(3) does.
    shell: Vec<CString>,
    stdout_to_stderr: bool,
}

impl ChildSetup {
    fn new(program: &Program) -> io::Result<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let path = text(program.path.as_os_str().as_bytes())?;
        let argv = program
            .argv
            .iter()
            .map(|word| text(word.as_bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut shell = vec![c"/bin/sh".to_owned(), path.clone()];
        shell.extend(argv.iter().skip(1).cloned());
        Ok(Self {
            path,
            argv,
            shell,
            stdout_to_stderr: program.stdout_to_stderr,
        })
    }
}

impl Workload {
    /// Forks the child and waits until it is ready. Its program gets the signal mask from before [`Signals::block_for_run`], if
    /// that is in effect, otherwise from before `signals` were blocked.
    ///
    /// # Errors
    /// What pipe2(2) and fork(2) report; [`io::ErrorKind::InvalidInput`] if an argument contains a NUL.
    pub fn fork(program: &Program, signals: &Signals) -> io::Result<Self> {
        let prepared = ChildSetup::new(program)?;
        let (argv, shell) = (pointers(&prepared.argv), pointers(&prepared.shell));
        let (start_read, start_write) = pipe()?;
        let (report_read, report_write) = pipe()?;
        let parent_signals = ParentSignals {
            mask: signals.child_mask(),
            sigchld_ignored: signals.sigchld_was_ignored(),
        };
        // SAFETY: the child calls only async-signal-safe functions (fork(2) in threaded programs)
        // on memory prepared above, and never returns.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            let pipes = ChildPipes {
                start: start_read.as_raw_fd(),
                start_write: start_write.as_raw_fd(),
                report: report_write.as_raw_fd(),
            };
            // SAFETY: this is the child of a fork, and the vectors hold NUL-terminated strings and end
            // with a null pointer.
            unsafe { child(&prepared, &argv, &shell, &parent_signals, &pipes) }
        }
        drop((start_read, report_write));
        let mut workload = Self {
            pid,
            start: Some(fs::File::from(start_write)),
            report: fs::File::from(report_read),
            ended: None,
            is_detached: false,
        };
        // The byte that reports that the child is ready.
        workload.report.read_exact(&mut [0])?;
        Ok(workload)
    }

    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Makes the child execute its program and returns once the program is loaded. After [`Workload::stop`], nothing is executed,
    /// which is not an error.
    ///
    /// # Errors
    /// The error of execve(2); the child has exited then.
    pub fn start(&mut self) -> io::Result<()> {
        if let Some(mut start) = self.start.take() {
            start.write_all(&[1])?;
        }
        let mut error = [0; 4];
        match self.report.read_exact(&mut error) {
            // A successful exec closes the child's end of the pipe.
            Err(end) if end.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(other) => Err(other),
            Ok(()) => {
                let _ = self.wait();
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error)))
            }
        }
    }

    /// Sends a signal to the child, unless it is known to have terminated.
    pub fn kill(&self, signal: i32) {
        if self.ended.is_none() {
            // SAFETY: signals a child that has not been waited for, so its pid is still valid.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// Ends the child without waiting: by SIGTERM if its program was started, otherwise by closing the pipe `start`.
    pub fn stop(&mut self) {
        // Until the program is loaded, the child may block SIGTERM; it exits when this end of the pipe
        // is closed.
        if self.start.take().is_none() {
            self.kill(libc::SIGTERM);
        }
    }

    /// Lets the program keep running when this value is dropped. Has no effect before [`Workload::start`].
    pub fn detach(&mut self) {
        self.is_detached = self.start.is_none();
    }

    /// The termination of the child; `None` if it has not terminated. Does not wait.
    ///
    /// # Errors
    /// What waitpid(2) reports.
    pub fn try_wait(&mut self) -> io::Result<Option<WaitStatus>> {
        self.reap(libc::WNOHANG)
    }

    /// Processor time of the child; `None` until it is known to have terminated.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.ended.map(|(_, usage)| usage)
    }

    /// Waits until the child terminates.
    ///
    /// # Errors
    /// What waitpid(2) reports.
    pub fn wait(&mut self) -> io::Result<WaitStatus> {
        loop {
            if let Some(ended) = self.reap(0)? {
                return Ok(ended);
            }
        }
    }

    /// Calls wait4(2) with `options`; 0 blocks. Returns `None` if the child has not terminated or a signal interrupted the call.
    fn reap(&mut self, options: i32) -> io::Result<Option<WaitStatus>> {
        if let Some((ended, _)) = self.ended {
            return Ok(Some(ended));
        }
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes the status and the usage of this process's child.
        let pid = unsafe { libc::wait4(self.pid, &raw mut status, options, usage.as_mut_ptr()) };
        if pid < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(None)
            } else {
                Err(error)
            };
        }
        if pid != self.pid {
            return Ok(None);
        }
        let ended = if libc::WIFSIGNALED(status) {
            WaitStatus::Signaled(libc::WTERMSIG(status))
        } else {
            WaitStatus::Exited(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
        };
        // SAFETY: rusage consists of numbers, for which zeros are valid too.
        let usage = unsafe { usage.assume_init() };
        let usage = Usage {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        };
        self.ended = Some((ended, usage));
        Ok(Some(ended))
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

impl Drop for Workload {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        let is_unstarted = self.start.is_some();
        self.stop();
        // An unstarted child sees the pipe close and exits; it must be waited for to not stay a zombie. A
        // running program may need time to exit and isn't waited for.
        if is_unstarted {
            let _ = self.wait();
        }
    }
}

/// The parent's signal mask, and whether it ignored SIGCHLD, before it blocked signals.
struct ParentSignals {
    mask: libc::sigset_t,
    sigchld_ignored: bool,
}

/// Descriptors of the pipes in the child: the ends that it uses, and one that it must close.
struct ChildPipes {
    /// Read: a byte starts the program.
    start: RawFd,
    /// Closed: the parent's end of the pipe `start`.
    start_write: RawFd,
    /// Written: a byte when the child is ready, then the error if exec fails.
    report: RawFd,
}

/// Everything the child does until exec.
///
/// # Safety
/// Must only be called in the child of a fork; `argv` and `shell` end with a null pointer and their
/// strings are alive.
unsafe fn child(
    prepared: &ChildSetup,
    argv: &[*const libc::c_char],
    shell: &[*const libc::c_char],
    parent_signals: &ParentSignals,
    pipes: &ChildPipes,
) -> ! {
    // SAFETY: all of these are async-signal-safe system calls on memory prepared before the fork;
    // `environ` is not changed in the child.
    unsafe {
        // Otherwise this process would keep the pipe open itself and not notice that the parent
        // exits.
        libc::close(pipes.start_write);
        libc::prctl(libc::PR_SET_NAME, c"perf-exec".as_ptr());
        if prepared.stdout_to_stderr {
            libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
        }
        // Written, then read: both pipes carry a byte whose value has no meaning.
        let mut byte = 0_u8;
        let ready = libc::write(pipes.report, (&raw const byte).cast(), 1);
        if ready != 1 || libc::read(pipes.start, (&raw mut byte).cast(), 1) != 1 {
            // The parent is gone, or does not start the program.
            libc::_exit(0);
        }
        // Rust ignores SIGPIPE; programs expect the default action.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if parent_signals.sigchld_ignored {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        libc::pthread_sigmask(
            libc::SIG_SETMASK,
            &raw const parent_signals.mask,
            ptr::null_mut(),
        );
        libc::execv(prepared.path.as_ptr(), argv.as_ptr());
        let mut error = *libc::__errno_location();
        if error == libc::ENOEXEC {
            libc::execv(c"/bin/sh".as_ptr(), shell.as_ptr());
            error = *libc::__errno_location();
        }
        libc::write(pipes.report, (&raw const error).cast(), 4);
        libc::_exit(127)
    }
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words
        .iter()
        .map(|word| word.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// A pipe whose ends close at exec.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors to the array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded: both are open descriptors with no other owner.
    unsafe { Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> io::Result<Program> {
        Program::find(
            words.iter().map(OsString::from).collect(),
            Some(OsStr::new("/nodir:/bin:/usr/bin")),
        )
    }

    /// Here and in most tests, it does not matter which signal is blocked: [`Workload::fork`] needs a [`Signals`] only for the
    /// signal mask of the program.
    #[test]
    fn runs_only_after_the_start() {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        let mut child =
            Workload::fork(&program(&["sh", "-c", "exit 7"]).unwrap(), &signals).unwrap();
        let comm = fs::read_to_string(format!("/proc/{}/comm", child.pid())).unwrap();
        assert_eq!(comm, "perf-exec\n");
        assert_eq!(child.try_wait().unwrap(), None);
        child.start().unwrap();
        assert_eq!(child.usage(), None);
        assert_eq!(child.wait().unwrap(), WaitStatus::Exited(7));
        let usage = child.usage().expect("it has ended");
        // `exit 7` needs milliseconds: seconds would be the time of other processes, or a wrong unit.
        assert!(
            usage.user + usage.system < Duration::from_secs(5),
            "{usage:?}"
        );
    }

    #[test]
    fn an_end_by_signal_is_reported() {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        let mut child =
            Workload::fork(&program(&["sh", "-c", "kill -9 $$"]).unwrap(), &signals).unwrap();
        child.start().unwrap();
        assert_eq!(child.wait().unwrap(), WaitStatus::Signaled(9));
    }

    /// Until the program is loaded, the child blocks SIGTERM, so that only closing the pipe ends it.
    #[test]
    fn a_child_is_ended_before_and_after_its_start() {
        let signals = Signals::block(&[libc::SIGTERM]).unwrap();
        let sleeper = program(&["sleep", "1000"]).unwrap();
        let mut waiting = Workload::fork(&sleeper, &signals).unwrap();
        waiting.stop();
        assert_eq!(waiting.wait().unwrap(), WaitStatus::Exited(0));
        let mut running = Workload::fork(&sleeper, &signals).unwrap();
        running.start().unwrap();
        running.stop();
        assert_eq!(running.wait().unwrap(), WaitStatus::Signaled(libc::SIGTERM));
    }

    #[test]
    fn a_dropped_workload_is_terminated() {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        let mut child = Workload::fork(&program(&["sleep", "1000"]).unwrap(), &signals).unwrap();
        child.start().unwrap();
        let pid = child.pid;
        drop(child);
        let mut status = 0;
        // SAFETY: the kernel writes the status of a child that was not waited for.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM);
    }

    /// Writes a script from another process. If this process opened it for writing, children that other tests fork at that time
    /// would inherit the descriptor, and a file that is open for writing can't be executed.
    fn write_script(path: &Path, text: &str) {
        let script = "printf %s \"$2\" >\"$1\" && chmod 755 \"$1\"";
        let mut writer = std::process::Command::new("sh");
        writer.args(["-c", script, "sh"]).arg(path).arg(text);
        assert!(writer.status().unwrap().success());
    }

    /// Also checks the exception: a script without `#!` is no error, since the shell runs it.
    #[test]
    fn start_returns_the_error_of_exec() {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        let path = std::env::temp_dir().join(format!("rperf-workload-{}", std::process::id()));
        write_script(&path, "#!/no/such/interpreter\n");
        let found = Program::find(vec![path.clone().into()], None).unwrap();
        let mut child = Workload::fork(&found, &signals).unwrap();
        assert_eq!(child.start().unwrap_err().kind(), io::ErrorKind::NotFound);
        write_script(&path, "exit 5\n");
        let mut child = Workload::fork(&found, &signals).unwrap();
        child.start().unwrap();
        assert_eq!(
            child.wait().unwrap(),
            WaitStatus::Exited(5),
            "a script without #! goes to the shell"
        );
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn missing_and_non_executable_programs_are_refused_before_fork() {
        assert_eq!(
            program(&["no-such-program"]).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            program(&["/etc/passwd"]).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(
            program(&["/tmp"]).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(program(&[""]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(program(&["sh"]).unwrap().path(), Path::new("/bin/sh"));
    }

    #[test]
    fn a_child_that_never_starts_ends_with_its_owner() {
        let signals = Signals::block(&[libc::SIGUSR1]).unwrap();
        let child = Workload::fork(&program(&["sh"]).unwrap(), &signals).unwrap();
        let pid = child.pid();
        drop(child);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
