//! `sched off-cpu`: where tasks wait, and who wakes them.

use rperf_testkit::{Scratch, skip};

use super::recording::SchedFile;
use super::run;
use crate::commands::outcome;
use crate::kernel::can_trace;

/// Writes a recording: task 7 sleeps until task 8 wakes it, then 8 sleeps until 7 wakes it, and 8 preempts 7. Times are in
/// nanoseconds. The states of the previous tasks are 1 (interruptible sleep), 2 (uninterruptible sleep) and 0x100 (runnable:
/// preempted). A wakeup has the waker, then the woken task.
fn sleeps(scratch: &Scratch) -> std::io::Result<()> {
    let mut file = SchedFile::new();
    file.comm(7, "seven");
    file.comm(8, "eight");
    file.switch(100_000, (7, 1), 8);
    file.waking(150_000, 8, 7);
    file.switch(160_000, (8, 2), 7);
    file.waking(200_000, 7, 8);
    file.switch(230_000, (7, 0x100), 8);
    file.switch(300_000, (8, 1), 7);
    scratch.write("perf.data", file.finish())?;
    Ok(())
}

/// Where two lines `woken by` follow each other, the second task woke the first.
const TEXT: &str = "\
# Task   State                  Waits  Time ms  Mean ms  Max ms   Share
  seven  run queue (preempted)      1    0.070    0.070   0.070  35.00%
  seven  interruptible sleep        1    0.050    0.050   0.050  25.00%
  eight  uninterruptible sleep      1    0.040    0.040   0.040  20.00%
  eight  run queue (woken)          1    0.030    0.030   0.030  15.00%
  seven  run queue (woken)          1    0.010    0.010   0.010   5.00%

0.070 ms (35.00%) in 1 wait, longest 0.070 ms: seven, run queue (preempted)

0.050 ms (25.00%) in 1 wait, longest 0.050 ms: seven, interruptible sleep
  woken by eight

0.040 ms (20.00%) in 1 wait, longest 0.040 ms: eight, uninterruptible sleep
  woken by seven
  woken by eight

0.040 ms in 2 more rows; --rows 0 lists all
";

const FOLDED: &str = "\
eight;[run queue (woken)] 30000
eight;[uninterruptible sleep];--;seven;--;eight 40000
seven;[interruptible sleep];--;eight 50000
seven;[run queue (preempted)] 70000
seven;[run queue (woken)] 10000
";

#[test]
fn waits_are_divided_by_state_and_wakers() -> std::io::Result<()> {
    let scratch = Scratch::new();
    sleeps(&scratch)?;
    let text = run(&scratch, &["sched", "off-cpu", "--wakers", "--rows", "3"]);
    let note = "Samples do not have callchains.\nhint: record with 'sched record -g'\n";
    assert_eq!((text.status, &*text.stderr), (0, note));
    assert_eq!(text.stdout, TEXT);
    let folded = run(&scratch, &["sched", "off-cpu", "-w", "--folded"]).stdout;
    assert_eq!(folded, FOLDED);
    let nearest = run(&scratch, &["sched", "off-cpu", "-w", "1", "--folded"]).stdout;
    assert!(nearest.contains("sleep];--;seven 40000\n"), "{nearest}");
    let without_wakers = run(&scratch, &["sched", "off-cpu", "--folded", "-t", "8"]).stdout;
    let expected = "eight;[run queue (woken)] 30000\neight;[uninterruptible sleep] 40000\n";
    assert_eq!(without_wakers, expected);
    Ok(())
}

#[test]
fn rows_as_json_add_up_to_the_text() -> std::io::Result<()> {
    let scratch = Scratch::new();
    sleeps(&scratch)?;
    let printed = run(&scratch, &["sched", "off-cpu", "-w", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(
        (&json["version"], &json["lost_records"]),
        (&1.into(), &0.into())
    );
    let rows = json["rows"].as_array().expect("rows");
    let nanos: u64 = rows.iter().filter_map(|row| row["time_ns"].as_u64()).sum();
    assert_eq!((rows.len(), nanos), (5, 200_000));
    let sleep = &rows[2];
    assert_eq!(sleep["state"], "uninterruptible sleep");
    assert_eq!(sleep["wakers"][0]["comm"], "seven");
    assert_eq!(sleep["wakers"][1]["comm"], "eight");
    Ok(())
}

#[test]
fn flame_graphs_are_written_unless_there_are_no_waits() -> std::io::Result<()> {
    let scratch = Scratch::new();
    sleeps(&scratch)?;
    let words = ["sched", "off-cpu", "-o", "off.svg", "--title", "waits"];
    let drawn = run(&scratch, &words);
    assert_eq!(drawn.status, 0, "{drawn:?}");
    let written = "[ off.svg: 200.000 us; open it in a web browser ]\n";
    assert!(drawn.stderr.ends_with(written), "{drawn:?}");
    let svg = std::fs::read_to_string(scratch.path().join("off.svg"))?;
    assert!(
        svg.contains("[uninterruptible sleep]") && svg.contains("waits"),
        "{svg}"
    );
    let words = ["sched", "off-cpu", "--format", "json", "-o", "-"];
    let tree = run(&scratch, &words).stdout;
    let _: serde_json::Value = serde_json::from_str(&tree).expect("JSON");
    let nothing = run(&scratch, &["sched", "off-cpu", "-t", "9", "-o", "none.svg"]);
    assert_eq!(nothing.status, 255, "{nothing:?}");
    assert!(!scratch.path().join("none.svg").exists(), "{nothing:?}");
    Ok(())
}

#[test]
fn options_are_checked() {
    for (words, message) in [
        (&["--json", "--folded"][..], "--json excludes"),
        (&["--json", "-o", "x.svg"], "--json excludes"),
        (&["--folded", "--format", "svg"], "--folded excludes"),
        (&["--format", "png"], "--format: 'png' is none of"),
        (&["--wakers", "9"], "--wakers: give a number up to 8"),
        (
            &["-p", "x"],
            "problems parsing pid list: 'x' is not a number",
        ),
    ] {
        let refused = outcome(&[&["sched", "off-cpu"], words].concat());
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
}

#[test]
fn stacks_and_wakers_are_recorded() {
    const NAME: &str = "commands::sched::off_cpu::stacks_and_wakers_are_recorded";
    if !can_trace(NAME) {
        return;
    }
    // On a busy machine, a kernel thread may do all wakeups, or the shell may write before cat(1) reads.
    let mut attempts = Vec::new();
    for _ in 0..3 {
        let Some(folded) = folded_of_pipe(NAME) else {
            return;
        };
        if shows_wakers(&folded) {
            return;
        }
        attempts.push(folded);
    }
    panic!("no wait shows its waker: {}", attempts.join("\n"));
}

/// Records a shell that sleeps and writes into a pipe, and returns the folded stacks; `None`, with a printed reason, if recording
/// fails.
fn folded_of_pipe(test: &str) -> Option<String> {
    let scratch = Scratch::new();
    let shell = "for i in 1 2 3 4 5; do echo $i; sleep 0.01; done | cat > /dev/null";
    let words = [
        "sched", "record", "-q", "-g", "-o", "s.data", "--", "sh", "-c", shell,
    ];
    let recorded = run(&scratch, &words);
    if recorded.status != 0 {
        skip(test, &recorded.stderr);
        return None;
    }
    let words = ["sched", "off-cpu", "-i", "s.data", "-w", "--folded"];
    Some(run(&scratch, &words).stdout)
}

/// Whether the stacks show that a timer wakes sleep(1), and that the shell wakes cat(1) by writing into the pipe.
fn shows_wakers(folded: &str) -> bool {
    let lines = |start: &'static str| folded.lines().filter(move |line| line.starts_with(start));
    let mut sleeps = lines("sleep;[interruptible sleep];");
    let by_timer = |line: &str| line.contains("nanosleep") && line.contains(";[interrupt] ");
    let mut reads = lines("cat;[interruptible sleep];");
    let by_writer = |line: &str| {
        line.contains("pipe_read") && line.contains(";--;") && line.contains("pipe_write")
    };
    sleeps.any(by_timer) && reads.any(by_writer)
}
