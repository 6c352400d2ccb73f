//! Runs the documented command lines: those of `help examples`, of each `-h`, and of the README.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rperf_testkit::{Outcome, Run, Scratch, copy_program, skip};
use rperf_wire::Endian;

use super::sched::stats::stats_file;
use super::{commands, outcome};
use crate::kernel::is_root;
use crate::tidy::root;

/// A directory with `./program` and `./workload`, and a recording of the program: `usual.data`, with the copies `perf.data` and
/// `perf.data.old`.
struct ExampleFolder {
    scratch: Scratch,
    /// The process whose pid replaces [`PID`].
    process: Child,
}

/// What [`ExampleFolder::reset`] keeps. `usual.debug` is a copy of the build-id cache.
const KEPT: [&str; 4] = ["program", "workload", "usual.data", "usual.debug"];

/// The pid in documented lines.
const PID: &str = "1234";

/// Commands whose examples read the recording of the program. In `help examples`, `perf.data` and `perf.data.old` are restored
/// before such examples.
const READERS: &[&str] = &[
    "annotate",
    "archive",
    "buildid-cache",
    "buildid-list",
    "data",
    "diff",
    "evlist",
    "flamegraph",
    "heatmap",
    "inject",
    "report",
    "script",
];

/// Some lines, each with a text that its output contains.
const EXPECTED_TEXTS: &[(&str, &str)] = &[
    ("report --stdio -s size,symbol", " malloc"),
    ("report --stdio -s comm,pid", "program"),
    ("list sdt", "sdt_program:step"),
    ("top --json --intervals 1", "{\""),
];

/// Parts of the names of hardware events in documented lines.
const HARDWARE: &[&str] = &["cycles", "cache-misses"];

/// Whether the kernel counts hardware events here.
fn has_pmu() -> bool {
    let devices = fs::read_dir("/sys/bus/event_source/devices").expect("the list of PMUs");
    let mut names = devices.map(|entry| entry.expect("a PMU").file_name());
    names.any(|name| {
        let name = name.to_string_lossy();
        name.starts_with("cpu") || name.starts_with("armv8")
    })
}

impl Drop for ExampleFolder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ExampleFolder {
    /// Prepares the directory; `None`, with a printed reason, if this machine cannot run the examples.
    fn new(test: &str) -> Option<Self> {
        if !is_root() || !Path::new("/sys/kernel/tracing/uprobe_events").exists() {
            skip(test, "needs root and tracefs");
            return None;
        }
        let scratch = Scratch::new();
        let source = root().join("tests/workloads/program.c");
        let options = ["-O1", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"];
        let compiled = Run::new("cc").args(options).args(["-o", "program"]);
        let Ok(compiled) = compiled.args([source]).within(scratch.path()).finish() else {
            skip(test, "there is no cc");
            return None;
        };
        assert_eq!(compiled.status, 0, "{}", compiled.stderr);
        copy_program(
            scratch.path().join("program"),
            scratch.path().join("workload"),
        );
        // 1000000 ms of CPU time: the program runs until it is killed, and must not slow down other tests.
        let process = Command::new("nice")
            .args(["-n", "10", "./program", "1000000"])
            .current_dir(scratch.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        let folder = Self { scratch, process };
        let record = "record -q -F 4000 -e cpu-clock -g -o usual.data -- ./program";
        let recorded = folder.run(record);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        folder.restore_recordings();
        folder.copy_folder(".debug", "usual.debug");
        Some(folder)
    }

    /// Copies the recording of the program to `perf.data` and `perf.data.old`.
    fn restore_recordings(&self) {
        self.copy("usual.data", "perf.data");
        self.copy("usual.data", "perf.data.old");
    }

    fn copy_folder(&self, from: &str, to: &str) {
        let copy = Run::new("cp").args(["-a", from, to]);
        let copied = copy.within(self.scratch.path()).finish();
        assert_eq!(copied.expect("cp starts").status, 0, "{from}");
    }

    /// Removes what the lines of a command left, and restores the recordings and the build-id cache.
    fn reset(&self) {
        for entry in fs::read_dir(self.scratch.path()).expect("the folder") {
            let path = entry.expect("an entry").path();
            let is_kept = KEPT.iter().any(|name| path.ends_with(name));
            let removed = match path.is_dir() {
                _ if is_kept => Ok(()),
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        self.restore_recordings();
        self.copy_folder("usual.debug", ".debug");
    }

    fn copy(&self, from: &str, to: &str) {
        let path = |name| self.scratch.path().join(name);
        fs::copy(path(from), path(to)).expect("a copy");
    }

    /// Runs a line as a shell does, with stdout in a file.
    fn run(&self, line: &str) -> Outcome {
        let words = adapted(line, &self.process.id().to_string());
        let command = format!("{} {words} > out.txt", env!("CARGO_BIN_EXE_rperf"));
        let shell = Run::new("sh").args(["-c", &command]);
        let shell = shell.within(self.scratch.path()).env_remove("PERF_CONFIG");
        let shell = shell.env("HOME", self.scratch.path());
        // The kernel may lack the statistics of the scheduler: `check` writes a file `schedstat` into the directory.
        let shell = match line.starts_with("sched stats") {
            true => shell.env("PROCFS_PATH", self.scratch.path()),
            false => shell,
        };
        shell.finish().expect("a shell starts")
    }

    /// Prepares the files that a line reads, and checks that it runs. On a machine without a PMU, a line with hardware events may
    /// fail, if its message says that the event is not supported.
    fn check(&self, line: &str) {
        if line.starts_with("sched stats") {
            let package = Path::new(env!("CARGO_MANIFEST_DIR"));
            let statistics = package.join("tests/fixtures/schedstat/17-first.txt");
            let copy = self.scratch.path().join("schedstat");
            fs::copy(statistics, copy).expect("statistics");
            for name in ["perf.data", "perf.data.old"] {
                // 17 is the version of /proc/schedstat, as in the name of the fixture.
                let file = stats_file(17, Endian::Little);
                self.scratch.write(name, file).expect("a recording");
            }
        }
        if line.starts_with("script -s") {
            let script = b"def process_event(values): pass\n";
            self.scratch.write("own.py", script).expect("a script");
        }
        let outcome = self.run(line);
        let needs_pmu = HARDWARE.iter().any(|event| line.contains(event));
        if outcome.status != 0 && needs_pmu && !has_pmu() {
            let reason = " event is not supported.";
            return assert!(
                outcome.stderr.contains(reason),
                "{line}: {}",
                outcome.stderr
            );
        }
        assert_eq!(outcome.status, 0, "{line}: {}", outcome.stderr);
        let expected = EXPECTED_TEXTS
            .iter()
            .find(|(expected_line, _)| *expected_line == line);
        if let Some((_, text)) = expected {
            let output = self.scratch.path().join("out.txt");
            let output = fs::read_to_string(output).expect("the output");
            assert!(output.contains(text), "{line}: {output}");
        }
    }
}

/// A documented line, with shorter times and less precision, and with this pid in place of [`PID`]. `top` ends after one interval
/// unless the line has `--intervals`.
fn adapted(line: &str, pid: &str) -> String {
    let is_top = line.starts_with("top");
    let mut words: Vec<&str> = Vec::new();
    for word in line.split(' ') {
        words.push(match (words.last(), word) {
            (Some(&"sleep"), _) => "0.2",
            (Some(&"-I"), interval) if interval.parse::<u64>().is_ok() => "100",
            (Some(&"-d"), _) if is_top => "0.2",
            // A precision of 10 % takes long on a busy machine.
            (Some(&"--precision"), _) => "60",
            (_, PID) => pid,
            (_, word) => word,
        });
    }
    if is_top && !words.contains(&"-d") {
        words.extend(["-d", "0.2"]);
    }
    if is_top && !words.contains(&"--intervals") {
        words.extend(["--intervals", "1"]);
    }
    words.join(" ")
}

/// The lines of a text that begin with `lead` and `rperf `, without this beginning and without the remark after two blanks.
fn lines<'t>(text: &'t str, lead: &str) -> Vec<&'t str> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(lead));
    lines
        .filter_map(|line| line.strip_prefix("rperf "))
        .map(|line| line.split("  ").next().unwrap_or_default())
        .collect()
}

#[test]
fn lines_of_help_examples_run() {
    let Some(folder) = ExampleFolder::new("commands::examples::lines_of_help_examples_run") else {
        return;
    };
    let page = outcome(&["help", "examples"]).stdout;
    let mut checked = 0;
    for paragraph in page.split("\n\n") {
        let lines = lines(paragraph, "       ");
        let first = lines.first().and_then(|line| line.split(' ').next());
        if first.is_some_and(|command| READERS.contains(&command)) {
            folder.restore_recordings();
        }
        lines.iter().for_each(|line| folder.check(line));
        checked += lines.len();
    }
    // Fails if the layout of the page changes so that lines are not found.
    assert!(checked > 50, "{page}");
}

#[test]
fn examples_of_each_command_run() {
    let Some(folder) = ExampleFolder::new("commands::examples::examples_of_each_command_run")
    else {
        return;
    };
    for command in commands() {
        folder.reset();
        // The lines that make the recordings. The lines of a `diff` command make two: the second renames the
        // first file to `perf.data.old`.
        let before = match command.as_str() {
            "stat report" => &[
                "stat record --quiet -a -I 1000 -o counts.data -- sleep 1",
                "stat record --quiet -a -A -- sleep 1",
            ][..],
            "kmem diff" => &["kmem record --slab --page -q -- sleep 0.2"; 2],
            "kmem usage" => &["kmem record --slab --page -g --all-cgroups -q -- sleep 0.2"][..],
            "sched diff" => &["sched record -q -- sleep 0.2"; 2],
            command if command.starts_with("kwork ") => {
                &["kwork -k sched,irq,softirq,workqueue record -q -- sleep 0.2"][..]
            }
            command if command.starts_with("kmem ") => {
                &["kmem record --slab --page -q -- sleep 0.2"][..]
            }
            command if command.starts_with("lock ") => {
                &["lock record -q --user --holders --owners --all-cgroups -a -- sleep 1"][..]
            }
            command if command.starts_with("sched ") => &["sched record -q -- sleep 0.2"][..],
            _ => &[],
        };
        before.iter().for_each(|line| folder.check(line));
        let words: Vec<&str> = command.split(' ').chain(["-h"]).collect();
        let help = outcome(&words).stderr;
        let (_, examples) = help.split_once("\n Examples:\n").expect("examples");
        for line in lines(examples, "    ") {
            // `histogram` and `heatmap`: the recording of the program has no tracepoints.
            if line.contains("--from sched:sched_switch") {
                folder.check("record -q -e sched:sched_switch -a -- sleep 1");
            }
            folder.check(line);
        }
    }
}

#[test]
fn commands_of_the_readme_run() {
    let Some(folder) = ExampleFolder::new("commands::examples::commands_of_the_readme_run") else {
        return;
    };
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let lines = lines(&readme, "    $ ");
    assert!(lines.len() > 3, "{lines:?}");
    lines.into_iter().for_each(|line| folder.check(line));
}
