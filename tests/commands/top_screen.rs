//! `top` on a terminal: the browser, the screen of text, their keys, and the terminal as it was afterwards.

use rperf_testkit::Scratch;

use super::tmux::Tmux;
use crate::kernel::Running;

/// `top` of a shell that spins, on a terminal of 120 by 24; none where there is no tmux.
fn top(options: &str) -> Option<(Tmux, Running, Scratch)> {
    let (scratch, target) = (Scratch::new(), Running::spin());
    let pid = target.0.id();
    let words = format!("top -e cpu-clock -F 499 -d 0.3 -p {pid} {options}");
    let tmux = Tmux::start((120, 24), scratch.path(), "", &words)?;
    Some((tmux, target, scratch))
}

#[test]
fn the_browser_shows_rows_that_change_and_gives_the_terminal_back() {
    let Some((pane, _target, _scratch)) = top("-ns comm") else {
        return;
    };
    let shown = pane.wait_for("100.00%");
    let mut lines = shown.lines();
    let title = lines.next().expect("a title");
    assert!(title.starts_with("Samples: "), "{shown}");
    assert!(
        title.contains(" of event 'cpu-clock', 499 Hz, Event count (approx.): "),
        "{shown}"
    );
    assert!(shown.contains(" sh"), "{shown}");
    assert!(
        shown.contains("; own CPU ") || shown.contains(" samples/s"),
        "{shown}"
    );
    pane.press(&["z"]);
    pane.wait_for("Sample zeroing on.");
    pane.press(&["Space"]);
    pane.press(&["q"]);
    pane.ends_with(0);
}

#[test]
fn an_interrupt_leaves_the_browser() {
    let Some((pane, _target, _scratch)) = top("-d 600") else {
        return;
    };
    pane.wait_for("Collecting samples...");
    pane.press(&["C-c"]);
    pane.ends_with(0);
}

#[test]
fn the_screen_of_text_has_keys() {
    let Some((pane, _target, _scratch)) = top("--stdio -ns comm") else {
        return;
    };
    let shown = pane.wait_for("100.00%");
    assert!(shown.contains("   PerfTop:"), "{shown}");
    assert!(
        shown.contains("exact:  0.0% lost: 0/0 drop: 0/0 [499Hz cpu-clock]"),
        "{shown}"
    );
    assert!(shown.contains(&"-".repeat(79)), "{shown}");
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
