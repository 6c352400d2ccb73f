//! `top` on a terminal: the browser, the text screen, their keys, and restoring the terminal.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rperf_testkit::Scratch;

use super::tmux::Tmux;
use crate::kernel::Running;

/// `top` of a spinning shell on a terminal of 120 by 24; `None` if there is no tmux.
fn top(options: &str) -> Option<(Tmux, Running, Scratch)> {
    let (scratch, target) = (Scratch::new(), Running::spin());
    let pid = target.0.id();
    let words = format!("top -e cpu-clock -F 499 -d 0.3 -p {pid} {options}");
    let tmux = Tmux::start((120, 24), scratch.path(), "", &words)?;
    Some((tmux, target, scratch))
}

#[test]
fn the_browser_shows_rows_and_restores_the_terminal() {
    let Some((pane, _target, _scratch)) = top("-ns comm") else {
        return;
    };
    let screen = pane.wait_for("100.00%");
    let mut lines = screen.lines();
    let title = lines.next().expect("a title");
    assert!(title.starts_with("Samples: "), "{screen}");
    assert!(
        title.contains(" of event 'cpu-clock', 499 Hz, Event count (approx.): "),
        "{screen}"
    );
    assert!(screen.contains(" sh"), "{screen}");
    // Part of the status in the last line.
    assert!(screen.contains(" samples/s"), "{screen}");
    pane.press(&["z"]);
    pane.wait_for("Sample zeroing on.");
    // Any key closes a notice.
    pane.press(&["Space"]);
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn the_browser_filters_rows_of_the_kernel_and_explains_keys_without_effect() {
    let (scratch, words) = (
        Scratch::new(),
        "top -e cpu-clock -F 499 -d 0.3 -a -s comm,dso,symbol",
    );
    let Some(pane) = Tmux::start((120, 24), scratch.path(), "", words) else {
        return;
    };
    pane.wait_for("[kernel]");
    pane.press(&["k"]);
    pane.wait("rows of the kernel", |screen| {
        screen.contains("DSO: kernel") && screen.contains("[k] ")
    });
    pane.press(&["Escape", "S"]);
    pane.wait_for("There is no such column: run with --sort socket.");
    // Space closes the notice.
    pane.press(&[
        "Space", "/", "n", "o", "n", "e", "_", "s", "u", "c", "h", "Enter", "a",
    ]);
    pane.wait_for("There is no row at the cursor.");
    pane.press(&["Space", "q"]);
    pane.ends_with(0);
}

#[test]
fn an_interrupt_leaves_the_browser() {
    let Some((pane, _target, _scratch)) = top("-d 600") else {
        return;
    };
    // The last `-d` counts: the first refresh, after ten minutes, is never reached.
    pane.wait_for("Collecting samples...");
    pane.press(&["C-c"]);
    pane.ends_with(0);
}

#[test]
fn the_text_screen_has_keys() {
    let Some((pane, _target, _scratch)) = top("--stdio -ns comm") else {
        return;
    };
    let screen = pane.wait_for("100.00%");
    assert!(screen.contains("   PerfTop:"), "{screen}");
    assert!(
        screen.contains("exact:  0.0% lost: 0/0 drop: 0/0 [499Hz cpu-clock]"),
        "{screen}"
    );
    // The line below the status has one dash less than the terminal has columns; a part of it is enough.
    assert!(screen.contains(&"-".repeat(79)), "{screen}");
    pane.press(&["x"]);
    let menu = pane.wait_for("unmapped key to continue:");
    assert!(menu.contains("[qQ]    quit."), "{menu}");
    pane.press(&["e"]);
    pane.wait_for("Enter display entries (lines):");
    pane.press(&["7"]);
    pane.press(&["Enter"]);
    pane.wait("rows without a menu", |screen| {
        screen.contains("100.00%") && !screen.contains("Mapped keys:")
    });
    pane.press(&["x"]);
    let menu = pane.wait_for("unmapped key to continue:");
    assert!(
        menu.lines()
            .any(|line| line.contains("[e]") && line.ends_with("(7)")),
        "{menu}"
    );
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn the_text_screen_tells_whether_samples_are_zeroed() {
    // The next refresh removes a notice, so the interval is long.
    let Some((pane, _target, _scratch)) = top("--stdio -ns comm -d 5") else {
        return;
    };
    pane.wait_for("100.00%");
    for notice in ["Sample zeroing on.", "Sample zeroing off."] {
        pane.press(&["z"]);
        let screen = pane.wait_for(notice);
        assert!(screen.contains("   PerfTop:"), "{screen}");
    }
    pane.press(&["q"]);
    pane.ends_with(0);
}

/// A program that only loops in one function.
const LOOPING: &str = "static void looping(void)
{
	for (volatile long i = 0; i < 1000000; i++)
		;
}

int main(void)
{
	for (;;)
		looping();
}
";

/// `top` of that program on a terminal of 120 by 40; `None` if there is no tmux.
fn top_of_looping(options: &str) -> Option<(Tmux, Running, Scratch)> {
    let scratch = Scratch::new();
    scratch.write("looping.c", LOOPING).expect("a file");
    let built = Command::new("cc")
        .current_dir(scratch.path())
        .args(["-O0", "-g", "-o", "looping", "looping.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    let target = Command::new(scratch.path().join("looping")).spawn();
    let target = Running(target.expect("the program starts"));
    let pid = target.0.id();
    let words = format!("top -e cpu-clock:u -F 499 -d 0.3 -p {pid} {options}");
    let tmux = Tmux::start((120, 40), scratch.path(), "", &words)?;
    Some((tmux, target, scratch))
}

/// Whether an `add` or `mov` instruction has a percentage.
fn has_shares(screen: &str) -> bool {
    let mut lines = screen
        .lines()
        .filter(|line| line.contains("add") || line.contains("mov"));
    lines.any(|line| {
        line.trim_start()
            .starts_with(|letter: char| letter.is_ascii_digit())
    })
}

#[test]
fn code_is_shown_while_it_runs() {
    let Some((pane, _target, _scratch)) = top_of_looping("") else {
        return;
    };
    pane.wait_for("] looping");
    // The first samples may be of the dynamic linker.
    pane.press(&["/", "l", "o", "o", "p", "i", "Enter"]);
    pane.wait_for("Symbol: loopi");
    pane.press(&["a"]);
    pane.wait("code", |screen| {
        screen.contains("[Percent: local period]") && has_shares(screen)
    });
    // From percentages to periods, then to sample counts.
    pane.press(&["t", "t"]);
    pane.wait_for("Samples│");
    pane.press(&["q"]);
    pane.wait_for("Overhead");
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn sym_annotate_opens_the_code_in_the_browser() {
    let Some((pane, _target, _scratch)) = top_of_looping("--sym-annotate looping -M intel") else {
        return;
    };
    pane.wait("code", |screen| {
        screen.contains("[Percent: local period]") && screen.contains("QWORD PTR")
    });
    pane.press(&["C-c"]);
    pane.ends_with(0);
}

#[test]
fn the_text_screen_shows_code() {
    let Some((pane, _target, _scratch)) = top_of_looping("--stdio --sym-annotate looping") else {
        return;
    };
    pane.wait("code", |screen| {
        screen.contains("Showing cpu-clock:u for looping") && has_shares(screen)
    });
    pane.press(&["S"]);
    pane.wait("rows", |screen| {
        screen.contains("] looping") && !screen.contains("Showing")
    });
    pane.press(&["s"]);
    pane.wait_for("Enter details symbol:");
    pane.press(&["x", "x", "Enter"]);
    pane.wait_for("no samples in xx yet");
    pane.press(&["F"]);
    pane.wait_for("event filter (percent):");
    pane.press(&["7", "Enter"]);
    pane.wait_for("Pcnt (>=7%)");
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn a_missing_objdump_is_reported() {
    let options = "--stdio --sym-annotate looping --objdump ./nosuch";
    let Some((pane, _target, _scratch)) = top_of_looping(options) else {
        return;
    };
    pane.wait_for("--objdump ./nosuch: No such file or directory");
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn a_closed_terminal_ends_top() {
    let Some((pane, _target, _scratch)) = top("") else {
        return;
    };
    pane.wait_for("samples/s");
    let process = PathBuf::from("/proc").join(pane.program_pid());
    assert!(process.exists());
    // Kills the tmux server, which closes the terminal.
    drop(pane);
    let start = Instant::now();
    while process.exists() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "top keeps running"
        );
        sleep(Duration::from_millis(20));
    }
}
