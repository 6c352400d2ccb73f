//! `rperf kwork`: its subcommands, and recordings of which nothing or only a part can be analysed.

mod oracle;
mod recording;

use rperf_testkit::{Outcome, Scratch, skip};

use self::recording::{
    ALL, IRQ_ENTRY, KworkFile, SOFTIRQ_ENTRY, SOFTIRQ_EXIT, SOFTIRQ_RAISE, SWITCH, WORK_ACTIVATE,
    WORK_END, WORK_START, at,
};
use super::{outcome, rperf};
use crate::kernel::can_trace;

#[track_caller]
fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Adds an interrupt within a softirq on CPU 0, a softirq on CPU 1 that is raised twice, and a work item that is activated on
/// CPU 0, starts on CPU 1 and ends on CPU 0. Threads 7 and 8 run from 50 or 60 us to 1050 or 1060 us; the records of these ends
/// are the last in the file, after a later event.
fn add_works(file: &mut KworkFile) {
    file.switch(at(50, 0), 7);
    file.switch(at(60, 1), 8);
    file.softirq(SOFTIRQ_RAISE, at(100, 0), 9);
    file.softirq(SOFTIRQ_ENTRY, at(110, 0), 9);
    file.irq_entry(at(120, 0), 10, "eth0");
    file.irq_exit(at(150, 0), 10);
    file.softirq(SOFTIRQ_EXIT, at(160, 0), 9);
    file.softirq(SOFTIRQ_RAISE, at(200, 1), 1);
    file.softirq(SOFTIRQ_RAISE, at(210, 1), 1);
    file.softirq(SOFTIRQ_ENTRY, at(250, 1), 1);
    file.softirq(SOFTIRQ_EXIT, at(251, 1), 1);
    file.work(WORK_ACTIVATE, at(300, 0), 0x7f00);
    file.work(WORK_START, at(400, 1), 0x7f00);
    file.work(WORK_END, at(1400, 0), 0x7f00);
    file.switch(at(1050, 0), 0);
    file.switch(at(1060, 1), 0);
}

/// `(w)0x8f00` is the function of the work item 0x7f00; [`KworkFile::work`] gives it this address.
const REPORT: &str = "
  Kwork Name                     | Cpu  | Total Runtime | Count     | Max runtime   | Max runtime start   | Max runtime end     |
 --------------------------------------------------------------------------------------------------------------------------------
  (w)0x8f00                      | 0001 |      1.000 ms |         1 |      1.000 ms |          0.000400 s |          0.001400 s |
  (s)RCU:9                       | 0000 |      0.050 ms |         1 |      0.050 ms |          0.000110 s |          0.000160 s |
  eth0:10                        | 0000 |      0.030 ms |         1 |      0.030 ms |          0.000120 s |          0.000150 s |
  (s)TIMER:1                     | 0001 |      0.001 ms |         1 |      0.001 ms |          0.000250 s |          0.000251 s |
 --------------------------------------------------------------------------------------------------------------------------------
  Total count            :         4
  Total runtime   (msec) :     1.081 (83.798% load average)
  Total time span (msec) :     1.290
 --------------------------------------------------------------------------------------------------------------------------------

";

/// The skipped events are the first of the two raises of TIMER, and the entry of the interrupt, which has no raise event.
const LATENCY: &str = "
  Kwork Name                     | Cpu  | Avg delay     | Count     | Max delay     | Max delay start     | Max delay end       |
 --------------------------------------------------------------------------------------------------------------------------------
  (w)0x8f00                      | 0001 |      0.100 ms |         1 |      0.100 ms |          0.000300 s |          0.000400 s |
  (s)TIMER:1                     | 0001 |      0.040 ms |         1 |      0.040 ms |          0.000210 s |          0.000250 s |
  (s)RCU:9                       | 0000 |      0.010 ms |         1 |      0.010 ms |          0.000100 s |          0.000110 s |
 --------------------------------------------------------------------------------------------------------------------------------
  INFO: 12.500% skipped events (2 including 1 raise, 1 entry, 0 exit)

";

const TIMEHIST: &str = concat!(
    " Runtime start      Runtime end        Cpu     Kwork name                      Runtime     Delaytime \n",
    "                                               (TYPE)NAME:NUM                  (msec)      (msec)    \n",
    " -----------------  -----------------  ------  ------------------------------  ----------  ----------\n",
    "          0.000120           0.000150  [0000]  eth0:10                              0.030             \n",
    "          0.000110           0.000160  [0000]  (s)RCU:9                             0.050       0.010 \n",
    "          0.000250           0.000251  [0001]  (s)TIMER:1                           0.001       0.040 \n",
    "          0.000400           0.001400  [0001]  (w)0x8f00                            1.000       0.100 \n",
);

/// CPU 0: 1000 us, 50 of them in the softirq, including 30 in the interrupt. CPU 1: 1000 us, 1 of them in the softirq.
const TOP: &str = concat!(
    "\n",
    "Total  :      2.000 ms, 2 cpus\n",
    "%Cpu(s):   0.00% id,   1.50% hi,   1.05% si\n",
    "%Cpu0   [||||||||||||||||||||||||||||    95.00%]\n",
    "%Cpu1   [|||||||||||||||||||||||||||||   99.90%]\n",
    "\n",
    "      PID    %CPU           RUNTIME  COMMAND         \n",
    "  ----------------------------------------------------\n",
    "        8   99.90          0.999 ms  t8              \n",
    "        7   95.00          0.950 ms  t7              \n",
    "\n",
);

#[test]
fn tables_are_the_same_in_both_byte_orders() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for mut file in [KworkFile::with(ALL), KworkFile::big_endian()] {
        add_works(&mut file);
        scratch.write("perf.data", file.finish())?;
        for (words, text) in [
            (&["kwork", "report", "-S"][..], REPORT),
            (
                &["kwork", "-i", "perf.data", "rep", "-S", "-s", "runtime"],
                REPORT,
            ),
            (&["kwork", "latency"], LATENCY),
            (&["kwork", "lat", "-s", "max,count"], LATENCY),
            (&["kwork", "timehist"], TIMEHIST),
            (
                &["kwork", "-k", "workqueue,softirq,irq", "timehist"],
                TIMEHIST,
            ),
            (&["kwork", "top"], TOP),
            (&["kwork", "top", "-k", "irq,softirq,sched"], TOP),
        ] {
            let outcome = run(&scratch, words);
            assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
            assert_eq!(outcome.stdout, text, "{words:?}");
        }
    }
    Ok(())
}

/// Returns the names of the work that a command lists, in order.
fn listed(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let outcome = run(scratch, words);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{words:?}");
    let rows = outcome.stdout.lines().filter_map(|line| {
        let mut cells = line.split_whitespace();
        let is_work = |cell: &&str| {
            ["(s)", "(w)", "eth0"]
                .iter()
                .any(|start| cell.starts_with(start))
        };
        cells.find(is_work).map(str::to_owned)
    });
    rows.collect()
}

#[test]
fn work_is_selected_and_sorted() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = KworkFile::with(ALL);
    add_works(&mut file);
    scratch.write("perf.data", file.finish())?;
    for (words, expected) in [
        ("report -k softirq", &["(s)RCU:9", "(s)TIMER:1"][..]),
        // All counts are equal: the rows are in the order of the classes of -k, then of descending CPUs.
        (
            "report -k irq,softirq -s count",
            &["eth0:10", "(s)TIMER:1", "(s)RCU:9"],
        ),
        (
            "report -k softirq,irq -s count",
            &["(s)TIMER:1", "(s)RCU:9", "eth0:10"],
        ),
        ("report -C 1", &["(w)0x8f00", "(s)TIMER:1"]),
        ("report -n eth0", &["eth0:10"]),
        ("latency -C 1 -n TIMER", &["(s)TIMER:1"]),
        ("latency -n 0x8f00", &["(w)0x8f00"]),
        ("timehist -n RCU", &["(s)RCU:9"]),
        (
            "report --time ,0.0003",
            &["(s)RCU:9", "eth0:10", "(s)TIMER:1"],
        ),
        ("report --time 0.00012,0.0003", &["eth0:10", "(s)TIMER:1"]),
        ("report --no-with-summary -n none", &[]),
    ] {
        let words: Vec<&str> = ["kwork"].into_iter().chain(words.split(' ')).collect();
        let found = listed(&scratch, &words);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, expected, "{words:?}");
    }
    let tasks = run(&scratch, &["kwork", "top", "-s", "tid"]).stdout;
    let [first, second] = [" t7", " t8"].map(|name| tasks.find(name).expect("a task"));
    assert!(first < second, "{tasks}");
    let one = run(&scratch, &["kwork", "top", "-n", "t7"]).stdout;
    assert!(one.contains(" t7") && !one.contains(" t8"), "{one}");
    // -n does not filter the CPUs.
    assert!(one.contains("%Cpu1"), "{one}");
    let one = run(&scratch, &["kwork", "top", "-C", "1"]).stdout;
    assert!(one.contains("1 cpus") && !one.contains(" t7"), "{one}");
    Ok(())
}

#[test]
fn missing_counterparts_are_counted() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = KworkFile::with(ALL);
    file.softirq(SOFTIRQ_EXIT, at(10, 0), 9);
    file.softirq(SOFTIRQ_ENTRY, at(20, 0), 9);
    file.softirq(SOFTIRQ_ENTRY, at(30, 0), 9);
    file.softirq(SOFTIRQ_EXIT, at(35, 0), 9);
    file.softirq(SOFTIRQ_RAISE, at(40, 1), 1);
    file.work(WORK_START, at(50, 1), 0x7f00);
    scratch.write("perf.data", file.finish())?;
    for (command, counts) in [
        ("report", "(3 including 0 raise, 2 entry, 1 exit)"),
        ("latency", "(4 including 1 raise, 3 entry, 0 exit)"),
    ] {
        let table = run(&scratch, &["kwork", command]).stdout;
        let line = format!("% skipped events {counts}\n");
        assert!(table.contains(&line), "{table}");
    }
    Ok(())
}

#[test]
fn losses_are_reported_and_doubtful_times_counted() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = KworkFile::with(ALL);
    file.softirq(SOFTIRQ_ENTRY, at(20, 0), 9);
    file.softirq(SOFTIRQ_ENTRY, at(25, 1), 1);
    file.lost(at(30, 0), 12);
    file.softirq(SOFTIRQ_EXIT, at(40, 0), 9);
    file.softirq(SOFTIRQ_EXIT, at(45, 1), 1);
    scratch.write("perf.data", file.finish())?;
    let warning = "CPU 0: 12 records were lost between 0.000020 and 0.000030 s; run times and delays of its work are doubtful there";
    for command in ["report", "latency", "timehist"] {
        let outcome = run(&scratch, &["kwork", command]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.contains(warning), "{outcome:?}");
        let has_line = outcome.stdout.contains("% lost events (12 out of ");
        assert_eq!(has_line, command != "timehist", "{outcome:?}");
    }
    let json = run(&scratch, &["kwork", "report", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["lost_records"], 12);
    let rows = json["rows"].as_array().expect("rows");
    let doubtful = rows.iter().map(|row| (&row["name"], &row["doubtful"]));
    let doubtful: Vec<(&str, u64)> = doubtful
        .map(|(name, count)| {
            (
                name.as_str().expect("text"),
                count.as_u64().expect("a count"),
            )
        })
        .collect();
    assert_eq!(doubtful, [("TIMER", 0), ("RCU", 1)]);
    Ok(())
}

#[test]
fn recordings_without_the_events_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut switches = KworkFile::with(&[SWITCH]);
    switches.switch(at(1, 0), 7);
    scratch.write("switches.data", switches.finish())?;
    let mut interrupts = KworkFile::with(&[IRQ_ENTRY]);
    interrupts.irq_entry(at(1, 0), 7, "x");
    scratch.write("entries.data", interrupts.finish())?;
    for (words, message) in [
        (
            "report -i switches.data",
            "switches.data: the recording lacks the events of irq, softirq, workqueue\nhint: record with 'rperf kwork record'\n",
        ),
        (
            "latency -i entries.data",
            "entries.data: the recording lacks the events of softirq, workqueue\n",
        ),
        (
            "report -i entries.data -k irq",
            "entries.data: the recording has no irq:irq_handler_exit events\n",
        ),
        (
            "timehist -i switches.data -k softirq",
            "switches.data: the recording has no irq:softirq_entry events\n",
        ),
        (
            "top -i entries.data",
            "entries.data: the recording lacks the events of sched, irq, softirq\nhint: record with 'rperf kwork -k sched,irq,softirq record'\n",
        ),
    ] {
        let words: Vec<&str> = ["kwork"].into_iter().chain(words.split(' ')).collect();
        let refused = run(&scratch, &words);
        assert_eq!((refused.status, &*refused.stdout), (255, ""), "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
    Ok(())
}

#[test]
fn a_truncated_recording_ends_with_an_error() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = KworkFile::with(ALL);
    add_works(&mut file);
    let mut bytes = file.finish();
    bytes.truncate(file.end_of_records() - 20);
    scratch.write("perf.data", bytes)?;
    for command in ["report", "latency", "timehist", "top"] {
        let outcome = run(&scratch, &["kwork", command]);
        assert_ne!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.contains("perf.data"), "{outcome:?}");
    }
    Ok(())
}

#[test]
fn wrong_words_are_refused() {
    for (words, status, message) in [
        (
            "",
            129,
            "rperf kwork: no subcommand given\nhint: use 'kwork record'",
        ),
        ("nosuch", 129, "rperf kwork: unknown subcommand 'nosuch'\n"),
        (
            "report -s avg",
            129,
            "  Error: Unknown --sort key: `avg'\nhint: the keys are runtime, max and count\n",
        ),
        (
            "latency -s runtime",
            129,
            "  Error: Unknown --sort key: `runtime'\n",
        ),
        ("top -s max", 129, "  Error: Unknown --sort key: `max'\n"),
        (
            "report -k foo",
            129,
            "  Error: Unknown --event key: `foo'\nhint: -k: the classes are",
        ),
        ("report -k ,", 129, "-k: no class given\n"),
        (
            "timehist -k sched",
            129,
            "-k sched: run times of tasks are shown by 'kwork top'\n",
        ),
        ("latency -k irq", 129, "-k irq: interrupts have no delay: "),
        ("top -k irq", 129, "-k: 'kwork top' needs the class sched\n"),
        (
            "top -k sched,workqueue",
            129,
            "-k workqueue: work items run in tasks; ",
        ),
        (
            "-i x.data record true",
            129,
            "kwork record writes a recording; ",
        ),
    ] {
        let words: Vec<&str> = ["kwork"]
            .into_iter()
            .chain(words.split(' ').filter(|word| !word.is_empty()))
            .collect();
        let refused = outcome(&words);
        assert_eq!(
            (refused.status, &*refused.stdout),
            (status, ""),
            "{words:?}"
        );
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
    // Options that perf has and rperf does not support: one line says what to use instead.
    for command in ["report", "latency", "timehist", "top"] {
        for option in ["-b", "--use-bpf", "-D"] {
            let refused = outcome(&["kwork", command, option]);
            assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
            assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
        }
    }
}

#[test]
fn invalid_ranges_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = KworkFile::with(ALL);
    add_works(&mut file);
    scratch.write("perf.data", file.finish())?;
    for (option, value, message) in [
        ("--time", "x", "Invalid time span"),
        ("--time", "2,1", "Invalid time span"),
        ("-C", "x", "Invalid cpu_list"),
    ] {
        let refused = run(&scratch, &["kwork", "report", option, value]);
        assert_eq!((refused.status, &*refused.stdout), (255, ""), "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
    Ok(())
}

#[test]
fn work_is_recorded() {
    const NAME: &str = "commands::kwork::work_is_recorded";
    if !can_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "kwork", "record", "-g", "-o", "k.data", "--", "sleep", "0.1",
    ];
    let recorded = run(&scratch, &words);
    if recorded.status != 0 {
        return skip(NAME, &recorded.stderr);
    }
    let events = run(&scratch, &["evlist", "-i", "k.data"]).stdout;
    for event in [
        "irq:irq_handler_entry",
        "irq:softirq_raise",
        "workqueue:workqueue_execute_end",
    ] {
        assert!(events.lines().any(|line| line == event), "{events}");
    }
    assert!(!events.contains("sched:"), "{events}");
    let runs = run(&scratch, &["kwork", "timehist", "-g", "-i", "k.data"]).stdout;
    assert!(runs.contains("(s)TIMER:1 "), "{runs}");
    assert!(runs.contains(" <- "), "{runs}");
    let refused = run(&scratch, &["kwork", "top", "-i", "k.data"]);
    let hint = "hint: record with 'rperf kwork -k sched,irq,softirq record'\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    let words = [
        "kwork",
        "-k",
        "sched,softirq",
        "record",
        "-o",
        "s.data",
        "sleep",
        "0.05",
    ];
    let some = run(&scratch, &words);
    assert_eq!(some.status, 0, "{some:?}");
    let events = run(&scratch, &["evlist", "-i", "s.data"]).stdout;
    assert!(events.contains("irq:softirq_entry") && !events.contains("irq_handler"));
    let top = run(&scratch, &["kwork", "top", "-i", "s.data"]).stdout;
    assert!(top.contains(" rperf ") || top.contains(" sleep "), "{top}");
}
