//! Recordings of many kinds, made for comparisons.

use std::process::{Child, Command, Stdio};

use rperf_testkit::copy_program;

use super::{Tool, Tools, Workloads, settled};

/// A recording, made by either tool.
pub(crate) struct Recording {
    /// For messages and the file's name.
    pub(crate) name: &'static str,
    /// Options of `record`.
    pub(crate) options: &'static [&'static str],
    /// What is recorded.
    pub(crate) target: Target,
}

/// The target of a recording.
pub(crate) enum Target {
    /// A command; its first word may be one of the workloads.
    Command(&'static [&'static str]),
    /// A running process, by `-p`.
    Process(&'static [&'static str]),
    /// A running program, and the command during which the whole system is recorded.
    With(&'static [&'static str], &'static [&'static str]),
}

/// A finished recording.
pub(crate) struct FinishedRecording {
    /// Its name in the scratch directory.
    pub(crate) file: String,
    /// The pid of the process that ran throughout the recording, if any.
    pub(crate) steady: Option<u32>,
}

/// Recordings of many kinds, which either tool can make.
pub(crate) const RECORDINGS: &[Recording] = &[
    Recording {
        name: "frames, with callchains",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "frames, flat",
        options: &["-F", "999"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "user space alone, fixed period",
        options: &["-e", "cpu-clock:u", "-c", "1000000", "-g"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "the kernel alone",
        options: &["-e", "cpu-clock:k", "-F", "999", "-g"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "several events",
        options: &[
            "-e",
            "task-clock",
            "-e",
            "page-faults,context-switches",
            "-F",
            "999",
        ],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "several events with callchains",
        options: &["-e", "cpu-clock,minor-faults", "-g", "-F", "999"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "a group with callchains",
        options: &["-e", "{cpu-clock,minor-faults}", "-g", "-F", "999"],
        target: Target::Command(&["frames", "150"]),
    },
    Recording {
        name: "stripped",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["stripped", "150"]),
    },
    Recording {
        name: "C++",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["shapes", "200"]),
    },
    Recording {
        name: "Rust",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["traits", "200"]),
    },
    Recording {
        name: "code made at run time",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["jit", "100"]),
    },
    Recording {
        name: "code made at run time, not listed",
        options: &["-F", "999"],
        target: Target::Command(&["jit", "100", "0"]),
    },
    Recording {
        name: "threads, forks and execs",
        options: &["-g", "-F", "4000"],
        target: Target::Command(&["family"]),
    },
    Recording {
        name: "a deleted program",
        options: &["-g", "-F", "999"],
        target: Target::Command(&["unlinked", "100"]),
    },
    Recording {
        name: "a running process",
        options: &["-g", "-F", "999"],
        target: Target::Process(&["frames", "60000"]),
    },
    Recording {
        name: "one CPU",
        options: &["-C", "0", "-F", "499"],
        target: Target::Command(&["family"]),
    },
    Recording {
        name: "system-wide",
        options: &["-a", "-F", "499"],
        target: Target::With(&["frames", "60000"], &["sleep", "0.3"]),
    },
    Recording {
        name: "system-wide with callchains and several events",
        options: &["-a", "-g", "-e", "cpu-clock,context-switches", "-F", "499"],
        target: Target::With(&["frames", "60000"], &["sleep", "0.2"]),
    },
];

impl Recording {
    /// Whether it records all tasks of one CPU or of all CPUs.
    pub(crate) fn is_system_wide(&self) -> bool {
        self.options.iter().any(|word| ["-a", "-C"].contains(word))
    }

    /// The differences that `compare` finds, with a new recording for each attempt of [`settled`]; none if rperf cannot record.
    pub(crate) fn differences(
        &self,
        tools: &Tools,
        workloads: &Workloads,
        recorder: Tool,
        compare: impl Fn(&str) -> Vec<String>,
    ) -> Vec<String> {
        self.differences_with_process(tools, workloads, recorder, |made| compare(&made.file))
    }

    /// Like `differences`; `compare` also gets the pid of the process that ran throughout the recording.
    pub(crate) fn differences_with_process(
        &self,
        tools: &Tools,
        workloads: &Workloads,
        recorder: Tool,
        compare: impl Fn(&FinishedRecording) -> Vec<String>,
    ) -> Vec<String> {
        settled(|| match self.record(tools, workloads, recorder) {
            Some(made) => compare(&made),
            None => Vec::new(),
        })
    }

    /// Records with `recorder` and returns the file's name; `None`, with a printed reason, if rperf cannot. Panics if perf
    /// cannot.
    pub(crate) fn make(
        &self,
        tools: &Tools,
        workloads: &Workloads,
        recorder: Tool,
    ) -> Option<String> {
        Some(self.record(tools, workloads, recorder)?.file)
    }

    fn record(
        &self,
        tools: &Tools,
        workloads: &Workloads,
        recorder: Tool,
    ) -> Option<FinishedRecording> {
        let folder = tools.path();
        let (words, starts_before) = match self.target {
            Target::Command(words) => (words, false),
            Target::Process(words) | Target::With(words, _) => (words, true),
        };
        let mut program: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        if let Some(path) = words.first().and_then(|name| workloads.path(name)) {
            let path = match *words {
                // The program deletes its own file.
                ["unlinked", ..] => {
                    let copy = folder.join(format!("unlinked-{recorder:?}"));
                    copy_program(&path, &copy);
                    copy
                }
                _ => path,
            };
            program[0] = path.to_string_lossy().into_owned();
        }
        let running = starts_before.then(|| Running::start(&program));
        let file = format!("{:?} {}.data", recorder, self.name);
        let mut line = vec!["record", "-q", "-o", &file];
        line.extend(self.options);
        let steady = running.as_ref().map(|running| running.0.id());
        let pid = steady.map(|pid| pid.to_string()).unwrap_or_default();
        match self.target {
            Target::Process(_) => line.extend(["-p", &pid, "--", "sleep", "0.2"]),
            Target::With(_, words) => line.extend([&["--"], words].concat()),
            Target::Command(_) => {
                line.push("--");
                line.extend(program.iter().map(String::as_str));
            }
        }
        let outcome = tools.outcome(recorder, &line);
        if outcome.status != 0 {
            assert_eq!(recorder, Tool::Rperf, "{line:?}: {outcome:?}");
            rperf_testkit::skip(&file, &outcome.stderr);
            return None;
        }
        Some(FinishedRecording { file, steady })
    }
}

/// A program that runs throughout a recording and is killed on drop.
struct Running(Child);

impl Running {
    fn start(program: &[String]) -> Self {
        let (name, words) = program.split_first().expect("a program has a name");
        let child = Command::new(name)
            .args(words)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
