//! Screens on a terminal that is a buffer, with keys from a list.

mod annotate;
mod popups;
mod sessions;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::backend::TestBackend;

use crate::{Screen, Source, Theme};

/// Keys that are pressed one after the other; then the terminal is gone.
struct Pressed(VecDeque<Event>);

impl Source for Pressed {
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
        // One for each turn of the loop, as if all were typed slowly.
        match wait.is_zero() {
            true => Ok(None),
            false => self
                .0
                .pop_front()
                .map(Some)
                .ok_or_else(|| io::Error::other("no more keys")),
        }
    }
}

fn pressed(keys: &[KeyCode]) -> Pressed {
    Pressed(keys.iter().map(|key| Event::Key((*key).into())).collect())
}

fn click(column: u16, row: u16) -> MouseEvent {
    MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }
}

fn key(code: KeyCode) -> KeyEvent {
    code.into()
}

/// What a screen looks like, each line without the blanks at its end.
fn drawn<M>(screen: &mut dyn Screen<M>, width: u16, height: u16) -> Vec<String> {
    let mut terminal =
        ratatui::Terminal::new(TestBackend::new(width, height)).expect("a buffer of that size");
    terminal
        .draw(|frame| screen.draw(frame, frame.area(), &Theme::new(true)))
        .expect("a buffer takes everything");
    lines(terminal.backend())
}

fn lines(backend: &TestBackend) -> Vec<String> {
    let buffer = backend.buffer();
    let line = |row: u16| {
        let cells = (0..buffer.area.width).map(|column| buffer[(column, row)].symbol());
        cells.collect::<String>().trim_end().to_owned()
    };
    (0..buffer.area.height).map(line).collect()
}
