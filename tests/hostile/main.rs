//! Damaged and malicious input to the binary: it is read or refused, without a crash, in bounded time and memory, and
//! nothing outside of the working directory changes.
//!
//! `RPERF_HOSTILE=COUNT` sets the number of runs, `RPERF_HOSTILE_SEED` the seed, `RPERF_HOSTILE_ONLY=NUMBER` repeats
//! one run. `RPERF_HOSTILE_COMMANDS=sched,kwork` runs only these commands, on damaged recordings. Inputs with findings are kept.

#![expect(clippy::print_stderr, reason = "findings of a long run are printed")]

mod case;
mod elf;
mod execute;
mod families;
mod mutate;
mod names;
mod random;
mod recording;
mod sandbox;
mod seeds;
mod verdict;
mod xml;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rperf_testkit::Scratch;

use self::case::Case;
use self::random::Random;
use self::sandbox::Sandbox;
use self::seeds::Seeds;

/// The default number of runs.
const RUNS: u64 = 600;
/// The number of programs that run at a time.
const WORKERS: usize = 2;
/// The maximum number of findings kept per kind.
const MAX_KEPT: usize = 3;

/// The results of many runs.
#[derive(Debug, Default)]
struct Summary {
    /// By family, the kind of input: the number of runs, and of successful ones.
    families: BTreeMap<&'static str, (u64, u64)>,
    /// The number of findings of each kind.
    findings: BTreeMap<String, usize>,
    /// Descriptions of the kept findings, and of files that no run may create.
    kept: Vec<String>,
    /// Duration, number and command of the slowest run.
    slowest: Option<(Duration, u64, String)>,
}

/// State shared by the workers.
struct Campaign {
    /// The seed of the random choices.
    seed: u64,
    /// The valid files to mutate, not related to `seed`.
    seeds: Seeds,
    /// The only commands to run; all if empty.
    commands: Vec<String>,
    /// The folder for inputs with findings.
    kept_folder: PathBuf,
    /// The number of the next run.
    next: AtomicU64,
    /// The number after the last run.
    end: u64,
    summary: Mutex<Summary>,
}

impl Campaign {
    fn work(&self, mut sandbox: Sandbox) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end {
                return;
            }
            self.run(number, &mut sandbox);
        }
    }

    fn run(&self, number: u64, sandbox: &mut Sandbox) {
        sandbox.renew();
        let mut random = Random::new(self.seed, number);
        let case = Case::build(&self.seeds, &self.commands, &*sandbox, &mut random);
        let outcome =
            execute::run(&case, &sandbox.working_directory()).expect("the program starts");
        let faults = verdict::faults(&case, &outcome, sandbox);
        let mut summary = self.summary.lock().expect("no worker panics");
        let family = summary.families.entry(case.family).or_default();
        family.0 += 1;
        family.1 += u64::from(outcome.status.is_some_and(|status| status.success()));
        if summary
            .slowest
            .as_ref()
            .is_none_or(|(slowest, ..)| *slowest < outcome.took)
        {
            summary.slowest = Some((outcome.took, number, case.shell_line()));
        }
        drop(summary);
        self.report(number, &case, faults, sandbox);
        // Input in /tmp, such as perf maps, which `renew` does not remove.
        for path in &case.outside_files {
            let _ = fs::remove_file(path);
        }
    }

    /// Keeps and prints each fault of a run as a finding, unless enough of its kind were kept.
    fn report(&self, number: u64, case: &Case, faults: Vec<String>, sandbox: &Sandbox) {
        let line = case.shell_line();
        for fault in faults {
            let mut summary = self.summary.lock().expect("no worker panics");
            let kind = kind(&fault, case);
            let count = summary.findings.entry(kind).or_default();
            *count += 1;
            if *count > MAX_KEPT {
                continue;
            }
            let folder = self.kept_folder.join(format!("{}-{number}", self.seed));
            sandbox.keep(&folder);
            for path in &case.outside_files {
                let name = Path::new(path).file_name().expect("a file");
                fs::copy(path, folder.join(name)).expect("a file can be copied");
            }
            let script = format!("{}{line}\n", exports());
            fs::write(folder.join("again.sh"), script).expect("a file can be written");
            let finding = format!(
                "seed {} number {number}: {fault}\n  {line}\n  in {}",
                self.seed,
                folder.display()
            );
            eprintln!("{finding}");
            summary.kept.push(finding);
        }
    }
}

/// Shell commands that set the environment of every run, except PATH.
fn exports() -> String {
    let variables = execute::environment().into_iter();
    variables
        .filter(|(name, _)| *name != "PATH")
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect()
}

/// The part that findings with the same cause share: the location of a panic, or the command and the start of the fault.
fn kind(fault: &str, case: &Case) -> String {
    let command = case.words[..case.words.len().min(2)].join(" ");
    match fault.split_once(": ") {
        _ if fault.starts_with("panicked") => fault.to_owned(),
        Some((short, _)) => format!("{command}: {short}"),
        None => format!("{command}: {fault}"),
    }
}

/// A number in the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the number of runs"
)]
fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Comma-separated words in the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment selects what a test runs"
)]
fn words_of(name: &str) -> Vec<String> {
    let text = std::env::var(name).unwrap_or_default();
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Files named [`names::TAG`] in common folders, in `root` and in the folders above it: only a program that follows a hostile
/// path creates them.
fn misplaced_files(root: &Path) -> Vec<String> {
    let folders = ["/", "/tmp", "/etc", "/dev/shm", "/var/tmp"].map(Path::new);
    let folders = folders.into_iter().chain(root.ancestors());
    let mut paths: Vec<String> = folders
        .filter_map(|folder| {
            let path = folder.join(names::TAG);
            path.symlink_metadata()
                .is_ok()
                .then(|| path.display().to_string())
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[test]
fn hostile_input_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    let runs = match number_of("RPERF_HOSTILE_ONLY") {
        Some(number) => number..number + 1,
        None => 0..number_of("RPERF_HOSTILE").unwrap_or(RUNS),
    };
    let summary = campaign(&folder, number_of("RPERF_HOSTILE_SEED").unwrap_or(1), runs);
    for (family, (runs, read)) in &summary.families {
        eprintln!("{family}: {runs} runs, {read} with status 0");
    }
    if let Some((took, number, line)) = &summary.slowest {
        eprintln!("slowest: {took:?}, number {number}: {line}");
    }
    for (kind, count) in &summary.findings {
        eprintln!("{count} times {kind}");
    }
    let kept = summary.kept.len();
    assert!(summary.kept.is_empty(), "{kept} findings are shown above");
}

/// Executes these runs, and prints the findings.
fn campaign(folder: &Path, seed: u64, runs: Range<u64>) -> Summary {
    let scratch = Scratch::new();
    let begun = Instant::now();
    let campaign = Campaign {
        seed,
        seeds: Seeds::load(folder),
        commands: words_of("RPERF_HOSTILE_COMMANDS"),
        kept_folder: folder.join("found"),
        next: AtomicU64::new(runs.start),
        end: runs.end,
        summary: Mutex::default(),
    };
    eprintln!(
        "{} recordings and {} objects were loaded in {:?}",
        campaign.seeds.recordings.len(),
        campaign.seeds.objects.len(),
        begun.elapsed()
    );
    let begun = Instant::now();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let sandbox = Sandbox::new(scratch.path().join(worker.to_string()));
            let campaign = &campaign;
            scope.spawn(move || campaign.work(sandbox));
        }
    });
    eprintln!(
        "{} runs of seed {seed} in {:?}",
        runs.end - runs.start,
        begun.elapsed()
    );
    let mut summary = campaign.summary.into_inner().expect("no worker panics");
    for path in misplaced_files(scratch.path()) {
        let finding = format!("a file that no run may create: {path}");
        eprintln!("{finding}");
        summary.kept.push(finding);
    }
    summary
}
