//! Temporary events of one run: `--probe`, and USDT probes that were not added before.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use super::programs::{probe, programs, rperf};
use super::recorded_values::{Group, can_probe};

/// The time limit for waiting for another process.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Runs rperf with these arguments in the folder of the programs, with this home.
fn output(home: &Path, words: &[&str]) -> Outcome {
    let run = Run::new(rperf()).args(words);
    let run = run.within(programs()).env("HOME", home);
    run.finish().expect("the binary starts")
}

/// The existing events of a group, as `probe -l` lists them.
fn existing(group: &str) -> String {
    let outcome = probe(rperf(), &["-l", &format!("{group}:*")]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    outcome.stdout
}

/// The event and the values of each sample in `file`, without the address, which differs between runs.
fn fields(tool: &Path, file: &str) -> Vec<String> {
    let run = Run::new(tool).args(["script", "-F", "event,trace", "-i", file]);
    let outcome = run.within(programs()).finish().expect("the tool starts");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let fields = outcome.stdout.lines().map(|line| {
        let (event, values) = line.split_once('(').expect("an address");
        let (_, values) = values.split_once(')').expect("its end");
        format!("{}{values}", event.trim())
    });
    fields.collect()
}

/// The probes of a recording are removed at its end.
#[test]
fn probes_of_a_recording_end_with_it() {
    let test = "probes_of_a_recording_end_with_it";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("own");
    let (name, home) = (&group.0, Scratch::new());
    let file = home.path().join("perf.data").display().to_string();
    let filtered = format!("./plain:{name}:one=leaf n");
    let two = format!("./plain:{name}:two=other");
    let never = format!("./plain:{name}:never=mix%return");
    let words = [
        "record", "-o", &file, "--probe", &filtered, "--filter", "n != 10", "--probe", &two,
    ];
    let outcome = output(home.path(), &[&words[..], &["./plain", "3"]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("Added new event for this run:\n"),
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains("never hit"), "{}", outcome.stderr);
    assert_eq!(existing(name), "");
    // The first of the three rounds has n=10, which the filter excludes.
    let leaf_hit = |n: u32| format!("{name}:one: n={n}");
    let other_hit = format!("{name}:two:");
    let expected = [
        other_hit.clone(),
        leaf_hit(11),
        other_hit.clone(),
        leaf_hit(12),
        other_hit,
    ];
    assert_eq!(fields(rperf(), &file), expected);
    match real_perf() {
        Some(perf) => assert_eq!(fields(&perf, &file), expected),
        None => skip(test, "there is no perf to compare with"),
    }
    // Without rounds the program never calls `mix`.
    let outcome = output(
        home.path(),
        &["record", "-o", &file, "--probe", &never, "./plain", "0"],
    );
    let message = format!("{name}:never__return was never hit");
    assert!(outcome.stderr.contains(&message), "{}", outcome.stderr);
    assert_eq!(existing(name), "");
}

#[test]
fn filters_select_samples_by_strings_and_numbers() {
    let test = "filters_select_samples_by_strings_and_numbers";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("chosen");
    let (name, home) = (&group.0, Scratch::new());
    let file = home.path().join("perf.data").display().to_string();
    let definition = format!("./plain:{name}:called=middle count name=it->name:string");
    let called = |count: u32| format!("{name}:called: count={count} name=\"alpha\"");
    for (filter, counts) in [
        ("count > 3 && name ~ \"alp*\"", &[4, 5][..]),
        ("count < 2 || count == 5", &[1, 5]),
        ("name == \"alpha\" && count != 3", &[1, 2, 4, 5]),
        ("name ~ \"sev*\"", &[]),
    ] {
        let words = [
            "record",
            "-o",
            &file,
            "--probe",
            &definition,
            "--filter",
            filter,
        ];
        let outcome = output(home.path(), &[&words[..], &["./plain", "5"]].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let expected: Vec<_> = counts.iter().copied().map(called).collect();
        assert_eq!(fields(rperf(), &file), expected, "{filter}");
    }
}

/// If a recording fails, the probes that were already added for it are removed.
#[test]
fn probes_of_a_recording_end_with_its_errors() {
    let test = "probes_of_a_recording_end_with_its_errors";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("fail");
    let (name, home) = (&group.0, Scratch::new());
    let file = home.path().join("perf.data").display().to_string();
    let good = format!("./plain:{name}:good=leaf");
    // The kernel refuses two fields of one name.
    let bad = format!("./plain:{name}:bad=leaf a=%di a=%si");
    for (words, part) in [
        (
            &["--probe", &good, "-e", "nosuch:event", "true"] as &[&str],
            "unknown tracepoint",
        ),
        (
            &["--probe", &good, "--probe", &bad, "true"],
            "the kernel refused the event",
        ),
        (
            &["--probe", &good, "--probe", "./plain:nosuch", "true"],
            "'nosuch' not found",
        ),
        (
            &["--probe", &good, "--filter", "n == 1", "true"],
            "failed to set filter",
        ),
        (&["--probe", &good, "./nosuch"], "Failed to collect"),
        (
            &["--probe", "./nosuch:leaf", "true"],
            "Failed to get the absolute path of ./nosuch",
        ),
        (
            &["--probe", "-x ./plain leaf", "true"],
            "--probe: '-x ./plain leaf' begins with an option, not with a definition\nhint: --probe takes [PROGRAM:]DEFINITION: ",
        ),
    ] {
        let outcome = output(home.path(), &[&["record", "-o", &file], words].concat());
        assert_ne!(outcome.status, 0, "{words:?}");
        assert!(
            outcome.stderr.contains(part),
            "{words:?}: {}",
            outcome.stderr
        );
        assert_eq!(existing(name), "", "{words:?}");
    }
}

/// If a signal ends `record` or `stat`, their probes are removed.
#[test]
fn probes_of_a_recording_end_with_signals() {
    let test = "probes_of_a_recording_end_with_signals";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("stop");
    let (name, home) = (&group.0, Scratch::new());
    for (signal, command) in [("-INT", "record"), ("-TERM", "record"), ("-INT", "stat")] {
        let definition = format!("./plain:{name}:one=leaf");
        let mut child = Command::new(rperf())
            .args([command, "-o"])
            .arg(home.path().join("output"))
            .args(["--probe", &definition, "-a"])
            .current_dir(programs())
            .env("HOME", home.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let appears = || existing(name).contains("one");
        let appeared = wait_until(appears);
        if !appeared {
            child.kill().expect("it runs");
        }
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        sent.expect("kill starts");
        child.wait().expect("it ends");
        assert!(appeared, "{command} makes its event");
        assert_eq!(existing(name), "", "{command} {signal}");
    }
}

/// With `--probe`, rperf blocks signals that would end it before it removes the events. The program does not inherit this.
#[test]
fn the_program_starts_with_an_unchanged_signal_mask() {
    let test = "the_program_starts_with_an_unchanged_signal_mask";
    if !can_probe(test) {
        return;
    }
    let home = Scratch::new();
    let masks = |words: &[&str]| {
        let workload = ["grep", "SigBlk", "/proc/self/status"];
        let run = Run::new(rperf())
            .args(words)
            .args(["-o", "output"])
            .args(workload)
            .within(home.path());
        let outcome = run
            .env("HOME", home.path())
            .finish()
            .expect("the binary starts");
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout
    };
    let plain = programs().join("plain").display().to_string();
    let definition = format!("{plain}:leaf");
    let expected = masks(&["record"]);
    assert!(expected.starts_with("SigBlk:"), "{expected}");
    for command in ["record", "stat"] {
        assert_eq!(
            masks(&[command, "--probe", &definition]),
            expected,
            "{command}"
        );
    }
}

#[test]
fn concurrent_runs_do_not_share_events() {
    let test = "concurrent_runs_do_not_share_events";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("race");
    let (name, home) = (&group.0, Scratch::new());
    let definition = format!("./plain:{name}:one=leaf");
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let runs = (0..6).map(|_| {
            scope.spawn(|| {
                output(
                    home.path(),
                    &["stat", "-x,", "--probe", &definition, "./plain", "3"],
                )
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter()
            .map(|run| run.join().expect("it ends"))
            .collect()
    });
    for outcome in outcomes {
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let row = outcome
            .stderr
            .lines()
            .find(|line| line.contains(&format!(",,{name}:one")));
        assert!(
            row.is_some_and(|row| row.starts_with("3,,")),
            "{}",
            outcome.stderr
        );
    }
    assert_eq!(existing(name), "");
}

/// Waits until the condition is true; false if it is not within [`WAIT_LIMIT`].
fn wait_until(condition: impl Fn() -> bool) -> bool {
    let step = Duration::from_millis(50);
    let tries = WAIT_LIMIT.as_millis() / step.as_millis();
    (0..tries).any(|_| {
        sleep(step);
        condition()
    })
}

#[test]
fn existing_events_are_not_changed() {
    let test = "existing_events_are_not_changed";
    if !can_probe(test) {
        return;
    }
    let group = Group::new("keep");
    let (name, home) = (&group.0, Scratch::new());
    let definition = format!("{name}:one=leaf");
    let added = probe(rperf(), &["-x", "./plain", "--add", &definition]);
    assert_eq!(added.status, 0, "{}", added.stderr);
    let before = existing(name);
    let again = format!("./plain:{definition} n");
    let counted = output(
        home.path(),
        &["stat", "-x,", "--probe", &again, "./plain", "3"],
    );
    assert!(
        counted.stderr.contains(&format!("3,,{name}:one_1,")),
        "{}",
        counted.stderr
    );
    assert_eq!(existing(name), before);
}

#[test]
fn probes_are_recorded_and_counted_without_tracefs() {
    let test = "probes_are_recorded_and_counted_without_tracefs";
    if !can_probe(test) {
        return;
    }
    if !Path::new("/sys/bus/event_source/devices/uprobe/type").exists() {
        return skip(test, "the kernel has no uprobe PMU");
    }
    let home = Scratch::new();
    let file = home.path().join("perf.data").display().to_string();
    let empty = home.path().join("empty");
    fs::create_dir(&empty).expect("it is made");
    let empty = empty.display().to_string();
    let without_tracefs = |words: &[&str]| {
        let words = [&["--debugfs-dir", &empty], words].concat();
        output(home.path(), &words)
    };
    let probes = [
        "--probe",
        "./plain:leaf",
        "--probe",
        "./plain:own:back=other%return",
    ];
    let recorded =
        without_tracefs(&[&["record", "-o", &file], &probes[..], &["./plain", "3"]].concat());
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    assert!(
        recorded.stderr.contains("because tracefs is not mounted:"),
        "{}",
        recorded.stderr
    );
    let samples = output(home.path(), &["script", "-F", "event,ip,sym", "-i", &file]);
    let samples: Vec<Vec<&str>> = samples
        .stdout
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // Without the address.
            [&words[..1], &words[2..]].concat()
        })
        .collect();
    let round = [["probe_plain:leaf:", "leaf"], ["own:back__return:", "main"]];
    assert_eq!(samples, [round, round, round].concat());
    let counted = without_tracefs(&[&["stat", "-x,"], &probes[..], &["./plain", "3"]].concat());
    for name in ["probe_plain:leaf", "own:back__return"] {
        assert!(
            counted.stderr.contains(&format!("3,,{name},")),
            "{}",
            counted.stderr
        );
    }
    let refused = without_tracefs(&[
        "record",
        "-o",
        &file,
        "--probe",
        "./plain:leaf n",
        "./plain",
    ]);
    // As in perf, the low byte of -ENOENT.
    assert_eq!(refused.status, 254, "{}", refused.stderr);
    for part in [
        "tracefs is not mounted at ",
        "tracefs is not needed for probes of programs that record no arguments",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}

#[test]
fn usdt_probes_are_recorded_by_name() {
    let test = "usdt_probes_are_recorded_by_name";
    if !can_probe(test) {
        return;
    }
    let home = Scratch::new();
    // A unique provider: other tests add the event of the usual name meanwhile.
    let provider = format!("own{}", std::process::id());
    compile_marked(home.path(), &provider);
    let run = |words: &[&str]| {
        let run = Run::new(rperf()).args(words).within(home.path());
        run.env("HOME", home.path())
            .finish()
            .expect("the binary starts")
    };
    let event = format!("sdt_{provider}:tick");
    let unknown = run(&["record", "-o", "perf.data", "-e", &event, "./marked"]);
    assert_eq!(unknown.status, 129, "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("'buildid-cache --add PROGRAM'"),
        "{}",
        unknown.stderr
    );
    assert_eq!(run(&["buildid-cache", "--add", "marked"]).status, 0);
    let definition = format!("%{event} name=arg2:string");
    let refused = run(&["record", "-o", "perf.data", "-e", &definition, "./marked"]);
    assert_eq!(refused.status, 129, "{}", refused.stderr);
    let hint = format!("--probe 'PROGRAM:%{event} name=arg2:string'");
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    let recorded = run(&["record", "-o", "perf.data", "-e", &event, "./marked"]);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    // The program prints a line in each round, since it sees that its semaphore is set.
    assert_eq!(recorded.stdout.lines().count(), 3, "{}", recorded.stdout);
    let file = home.path().join("perf.data").display().to_string();
    let rounds =
        (0..3).map(|round| format!("{event}: arg1={} arg2={} arg3=9", round - 1, 40 + round));
    // Each round hits the two copies of the probe.
    let expected: Vec<String> = rounds.flat_map(|line| [line.clone(), line]).collect();
    assert_eq!(fields(rperf(), &file), expected);
    let all = format!("sdt_{provider}:*");
    let counted = run(&[
        "stat",
        "-x,",
        "-e",
        &format!("{{{all}:u,page-faults}}"),
        "./marked",
    ]);
    assert!(
        counted.stderr.contains(&format!("6,,{event}:u,")),
        "{}",
        counted.stderr
    );
    // A dry run (`-n`) with `--cache` only adds the definition to the probe cache.
    let kept = format!("{provider}:kept=main");
    let cached = run(&["probe", "--cache", "-n", "-x", "./marked", "--add", &kept]);
    assert_eq!(cached.status, 0, "{}", cached.stderr);
    let counted = run(&[
        "stat",
        "-x,",
        "-e",
        &format!("%{provider}:kept"),
        "./marked",
    ]);
    assert!(
        counted.stderr.contains(&format!("1,,{provider}:kept,")),
        "{}",
        counted.stderr
    );
    for group in [&provider, &format!("sdt_{provider}")] {
        assert_eq!(existing(group), "");
    }
}

/// Compiles the program `marked` with two inlined copies of a USDT probe of this provider.
fn compile_marked(folder: &Path, provider: &str) {
    let source = crate::tidy::root().join("tests/workloads/marked.c");
    let source = fs::read_to_string(source).expect("it is there");
    let source = source
        .replace("demo", provider)
        .replace(
            "static void tick",
            "static inline __attribute__((always_inline)) void tick",
        )
        .replace(
            "tick(i - 1, &value);",
            "tick(i - 1, &value); tick(i - 1, &value);",
        );
    fs::write(folder.join("marked.c"), source).expect("it is written");
    let compiled = Command::new("cc")
        .args(["-O2", "-o", "marked", "marked.c"])
        .current_dir(folder)
        .status();
    assert!(compiled.expect("a compiler starts").success());
}
