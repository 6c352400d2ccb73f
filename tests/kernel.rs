//! Recordings on the running kernel: perf reads them, and recordings that perf makes with the same options have the same attrs.
//! Helpers of tests that record.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rperf_sys::CgroupFolder;
use rperf_testkit::{Outcome, Run, Scratch, copy_program, may_trace, real_perf, skip};

/// A loop of about 50 ms.
pub(crate) const BUSY: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";

/// rperf in a directory that is also its home, so that the test has its own build-id cache.
pub(crate) fn rperf_in(scratch: &Scratch, words: &[&str]) -> Run {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    run.within(scratch.path()).env("HOME", scratch.path())
}

/// Cgroups, removed when this is dropped.
pub(crate) struct Cgroups(pub(crate) Vec<PathBuf>);

impl Cgroups {
    /// Creates the cgroups in a hierarchy of either version. If that is impossible, prints that the test is skipped and returns
    /// `None`.
    pub(crate) fn create(test: &str, names: &[&str]) -> Option<Self> {
        let either_version = |_: &CgroupFolder| true;
        Self::create_where(test, names, either_version)
    }

    /// Like [`Self::create`], but only directly below the root of the whole hierarchy of version 2. Skips the test with version
    /// 1, and in a cgroup namespace whose root is another cgroup.
    pub(crate) fn create_below_root(test: &str, names: &[&str]) -> Option<Self> {
        Self::create_where(test, names, |folder| {
            matches!(folder.id_and_level("/"), Ok(Some((_, 0))))
        })
    }

    fn create_where(
        test: &str,
        names: &[&str],
        is_suitable: impl Fn(&CgroupFolder) -> bool,
    ) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("readable");
        let folder = CgroupFolder::find(&mounts).filter(is_suitable);
        let Some(folder) = folder else {
            skip(test, "there is no suitable hierarchy of cgroups");
            return None;
        };
        let cgroups = Self(names.iter().map(|name| folder.path().join(name)).collect());
        for path in &cgroups.0 {
            if fs::create_dir(path).is_err() {
                skip(test, "cgroups cannot be created");
                return None;
            }
        }
        Some(cgroups)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // A folder may not exist if creating it failed.
            let _ = fs::remove_dir(path);
        }
    }
}

/// Records a workload into perf.data of the directory. Without `-o`, the recording would be written to the test's pipe.
pub(crate) fn record_in(scratch: &Scratch, options: &[&str], workload: &[&str]) -> Outcome {
    let words = [&["record", "-o", "perf.data"], options, workload].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

pub(crate) fn perf_in(perf: &std::path::Path, scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = Run::new(perf).args(words);
    let run = run.within(scratch.path()).env("HOME", scratch.path());
    run.finish().expect("perf starts")
}

/// Whether the tests run as root; system-wide recording needs root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Whether this test can trace the whole system; otherwise prints that it is skipped.
pub(crate) fn can_trace(test: &str) -> bool {
    if !is_root() {
        skip(test, "needs root");
        return false;
    }
    may_trace(test)
}

/// An unprivileged user with a copy of rperf in a world-writable directory. Each has a uid of its own: the kernel limits the
/// memory locked for ring buffers per user.
pub(crate) struct UnprivilegedUser<'s> {
    scratch: &'s Scratch,
    uid: String,
}

impl<'s> UnprivilegedUser<'s> {
    /// If programs cannot be run as another user, prints that the test is skipped and returns `None`.
    pub(crate) fn new(test: &str, scratch: &'s Scratch) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !is_root() || !Path::new(SETPRIV).exists() {
            skip(test, "needs root and setpriv");
            return None;
        }
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(scratch.path(), open).expect("own directory");
        let binary = scratch.path().join("rperf");
        copy_program(env!("CARGO_BIN_EXE_rperf"), binary);
        // 16 uids for each test process, so that concurrent test processes do not share them.
        let uid = 5_000_000 + std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed);
        let uid = uid.to_string();
        Some(Self { scratch, uid })
    }

    /// Runs a program as this user in the world-writable directory: `./rperf` is the copy.
    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        let run = Run::new(SETPRIV).args(["--reuid", &self.uid, "--regid", &self.uid]);
        let run = run.args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]);
        let run = run.args(words).within(self.scratch.path());
        let run = run.env("HOME", self.scratch.path());
        run.finish().expect("setpriv starts")
    }
}

const SETPRIV: &str = "/usr/bin/setpriv";

/// A child process, killed and reaped on drop.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a shell that loops until it is killed.
    pub(crate) fn spin() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        Self(command.stdin(Stdio::null()).spawn().expect("sh starts"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Options, and whether they need root. `PID` is replaced by the pid of a running process.
const RECORDINGS: &[(&[&str], bool)] = &[
    (&[], false),
    (&["--call-graph", "fp,5"], false),
    (&["-F", "99", "-e", "cpu-clock:u,page-faults"], false),
    (&["-e", "cpu-clock:ppp", "-e", "task-clock"], false),
    (&["-e", "page-faults", "-c", "1", "-m", "16"], false),
    (&["-p", "PID", "-g", "-F", "999"], false),
    (&["-t", "PID", "-e", "cpu-clock,cs", "-F", "999"], false),
    (&["-a", "-F", "499"], true),
    (
        &["-a", "-g", "-e", "cpu-clock:k,page-faults", "-F", "499"],
        true,
    ),
    (&["-C", "0", "-e", "cpu-clock", "-F", "499"], true),
    (
        &[
            "-ag",
            "-e",
            "context-switches,page-faults,minor-faults",
            "-e",
            "migrations,cpu-clock",
        ],
        true,
    ),
    (&["-a", "-e", "sched:*"], true),
    (&["-a", "-e", "{sched:sched_wak*}"], true),
    (&["-e", "{cpu-clock,page-faults}:S"], false),
    (
        &["-e", "work{cpu-clock,cs},page-faults", "-F", "999"],
        false,
    ),
    (&["-s", "-e", "cpu-clock", "--call-graph", "dwarf"], false),
    (&["--per-thread", "-e", "cpu-clock"], false),
    (&["-k", "monotonic", "-e", "cpu-clock"], false),
];

#[test]
fn files_match_perf_in_every_mode() {
    let Some(perf) = real_perf() else {
        return skip("kernel::files_match_perf_in_every_mode", "there is no perf");
    };
    let scratch = Scratch::new();
    let target = Running::spin();
    let pid = target.0.id().to_string();
    for (options, needs_root) in RECORDINGS {
        if *needs_root && !is_root() {
            skip(
                "kernel::files_match_perf_in_every_mode",
                "system-wide recording needs root",
            );
            continue;
        }
        let options = options
            .iter()
            .map(|word| if *word == "PID" { &pid } else { *word });
        let mut words: Vec<&str> = std::iter::once("record").chain(options).collect();
        words.extend(["-o", "FILE", "--"]);
        // Recordings of other tasks always have samples; `sleep` bounds their duration.
        let follows_others = ["-a", "-C", "-p", "-t"]
            .iter()
            .any(|word| words.contains(word));
        words.extend(if follows_others {
            &["sleep", "0.1"][..]
        } else {
            &["sh", "-c", BUSY]
        });
        let with_file = |file| {
            words
                .iter()
                .map(|word| if *word == "FILE" { file } else { *word })
                .collect::<Vec<_>>()
        };
        let theirs = perf_in(&perf, &scratch, &with_file("theirs.data"));
        assert_eq!(theirs.status, 0, "{words:?}: {}", theirs.stderr);
        let ours = rperf_in(&scratch, &with_file("ours.data"))
            .finish()
            .expect("rperf starts");
        assert_eq!(ours.status, 0, "{words:?}: {}", ours.stderr);
        assert_accepted(&perf, &scratch, &words);
    }
}

/// Checks that perf reads `ours.data` without warnings and finds samples in it, and that `ours.data` and `theirs.data` have the
/// same attrs, and synthesized records of the same types.
fn assert_accepted(perf: &std::path::Path, scratch: &Scratch, words: &[&str]) {
    let read = |command: &[&str], file| perf_in(perf, scratch, &[command, &["-i", file]].concat());
    let evlist = read(&["evlist", "-v"], "ours.data");
    assert_eq!(evlist, read(&["evlist", "-v"], "theirs.data"), "{words:?}");
    for command in [&["script"][..], &["report", "--stdio"]] {
        let outcome = read(command, "ours.data");
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{words:?} {command:?}"
        );
        assert!(
            outcome.stdout.lines().count() > 3,
            "{words:?} {command:?}: {}",
            outcome.stdout
        );
    }
    let types = synthesized_types(perf, scratch, "ours.data");
    assert!(!types.is_empty(), "{words:?}");
    let expected = synthesized_types(perf, scratch, "theirs.data");
    assert_eq!(types, expected, "{words:?}");
}

/// The types, in order, of the records that are synthesized at the start of a file, without those that depend on other
/// processes. `MMAP` records are those of the kernel and its modules; processes have `MMAP2`.
fn synthesized_types(perf: &std::path::Path, scratch: &Scratch, file: &str) -> Vec<String> {
    let dump = perf_in(perf, scratch, &["script", "-D", "-i", file]).stdout;
    let records = dump.lines().filter(|line| line.contains(": PERF_RECORD_"));
    let types =
        records.filter_map(|line| line.split("PERF_RECORD_").nth(1)?.split([' ', ':']).next());
    let at_start = types.take_while(|name| *name != "FINISHED_INIT");
    let selected = at_start.filter(|name| {
        [
            "ID_INDEX",
            "THREAD_MAP",
            "CPU_MAP",
            "EVENT_UPDATE",
            "MMAP",
            "TIME_CONV",
        ]
        .contains(name)
    });
    selected.map(str::to_owned).collect()
}

#[test]
fn samples_before_exec_are_of_perf_exec() {
    if !is_root() {
        return skip(
            "kernel::samples_before_exec_are_of_perf_exec",
            "system-wide recording needs root",
        );
    }
    let Some(perf) = real_perf() else {
        return skip(
            "kernel::samples_before_exec_are_of_perf_exec",
            "there is no perf",
        );
    };
    let scratch = Scratch::new();
    let words = [
        "record",
        "-q",
        "-o",
        "perf.data",
        "-a",
        "-e",
        "page-faults",
        "-c",
        "1",
        "true",
    ];
    let ours = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!((ours.status, ours.stderr.as_str()), (0, ""));
    let comms = perf_in(&perf, &scratch, &["script", "-F", "comm"]).stdout;
    assert!(
        comms.lines().any(|comm| comm.trim() == "perf-exec"),
        "{comms}"
    );
}

#[test]
fn losses_are_reported_as_by_perf() {
    if !is_root() {
        return skip(
            "kernel::losses_are_reported_as_by_perf",
            "system-wide recording needs root",
        );
    }
    let Some(perf) = real_perf() else {
        return skip("kernel::losses_are_reported_as_by_perf", "there is no perf");
    };
    let scratch = Scratch::new();
    let words = [
        "record",
        "-o",
        "perf.data",
        "-a",
        "-g",
        "-m",
        "1",
        "-F",
        "max",
        "-e",
        "cpu-clock",
        "sleep",
        "0.05",
    ];
    let ours = rperf_in(&scratch, &words).finish().expect("rperf starts");
    let warnings = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("Processed"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let theirs = perf_in(&perf, &scratch, &["report", "--stdio"]);
    assert!(!warnings(&ours.stderr).is_empty(), "{}", ours.stderr);
    assert_eq!(warnings(&ours.stderr), warnings(&theirs.stderr));
    for message in [
        "samples lost of cpu-clock: ",
        " (CPU ",
        "hint: try larger ring buffers (-m ",
        "fewer samples (-F ",
    ] {
        assert!(ours.stderr.contains(message), "{message}: {}", ours.stderr);
    }
}

#[test]
fn kallsyms_and_vdso_are_cached_by_build_id() {
    let scratch = Scratch::new();
    // Without `-o`, the recording is written to the test's pipe; the cache is filled nevertheless.
    let words = ["record", "-q", "-e", "cpu-clock", "--", "sh", "-c", BUSY];
    let ours = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(ours.status, 0, "{}", ours.stderr);
    let cache = scratch.path().join(".debug");
    // The contents of `file` for each cached build ID of the object, read through the links in `.build-id`.
    let cached = |object: &str, file: &str| {
        let ids = fs::read_dir(cache.join(object))
            .into_iter()
            .flatten()
            .flatten();
        ids.map(|id| {
            let id = id.file_name().into_string().expect("a hexadecimal name");
            let linked = cache
                .join(".build-id")
                .join(&id[..2])
                .join(&id[2..])
                .join(file);
            fs::read(linked).expect("the link leads to the file")
        })
        .collect::<Vec<_>>()
    };
    assert_eq!(
        cached("[vdso]", "vdso")
            .first()
            .and_then(|image| image.first_chunk()),
        Some(b"\x7fELF")
    );
    if is_root() {
        let kallsyms = fs::read("/proc/kallsyms").expect("root reads kallsyms");
        assert_eq!(cached("[kernel.kallsyms]", "kallsyms"), [kallsyms]);
    } else {
        skip(
            "kernel::kallsyms_and_vdso_are_cached_by_build_id",
            "reading the addresses of kernel symbols needs root",
        );
    }
}
