//! `sched map` on a terminal.

use std::fs;

use rperf_testkit::Scratch;

use super::recording::SchedFile;
use super::{run, waits};
use crate::commands::tmux::Tmux;

#[test]
fn selected_cpus_and_threads_are_coloured_on_a_terminal_only() -> std::io::Result<()> {
    let scratch = Scratch::new();
    let mut file = SchedFile::new();
    waits(&mut file);
    fs::write(scratch.path().join("perf.data"), file.finish())?;
    let command = "sched map --color-cpus 0 --color-pids 7";
    let piped = run(&scratch, &command.split(' ').collect::<Vec<_>>());
    assert_eq!(piped.status, 0, "{piped:?}");
    assert!(
        piped.stdout.contains("*A0 ") && !piped.stdout.contains('\x1b'),
        "{piped:?}"
    );
    let no_settings = "";
    let terminal = Tmux::start(
        (100, 40),
        scratch.path(),
        no_settings,
        &format!("--no-pager {command}"),
    );
    let Some(terminal) = terminal else {
        return Ok(());
    };
    // The command exits with status 0.
    terminal.ends_with(0);
    let screen = terminal.colored_screen();
    // `seven` is A0 and begins to run twice, `eight` is B0. Selected threads are blue; the background of selected CPUs is red.
    let rows: Vec<&str> = screen
        .lines()
        .filter(|line| line.contains(" secs"))
        .collect();
    let has_colored_thread = |row: &&&str| row.contains("\x1b[34m");
    assert_eq!(rows.len(), 4, "{screen:?}");
    assert!(
        rows.iter().all(|row| row.contains("\x1b[41m*")),
        "{screen:?}"
    );
    assert!(
        rows.iter()
            .filter(has_colored_thread)
            .all(|row| row.contains("A0")),
        "{screen:?}"
    );
    assert_eq!(
        rows.iter().filter(has_colored_thread).count(),
        2,
        "{screen:?}"
    );
    Ok(())
}
