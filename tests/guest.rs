//! Tests of features that the host may lack: hardware counters, kprobes, another architecture. Both tools record in
//! emulated guests, and both read every recording there; the texts are compared here.
//!
//! tests/guest/README.md describes how the guests are made. `RPERF_GUESTS` is their folder, `RPERF_STATIC` the target
//! directory with the static builds; tests/run.sh sets both.

mod bpf;
mod probes;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use rperf_insn::Isa;
use rperf_testkit::{Scratch, skip};

use crate::commands::without_notes;
use crate::differential::disassembly;
use crate::differential::{compare_texts, difference, masked};
use crate::tidy::root;

/// The folder of the cases whose number of samples is compared with the counted events.
const EXACT: &str = "exact";

/// A guest, booted once for all of its cases.
struct Guest {
    machine: &'static str,
    /// The folder of its cases, below tests/guest.
    folder: &'static str,
    /// The folder with the guest's image, made by fetch.sh.
    image: PathBuf,
    rperf: PathBuf,
}

impl Guest {
    /// Finds the guest; prints why if it is skipped.
    fn find(test: &str, machine: &'static str, folder: &'static str) -> Option<Self> {
        let (Some(guests), Some(target)) = (variable("RPERF_GUESTS"), variable("RPERF_STATIC"))
        else {
            skip(test, "RPERF_GUESTS and RPERF_STATIC are not set");
            return None;
        };
        let image = guests.join(machine);
        assert!(
            image.join("complete").exists(),
            "{} has no guest: run tests/guest/fetch.sh",
            image.display()
        );
        let triple = format!("{machine}-unknown-linux-musl");
        let rperf = target.join(triple).join("checked/rperf");
        assert!(rperf.exists(), "{} is not built", rperf.display());
        Some(Self {
            machine,
            folder,
            image,
            rperf,
        })
    }

    /// The kernel module that adds counters to the x86-64 guest: only built if its source was available. The arm64 guest has
    /// counters without it.
    fn counters(&self) -> PathBuf {
        self.image.join("fakepmu.ko")
    }

    /// The cases, one per line; those of the file `counted` only if the module with counters was built.
    fn cases(&self) -> String {
        let folder = root().join("tests/guest").join(self.folder);
        let mut cases = text(&folder.join("cases"));
        if self.counters().exists() {
            cases += &text(&folder.join("counted"));
        }
        cases
    }

    /// Runs the guest's cases and returns the folder of their output.
    fn run(&self, scratch: &Scratch) -> PathBuf {
        let payload = scratch.path().join("payload");
        fs::create_dir(&payload).expect("a folder in scratch");
        let source = root().join("tests/guest");
        let cases = source.join(self.folder);
        fs::write(payload.join("cases"), self.cases()).expect("a file in scratch");
        let mut files = vec![
            cases.join("prepare.sh"),
            source.join("run.sh"),
            self.rperf.clone(),
        ];
        let mut optional_files = vec![
            "stat",
            "stat_alone",
            "probe.sh",
            "definitions",
            "traces",
            "diagnosis",
            "schedstat",
        ];
        optional_files.extend(bless().then_some("fixtures"));
        // Not for the exact cases: their test does not read the output of the BPF programs.
        if self.folder != EXACT {
            files.push(source.join("bpf_programs"));
        }
        for name in optional_files {
            let file = cases.join(name);
            files.extend(file.exists().then_some(file));
        }
        let counters = self.counters();
        files.extend(counters.exists().then_some(counters));
        for file in files {
            let name = file.file_name().expect("a file");
            fs::copy(&file, payload.join(name))
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
        self.build_load(&payload.join("load"));
        let out = scratch.path().join("out");
        let words: [&OsStr; 4] = [
            self.machine.as_ref(),
            self.image.as_ref(),
            payload.as_ref(),
            out.as_ref(),
        ];
        let mut boot = Command::new(source.join("boot.sh"));
        boot.args(words);
        if cases.join("stat").exists() {
            // Two sockets, so that sums by socket differ from those of the whole system.
            boot.env("CPUS", "4,sockets=2,cores=2");
        }
        if cases.join("traces").exists() {
            // perf checks the processor's vendor, not its PMUs, for hardware traces.
            boot.env("MODEL", "max,vendor=GenuineIntel");
        }
        if self.folder == EXACT {
            // With -icount time passes with instructions, which requires a single CPU.
            boot.env("CPUS", "1").args(["-icount", "shift=1,sleep=off"]);
        }
        let mut boot_guest = || boot.status().expect("boot.sh starts").code();
        let mut status = boot_guest();
        // Emulated timers may fire so fast that the guest makes no progress.
        if status == Some(HUNG) {
            status = boot_guest();
        }
        assert_eq!(status, Some(0), "the guest failed; see the lines above");
        out
    }

    /// Builds a static program with frame pointers.
    fn build_load(&self, program: &Path) {
        let triple = format!("{}-unknown-linux-musl", self.machine);
        let built = run(Command::new("rustc")
            .args(["-O", "-g", "--target", &triple])
            .args(["-C", "force-frame-pointers=yes", "-C", "linker=rust-lld"])
            .arg("-o")
            .arg(program)
            .arg(root().join("tests/workloads/guest.rs")));
        assert!(built, "tests/workloads/guest.rs does not compile");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment names the folder of the guests"
)]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Whether to update the fixtures.
fn bless() -> bool {
    variable("RPERF_BLESS").is_some()
}

/// Copies the guest's recordings to the fixtures.
fn take_fixtures(machine: &str, out: &Path) {
    let fixtures = root().join("tests/fixtures").join(machine);
    let recorded = out.join("fixtures");
    let taken = run(Command::new("cp").arg("-rT").args([&recorded, &fixtures]));
    assert!(taken, "{} cannot be copied", recorded.display());
    for entry in fs::read_dir(&fixtures).expect("the folder of the fixtures") {
        let path = entry.expect("a fixture").path();
        if path.extension() == Some("messages".as_ref()) {
            fs::remove_file(path).expect("messages of the recorder");
        }
    }
}

/// The exit status of boot.sh if a guest did not finish.
const HUNG: i32 = 125;

fn run(command: &mut Command) -> bool {
    command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
        .success()
}

fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The faults of one case, recorded by `recorder`. tests/guest/run.sh lists the files of a case. For example, `CASE.perf.rperf`
/// is what rperf's `script` prints for perf's recording, and `CASE.perf.report.rperf` what rperf's `report` prints for it.
fn faults(machine: &str, out: &Path, case: &str, recorder: &str) -> Vec<String> {
    let name = format!("{case}.{recorder}");
    let file = |suffix: &str| text(&out.join(format!("{name}{suffix}")));
    if file(".status").trim() != "0" {
        return vec![format!("{name} was not recorded: {}", file(".messages"))];
    }
    let mut faults = Vec::new();
    let perf_script = file(".perf");
    if perf_script.is_empty() {
        faults.push(format!("{name}: no samples"));
    }
    for reader in ["perf", "rperf"] {
        let message = without_notes(&file(&format!(".{reader}.messages")));
        if !message.is_empty() {
            faults.push(format!("{name}: {reader} script says: {message}"));
        }
    }
    let script = difference(&perf_script, &file(".rperf"));
    faults.extend(script.map(|diff| format!("{name}: script\n{diff}")));
    // `CROSS_4K` and `CROSS_2M`, the numbers of branches that leave their page, are omitted: perf's vary with the load address
    // (docs/compatibility.md).
    let report = |reader: &str| -> String {
        let text = file(&format!(".report.{reader}"));
        let lines = text.lines().filter(|line| !line.contains("CROSS_"));
        lines
            .map(|line| format!("{}\n", without_target(line)))
            .collect()
    };
    // Unlike `difference`, this accepts the intended differences of reports, such as cells that perf truncates.
    let report = compare_texts(&report("perf"), &report("rperf"));
    faults.extend(report.map(|diff| format!("{name}: report\n{diff}")));
    // The guests' perf prints instructions on x86 only.
    if machine == "x86_64" {
        let insn = difference(&file(".insn.perf"), &file(".insn.rperf"));
        faults.extend(insn.map(|diff| format!("{name}: instructions\n{diff}")));
    }
    faults
}

/// The fault of a recording whose header has other features than perf's. Only features without data are compared: they
/// describe the contents of samples, such as branch stacks.
fn feature_fault(out: &Path, case: &str) -> Option<String> {
    let features = |recorder: &str| -> Vec<String> {
        let header = text(&out.join(format!("{case}.{recorder}.header")));
        let lines = header
            .lines()
            .filter(|line| line.starts_with("# contains "));
        lines.map(str::to_owned).collect()
    };
    let [theirs, ours] = ["perf", "rperf"].map(features);
    (theirs != ours).then(|| format!("{case}: features {ours:?}, perf's {theirs:?}"))
}

/// A row of branches, with the target removed: if the target is a branch two bytes before the source, perf in the guest sometimes
/// prints the source's function for the target, too. Outside of guests both tools print the same for all such branches.
fn without_target(row: &str) -> String {
    match row.split("[.] ").collect::<Vec<_>>()[..] {
        [before, from, to] => {
            let cycles = to.split_whitespace().last().unwrap_or_default();
            format!("{before}[.] {from}{cycles}")
        }
        _ => row.to_owned(),
    }
}

/// The faults of one hardware trace, recorded by `recorder`: perf must decode it, and both tools must print the same.
fn trace_faults(out: &Path, case: &str, recorder: &str) -> Vec<String> {
    let name = format!("{case}.{recorder}");
    let file = |suffix: &str| text(&out.join(format!("{name}{suffix}")));
    if file(".status").trim() != "0" {
        return vec![format!("{name} was not recorded: {}", file(".messages"))];
    }
    let mut faults = Vec::new();
    let branch = Regex::new(
        r"^ +load +[0-9]+ +1 +branches:uH: +[0-9a-f]+ \S+ \(/payload/load\) => +[0-9a-f]+ \S+ \(/payload/load\)$",
    );
    let branch = branch.expect("a pattern");
    // The last branch before an interrupt or an exit has no target address in this guest; the slower the guest, the more
    // interrupts.
    let branches = file(".branches");
    let branches: Vec<&str> = branches
        .lines()
        .filter(|line| line.contains("branches:uH:"))
        .collect();
    let complete = branches.iter().filter(|line| branch.is_match(line)).count();
    if complete < 50 || complete * 4 < branches.len() {
        faults.push(format!(
            "{name}: {complete} of {} branches are whole, the last is {:?}",
            branches.len(),
            branches.last()
        ));
    }
    // The tools count the offsets after compressed records differently.
    let is_compressed = case.contains("-zstd-");
    let dumps = difference(&file(".dump.perf"), &file(".dump.rperf"));
    let dumps = dumps.filter(|_| !is_compressed);
    faults.extend(dumps.map(|diff| format!("{name}: dump\n{diff}")));
    faults
}

/// The types of the records in a dump before `FINISHED_INIT`.
fn initial_records(dump: &str) -> Vec<String> {
    let record = Regex::new(r"PERF_RECORD_(\w+)").expect("a pattern");
    let names = dump.lines().filter_map(|line| record.captures(line));
    let names = names.map(|captures| captures[1].to_owned());
    names.take_while(|name| name != "FINISHED_INIT").collect()
}

/// The line with the size of the recorder's ring buffers, if it was printed.
fn ring_size_line(message: &str) -> Option<&str> {
    message.lines().find(|line| line.contains("mmap size"))
}

/// The faults of all hardware traces, recorded by root and by an unprivileged user with a lower limit of locked memory.
fn all_trace_faults(out: &Path, cases: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let of_both_users = |name| ["root", "other"].map(|who| format!("{name}-{who}"));
    for case in names(cases).flat_map(of_both_users) {
        for recorder in ["perf", "rperf"] {
            faults.extend(trace_faults(out, &case, recorder));
        }
        let file =
            |recorder: &str, suffix: &str| text(&out.join(format!("{case}.{recorder}{suffix}")));
        let attrs = difference(&file("perf", ".attrs"), &file("rperf", ".attrs"));
        faults.extend(attrs.map(|diff| format!("{case}: attrs\n{diff}")));
        let [theirs, ours] =
            ["perf", "rperf"].map(|recorder| initial_records(&file(recorder, ".dump.perf")));
        if theirs != ours {
            faults.push(format!(
                "{case}: begins with {ours:?}, perf's with {theirs:?}"
            ));
        }
        let [theirs, ours] = ["perf", "rperf"].map(|recorder| file(recorder, ".messages"));
        if ring_size_line(&theirs) != ring_size_line(&ours) {
            faults.push(format!("{case}: {ours}, perf {theirs}"));
        }
    }
    // The default sizes of the AUX area: of root, and of an unprivileged user.
    for (case, size) in [("trace-root", 4 << 20), ("trace-other", 128 << 10)] {
        let message = text(&out.join(format!("{case}.rperf.messages")));
        if !message.contains(&format!("AUX area mmap length {size}\n")) {
            faults.push(format!(
                "{case}: the AUX area does not have {size} bytes: {message}"
            ));
        }
    }
    // The messages of a recorder that may not lock an area of 64 MiB, followed by its exit status.
    let refused = text(&out.join("refused"));
    let reason = "failed to map an AUX area of 16384 pages for event intel_bts//u: ";
    let parts = [reason, "/proc/sys/kernel/perf_event_mlock_kb", "\n255\n"];
    if !parts.iter().all(|part| refused.contains(part)) {
        faults.push(format!(
            "an AUX area larger than the user may lock: {refused}"
        ));
    }
    faults
}

/// The faults in both tools' tables of one case. The cases are the lines of the file `stat`; tests/guest/run.sh adds the case
/// `threads`, which counts each thread.
fn stat_faults(out: &Path, case: &str) -> Vec<String> {
    let table = |tool: &str| text(&out.join(format!("{case}.{tool}.stat")));
    let rperf = table("rperf");
    let diff = difference(&masked(&table("perf")), &masked(&rperf));
    let fault = diff.map(|diff| format!("stat {case}\n{diff}"));
    let mut faults: Vec<String> = fault.into_iter().collect();
    // The guest's counters count two instructions per cycle, so the ratio is 2 in every aggregation mode.
    let ratios = rperf.lines().filter_map(|line| {
        let (before, _) = line.split_once("insn per cycle")?;
        before
            .trim_end_matches([' ', ','])
            .rsplit([' ', ','])
            .next()
    });
    let ratios: Vec<f64> = ratios.filter_map(|ratio| ratio.parse().ok()).collect();
    // CPUs keep running while they are read one after another, which is slow in emulation. A wrong sum is off by a
    // factor of two.
    let slack = match case {
        "intervals" | "cpus" | "cores" | "sockets" | "nodes" => 0.5,
        _ => 0.1,
    };
    if ratios.is_empty() || ratios.iter().any(|ratio| (ratio - 2.0).abs() > slack) {
        faults.push(format!(
            "stat {case}: instructions for each cycle are {ratios:?}"
        ));
    }
    let multiplexed = rperf.lines().filter(|line| line.ends_with("%)")).count();
    let is_expected = match case {
        "many" => multiplexed > 0,
        // These may be multiplexed or not.
        "detailed" | "weak" => true,
        _ => multiplexed == 0,
    };
    if !is_expected {
        faults.push(format!(
            "stat {case}: {multiplexed} rows are multiplexed:\n{rperf}"
        ));
    }
    faults
}

/// The fault of a table that only rperf prints: its metric, with two decimals, must be the ratio 2 of the guest's counters.
fn stat_alone_fault(out: &Path, case: &str) -> Option<String> {
    let table = text(&out.join(format!("{case}.alone.stat")));
    let metric = Regex::new(r"(?m)(?:^|[ ,])([0-9]\.[0-9]{2})(?:[ ,]|$)").expect("a pattern");
    let matches = metric.captures_iter(&table);
    let ratios: Vec<f64> = matches
        .filter_map(|captures| captures[1].parse().ok())
        .collect();
    // As in `stat_faults`: CPUs are read one after another.
    let slack = if case == "percore" { 0.5 } else { 0.1 };
    let wrong = ratios.is_empty() || ratios.iter().any(|ratio| (ratio - 2.0).abs() > slack);
    wrong.then(|| format!("stat {case}: instructions for each cycle are {ratios:?}:\n{table}"))
}

/// The first word of each line.
fn names(cases: &str) -> impl Iterator<Item = &str> {
    cases.lines().filter_map(|line| line.split(' ').next())
}

/// Runs the guest of one machine and compares its output.
fn compare(test: &str, machine: &'static str) {
    let Some(guest) = Guest::find(test, machine, machine) else {
        return;
    };
    let scratch = Scratch::new();
    let out = guest.run(&scratch);
    if bless() {
        take_fixtures(machine, &out);
    }
    let mut all_faults = Vec::new();
    for case in names(&guest.cases()) {
        for recorder in ["perf", "rperf"] {
            all_faults.extend(faults(machine, &out, case, recorder));
        }
        let attrs = |recorder| text(&out.join(format!("{case}.{recorder}.attrs")));
        let attrs = difference(&attrs("perf"), &attrs("rperf"));
        all_faults.extend(attrs.map(|diff| format!("{case}: attrs\n{diff}")));
        all_faults.extend(feature_fault(&out, case));
    }
    let folder = root().join("tests/guest").join(machine);
    // These cases need the module's counters; the arm64 guest has no such cases.
    if guest.counters().exists() {
        // Without this feature perf shows plain samples instead of their branches.
        let header = text(&out.join("branches.perf.header"));
        assert!(
            header.contains("\n# contains samples with branch stack\n"),
            "{header}"
        );
        let cases = text(&folder.join("stat"));
        let cases = names(&cases).chain(["threads"]);
        all_faults.extend(cases.flat_map(|case| stat_faults(&out, case)));
        let alone = text(&folder.join("stat_alone"));
        all_faults.extend(names(&alone).filter_map(|case| stat_alone_fault(&out, case)));
        all_faults.extend(all_trace_faults(&out, &text(&folder.join("traces"))));
    } else if machine == "x86_64" {
        skip(test, "the parts that need counters, which this guest lacks");
    }
    if folder.join("probe.sh").exists() {
        all_faults.extend(probes::faults(&out));
    }
    // The users that run `rperf test`, one per line.
    let users = text(&folder.join("diagnosis"));
    all_faults.extend(users.lines().filter_map(|user| diagnosis_fault(&out, user)));
    if folder.join("schedstat").exists() {
        all_faults.extend(schedstat_fault(&out));
    }
    all_faults.extend(bpf::faults(&out));
    assert!(all_faults.is_empty(), "{}", all_faults.join("\n"));
}

/// The fault in the scheduler's counters. On each CPU `sched stats` may count at most the difference of the readings before
/// and after it; over all CPUs every counter must be above 0.
fn schedstat_fault(out: &Path) -> Option<String> {
    // Fields of the lines `cpuN` in Documentation/scheduler/sched-stats.rst, and their names in the report.
    const COUNTERS: [(usize, &str); 3] = [(3, "sched_count"), (7, "rq_cpu_time"), (9, "pcount")];
    let [before, after, report] =
        ["before", "after", "report"].map(|name| text(&out.join(format!("schedstat.{name}"))));
    let reading = |all: &str, cpu: &str, field: usize| -> Option<u64> {
        let prefix = format!("cpu{cpu} ");
        let line = all.lines().find(|line| line.starts_with(&prefix))?;
        line.split(' ').nth(field)?.parse().ok()
    };
    // The sum of a counter over all CPUs; `None` if it is missing or too large on any of them.
    let counted = |(field, name): (usize, &str)| {
        let sections = report
            .split("\nCPU: ")
            .skip(1)
            .filter_map(|section| section.split_once('\n'));
        let cpus = sections.filter(|(cpu, _)| cpu.parse::<u32>().is_ok());
        let mut sum = 0;
        for (cpu, section) in cpus {
            let increase = reading(&after, cpu, field)? - reading(&before, cpu, field)?;
            let line = section.lines().find(|line| line.starts_with(name))?;
            let count: u64 = line
                .split_once(':')?
                .1
                .split_whitespace()
                .next()?
                .parse()
                .ok()?;
            if count > increase {
                return None;
            }
            sum += count;
        }
        Some(sum)
    };
    // The report ends with the exit status.
    let is_ok = report.ends_with("\n0\n")
        && COUNTERS
            .into_iter()
            .all(|counter| counted(counter) > Some(0));
    (!is_ok).then(|| {
        let messages = text(&out.join("schedstat.messages"));
        format!("sched stats:\n{messages}{report}\nbefore:\n{before}\nafter:\n{after}")
    })
}

/// The output of `rperf test` as this user, if a check failed or a required feature does not work.
fn diagnosis_fault(out: &Path, user: &str) -> Option<String> {
    let output = text(&out.join(format!("test-{user}")));
    let mut required = vec![
        "Record and report",
        "Callchains by frame pointers",
        "Callchains by DWARF ",
    ];
    if user == "root" {
        required.extend([
            "Tracepoints (tracefs)",
            "Probes in the kernel (kprobes)",
            "Symbols of the kernel",
            "Record a tracepoint",
            "Record a probe on this program",
        ]);
    }
    let works = |name: &&str| {
        let mut lines = output.lines();
        lines.any(|line| line.contains(name) && line.ends_with(": Ok"))
    };
    // The output ends with the exit status.
    let is_ok = output.ends_with("\n0\n") && required.iter().all(works);
    (!is_ok).then(|| format!("rperf test as {user}:\n{output}"))
}

#[test]
fn x86_64_with_counters_and_kprobes() {
    compare("guest::x86_64_with_counters_and_kprobes", "x86_64");
}

#[test]
fn aarch64() {
    compare("guest::aarch64", "aarch64");
}

#[test]
fn aarch64_to_the_last_sample() {
    const NAME: &str = "guest::aarch64_to_the_last_sample";
    // The sample period in tests/guest/exact/cases.
    const PERIOD: u64 = 50_000;
    let Some(guest) = Guest::find(NAME, "aarch64", EXACT) else {
        return;
    };
    let scratch = Scratch::new();
    let out = guest.run(&scratch);
    // The output of `perf stat` in tests/guest/exact/prepare.sh, which counts the cycles of the same workload; not the file
    // `counted` of further cases.
    let counted = text(&out.join("counted"));
    let mut rows = counted.lines().filter_map(|row| row.split(',').next());
    let cycles: u64 = rows.find_map(|count| count.parse().ok()).expect(&counted);
    for recorder in ["perf", "rperf"] {
        let faults = faults("aarch64", &out, "cycles", recorder);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        let samples = text(&out.join(format!("cycles.{recorder}.perf")));
        let samples = samples.lines().count() as u64;
        assert_eq!(samples, cycles / PERIOD, "{recorder}: of {cycles} cycles");
    }
}

/// Boots no guest: it disassembles rperf's static build for the guest, as no other arm64 object is available.
#[test]
fn instructions_of_arm64_read_as_in_objdump() {
    const NAME: &str = "guest::instructions_of_arm64_read_as_in_objdump";
    let Some(guest) = Guest::find(NAME, "aarch64", "aarch64") else {
        return;
    };
    let objdump = match cfg!(target_arch = "aarch64") {
        true => "objdump",
        false => "aarch64-linux-gnu-objdump",
    };
    disassembly::compare(NAME, objdump, &[], Isa::Arm64, &guest.rperf);
}
