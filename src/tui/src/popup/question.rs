//! A yes/no popup.

use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{PopupSize, width, window};
use crate::page::put;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// A box with a yes-or-no question. `y` and Enter mean yes; `n`, `q` and ESC no. Returns [`Reply::Confirmed`].
#[derive(Debug)]
pub struct Question(String);

impl Question {
    /// Creates a question; `text` should end with a question mark.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl<M> Screen<M> for Question {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let lines = self.0.lines().chain(["", "Enter: Yes, ESC: No"]);
        let size = PopupSize {
            width: width(lines.clone()),
            height: lines.clone().count(),
        };
        let no_title = "";
        let inside = window(frame, area, theme, no_title, size);
        for (line, place) in lines.zip(inside.rows()) {
            put(frame, Line::from(line), place);
        }
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        let Input::Key(key) = input else {
            return InputResult::Unchanged;
        };
        match key.code {
            KeyCode::Enter | KeyCode::Char('y' | 'Y') => InputResult::Close(Reply::Confirmed(true)),
            KeyCode::Esc | KeyCode::Char('n' | 'N' | 'q') => {
                InputResult::Close(Reply::Confirmed(false))
            }
            _ => InputResult::Unchanged,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
