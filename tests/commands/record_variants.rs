//! Options of `rperf record` that affect the file, alone and combined: perf reads the result without warnings,
//! and finds as many samples as `rperf report` finds and `rperf record` reported.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::differential::{difference, settled};
use crate::kernel::{Running, is_root};

/// Options of `record` that are each tested in a recording of their own; those without an event get `-e cpu-clock`. `PID` is
/// replaced by the id of a running process.
const ALONE: &[&str] = &[
    "-e cpu-clock",
    "-e cpu-clock:u -c 200000",
    "-e sched:sched_switch -e syscalls:sys_enter_write --filter count>0 --exclude-perf",
    "-e {cpu-clock,page-faults}:S --running-time",
    "-e cpu-clock,page-faults --group",
    "-g",
    "--call-graph fp,4",
    "--call-graph dwarf,2048",
    "--call-graph dwarf --unwind live",
    "-g --kernel-callchains",
    "-g --user-callchains",
    "-d -e page-faults",
    "-W -e page-faults",
    "-d --phys-data -e page-faults",
    "-d --data-page-size --code-page-size -e page-faults",
    "--transaction",
    "-T -P --sample-cpu --sample-identifier",
    "--no-timestamp --no-period",
    "-I",
    "--intr-regs=ax,ip --user-regs=ax,ip,sp",
    "-n",
    "-s",
    "-R",
    "-i",
    "-D 1",
    "-D 1-5,10-60",
    "--max-size 1K",
    "--no-buffering",
    "-k mono",
    "--buildid-mmap",
    "-B --no-bpf-event",
    "--buildid-all --timestamp-boundary",
    "--namespaces --all-cgroups --switch-events",
    "--latency",
    "--off-cpu",
    "--off-cpu --off-cpu-thresh 5",
    "--all-user",
    "--all-kernel",
    "--synth no",
    "--synth task",
    "--proc-map-timeout 0",
    "-a -e cpu-clock:k --num-thread-synthesize 3",
    "--per-thread",
    "-m 1 --mmap-flush 1K",
    "--affinity cpu --aio",
    "-r 1",
    "--tail-synthesize",
    "--timestamp-filename",
    "--switch-output=1M --switch-max-files 2",
    "--switch-output-event sched:sched_process_exec",
    "-p PID",
    "-t PID",
    "-a -e cpu-clock:k",
    "-C 0 -e cpu-clock:k",
];

/// Options that perf does not have or implements differently: their attrs are not compared.
const OURS: &[&str] = &["--unwind", "--off-cpu", "--latency", "--max-size"];

/// Where and how records are written: each is combined with each of [`KINDS`].
const MODES: &[&str] = &[
    "-z",
    "--threads",
    "--overwrite",
    "-o -",
    "-z -o -",
    "-z --threads",
];

/// Options that determine the content of records.
const KINDS: &[&str] = &[
    "-e cpu-clock",
    "-g",
    "--call-graph dwarf,1024",
    "-a -e cpu-clock:k",
    "-e {cpu-clock,page-faults}:S",
];

/// A recording with the options `words`, and the path of the perf that reads it.
struct Variant<'v> {
    words: Vec<&'v str>,
    perf: &'v str,
    scratch: Scratch,
}

impl Variant<'_> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn run(&self, program: &str, words: &[&str], stdin: &[u8]) -> Outcome {
        let run = Run::new(program).args(words).within(self.scratch.path());
        let run = run.env("HOME", self.scratch.path()).stdin(stdin);
        run.finish().expect("it starts")
    }

    /// The messages of `record` and its stdout, or why it failed.
    fn record(&self) -> Result<(String, Vec<u8>), String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
        command.args(["record", "-N", "-o", "perf.data"]);
        command.args(&self.words).arg("--");
        let has_target = ["-p", "-t", "-a", "-C"].iter().any(|word| self.has(word));
        match has_target {
            true => command.args(["sleep", "0.05"]),
            false => command.args([
                "sh",
                "-c",
                "i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done; ls / >&2",
            ]),
        };
        let folder = self.scratch.path();
        command.current_dir(folder).env("HOME", folder);
        command.env("PERF_CONFIG", "/dev/null").stdin(Stdio::null());
        let done = command.output().expect("rperf starts");
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        match done.status.success() {
            true => Ok((message, done.stdout)),
            false => Err(format!("{:?}: {message}", self.words)),
        }
    }

    /// The differences from the attrs of perf's own recording with the same options, or why perf failed; `None` if there
    /// are none, or if the attrs are not compared. `line` is the variant's line in [`ALONE`], or a combination.
    fn attr_differences(&self, line: &str) -> Option<String> {
        let is_ours = self.words.iter().any(|word| OURS.contains(word));
        // Combinations of a mode and a kind are not compared.
        if is_ours || !ALONE.contains(&line) {
            return None;
        }
        let words = ["record", "-N", "-o", "theirs"];
        let words = [&words, &self.words[..], &["--", "true"]].concat();
        let recorded = self.run(self.perf, &words, &[]);
        if recorded.status != 0 {
            return Some(format!("perf {words:?}: {}", recorded.stderr));
        }
        let list = |begin: &str| {
            let file = self.files(begin).pop().expect("a file");
            self.run(self.perf, &["evlist", "-v", "-i", &file], &[])
                .stdout
        };
        difference(&list("theirs"), &list("perf.data"))
    }

    /// The files whose names begin with `begin`; `-` if the output is a pipe.
    fn files(&self, begin: &str) -> Vec<String> {
        if self.has("-") {
            return vec!["-".to_owned()];
        }
        let entries = std::fs::read_dir(self.scratch.path()).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
        names.sort();
        names
    }

    /// What is wrong with one of the files, and its number of samples.
    fn read(&self, file: &str, stream: &[u8]) -> (Vec<String>, u64) {
        let mut faults = Vec::new();
        // Returns what perf prints for the file; a failure or a message is a fault.
        let mut quiet = |words: &[&str]| {
            let words = [words, &["-i", file]].concat();
            let outcome = self.run(self.perf, &words, stream);
            if outcome.status != 0 || !outcome.stderr.is_empty() {
                faults.push(format!("perf {words:?}: {outcome:?}"));
            }
            outcome.stdout
        };
        let script = quiet(&["script"]);
        // There are no samples: `-n` records side-band records only.
        if self.has("-n") {
            assert_eq!(script, "");
            return (faults, 0);
        }
        let report = ["report", "--stdio", "-g", "none"];
        let report_of_file = [&report[..], &["-i", file]].concat();
        let ours = self.run(env!("CARGO_BIN_EXE_rperf"), &report_of_file, stream);
        // One of several files may have no samples: the workload may have been blocked all the time.
        if script.is_empty() && self.both_find_no_samples(&report_of_file, &ours, stream) {
            return (faults, 0);
        }
        let theirs = quiet(&report);
        if ours.status != 0 || counts(&ours.stdout) != counts(&theirs) {
            faults.push(format!("{file}: perf reads\n{theirs}\nand rperf {ours:?}"));
        }
        let samples = counts(&theirs).iter().map(|(count, _)| count).sum();
        (faults, samples)
    }

    /// Whether both tools report that there are no samples. `report` has the arguments for perf, `ours` is rperf's outcome.
    fn both_find_no_samples(&self, report: &[&str], ours: &Outcome, stream: &[u8]) -> bool {
        let theirs = self.run(self.perf, report, stream);
        let mut tools = [&theirs, ours].into_iter();
        tools.all(|outcome| outcome.stderr.contains("data has no samples!"))
    }

    /// Records, and returns what is wrong with the recording; `line` is as in [`Self::attr_differences`].
    fn faults(&self, line: &str) -> Vec<String> {
        let (message, stream) = match self.record() {
            Ok(done) => done,
            Err(failed) => return vec![failed],
        };
        let (mut faults, mut samples) = (Vec::new(), 0);
        for file in self.files("perf.data") {
            let (faults_of_file, count) = self.read(&file, &stream);
            faults.extend(faults_of_file);
            samples += count;
        }
        faults.extend(self.attr_differences(line));
        // A sample of a group with `:S` is read as one sample of each member.
        let is_leader_sampled = self.words.iter().any(|word| word.ends_with(":S"));
        // Without samples, `record` reports only the file and its size.
        let expected = match samples {
            0 => ".data".to_owned(),
            samples => format!("({samples} samples)"),
        };
        if !is_leader_sampled && !message.contains(&expected) {
            faults.push(format!(
                "{samples} samples are read, but record reports: {message}"
            ));
        }
        let heading = |fault: String| format!("{:?}: {fault}\nrecorded: {message}", self.words);
        faults.into_iter().map(heading).collect()
    }
}

/// The number of samples of each event and its name, from the headings of a report.
fn counts(report: &str) -> Vec<(u64, &str)> {
    let headings = report
        .lines()
        .filter_map(|line| line.strip_prefix("# Samples: "));
    let counts = headings.map(|heading| {
        let (count, event) = heading.split_once(' ').expect("a heading");
        let (number, unit) = match count.strip_suffix('K') {
            Some(number) => (number, 1000),
            None => (count, 1),
        };
        (number.parse::<u64>().expect("a number") * unit, event)
    });
    counts.collect()
}

#[test]
fn perf_reads_recordings_of_every_option() {
    let test = "commands::record_variants::perf_reads_recordings_of_every_option";
    let Some(perf) = real_perf().filter(|_| is_root()) else {
        return skip(test, "there is no perf, or no root");
    };
    let target = Running::spin();
    let pid = target.0.id().to_string();
    let pairs = MODES
        .iter()
        .flat_map(|mode| KINDS.iter().map(move |kind| format!("{kind} {mode}")));
    let lines: Vec<String> = ALONE
        .iter()
        .map(|line| (*line).to_owned())
        .chain(pairs)
        .collect();
    let next = AtomicUsize::new(0);
    let perf = PathBuf::into_os_string(perf).into_string().expect("a name");
    let check = || {
        let mut faults = Vec::new();
        while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut words: Vec<&str> = line.split(' ').collect();
            if !words.contains(&"-e") {
                words.extend(["-e", "cpu-clock"]);
            }
            if !words.contains(&"-c") {
                words.extend(["-F", "1999"]);
            }
            for word in &mut words {
                *word = if *word == "PID" { &pid } else { word };
            }
            faults.extend(settled(|| {
                let scratch = Scratch::new();
                let (words, perf) = (words.clone(), perf.as_str());
                Variant {
                    words,
                    perf,
                    scratch,
                }
                .faults(line)
            }));
        }
        faults
    };
    // Two at a time: most of the time is spent waiting for workloads.
    let faults = std::thread::scope(|scope| {
        let other = scope.spawn(check);
        let mut faults = check();
        faults.extend(other.join().expect("no panic"));
        faults
    });
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
