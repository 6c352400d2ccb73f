//! Flame graphs: their stacks beside those of `script`, and the picture in a browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Scratch, skip};

use super::folded::{Folded, parse};
use super::rperf;
use crate::kernel::{BUSY, rperf_in};

/// A recording with stacks of user space.
fn recorded(scratch: &Scratch) {
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

/// The samples of script's text, folded: the slow and obvious way. Frames without a function are called by their object.
fn folded_script(text: &str) -> Folded {
    let mut stacks = Folded::new();
    for sample in text
        .split("\n\n")
        .filter(|sample| !sample.trim().is_empty())
    {
        let mut lines = sample.trim_start_matches('\n').lines();
        let comm = lines
            .next()
            .expect("a line of its own")
            .trim()
            .replace(' ', "_");
        let frames = lines.map(|line| {
            let (symbol, object) = line.trim().rsplit_once(" (").expect("symbol and object");
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
fn folded_stacks_are_those_of_script() {
    let scratch = Scratch::new();
    recorded(&scratch);
    let script = ran(&scratch, &["script", "-F", "comm,ip,sym,dso"]).stdout;
    let folded = ran(&scratch, &["flamegraph", "--folded"]).stdout;
    let expected = folded_script(&script);
    assert!(expected.values().sum::<u64>() > 20, "{script}");
    assert_eq!(parse(&folded), expected);
    // What was written is read back, merged the other way round, and narrowed.
    let again = scratch
        .write("again.folded", &folded)
        .expect("a scratch file");
    let again = again.to_str().expect("a printable path");
    assert_eq!(
        ran(&scratch, &["flamegraph", "-i", again, "--folded"]).stdout,
        folded
    );
    let none = rperf_in(&scratch, &["flamegraph", "--folded", "--comms", "nobody"])
        .finish()
        .expect("rperf starts");
    assert_eq!(none.status, 255);
    assert!(none.stderr.contains("no sample is left"), "{none:?}");
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
        scratch.path().join("perf.data").exists(),
        "the recording stays"
    );
    // Drawn again, it is the same to the last byte.
    ran(&scratch, &["flamegraph", "-j", "1", "-o", "again.svg"]);
    let again = fs::read_to_string(scratch.path().join("again.svg")).expect("a picture");
    assert_eq!(again, picture);
    // The status is that of the command, which is drawn whatever it is.
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

#[test]
fn what_makes_no_sense_is_refused() {
    for (words, said) in [
        (&["--colors", "plaid"][..], "no palette 'plaid'"),
        (&["--root", "cpu"], "--root takes"),
        (&["--weight", "bytes"], "--weight takes"),
        (&["--widths", "before"], "are for --diff"),
        (&["--folded", "--diff", "x"], "--diff colours a picture"),
        (&["--min-width", "-1"], "--min-width takes pixels"),
        (&["--width", "5"], "--width takes 100"),
        (&["-F", "99"], "no command is given"),
        (&["--marks"], "--marks is for --folded"),
    ] {
        let outcome = rperf(&[&["flamegraph"], words].concat())
            .finish()
            .expect("rperf starts");
        assert_eq!(outcome.status, 129, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(said), "{words:?}: {outcome:?}");
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

/// The picture's elements after its script ran, with this behind the address.
pub(super) fn browse(picture: &Path, state: &str) -> Option<String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"];
    let home = picture.parent()?.join("browser");
    let words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ];
    let outputs = browser.iter().find_map(|browser| {
        let mut command = Command::new(browser);
        command
            .args(words)
            .arg(format!("--user-data-dir={}", home.display()));
        command.arg(format!("file://{}#{state}", picture.display()));
        command.output().ok()
    })?;
    Some(String::from_utf8_lossy(&outputs.stdout).into_owned())
}

/// What the element with this id holds.
pub(super) fn shown<'t>(page: &'t str, id: &str) -> &'t str {
    let from = page
        .split(&format!("id=\"{id}\""))
        .nth(1)
        .expect("the element");
    let from = from.split_once('>').expect("its end").1;
    from.split('<').next().expect("its text")
}

/// Classes of the frame of that name and depth.
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
    // `render` begins behind `parse` and is 60 samples wide.
    let page = browse(&picture, "x=40&w=60&d=3").expect("the browser is there");
    assert_eq!(classes(&page, "main", 2), "f above");
    assert_eq!(classes(&page, "parse", 3), "f off");
    assert_eq!(classes(&page, "render", 3), "f");
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
        "the way back is shown"
    );
}
