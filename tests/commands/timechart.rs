//! `rperf timechart`: pictures of generated recordings, also in a browser, refusals, and the events of `timechart record`.

mod perfetto;
mod recording;

use std::fs;

use flate2::read::GzDecoder;
use rperf_testkit::{Outcome, Scratch, skip};
use rperf_wire::Endian;

use self::recording::{ChartFile, FIELDS};
use super::flamegraph::{browse, shown};
use super::rperf;
use crate::kernel::can_trace;

/// `prev_state` of a sleeping, a blocked and a preempted task.
const ASLEEP: u64 = 1;
const BLOCKED: u64 = 2;
const PREEMPTED: u64 = 0x100;

#[track_caller]
fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(&[&["timechart"], words].concat());
    let run = run.within(scratch.path()).env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Returns the picture drawn with these options.
#[track_caller]
fn drawn(scratch: &Scratch, words: &[&str]) -> String {
    let outcome = run(scratch, &[&["-w", "1242", "-o", "out.svg"], words].concat());
    assert_eq!((outcome.status, &*outcome.stdout), (0, ""), "{outcome:?}");
    fs::read_to_string(scratch.path().join("out.svg")).expect("a picture")
}

/// A recording of a millisecond of two CPUs: tasks 7 and 8 alternate on CPU 0, and 7 wakes 8. The first number of each event is
/// its time in microseconds. Then a switch has the CPU, the previous task with its state, and the next task; a wakeup has the
/// waking and the woken task; `idle` has the CPU and its idle state, or `u32::MAX` at its end; `frequency` has the CPU and kHz.
fn tasks(endian: Endian) -> ChartFile {
    let mut file = ChartFile::new(endian);
    // A previous name: switches name the task `task<7>`.
    file.comm(7, "older");
    file.idle(0, 1, 2);
    file.frequency(0, 0, 1_000_000);
    file.wakeup(0, 0, 7);
    file.switch(100, 0, (0, 0), 7);
    file.wakeup(150, 7, 8);
    file.switch(300, 0, (7, PREEMPTED), 8);
    file.frequency(400, 0, 2_000_000);
    file.idle(500, 1, u32::MAX);
    file.switch(600, 0, (8, BLOCKED), 7);
    file.wakeup(700, 7, 8);
    file.switch(800, 0, (7, ASLEEP), 8);
    file.switch(1000, 0, (8, ASLEEP), 0);
    file
}

/// The paths in the row with this label.
#[track_caller]
fn row<'p>(picture: &'p str, label: &str) -> Vec<&'p str> {
    let start = format!("data-n=\"{label}\">");
    let rest = picture.split_once(&start);
    let (_, rest) = rest.unwrap_or_else(|| panic!("no {label} in {picture}"));
    let row = rest.split("</g>").next().expect("its end");
    row.lines()
        .filter(|line| line.starts_with("<path"))
        .collect()
}

/// Converts a time in microseconds to the x coordinate in a picture of 1 ms, which is 4194304 units wide.
fn x(micros: u64) -> u64 {
    (micros << 22) / 1000
}

/// The start of a path element of this class that draws boxes. `times` are the start and end of each box, in microseconds.
/// `shape` is the path after the x coordinate of a box, with `w` in place of the width: `0hwv15` is a box from y = 0 that is
/// 15 pixels high.
fn boxes(class: &str, times: &[(u64, u64)], shape: &str) -> String {
    let boxes = times.iter().map(|(from, to)| {
        let width = x(*to) - x(*from);
        format!("M{} {shape}h-{width}z", x(*from)).replace('w', &width.to_string())
    });
    let path: String = boxes.collect();
    format!("<path class=\"{class}\" d=\"{path}\"")
}

#[test]
fn tasks_run_wait_are_blocked_and_sleep() -> std::io::Result<()> {
    let scratch = Scratch::new();
    for endian in [Endian::Little, Endian::Big] {
        scratch.write("perf.data", tasks(endian).finish())?;
        let picture = drawn(&scratch, &[]);
        let full = "0hwv15";
        assert_eq!(
            row(&picture, "task&lt;7&gt;:7 (400.0 us)"),
            [
                boxes("sl", &[(800, 1000)], "12.9hwv2.1") + "/>",
                boxes("wa", &[(0, 100), (300, 600)], full) + "/>",
                boxes("ru", &[(100, 300), (600, 800)], full) + "/>",
            ]
        );
        assert_eq!(
            row(&picture, "task&lt;8&gt;:8 (500.0 us)"),
            [
                boxes("bl", &[(600, 700)], full) + "/>",
                boxes("wa", &[(150, 300), (700, 800)], full) + "/>",
                boxes("ru", &[(300, 600), (800, 1000)], full) + "/>",
            ]
        );
        let cpu = row(&picture, "CPU 0 (90% busy)");
        assert_eq!(cpu.len(), 3, "{cpu:?}");
        let path_of = |task: &str| {
            let title = format!("<title>task&lt;{task}&gt;:{task}</title>");
            cpu.iter()
                .find(|path| path.contains(&title))
                .copied()
                .unwrap_or_default()
        };
        let seven = format!("d=\"M{} 0h{}v26", x(100), x(300) - x(100));
        assert!(path_of("7").contains(&seven), "{cpu:?}");
        let eight = format!("M{} 0h", x(800));
        assert!(path_of("8").contains(&eight), "{cpu:?}");
        let line = format!("<path class=\"freq\" d=\"M0 13H{}V0H4194304\"/>", x(400));
        assert_eq!(cpu.last(), Some(&&*line));
        assert_eq!(
            row(&picture, "CPU 1 (0% busy)"),
            [boxes("i2", &[(0, 500)], "0hwv26") + "/>"]
        );
        // One path has all arrows from one task to another: 7 wakes 8 twice. The wakeup of 7 by the idle task has no arrow.
        assert_eq!(picture.matches("class=\"arrow\"").count(), 1);
        assert!(picture.contains(
            "<title>task&lt;7&gt;:7 (400.0 us) wakes task&lt;8&gt;:8 (500.0 us)</title>"
        ));
        let details = "thread 7 (older, then task&lt;7&gt;); ran 400.0 us; waited for a CPU 400.0 us; slept 200.0 us";
        assert!(picture.contains(details), "{picture}");
    }
    Ok(())
}

#[test]
fn parts_processes_and_highlights_are_chosen() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data", tasks(Endian::Little).finish())?;
    let rows = |picture: &str| picture.matches("<g class=\"row").count();
    let of_all_tasks = drawn(&scratch, &[]);
    assert_eq!(rows(&of_all_tasks), 4);
    let power = drawn(&scratch, &["-P"]);
    assert_eq!((rows(&power), power.contains("class=\"ru")), (2, false));
    assert!(power.contains("data-n=\"CPU 0\"") && power.contains("class=\"i2\""));
    // `-T` leaves out idle states and frequencies, but not the rows of the CPUs.
    let tasks_only = drawn(&scratch, &["-T"]);
    assert_eq!(rows(&tasks_only), 4);
    assert!(!tasks_only.contains("class=\"i2\"") && !tasks_only.contains("class=\"freq\""));
    for (word, label) in [
        ("8", "8&gt;:8"),
        ("older", "7&gt;:7"),
        ("task<7>", "7&gt;:7"),
    ] {
        let of_one_task = drawn(&scratch, &["-p", word]);
        assert_eq!(rows(&of_one_task), 3, "{word}");
        assert!(
            of_one_task.contains(&format!("data-n=\"task&lt;{label} (")),
            "{word}"
        );
    }
    assert_eq!(rows(&drawn(&scratch, &["-p", "7", "-p", "8"])), 4);
    assert_eq!(rows(&drawn(&scratch, &["-n", "1"])), 3);
    // Runs longer than this many nanoseconds, or those of the task with this name, are highlighted: for each task that has
    // some, by one path in its row and one in that of the CPU.
    for (word, count) in [("250000", 2), ("task<7>", 2), ("nosuch", 0), ("250", 4)] {
        let picture = drawn(&scratch, &["--highlight", word]);
        assert_eq!(
            picture.matches("<path class=\"hi\"").count(),
            count,
            "{word}"
        );
    }
    let part = drawn(&scratch, &["--time", "0.000200,0.000700"]);
    assert!(
        part.contains("data-start=\"200000\" data-span=\"500000\""),
        "{part}"
    );
    assert!(
        part.contains("data-n=\"task&lt;7&gt;:7 (200.0 us)\""),
        "{part}"
    );
    Ok(())
}

#[test]
fn calls_are_drawn_by_kind() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = ChartFile::with(Endian::Little, FIELDS, |system| system == "syscalls");
    file.comm(7, "reader");
    // The thread, the start and end of the call in microseconds, and what it returns: -11 is EAGAIN. `None`: it does not return.
    file.read(7, (0, 200), Some(4096));
    file.read(7, (200, 250), Some(-11));
    file.poll(7, (300, 600), Some(1));
    file.read(7, (601, 700), Some(100));
    file.read(7, (700, 750), Some(28));
    file.read(9, (900, 0), None);
    file.read(7, (999, 1000), Some(-5));
    scratch.write("perf.data", file.finish())?;
    let outcome = run(&scratch, &["-o", "note.svg"]);
    assert_eq!(
        outcome.stderr,
        "Written 0.0 seconds of trace to note.svg.\n\
         1 system call did not return before the end of the recording, and is drawn up to it\n"
    );
    let picture = drawn(&scratch, &[]);
    let reader = "reader:7 (4.1 KiB)";
    assert_eq!(
        row(&picture, reader),
        [
            boxes("po", &[(300, 600)], "0hwv22") + "/>",
            boxes("rd", &[(0, 200), (601, 700), (700, 750)], "0hwv11") + "/>",
            boxes("er", &[(200, 250), (999, 1000)], "0hwv22") + "/>",
        ]
    );
    assert_eq!(
        row(&picture, ":9 (0 B)"),
        [boxes("rd", &[(900, 1000)], "0hwv11") + "/>"]
    );
    let details = "reader:7: 6 calls, 4.1 KiB read or received, 0 B written or sent; 400.0 us in calls, without polling";
    let title = format!("<title>{details}</title>");
    assert!(picture.contains(&title), "{picture}");
    let without_eagain = drawn(&scratch, &["--io-skip-eagain"]);
    let errors = boxes("er", &[(999, 1000)], "0hwv22") + "/>";
    assert_eq!(row(&without_eagain, reader).last(), Some(&&*errors));
    // The second path in the row, after that of the polls.
    let reads = |words: &[&str]| row(&drawn(&scratch, words), reader)[1].to_owned();
    assert_eq!(
        reads(&["--io-merge-dist", "1us"]),
        boxes("rd", &[(0, 200), (601, 750)], "0hwv11") + "/>"
    );
    // Short calls are widened, at most to the next call: the one at 601 still ends at 700.
    assert_eq!(
        reads(&["--io-min-time", "120us"]),
        boxes("rd", &[(0, 200), (601, 700), (700, 820)], "0hwv11") + "/>"
    );
    for words in [["--io-min-time", "5x"], ["--io-merge-dist", "ms"]] {
        let refused = run(&scratch, &words);
        assert_eq!(refused.status, 129, "{refused:?}");
        assert!(refused.stderr.contains("is not a time"), "{refused:?}");
    }
    Ok(())
}

#[test]
fn losses_and_damage_are_marked() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = tasks(Endian::Little);
    file.lost(1100, 0, 5);
    file.switch(1200, 0, (0, 0), 7);
    let undamaged = file.finish();
    scratch.write("perf.data", &undamaged)?;
    let outcome = run(&scratch, &[]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let warning = "Warning: records were lost in 1 stretch of time, marked in the picture\n";
    assert!(outcome.stderr.contains(warning), "{outcome:?}");
    let picture = fs::read_to_string(scratch.path().join("output.svg"))?;
    assert!(picture.contains("<title>5 records of CPU 0 were lost</title>"));
    assert!(picture.contains("class=\"note\""), "{picture}");
    // The last switch has 112 bytes. Its size, in the last two bytes of the header, becomes an invalid one.
    let mut damaged = undamaged.clone();
    let size_at = file.end_of_records() - 112 + 6;
    assert_eq!(damaged[size_at..size_at + 2], [112, 0]);
    damaged[size_at] = 4;
    scratch.write("perf.data", damaged)?;
    let incomplete = run(&scratch, &["-o", "damaged.svg"]);
    assert_eq!(incomplete.status, 255, "{incomplete:?}");
    let picture = fs::read_to_string(scratch.path().join("damaged.svg"))?;
    assert!(picture.contains(">Incomplete: "), "{picture}");
    Ok(())
}

#[test]
fn recordings_without_events_or_cpus_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let write = |name: &str, file: ChartFile| scratch.write(name, file.finish());
    let mut empty = ChartFile::new(Endian::Little);
    empty.comm(7, "seven");
    write("empty.data", empty)?;
    let all_systems = |_: &str| true;
    let mut without_cpu = ChartFile::with(Endian::Little, ChartFile::WITHOUT_CPU, all_systems);
    without_cpu.comm(7, "seven");
    write("no-cpu.data", without_cpu)?;
    let mut power = ChartFile::with(Endian::Little, FIELDS, |system| system == "power");
    power.idle(5, 0, 1);
    write("power.data", power)?;
    write("tasks.data", one_switch())?;
    for (words, message) in [
        (
            &["-i", "empty.data"][..],
            "empty.data: No trace sample to read. Did you call 'rperf timechart record'?\n",
        ),
        (
            &["-i", "no-cpu.data"],
            "no-cpu.data: samples of sched:sched_switch have no CPU\n",
        ),
        (
            &["-i", "power.data", "-T"],
            "power.data: No trace sample to read. Did you",
        ),
        (
            &["-i", "tasks.data", "-P"],
            "tasks.data: No trace sample to read. Did you",
        ),
        (
            &["-i", "tasks.data", "--time", "1,2"],
            "tasks.data: No trace sample to read. Did you",
        ),
    ] {
        assert_fails(&scratch, words, message);
    }
    // If the recording has no events to draw, the hint does not name the time range as the reason.
    let words = ["-i", "tasks.data", "-P", "--time", "1,2"];
    let refused = run(&scratch, &words);
    let hint = "hint: -P needs power:cpu_idle or power:cpu_frequency\n";
    assert!(refused.stderr.ends_with(hint), "{refused:?}");
    assert!(!scratch.path().join("output.svg").exists());
    Ok(())
}

/// A recording of one switch, with the events of the system `sched`.
fn one_switch() -> ChartFile {
    let mut file = ChartFile::with(Endian::Little, FIELDS, |system| system == "sched");
    file.switch(5, 0, (0, 0), 7);
    file
}

/// Checks that `timechart` with these words fails with status 255 and a message that begins like this one.
#[track_caller]
fn assert_fails(scratch: &Scratch, words: &[&str], message: &str) {
    let refused = run(scratch, words);
    assert_eq!((refused.status, &*refused.stdout), (255, ""), "{refused:?}");
    assert!(refused.stderr.starts_with(message), "{refused:?}");
}

#[test]
fn unusable_options_are_refused() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("tasks.data", one_switch().finish())?;
    for (words, message) in [
        (
            &["-i", "tasks.data", "-t"][..],
            "tasks.data: -t needs the topology of the CPUs, which is not recorded\n",
        ),
        (
            &["-i", "tasks.data", "-PT"],
            "-P and -T options cannot be used at the same time.\n",
        ),
        (
            &["-i", "tasks.data", "-o", "nosuch/x.svg"],
            "failed to write nosuch/x.svg: ",
        ),
    ] {
        assert_fails(&scratch, words, message);
    }
    assert!(!scratch.path().join("output.svg").exists());
    for words in [["-w", "5"], ["-n", "20000"], ["-w", "x"]] {
        assert_eq!(run(&scratch, &words).status, 129, "{words:?}");
    }
    // 234: perf returns -EINVAL for an invalid time range.
    assert_eq!(run(&scratch, &["--time", "2,1"]).status, 234);
    let written = run(&scratch, &["-i", "tasks.data"]);
    assert_eq!(
        (written.status, &*written.stderr),
        (0, "Written 0.0 seconds of trace to output.svg.\n")
    );
    Ok(())
}

#[test]
fn the_name_of_the_file_chooses_the_format() -> std::io::Result<()> {
    let scratch = Scratch::new();
    scratch.write("perf.data", tasks(Endian::Little).finish())?;
    let svg = drawn(&scratch, &[]);
    assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n"));
    for name in ["x.svgz", "x.html", "-"] {
        let outcome = run(&scratch, &["-w", "1242", "-o", name]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        match name {
            "-" => assert_eq!((outcome.stdout, &*outcome.stderr), (svg.clone(), "")),
            "x.html" => {
                let page = fs::read_to_string(scratch.path().join(name))?;
                assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg "));
            }
            _ => {
                let packed = fs::read(scratch.path().join(name))?;
                let unpacked = std::io::read_to_string(GzDecoder::new(&*packed))?;
                assert_eq!(unpacked, svg);
            }
        }
    }
    Ok(())
}

/// Many short states are merged: the size of the picture hardly depends on their number.
#[test]
fn a_picture_is_bounded_in_size() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let size = |switches: u64| {
        let mut file = ChartFile::new(Endian::Little);
        for at in 0..switches {
            let (prev, next) = (u32::from(at % 2 == 0) + 7, u32::from(at % 2 == 1) + 7);
            file.wakeup(at * 10, prev, next);
            file.switch(at * 10 + 3, 0, (prev, ASLEEP), next);
        }
        scratch.write("perf.data", file.finish()).expect("a file");
        drawn(&scratch, &["-w", "500"]).len()
    };
    let sizes = [size(4_000), size(40_000)];
    assert!(
        sizes[1] < sizes[0] * 3 / 2 && sizes[1] < 200_000,
        "{sizes:?}"
    );
    Ok(())
}

#[test]
fn a_browser_zooms_and_searches() {
    const NAME: &str = "a_browser_zooms_and_searches";
    let scratch = Scratch::new();
    let file = tasks(Endian::Little).finish();
    scratch.write("perf.data", file).expect("a file");
    drawn(&scratch, &[]);
    let picture = scratch.path().join("out.svg");
    // From 200 to 600 us, in the units of the picture; the search is for `8>`.
    let Some(page) = browse(&picture, "from=838860&to=2516582&s=8%3E") else {
        return skip(NAME, "no browser");
    };
    // During a search, the tasks found and their total run time are shown in place of the range.
    assert_eq!(shown(&page, "range"), "1 task, 500.0 us");
    let faded = page.matches("<g class=\"row box faded\"").count();
    assert_eq!(faded, 1, "{page}");
    // The labels of the time axis are 0.05 ms apart.
    assert!(page.contains(">0.00030 s</text>"), "{page}");
    let page = browse(&picture, "from=838860&to=2516582").expect("a browser");
    assert_eq!(shown(&page, "range"), "--time 0.000200000,0.000600000");
    assert!(page.contains(">task&lt;8&gt;:8</text>"), "{page}");
}

/// Options of `timechart record`, and the events that it records with them; for `-I`, only the first three of its events.
const RECORDED: &[(&[&str], &str)] = &[
    (
        &[],
        "sched:sched_wakeup sched:sched_switch power:cpu_frequency power:cpu_idle",
    ),
    (&["-T"], "sched:sched_wakeup sched:sched_switch"),
    (&["-P", "-g"], "power:cpu_frequency power:cpu_idle"),
    (
        &["-I"],
        "syscalls:sys_enter_read syscalls:sys_enter_pread64 syscalls:sys_enter_readv",
    ),
];

#[test]
fn record_opens_the_events_of_its_options() {
    const NAME: &str = "record_opens_the_events_of_its_options";
    if !can_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    for (words, events) in RECORDED {
        let words = [&["record"], *words, &["-o", "a.data", "--", "true"]].concat();
        let recorded = run(&scratch, &words);
        assert_eq!(recorded.status, 0, "{recorded:?}");
        let list = rperf(&["evlist", "-i", "a.data"]).within(scratch.path());
        let list = list.finish().expect("rperf starts").stdout;
        let lines = list
            .lines()
            .filter(|line| line.contains(':') && !line.starts_with('#'));
        let recorded_events: Vec<&str> = lines.filter(|line| !line.starts_with("dummy")).collect();
        let recorded_events = recorded_events.join(" ");
        assert!(recorded_events.starts_with(events), "{recorded_events}");
        assert!(
            words.contains(&"-I") || recorded_events == *events,
            "{recorded_events}"
        );
    }
    let both = run(&scratch, &["record", "-PT", "--", "true"]);
    assert_eq!(both.status, 255, "{both:?}");
    assert!(!scratch.path().join("perf.data").exists());
}
