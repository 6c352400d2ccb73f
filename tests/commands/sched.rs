//! `rperf sched`: its subcommands, and recordings that cannot be analysed, or only in part.

mod diff;
mod kernels;
mod latency;
mod live;
mod map;
mod off_cpu;
mod perfetto;
mod recording;
mod replay;
pub(super) mod stats;

use rperf_testkit::{Outcome, Scratch, skip};

use self::recording::SchedFile;
use super::{outcome, rperf};
use crate::kernel::can_trace;

/// Subcommands that analyse a recording, without those whose warnings and errors are tested in their own modules.
const ANALYSES: &[&str] = &["latency", "timehist", "map", "off-cpu"];

#[track_caller]
fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Adds two tasks on CPU 0. Task 7 waits from 100 to 110 us, after it was woken, and from 150 to 250 us, after it was preempted.
/// The first number of each event is its time in nanoseconds. A wakeup has the waker and the woken task, a switch has the
/// previous task with its state and the next task, a run time has the task and the nanoseconds.
fn waits(file: &mut SchedFile) {
    file.comm(7, "seven");
    file.comm(8, "eight");
    file.waking(100_000, 0, 7);
    file.switch(110_000, (0, 0), 7);
    file.runtime(149_000, 7, 39_000);
    file.switch(150_000, (7, 0x100), 8);
    file.runtime(249_000, 8, 99_500);
    file.switch(250_000, (8, 1), 7);
    file.switch(300_000, (7, 1), 0);
}

/// The table of [`waits`]. The first event of `eight` is the switch to it, at which its only wait begins and ends.
const TABLE: &str = "
 -------------------------------------------------------------------------------------------------------------------------------------------
  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    | Max delay start           | Max delay end          |
 -------------------------------------------------------------------------------------------------------------------------------------------
  seven:7               |      0.039 ms |        2 | avg:   0.055 ms | max:   0.100 ms | max start:     0.000150 s | max end:     0.000250 s
  eight:8               |      0.100 ms |        1 | avg:   0.000 ms | max:   0.000 ms | max start:     0.000000 s | max end:     0.000000 s
 -----------------------------------------------------------------------------------------------------------------
  TOTAL:                |      0.139 ms |        3 |
 ---------------------------------------------------

";

#[test]
fn latencies_of_both_byte_orders() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for mut file in [SchedFile::new(), SchedFile::big_endian()] {
        waits(&mut file);
        scratch.write("perf.data", file.finish())?;
        for words in [
            &["sched", "latency"][..],
            &["sched", "-i", "perf.data", "lat", "-p"],
            &[
                "sched",
                "latency",
                "-i",
                "perf.data",
                "-s",
                "avg,runtime",
                "-C",
                "0",
            ],
        ] {
            let outcome = run(&scratch, words);
            assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
            assert_eq!(outcome.stdout, TABLE, "{words:?}");
        }
    }
    let by_runtime = run(&scratch, &["sched", "latency", "-s", "runtime"]).stdout;
    let position = |task: &str| by_runtime.find(task).expect(task);
    assert!(position("eight:8") < position("seven:7"), "{by_runtime}");
    let other_cpu = run(&scratch, &["sched", "latency", "-C", "1"]).stdout;
    let no_tasks = "  TOTAL:                |      0.000 ms |        0 |\n";
    assert!(other_cpu.contains(no_tasks), "{other_cpu}");
    assert!(!other_cpu.contains("seven"), "{other_cpu}");
    Ok(())
}

/// The output of `timehist -n --state --show-prio`.
const HISTORY: [&str; 7] = [
    "           time    cpu  task name                       prio      wait time  sch delay   run time  state",
    "                        [tid/pid]                                    (msec)     (msec)     (msec)       ",
    "--------------- ------  ------------------------------  --------  ---------  ---------  ---------  -----",
    "       0.000110 [0000]  <idle>                          120           0.000      0.000      0.000      I  next: [7]                     ",
    "       0.000150 [0000]  seven[7]                        120           0.000      0.010      0.040      R  next: [8]                     ",
    "       0.000250 [0000]  eight[8]                        120           0.000      0.000      0.100      S  next: [7]                     ",
    "       0.000300 [0000]  seven[7]                        120           0.100      0.000      0.050      S  next: [0]                     ",
];

#[test]
fn the_history_of_both_byte_orders() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for mut file in [SchedFile::new(), SchedFile::big_endian()] {
        waits(&mut file);
        scratch.write("perf.data", file.finish())?;
        let words = ["sched", "timehist", "-n", "--state", "--show-prio"];
        let outcome = run(&scratch, &words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert_eq!(outcome.stderr, "Samples do not have callchains.\n");
        assert_eq!(outcome.stdout.lines().collect::<Vec<_>>(), HISTORY);
    }
    let rows = |words: &[&str]| {
        let words = [&["sched", "timehist"], words].concat();
        let lines = run(&scratch, &words).stdout;
        lines.lines().skip(3).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(&["-t", "8"]).len(), 1);
    assert_eq!(rows(&["--prio", "0-99"]).len(), 0);
    assert_eq!(rows(&["--prio", "100-139"]).len(), 4);
    assert_eq!(rows(&["-C", "1"]).len(), 0);
    assert_eq!(rows(&["-w"]).len(), 5);
    let within = rows(&["--time", "0.000200,0.000275"]);
    let expected = ["eight[8]", "seven[7]"].iter().zip([" 0.050 ", " 0.025 "]);
    assert_eq!(within.len(), 2, "{within:?}");
    for (row, (task, run_time)) in within.iter().zip(expected) {
        assert!(row.contains(task) && row.ends_with(run_time), "{row}");
    }
    let summary = run(&scratch, &["sched", "timehist", "-s", "--state"]).stdout;
    let seven = "seven[7]      -1          2        0.090      0.000       0.000       0.100       0.010 \n";
    assert!(summary.contains(seven), "{summary}");
    let totals = "Total number of unique tasks: 2\nTotal number of context switches: 4\n";
    assert!(summary.contains(totals), "{summary}");
    Ok(())
}

#[test]
fn the_map_of_both_byte_orders() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for mut file in [SchedFile::new(), SchedFile::big_endian()] {
        waits(&mut file);
        // COMM records have no time here and are sorted before all switches, so every row has the new name.
        file.comm(8, "renamed");
        file.switch(320_000, (0, 0), 8);
        scratch.write("perf.data", file.finish())?;
        let map = run(&scratch, &["sched", "map"]);
        assert_eq!((map.status, &*map.stderr), (0, ""));
        let rows = [
            "  *A0       0.000110 secs A0 => seven:7",
            "  *B0       0.000150 secs B0 => renamed:8",
            "  *A0       0.000250 secs ",
            "  *.        0.000300 secs .  => swapper:0",
            "  *B0       0.000320 secs ",
        ];
        assert_eq!(map.stdout.lines().collect::<Vec<_>>(), rows);
        let compact = run(&scratch, &["sched", "map", "--compact"]).stdout;
        assert_eq!(
            compact.lines().next(),
            Some(&*format!("{} (CPU 0)", rows[0]))
        );
        let none = run(&scratch, &["sched", "map", "--cpus", "1"]).stdout;
        assert_eq!(none, "");
        let one = run(
            &scratch,
            &["sched", "map", "--cpus", "0", "--color-pids", "7"],
        )
        .stdout;
        assert_eq!(one, map.stdout);
    }
    for words in [
        ["--cpus", "x"],
        ["--color-pids", "x"],
        ["--task-name", ","],
        // Refused without --task-name; -v only fills the array.
        ["--fuzzy-name", "-v"],
    ] {
        let refused = outcome(&[&["sched", "map"], &words[..]].concat());
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
        assert!(refused.stderr.contains(words[0]), "{refused:?}");
    }
    Ok(())
}

#[test]
fn the_map_shows_the_switches_of_selected_tasks() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    scratch.write("perf.data", file.finish())?;
    let seven = [
        "  *A0       0.000110 secs A0 => seven:7",
        "  *-        0.000150 secs ",
        "  *A0       0.000250 secs ",
        "  *-        0.000300 secs ",
    ];
    let eight = [
        "  *A0       0.000150 secs A0 => eight:8",
        "  *-        0.000250 secs ",
    ];
    let both = [
        "  *A0       0.000110 secs A0 => seven:7",
        "  *B0       0.000150 secs B0 => eight:8",
        "  *A0       0.000250 secs ",
        "  *-        0.000300 secs ",
    ];
    for (words, rows) in [
        ("--task-name seven", &seven[..]),
        ("--task-name ev --fuzzy-name", &seven),
        ("--task-name eight --cpus 0", &eight),
        ("--task-name eight,seven", &both),
        ("--task-name eve,igh --fuzzy-name", &both),
        ("--task-name ev", &[]),
    ] {
        let words: Vec<&str> = ["sched", "map"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        let map = run(&scratch, &words);
        assert_eq!((map.status, &*map.stderr), (0, ""), "{words:?}");
        assert_eq!(map.stdout.lines().collect::<Vec<_>>(), rows, "{words:?}");
    }
    Ok(())
}

#[test]
fn options_of_the_history_are_checked() {
    for (words, status, message) in [
        (
            &["-s", "-w"][..],
            129,
            " Error: -s and -[n|w] are mutually exclusive.\n",
        ),
        (
            &["--prio", "120-100"],
            129,
            "--prio: '120-100' is not a priority",
        ),
        (
            &["-t", "x"],
            129,
            "problems parsing tid list: 'x' is not a number\n",
        ),
        (&["--time", "2,1"], 234, "Invalid time string\n"),
        (&["--time", "1.5x"], 234, "Invalid time string\n"),
        (&["-C", "a"], 255, "Invalid cpu_list\n"),
    ] {
        let refused = outcome(&[&["sched", "timehist"], words].concat());
        assert_eq!(
            (refused.status, &*refused.stdout),
            (status, ""),
            "{refused:?}"
        );
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
}

#[test]
fn stretches_with_lost_records_are_named() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    for round in 0..7 {
        file.lost(400_000 + round * 100_000, 5);
    }
    scratch.write("perf.data", file.finish())?;
    for analysis in ANALYSES {
        let outcome = run(&scratch, &["sched", analysis]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let stretch = "Warning: CPU 0: 5 records were lost between 0.000300 and 0.000400 s; ";
        assert!(outcome.stderr.contains(stretch), "{outcome:?}");
        assert!(
            outcome.stderr.contains("hint: -v lists 2 more stretches\n"),
            "{outcome:?}"
        );
        // 16 records are in the file: 9 of `waits`, and 7 that report losses.
        let lost = "lost events (35 out of 16, in 7 chunks)\n";
        let has_line = outcome.stdout.contains(lost);
        assert_eq!(
            has_line,
            ["latency", "map"].contains(analysis),
            "{outcome:?}"
        );
        let all = run(&scratch, &["sched", analysis, "-v"]).stderr;
        assert_eq!(all.matches(" s; run times and delays").count(), 7, "{all}");
    }
    Ok(())
}

#[test]
fn recordings_without_switches_or_cpus_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut no_switches = SchedFile::without_switches();
    no_switches.waking(100_000, 0, 7);
    scratch.write("no-switches.data", no_switches.finish())?;
    let mut no_cpu = SchedFile::without_cpu();
    no_cpu.comm(7, "seven");
    scratch.write("no-cpu.data", no_cpu.finish())?;
    for analysis in ANALYSES {
        let refused = |file: &str, message: &str| {
            let outcome = run(&scratch, &["sched", "-i", file, analysis]);
            assert_eq!((outcome.status, &*outcome.stdout), (255, ""), "{outcome:?}");
            assert!(outcome.stderr.starts_with(message), "{outcome:?}");
            assert!(
                outcome.stderr.contains("\nhint: record with "),
                "{outcome:?}"
            );
        };
        refused(
            "no-switches.data",
            "no-switches.data: No sched_switch events found. Have you run 'rperf sched record'?\n",
        );
        refused(
            "no-cpu.data",
            "no-cpu.data: samples of sched:sched_switch have no CPU\n",
        );
    }
    Ok(())
}

#[test]
fn a_truncated_recording_ends_with_an_error() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    let mut bytes = file.finish();
    // The file ends within the last switch: the features that its header announces are missing, too.
    let end = file.end_of_records() - 20;
    bytes.truncate(end);
    scratch.write("perf.data", bytes)?;
    for analysis in ANALYSES {
        let outcome = run(&scratch, &["sched", analysis]);
        assert_eq!(outcome.status, 255, "{outcome:?}");
        let message = "\nperf.data: the descriptions of its tracepoints are missing, without which its events are unknown\n\
            hint: they follow the records, and the file is truncated: copy it again, or record again\n";
        assert!(outcome.stderr.ends_with(message), "{outcome:?}");
    }
    Ok(())
}

/// The number of CPUs in the header and the CPU of a sample are impossibly high, as in a damaged recording. Such a sample counts
/// as a lost record.
#[test]
fn impossible_cpus_are_skipped() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    file.nr_cpus(u32::MAX);
    waits(&mut file);
    file.switch_on(400_000, u32::MAX - 1);
    scratch.write("perf.data", file.finish())?;
    for words in [&["sched", "map"][..], &["sched", "timehist", "-V", "-S"]] {
        let outcome = run(&scratch, words);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stdout.len() < 1 << 20, "{}", outcome.stdout.len());
        let message = "CPU 4294967294: 1 record was lost between 0.000000 and 0.000400 s";
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
    Ok(())
}

#[test]
fn records_are_dumped_first() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    scratch.write("perf.data", file.finish())?;
    let dumped = run(&scratch, &["sched", "-D", "latency"]);
    assert_eq!((dumped.status, &*dumped.stderr), (0, ""));
    let records = dumped.stdout.strip_suffix(TABLE);
    let records = records.unwrap_or_else(|| panic!("{dumped:?}"));
    assert_eq!(records.matches(": PERF_RECORD_SAMPLE").count(), 7);
    // As in perf, `sched -D` does not print the name and id of each sample's thread, unlike `script -D`.
    assert!(!records.contains("... thread"), "{records}");
    let history = run(&scratch, &["sched", "timehist", "-D"]).stdout;
    assert!(history.starts_with(records), "{history}");
    let printed = run(&scratch, &["sched", "-D", "script"]).stdout;
    let script = run(&scratch, &["script", "-D"]).stdout;
    assert_eq!(printed, script);
    Ok(())
}

#[test]
fn invalid_command_lines_are_refused() {
    for (words, message) in [
        (&["sched"][..], "rperf sched: no subcommand given\n"),
        (
            &["sched", "nosuch"],
            "rperf sched: unknown subcommand 'nosuch'\n",
        ),
        (
            &["sched", "latency", "-s", "foo"],
            "  Error: Unknown --sort key: `foo'\n",
        ),
        (
            &["sched", "-D", "record", "--", "true"],
            "sched record writes a recording; -D applies to reading\n",
        ),
        (&["sched", "-D", "off-cpu"], "rperf sched off-cpu"),
    ] {
        let refused = outcome(words);
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{words:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
}

#[test]
fn events_are_recorded_and_printed() {
    const NAME: &str = "commands::sched::events_are_recorded_and_printed";
    if !can_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "sched", "record", "-g", "-o", "s.data", "--", "sleep", "0.05",
    ];
    let recorded = run(&scratch, &words);
    if recorded.status != 0 {
        return skip(NAME, &recorded.stderr);
    }
    let events = run(&scratch, &["evlist", "-v", "-i", "s.data"]).stdout;
    for event in [
        "switch",
        "stat_runtime",
        "process_fork",
        "wakeup_new",
        "migrate_task",
        "waking",
    ] {
        let line = events
            .lines()
            .find(|line| line.starts_with(&format!("sched:sched_{event}:")));
        let line = line.unwrap_or_else(|| panic!("{event}: {events}"));
        assert!(
            line.contains("{ sample_period, sample_freq }: 1,"),
            "{line}"
        );
        assert!(line.contains("CALLCHAIN") && line.contains("RAW"), "{line}");
    }
    let script = run(
        &scratch,
        &["sched", "-i", "s.data", "script", "-F", "comm,event,trace"],
    );
    let plain = run(
        &scratch,
        &["script", "-i", "s.data", "-F", "comm,event,trace"],
    );
    assert_eq!(script.stdout, plain.stdout);
    assert!(script.stdout.contains("sched:sched_switch: "), "{script:?}");
    let table = run(&scratch, &["sched", "latency", "-i", "s.data"]).stdout;
    assert!(table.contains("\n  sleep:"), "{table}");
}

#[test]
fn recording_without_scheduler_events_or_with_an_input_is_refused() {
    let scratch = Scratch::new();
    // The folder has events, but none of the scheduler.
    let folder = scratch.path().join("events/other");
    std::fs::create_dir_all(folder).expect("a folder");
    let refused = run(&scratch, &["--debugfs-dir=.", "sched", "record", "true"]);
    assert_eq!(refused.status, 255, "{refused:?}");
    assert!(refused.stderr.starts_with("sched record: "), "{refused:?}");
    assert!(
        refused.stderr.contains("\nhint: mount tracefs"),
        "{refused:?}"
    );
    let with_input = run(&scratch, &["sched", "-i", "x.data", "record", "true"]);
    assert_eq!(with_input.status, 129, "{with_input:?}");
}
