//! The browser of `report`, driven through a terminal.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rperf_testkit::{Bytes, PerfFile, Scratch, skip};

use super::generated_files::{Attr, file, record};
use super::tmux::Tmux;
use super::{assert_refused, rperf};

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`, `_CALLCHAIN`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
/// `PERF_CONTEXT_KERNEL`.
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
/// The address of the kernel's text.
const START: u64 = 0xffff_ffff_8100_0000;
const OPTIONS: &str = "-i perf.data --kallsyms kallsyms";

/// Functions of the kernel, 256 bytes apart; the first is 256 bytes after `START`.
const FUNCTIONS: &[&str] = &["leaf", "middle", "other", "outer", "idle"];

/// An address in this function, 16 bytes after its start.
fn address(function: &str) -> u64 {
    let index = FUNCTIONS.iter().position(|name| *name == function);
    START + 0x100 * (index.expect("a function") as u64 + 1) + 0x10
}

/// A sample of a thread with this callchain, innermost function first.
fn sample((thread, time): (u32, u64), chain: &[&str]) -> Vec<u8> {
    let body = Bytes::new().u64(address(chain[0]));
    let body = body.u32(thread).u32(thread).u64(time);
    let body = body.u64(chain.len() as u64 + 1).u64(CONTEXT_KERNEL);
    let body = chain
        .iter()
        .fold(body, |body, name| body.u64(address(name)));
    record(PerfFile::SAMPLE, PerfFile::KERNEL, body)
}

fn comm_record(thread: u32, name: &str) -> Vec<u8> {
    let body = Bytes::new().u32(thread).u32(thread).text(name, 8);
    record(PerfFile::COMM, 0, body)
}

/// A directory with a recording of two programs, whose samples are all in the kernel, and the kernel's symbols.
fn recording() -> Scratch {
    recording_of(200)
}

/// Like `recording`, with this many samples.
fn recording_of(samples: u64) -> Scratch {
    let mapping = Bytes::new().u32(u32::MAX).u32(0).u64(START).u64(0x10_0000);
    let mapping = mapping.u64(START).text("[kernel.kallsyms]_text", 8);
    let mut records = vec![
        record(PerfFile::MMAP, PerfFile::KERNEL, mapping),
        comm_record(7, "calc"),
        comm_record(8, "idler"),
    ];
    for time in 1..=samples {
        records.push(match time % 20 {
            0 => sample((8, time), &["idle", "outer"]),
            1..=3 => sample((7, time), &["leaf", "other", "outer"]),
            4 => sample((7, time), &["middle", "outer"]),
            _ => sample((7, time), &["leaf", "middle", "outer"]),
        });
    }
    let attr = Attr {
        sample_type: SAMPLE_TYPE,
        no_sample_id_all: true,
        ..Attr::default()
    };
    let scratch = Scratch::new();
    let bytes = file(&attr, "x86_64", &records.concat());
    scratch.write("perf.data", bytes).expect("a file");
    let line = |name: &&str| format!("{:x} T {name}\n", address(name) - 0x10);
    let names: String = FUNCTIONS.iter().map(line).collect();
    let names = format!("{START:x} T _text\n{names}");
    scratch.write("kallsyms", names).expect("a file");
    scratch
}

/// Starts the browser on the recording in `scratch` and waits until its rows are shown.
fn browser(size: (u16, u16), scratch: &Scratch, words: &str) -> Option<Tmux> {
    let words = format!("report {OPTIONS} {words}");
    let tmux = Tmux::start(size, scratch.path(), "", &words)?;
    tmux.wait_for("Tip:");
    Some(tmux)
}

#[test]
fn rows_unfold_and_fold() {
    let scratch = recording();
    let Some(tmux) = browser((80, 24), &scratch, "") else {
        return;
    };
    // `golden` waits for the text, and then for the screen to equal the stored one of this name.
    tmux.golden("rows", "Tip:");
    tmux.press(&["e"]);
    tmux.golden("unfolded", "- ");
    tmux.press(&["Down", "Down", "+"]);
    tmux.golden("one_level", "+ ");
    tmux.press(&["E"]);
    tmux.golden("all", "idle");
    tmux.press(&["C", "Home"]);
    tmux.golden("rows", "Tip:");
    tmux.press(&["q"]);
    tmux.ends_with(0);
}

#[test]
fn escape_undoes_the_last_zoom_and_rows_are_filtered() {
    let scratch = recording();
    let Some(tmux) = browser((120, 24), &scratch, "--no-children") else {
        return;
    };
    tmux.wait_for("idler");
    tmux.press(&["t"]);
    tmux.wait("Thread", |screen| {
        screen.contains("Thread: calc") && !screen.contains("idler")
    });
    tmux.press(&["k"]);
    tmux.golden("zoomed", "DSO: kernel");
    // Percentages relative to the zoom: `leaf` has 90 of its 95%.
    tmux.press(&["F"]);
    tmux.wait_for("94.74%");
    tmux.press(&["Escape"]);
    tmux.wait("end of the zoom", |screen| !screen.contains("DSO: "));
    tmux.press(&["Escape"]);
    tmux.wait_for("idler");
    tmux.press(&["/", "l", "e", "a", "Enter"]);
    tmux.wait("symbols", |screen| {
        screen.contains("Symbol: lea") && !screen.contains("] middle")
    });
    tmux.press(&["/", "Enter"]);
    tmux.wait_for("] middle");
    tmux.press(&["L", "1", "0", "Enter"]);
    tmux.wait("large rows", |screen| !screen.contains("] middle"));
    tmux.press(&["Escape"]);
    tmux.wait_for("really want to exit?");
    tmux.press(&["y"]);
    tmux.ends_with(0);
}

#[test]
fn rows_are_ordered_by_another_column() {
    let scratch = recording();
    let Some(tmux) = browser((120, 24), &scratch, "--no-children") else {
        return;
    };
    let rows = |screen: &str| -> Vec<String> {
        let rows = screen
            .lines()
            .filter(|line| line.contains('%') && line.contains("] "));
        let name = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
        rows.map(|line| name(line.trim_end())).collect()
    };
    let usual = rows(&tmux.wait_for("idler"));
    tmux.press(&["o"]);
    tmux.wait_for(", ordered by Overhead");
    tmux.press(&["o"]);
    tmux.wait_for(", ordered by Command");
    tmux.press(&["o", "o"]);
    let by_name = rows(&tmux.wait_for(", ordered by Symbol"));
    let mut sorted = usual.clone();
    sorted.sort();
    assert_eq!(by_name, sorted);
    assert_ne!(by_name, usual);
    tmux.press(&["o"]);
    let again = tmux.wait("order of the report", |screen| {
        !screen.contains("ordered by")
    });
    assert_eq!(rows(&again), usual);
}

/// Parts of the recording may be shown before it is read completely; in the end all samples are shown.
#[test]
fn a_large_recording_is_shown_completely_in_the_end() {
    let scratch = recording_of(200_000);
    // Parts are shown only of recordings of more than 12 MiB.
    let file = scratch.path().join("perf.data");
    let size = std::fs::metadata(file).expect("a file").len();
    assert!(size > 12 << 20, "{size} bytes");
    let Some(tmux) = browser((80, 24), &scratch, "") else {
        return;
    };
    tmux.wait_for("Samples: 200K of event");
    assert!(!tmux.screen().contains("partial"), "{}", tmux.screen());
}

#[test]
fn a_large_terminal_shows_menu_help_header_and_flames() {
    let scratch = recording();
    let Some(tmux) = browser((200, 60), &scratch, "") else {
        return;
    };
    tmux.press(&["E"]);
    tmux.golden("large", "- ");
    tmux.press(&["Enter"]);
    tmux.golden("menu", "Zoom into");
    tmux.press(&["Escape"]);
    // Without a pause, Escape and '?' would be read as Alt+?.
    sleep(Duration::from_millis(500));
    tmux.press(&["?"]);
    tmux.golden("help", "Navigate");
    tmux.press(&["q", "i"]);
    tmux.wait_for("# arch : x86_64");
    tmux.press(&["q", "g", "Down"]);
    tmux.golden("flame", "of this row");
    tmux.press(&["q", "P"]);
    tmux.wait_for("perf.hist.0 was written");
    let text = std::fs::read_to_string(scratch.path().join("perf.hist.0"));
    assert!(text.is_ok_and(|text| text.contains("% middle") && text.contains("] idle")));
    tmux.press(&["q", "a"]);
    tmux.wait_for("no samples in 'outer'");
    // The sixth entry of the menu shows the symbols of the DSO with their addresses.
    tmux.press(&[
        "q", "Enter", "Down", "Down", "Down", "Down", "Down", "Enter",
    ]);
    tmux.wait_for("ffffffff81000400 ffffffff81000500 g outer");
    tmux.press(&["C-c"]);
    tmux.ends_with(0);
}

#[test]
fn several_events_have_a_menu() {
    let scratch = Scratch::new();
    let fixture = crate::tidy::root().join("tests/fixtures/x86_64/group.data");
    let words = format!("report --no-group -i {}", fixture.display());
    let Some(tmux) = Tmux::start((80, 24), scratch.path(), "", &words) else {
        return;
    };
    tmux.golden("events", "Available samples");
    tmux.press(&["Down", "Enter"]);
    tmux.wait_for("of event 'instructions'");
    tmux.press(&["Tab"]);
    tmux.wait_for("'cycles'");
    tmux.press(&["q"]);
    tmux.wait_for("Available samples");
    tmux.press(&["q"]);
    tmux.ends_with(0);
}

#[test]
fn a_resized_terminal_is_repainted() {
    let scratch = recording();
    let Some(tmux) = browser((80, 24), &scratch, "") else {
        return;
    };
    tmux.press(&["E"]);
    tmux.resize(40, 8);
    tmux.wait("a small screen", |screen| {
        screen.lines().count() == 8 && screen.contains("Tip: ") && screen.contains("- ")
    });
    tmux.resize(100, 30);
    tmux.wait("a larger screen", |screen| {
        screen.lines().count() == 30 && screen.contains("] idle")
    });
    tmux.resize(3, 2);
    tmux.wait("a tiny screen", |screen| screen.lines().count() <= 2);
    tmux.resize(80, 24);
    tmux.wait_for("Event count");
    // Keys that come faster than the terminal is painted.
    let mut keys = vec!["Down"; 60];
    keys.extend(["Home", "C"]);
    tmux.press(&keys);
    tmux.golden("rows", "Tip:");
}

#[test]
fn signals_restore_the_terminal() {
    for signal in ["TERM", "HUP", "INT"] {
        let scratch = recording();
        let Some(tmux) = browser((80, 24), &scratch, "") else {
            return;
        };
        assert!(tmux.is_alternate());
        let program = tmux.program_pid();
        // The signal may arrive while the browser is painting.
        tmux.press(&["E", "PageDown", "C"]);
        let killed = Command::new("kill")
            .args([&format!("-{signal}"), &program])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
        let status = match signal {
            "TERM" => 143,
            "HUP" => 129,
            _ => 130,
        };
        tmux.ends_with(status);
    }
}

/// The test reads at most 64 bytes of output a millisecond, as a slow terminal does: both output and keys have to wait.
#[test]
fn a_slow_terminal_gets_all_output() {
    let scratch = recording();
    let program = env!("CARGO_BIN_EXE_rperf");
    let line = format!("stty cols 80 rows 24; exec {program} report {OPTIONS}");
    let mut terminal = Command::new("script");
    terminal.args(["-qefc", &line, "/dev/null"]);
    terminal
        .current_dir(scratch.path())
        .env("HOME", scratch.path());
    terminal
        .env("TERM", "xterm")
        .env("PERF_CONFIG", "/dev/null");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut terminal) = terminal.spawn() else {
        return skip("a_slow_terminal_gets_all_output", "there is no script");
    };
    let mut keys = terminal.stdin.take().expect("a pipe");
    let mut output = terminal.stdout.take().expect("a pipe");
    let (mut seen, mut bytes) = (Vec::new(), [0; 64]);
    // Texts to wait for (the last line, and a percentage in the unfolded call graph), each with the keys to press then.
    let arrows = "\x1b[B\x1b[A".repeat(100) + "q";
    let mut steps = [("Tip:", "E"), ("75.00%", &arrows)].into_iter().peekable();
    while let Ok(count @ 1..) = output.read(&mut bytes) {
        seen.extend_from_slice(&bytes[..count]);
        let is_there = |text: &str| String::from_utf8_lossy(&seen).contains(text);
        if let Some((_, pressed)) = steps.next_if(|(text, _)| is_there(text)) {
            let written = keys.write_all(pressed.as_bytes());
            written.expect("a terminal that reads");
        }
        sleep(Duration::from_millis(1));
    }
    let status = terminal.wait().expect("a child");
    let seen = String::from_utf8_lossy(&seen);
    assert!(status.success(), "{status}: {seen}");
    let (_, after) = seen
        .rsplit_once("\x1b[?1049h")
        .expect("the alternate screen");
    assert!(
        steps.next().is_none() && after.contains("\x1b[?1049l"),
        "{after}"
    );
}

#[test]
fn a_dumb_terminal_gets_text() {
    let scratch = recording();
    let words = format!("--no-pager report {OPTIONS} -g none");
    let Some(tmux) = Tmux::start((80, 40), scratch.path(), "TERM=dumb", &words) else {
        return;
    };
    let screen = tmux.ends_with(0);
    assert!(screen.contains("# Event count (approx.): "), "{screen}");
}

#[test]
fn without_a_terminal_there_is_no_browser() {
    let text = "rperf report: --tui needs a terminal\n\
        hint: use --stdio, or set TERM to the type of your terminal\n";
    assert_refused(&["report", "--tui"], 129, text);
    let scratch = recording();
    let words = ["report", "--kallsyms", "kallsyms"];
    let outcome = rperf(&words).within(scratch.path()).finish();
    let text = outcome.expect("the binary starts").stdout;
    assert!(text.starts_with("# To display"), "{text}");
}

#[test]
fn a_file_that_is_no_recording_is_reported_on_the_restored_terminal() {
    let scratch = Scratch::new();
    scratch.write("perf.data", "no recording").expect("a file");
    let Some(tmux) = Tmux::start((80, 24), scratch.path(), "", "report") else {
        return;
    };
    let screen = tmux.ends_with(255);
    let message = "incompatible file format (perf.data): ";
    assert!(screen.contains(message), "{screen}");
}
