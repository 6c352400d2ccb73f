//! Flame graphs: their stacks compared with those of `script`, and the SVG in a browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Scratch, may_trace, skip};

use super::folded_parser::{Folded, parse};
use super::rperf;
use crate::kernel::{BUSY, rperf_in};

/// Makes a recording with user-space callchains.
fn record(scratch: &Scratch) {
    let words = [
        "record",
        "-q",
        "-o",
        "perf.data",
        "-g",
        "-e",
        "cpu-clock:u",
        "-F",
        "1999",
        "--",
        "sh",
        "-c",
        BUSY,
    ];
    let outcome = rperf_in(scratch, &words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{outcome:?}");
}

#[track_caller]
fn ran(scratch: &Scratch, words: &[&str]) -> Outcome {
    let outcome = rperf_in(scratch, words).finish().expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {outcome:?}");
    outcome
}

/// The samples of script's text, folded by a simple reference implementation. Frames without a function have the name of their
/// object, in brackets.
fn folded_script(text: &str) -> Folded {
    let mut stacks = Folded::new();
    for sample in text
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty())
    {
        let mut lines = sample.trim_start_matches('\n').lines();
        let comm = lines
            .next()
            .expect("the line of the task")
            .trim()
            .replace(' ', "_");
        let frames = lines.map(|line| {
            let (symbol, object) = line.trim().rsplit_once(" (").expect("symbol and object");
            // `symbol` still begins with the address.
            let object = object.trim_end_matches(')');
            let name = object.rsplit('/').next().unwrap_or(object);
            match symbol.split_once(' ').expect("address and symbol").1 {
                "[unknown]" if name.starts_with('[') => name.to_owned(),
                "[unknown]" => format!("[{name}]"),
                symbol => symbol.to_owned(),
            }
        });
        let mut stack: Vec<String> = frames.collect();
        stack.push(comm);
        stack.reverse();
        *stacks.entry(stack.join(";")).or_default() += 1;
    }
    stacks
}

#[test]
fn folded_stacks_match_script() {
    let scratch = Scratch::new();
    record(&scratch);
    let script = ran(&scratch, &["script", "-F", "comm,ip,sym,dso"]).stdout;
    let folded = ran(&scratch, &["flamegraph", "--folded"]).stdout;
    let expected = folded_script(&script);
    // BUSY runs for about 50 ms: about 100 samples at 1999 Hz; fewer on a faster machine.
    assert!(expected.values().sum::<u64>() > 20, "{script}");
    assert_eq!(parse(&folded), expected);
    // With --max-stack, both commands keep the innermost frames.
    let limit = ["--max-stack", "2"];
    let script = ran(
        &scratch,
        &[&["script", "-F", "comm,ip,sym,dso"], &limit[..]].concat(),
    );
    let limited = ran(
        &scratch,
        &[&["flamegraph", "--folded"], &limit[..]].concat(),
    );
    assert_eq!(parse(&limited.stdout), folded_script(&script.stdout));
    // The output is read back.
    let again = scratch
        .write("again.folded", &folded)
        .expect("a scratch file");
    let again = again.to_str().expect("a printable path");
    assert_eq!(
        ran(&scratch, &["flamegraph", "-i", again, "--folded"]).stdout,
        folded
    );
    // A filter that leaves no samples is an error.
    let none = rperf_in(&scratch, &["flamegraph", "--folded", "--comms", "nobody"])
        .finish()
        .expect("rperf starts");
    assert_eq!(none.status, 255);
    assert!(none.stderr.contains("no samples to draw"), "{none:?}");
}

#[test]
fn a_command_is_recorded_and_drawn_in_one_step() {
    let scratch = Scratch::new();
    let drawn = ran(
        &scratch,
        &["flamegraph", "-e", "cpu-clock:u", "--", "sh", "-c", BUSY],
    );
    let picture = fs::read_to_string(scratch.path().join("flamegraph.svg")).expect("a picture");
    assert!(
        picture.starts_with("<?xml") && picture.trim_end().ends_with("</svg>"),
        "{drawn:?}"
    );
    assert!(picture.contains("<title>sh ("), "{picture}");
    assert!(
        !scratch.path().join("perf.data").exists(),
        "the recording is temporary"
    );
    let keep = [
        "flamegraph",
        "-e",
        "cpu-clock:u",
        "--keep",
        "kept.data",
        "--",
        "sh",
        "-c",
        BUSY,
    ];
    ran(&scratch, &keep);
    let picture = fs::read_to_string(scratch.path().join("flamegraph.svg")).expect("a picture");
    // The picture drawn again from the kept recording is identical.
    ran(
        &scratch,
        &[
            "flamegraph",
            "-i",
            "kept.data",
            "-j",
            "1",
            "-o",
            "again.svg",
        ],
    );
    let again = fs::read_to_string(scratch.path().join("again.svg")).expect("a picture");
    assert_eq!(again, picture);
    // The exit status is the workload's.
    let failing = format!("{BUSY}; exit 3");
    let words = [
        "flamegraph",
        "-e",
        "cpu-clock:u",
        "--",
        "sh",
        "-c",
        &failing,
    ];
    let failed = rperf_in(&scratch, &words).finish().expect("rperf starts");
    assert_eq!(failed.status, 3, "{failed:?}");
}

/// Records with `-p`, with `--unwind live` and with `--off-cpu`.
#[test]
fn processes_live_unwound_stacks_and_off_cpu_time_are_recorded() {
    let scratch = Scratch::new();
    let target = crate::kernel::Running::spin();
    let pid = target.0.id().to_string();
    let folded = [
        "flamegraph",
        "--folded",
        "-e",
        "cpu-clock:u",
        "-p",
        &pid,
        "--",
        "sleep",
        "0.3",
    ];
    let outcome = ran(&scratch, &folded);
    // The target is a shell.
    assert!(
        outcome.stdout.lines().all(|line| line.starts_with("sh")),
        "{outcome:?}"
    );
    assert!(!outcome.stdout.is_empty(), "{outcome:?}");
    let live = [
        "flamegraph",
        "--folded",
        "--unwind",
        "live",
        "-e",
        "cpu-clock:u",
        "--",
    ];
    ran(&scratch, &[&live[..], &["sh", "-c", BUSY]].concat());
    if crate::kernel::is_root() {
        let waits = ["flamegraph", "--folded", "--off-cpu", "--", "sleep", "0.1"];
        let outcome = ran(&scratch, &waits);
        // A note says which of the recorded events is drawn: off-CPU time, although there are samples of another event.
        assert!(
            outcome.stderr.contains("using the ") && outcome.stderr.contains(" of offcpu-time"),
            "{outcome:?}"
        );
        let mut stacks = outcome.stdout.lines();
        assert!(
            stacks.any(|stack| stack.starts_with("sleep;")),
            "{outcome:?}"
        );
    } else {
        skip(
            "commands::flamegraph::processes_live_unwound_stacks_and_off_cpu_time_are_recorded",
            "--off-cpu needs root",
        );
    }
    let files = fs::read_dir(scratch.path()).expect("a folder").flatten();
    let files: Vec<_> = files.map(|file| file.file_name()).collect();
    assert!(!files.iter().any(|name| name == "perf.data"), "{files:?}");
}

#[test]
fn folded_stacks_are_read_from_stdin() {
    let scratch = Scratch::new();
    scratch.write("stacks", "a;b 3\na;c 2\n").expect("a file");
    let program = env!("CARGO_BIN_EXE_rperf");
    for command in [
        "RPERF flamegraph -o - < stacks",
        "cat stacks | RPERF flamegraph -o -",
        "cat stacks | RPERF flamegraph -i - -o -",
    ] {
        let command = command.replace("RPERF", program);
        let outcome = Command::new("sh")
            .args(["-c", &command])
            .current_dir(scratch.path())
            .output();
        let outcome = outcome.expect("a shell");
        let picture = String::from_utf8_lossy(&outcome.stdout);
        assert!(
            outcome.status.success() && picture.contains("<title>b (3 samples"),
            "{command}: {outcome:?}"
        );
    }
}

#[test]
fn invalid_options_and_folded_stacks_are_refused() {
    for (words, message) in [
        (&["--colors", "plaid"][..], "unknown palette 'plaid'"),
        (&["--root", "cpu"], "--root: 'cpu' is none of"),
        (
            &["--format", "png"],
            "--format: 'png' is none of svg, html, json",
        ),
        (&["--widths", "before"], "need --diff"),
        (
            &["--folded", "--diff", "x"],
            "--diff and --folded exclude each other",
        ),
        (
            &["--min-width", "-1"],
            "--min-width: '-1' is not a number of pixels",
        ),
        (&["--width", "5"], "--width: give 100"),
        (&["-F", "99"], "applies to recording"),
        (&["--off-cpu"], "--off-cpu applies to recording"),
        (&["--marks"], "--marks needs --folded"),
    ] {
        let outcome = rperf(&[&["flamegraph"], words].concat())
            .finish()
            .expect("rperf starts");
        assert_eq!(outcome.status, 129, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words:?}: {outcome:?}");
    }
    let scratch = Scratch::new();
    scratch
        .write("bad.folded", "a;b 1\nno count\n")
        .expect("a scratch file");
    let outcome = rperf_in(&scratch, &["flamegraph", "-i", "bad.folded"])
        .finish()
        .expect("rperf starts");
    assert_eq!(outcome.status, 255);
    assert!(
        outcome.stderr.contains("bad.folded: line 2: "),
        "{outcome:?}"
    );
}

const FOLDED: &str = "\
app;main;parse;std::regex 30
app;main;parse;std::sort 10
app;main;render;std::sort 40
app;main;render;do_syscall_64_[k] 20
";

/// The page or picture after its script ran, with this fragment in the URL; `None` if no browser starts.
pub(super) fn browse(file: &Path, fragment: &str) -> Option<String> {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let profile = file.parent()?.join("browser");
    let words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ];
    let output = browsers.iter().find_map(|browser| {
        let mut command = Command::new(browser);
        command
            .args(words)
            .arg(format!("--user-data-dir={}", profile.display()));
        command.arg(format!("file://{}#{fragment}", file.display()));
        command.output().ok()
    })?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The text of the element with this id.
pub(super) fn shown<'t>(page: &'t str, id: &str) -> &'t str {
    let from = page
        .split(&format!("id=\"{id}\""))
        .nth(1)
        .expect("the element");
    let from = from.split_once('>').expect("its end").1;
    from.split('<').next().expect("its text")
}

/// The classes of the first frame of that name and depth: `f` for every frame, `hit` if the search matches it, `above` if it is a
/// caller of the zoomed frame, `off` if it is hidden.
fn classes<'t>(page: &'t str, name: &str, depth: usize) -> &'t str {
    let mut frames = page.split("<g class=\"").skip(1);
    let depth = format!("data-d=\"{depth}\"");
    let title = format!("<title>{name} (");
    let frame = frames.find(|frame| {
        frame.contains(&title) && frame.split('>').next().is_some_and(|g| g.contains(&depth))
    });
    frame
        .expect("the frame")
        .split('"')
        .next()
        .expect("its classes")
}

#[test]
fn an_html_page_searches_as_the_svg_does() {
    let scratch = Scratch::new();
    scratch.write("app.folded", FOLDED).expect("a scratch file");
    // With the command and options of perf's flame graph script.
    let words = [
        "script",
        "report",
        "flamegraph",
        "-f",
        "html",
        "--colorscheme",
        "blue-green",
    ];
    ran(&scratch, &[&words[..], &["-i", "app.folded"]].concat());
    let path = scratch.path().join("flamegraph.html");
    let text = std::fs::read_to_string(&path).expect("the default file");
    assert!(text.starts_with("<!DOCTYPE html>\n"), "{text}");
    assert!(
        !text.contains("<?xml") && text.ends_with("</html>\n"),
        "{text}"
    );
    let Some(page) = browse(&path, "s=sort") else {
        let test = "commands::flamegraph::an_html_page_searches_as_the_svg_does";
        return skip(test, "there is no browser");
    };
    assert_eq!(shown(&page, "matched"), "Matched: 50.00%");
    assert_eq!(classes(&page, "std::sort", 4), "f hit");
}

#[test]
fn stacks_are_weighted_by_a_field_of_a_tracepoint() {
    if !may_trace("commands::flamegraph::stacks_are_weighted_by_a_field_of_a_tracepoint") {
        return;
    }
    let scratch = Scratch::new();
    let program = "printf 12345; printf 1234567; cat /nonexistent/file 2>/dev/null; true";
    let events = "syscalls:sys_enter_write,syscalls:sys_exit_openat";
    let words = [
        "record",
        "-q",
        "-g",
        "-e",
        events,
        "-o",
        "perf.data",
        "--",
        "sh",
        "-c",
        program,
    ];
    ran(&scratch, &words);
    let run = |words: &[&str]| {
        let words = [&["flamegraph", "--folded", "--root", "process"], words].concat();
        rperf_in(&scratch, &words).finish().expect("rperf starts")
    };
    // `count` is a field of the tracepoint: the number of bytes to write.
    let writes = run(&[
        "-e",
        "syscalls:sys_enter_write",
        "--weight",
        "count",
        "--comms",
        "sh",
    ]);
    assert_eq!(writes.status, 0, "{writes:?}");
    let weights = parse(&writes.stdout);
    // The two `printf` write 5 and 7 bytes.
    assert_eq!(weights.values().sum::<u64>(), 12, "{writes:?}");
    assert!(
        weights.keys().all(|stack| stack.starts_with("sh (")),
        "{writes:?}"
    );
    // Opening a file that does not exist returns a negative error code.
    let opens = run(&["-e", "syscalls:sys_exit_openat", "--weight", "ret"]);
    assert!(opens.stderr.contains(" with a negative ret "), "{opens:?}");
    let unknown = run(&["-e", "syscalls:sys_enter_write", "--weight", "size"]);
    assert_eq!(unknown.status, 129, "{unknown:?}");
    let message = "--weight: syscalls:sys_enter_write has no field 'size' with a number\nhint: its fields with numbers, ";
    assert!(unknown.stderr.contains(message), "{unknown:?}");
}

#[test]
fn a_browser_searches_and_zooms() {
    let scratch = Scratch::new();
    scratch.write("app.folded", FOLDED).expect("a scratch file");
    ran(
        &scratch,
        &[
            "flamegraph",
            "-i",
            "app.folded",
            "-o",
            "app.svg",
            "--width",
            "1000",
        ],
    );
    let picture = scratch.path().join("app.svg");
    let Some(page) = browse(&picture, "s=sort") else {
        return skip(
            "commands::flamegraph::a_browser_searches_and_zooms",
            "there is no browser",
        );
    };
    assert_eq!(shown(&page, "matched"), "Matched: 50.00%");
    assert_eq!(classes(&page, "std::sort", 4), "f hit");
    assert_eq!(classes(&page, "std::regex", 4), "f");
    // `render` begins after `parse` and is 60 samples wide.
    let page = browse(&picture, "x=40&w=60&d=3").expect("the browser is there");
    assert_eq!(classes(&page, "main", 2), "f above");
    assert_eq!(classes(&page, "parse", 3), "f off");
    assert_eq!(classes(&page, "render", 3), "f");
    // The zoomed frame is as wide as the picture without its margins.
    let render = page.split("<title>render (").nth(1).expect("the frame");
    assert!(
        render
            .split("/>")
            .next()
            .expect("its box")
            .contains("width=\"980.00\""),
        "{render}"
    );
    assert!(
        !page.contains("id=\"reset\" x=\"10\" y=\"24\" class=\"off\""),
        "the link back is shown"
    );
}
