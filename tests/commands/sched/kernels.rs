//! Recordings made on other kernels, and recordings with missing or contradictory events; `sched timehist -I`.

use std::fs;
use std::path::Path;

use rperf_testkit::{Scratch, skip};

use super::recording::SchedFile;
use super::{TABLE, run, waits};
use crate::kernel::can_trace;

/// Copies the page and event headers from tracefs, and the formats and ids of the scheduler's events except one.
fn copy_events(from: &Path, to: &Path, except: &str) -> std::io::Result<()> {
    let events = from.join("events");
    for name in ["header_page", "header_event"] {
        fs::create_dir_all(to.join("events"))?;
        fs::write(to.join("events").join(name), fs::read(events.join(name))?)?;
    }
    for entry in fs::read_dir(events.join("sched"))? {
        let entry = entry?;
        if entry.file_name() == except || !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = to.join("events/sched").join(entry.file_name());
        fs::create_dir_all(&folder)?;
        for name in ["id", "format"] {
            fs::write(folder.join(name), fs::read(entry.path().join(name))?)?;
        }
    }
    Ok(())
}

/// The events of the running kernel without `sched_waking`, as before Linux 4.3.
#[test]
fn wakeups_are_recorded_on_old_kernels() -> std::io::Result<()> {
    const NAME: &str = "commands::sched::kernels::wakeups_are_recorded_on_old_kernels";
    if !can_trace(NAME) {
        return Ok(());
    }
    let scratch = Scratch::new();
    let tracefs = Path::new("/sys/kernel/tracing");
    if !tracefs.join("events/sched").exists() {
        skip(NAME, "tracefs is mounted elsewhere");
        return Ok(());
    }
    copy_events(tracefs, &scratch.path().join("old"), "sched_waking")?;
    let words = [
        "--debugfs-dir=old",
        "sched",
        "record",
        "-o",
        "perf.data",
        "--",
        "sleep",
        "0.05",
    ];
    let recorded = run(&scratch, &words);
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let events = run(&scratch, &["evlist"]).stdout;
    assert!(events.contains("sched:sched_wakeup\n"), "{events}");
    assert!(!events.contains("sched_waking"), "{events}");
    let table = run(&scratch, &["sched", "latency"]);
    assert!(table.stdout.contains("\n  sleep:"), "{table:?}");
    Ok(())
}

/// Linux 3.10 has no `sched_waking`.
#[test]
fn wakeups_of_old_kernels_begin_waits() -> std::io::Result<()> {
    let scratch = Scratch::new();
    // The events of `waits`, whose comment explains the numbers, with the old kernel's state of a preempted task. In this
    // recording, `waking` adds `sched_wakeup` events.
    let mut file = SchedFile::of_old_kernel();
    file.comm(7, "seven");
    file.comm(8, "eight");
    file.waking(100_000, 0, 7);
    file.switch(110_000, (0, 0), 7);
    file.runtime(149_000, 7, 39_000);
    // Preempted: `R+` is 0x400.
    file.switch(150_000, (7, 0x400), 8);
    file.runtime(249_000, 8, 99_500);
    file.switch(250_000, (8, 1), 7);
    file.switch(300_000, (7, 1), 0);
    scratch.write("perf.data", file.finish())?;
    let table = run(&scratch, &["sched", "latency"]);
    assert_eq!((table.status, &*table.stderr), (0, ""));
    assert_eq!(table.stdout, TABLE);
    let off_cpu = run(&scratch, &["sched", "off-cpu"]);
    assert_eq!(off_cpu.status, 0, "{off_cpu:?}");
    assert!(off_cpu.stdout.contains("preempted"), "{off_cpu:?}");
    // One row per switch.
    let map = run(&scratch, &["sched", "map"]).stdout;
    assert_eq!(map.lines().count(), 4, "{map}");
    Ok(())
}

#[test]
fn state_letters_are_those_of_the_recorded_kernel() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let letters = |mut file: SchedFile, states: &[u64]| {
        for (state, time) in states.iter().zip((100_000..).step_by(50_000)) {
            file.switch(time, (0, 0), 7);
            file.switch(time + 10_000, (7, *state), 0);
        }
        scratch.write("perf.data", file.finish()).expect("written");
        let history = run(&scratch, &["sched", "timehist", "--state"]);
        assert_eq!(history.status, 0, "{history:?}");
        let rows = history.stdout.lines().filter(|line| line.contains("[7]"));
        let shown = rows.filter_map(|row| row.split_whitespace().last());
        shown.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let states = [0, 1, 2, 0x10, 0x80, 0x200, 0x400];
    let old = letters(SchedFile::of_old_kernel(), &states);
    assert_eq!(old, "R S D Z K P R");
    let states = [0, 1, 2, 0x10, 0x80, 0x100];
    assert_eq!(letters(SchedFile::new(), &states), "R S D X I R");
    Ok(())
}

#[test]
fn inconsistencies_are_counted_below_the_table() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    file.waking(400_000, 0, 8);
    file.switch(410_000, (0, 0), 8);
    // From a task that does not run on this CPU.
    file.switch(500_000, (7, 1), 0);
    scratch.write("perf.data", file.finish())?;
    let table = run(&scratch, &["sched", "latency"]).stdout;
    // As in perf, relative to the number of wakeups.
    let line = "  INFO: 50.000% context switch bugs (1 out of 2)\n";
    assert!(table.contains(line), "{table}");
    Ok(())
}

/// Some virtual machines do not report switches from the idle task.
#[test]
fn idle_time_is_unknown_without_switches_from_the_idle_task() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    for time in [100_000, 200_000] {
        file.switch(time, (7, 1), 0);
    }
    scratch.write("perf.data", file.finish())?;
    let summary = run(&scratch, &["sched", "timehist", "-s"]);
    assert_eq!(summary.status, 0, "{summary:?}");
    let line = "CPU  0 idle time unknown: no switch from the idle task was recorded\n";
    assert!(summary.stdout.contains(line), "{}", summary.stdout);
    Ok(())
}

#[test]
fn timehist_can_show_idle_tasks_only() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    for time in [100_000, 200_000] {
        file.switch(time, (0, 0), 7);
        file.switch(time + 30_000, (7, 1), 0);
    }
    scratch.write("perf.data", file.finish())?;
    let rows = run(&scratch, &["sched", "timehist", "-I"]).stdout;
    let rows: Vec<&str> = rows.lines().skip(3).collect();
    assert!(!rows.is_empty(), "{rows:?}");
    assert!(rows.iter().all(|row| row.contains("<idle>")), "{rows:?}");
    // Idle from 130 to 200 us.
    assert!(rows.iter().any(|row| row.ends_with("0.070 ")), "{rows:?}");
    let summary = run(&scratch, &["sched", "timehist", "-I", "-s"]).stdout;
    for title in ["Idle-time summary", "sched-out", "idle-time"] {
        assert!(summary.contains(title), "{summary}");
    }
    Ok(())
}
