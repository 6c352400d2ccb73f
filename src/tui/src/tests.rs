//! Screens on an in-memory terminal, with scripted keys.

mod annotate;
mod popups;
mod reports;
mod sessions;

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::backend::TestBackend;

use crate::{InputSource, Screen, Theme};

/// Scripted inputs, one each time that the loop waits for input; after the last one, reading fails.
struct PressedKeys(VecDeque<Event>);

impl InputSource for PressedKeys {
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
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

fn pressed(keys: &[KeyCode]) -> PressedKeys {
    PressedKeys(keys.iter().map(|key| Event::Key((*key).into())).collect())
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

/// The contents of a screen, without trailing blanks.
fn drawn<M>(screen: &mut dyn Screen<M>, width: u16, height: u16) -> Vec<String> {
    let mut terminal =
        ratatui::Terminal::new(TestBackend::new(width, height)).expect("a buffer of that size");
    let has_colors = true;
    let theme = Theme::new(has_colors);
    terminal
        .draw(|frame| screen.draw(frame, frame.area(), &theme))
        .expect("writing to memory succeeds");
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
