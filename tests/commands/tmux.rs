//! A terminal for tests of the terminal browser: a separate tmux server, which receives keys and returns screens.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rperf_testkit::{assert_golden, skip};

use crate::tidy::root;

/// The time limit for a screen; long, since test machines are busy.
const LIMIT: Duration = Duration::from_secs(60);
/// The time limit for a screen to match the golden file; shorter, since a mismatch always takes this long.
const GOLDEN_LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);
/// Printed by the shell when the program has exited.
const ENDED: &str = "ended with";

/// A terminal with a program; both are killed on drop.
pub(crate) struct Tmux {
    socket: String,
}

impl Tmux {
    /// Runs the binary with `words` in `folder` on a terminal of this size, with `settings`, such as `TERM=dumb`, added to its
    /// environment. Returns `None` and prints why if there is no tmux.
    pub(crate) fn start(
        size: (u16, u16),
        folder: &Path,
        settings: &str,
        words: &str,
    ) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_rperf");
        Self::start_line(size, folder, &format!("{settings} {program} {words}"))
    }

    /// Like `start`, for a command line that begins with settings of the environment and the program's path.
    pub(crate) fn start_line(
        (width, height): (u16, u16),
        folder: &Path,
        line: &str,
    ) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        if Command::new("tmux").arg("-V").output().is_err() {
            skip("browsers", "there is no tmux");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let tmux = Self {
            socket: format!("rperf-test-{}-{number}", std::process::id()),
        };
        let home = folder.display();
        let environment = format!(
            "env -i PATH=\"$PATH\" HOME={home} LC_ALL=C.UTF-8 TZ=UTC TERM=screen PERF_CONFIG=/dev/null"
        );
        let script = format!("{environment} {line}; echo {ENDED} $?; stty -a; exec sleep 1000");
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["-x", &width, "-y", &height];
        let mut start = vec!["-f", "/dev/null", "-u", "new-session", "-d"];
        start.extend(size);
        let folder = folder.to_string_lossy();
        start.extend(["-c", &folder, "sh", "-c", &script]);
        tmux.run(&start);
        Some(tmux)
    }

    /// Presses keys, by tmux's names: `Enter`, `Escape`, `Down`, `e`.
    pub(crate) fn press(&self, keys: &[&str]) {
        for key in keys {
            self.run(&["send-keys", key]);
        }
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.run(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// The screen's contents, without trailing blanks.
    pub(crate) fn screen(&self) -> String {
        let mut screen = String::new();
        for line in self.run(&["capture-pane", "-p"]).lines() {
            // Writing to a String cannot fail.
            let _ = writeln!(screen, "{}", line.trim_end());
        }
        screen
    }

    /// The screen's contents with the control sequences of colours.
    pub(crate) fn colored_screen(&self) -> String {
        self.run(&["capture-pane", "-e", "-p"])
    }

    /// Waits until the screen satisfies a condition and returns the screen. `expected` describes the condition, for the failure.
    #[track_caller]
    pub(crate) fn wait(&self, expected: &str, is_met: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_met(&screen) {
                return screen;
            }
            assert!(
                start.elapsed() < LIMIT,
                "no {expected} on the screen:\n{screen}"
            );
            sleep(PAUSE);
        }
    }

    /// Waits until this text is on the screen and returns the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits for a text, and then for the screen to equal this file of tests/golden/browser.
    #[track_caller]
    pub(crate) fn golden(&self, name: &str, text: &str) {
        let path: PathBuf = root().join(format!("tests/golden/browser/{name}.screen"));
        let mut screen = self.wait_for(text);
        let start = Instant::now();
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        // A frame may arrive in two parts.
        while screen != expected && start.elapsed() < GOLDEN_LIMIT {
            sleep(PAUSE);
            screen = self.screen();
        }
        assert_golden(&path, &screen);
    }

    /// Whether the alternate screen is shown.
    pub(crate) fn is_alternate(&self) -> bool {
        let flag = self.run(&["display-message", "-p", "#{alternate_on}"]);
        flag.trim() == "1"
    }

    /// The pid of the program.
    pub(crate) fn program_pid(&self) -> String {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let children = std::fs::read_to_string(children).expect("the pane's shell runs");
        children.trim().to_owned()
    }

    /// Waits for the program to exit, and checks its status and that the terminal is restored. Returns the screen.
    #[track_caller]
    pub(crate) fn ends_with(&self, status: i32) -> String {
        let ended = format!("{ENDED} {status}\n");
        // The output of stty follows, and contains the mode `echo`, on or off.
        let screen = self.wait(&ended, |screen| {
            screen.contains(&ended) && screen.contains("echo")
        });
        assert!(
            !self.is_alternate(),
            "the alternate screen stays:\n{screen}"
        );
        for mode in ["icanon", "echo", "isig", "opost"] {
            let is_on = screen.split_whitespace().any(|word| word == mode);
            assert!(is_on, "{mode} stays off:\n{screen}");
        }
        screen
    }

    /// Runs a command of tmux and returns its output.
    fn run(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .env_remove("TMUX")
            .args(["-L", &self.socket])
            .args(words)
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
