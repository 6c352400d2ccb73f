//! Yes or no.

use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{width, window};
use crate::page::put;
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// A question. `y` and Enter agree, `n`, `q` and ESC do not; leaves [`Reply::Agreed`].
#[derive(Debug)]
pub struct Question(String);

impl Question {
    /// A question that ends with a question mark.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl<M> Screen<M> for Question {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let lines = self.0.lines().chain(["", "Enter: Yes, ESC: No"]);
        let size = (width(lines.clone()), lines.clone().count());
        let inside = window(frame, area, theme, "", size);
        for (line, place) in lines.zip(inside.rows()) {
            put(frame, Line::from(line), place);
        }
    }

    fn input(&mut self, input: Input) -> Answer<M> {
        let Input::Key(key) = input else {
            return Answer::Same;
        };
        match key.code {
            KeyCode::Enter | KeyCode::Char('y' | 'Y') => Answer::Leave(Reply::Agreed(true)),
            KeyCode::Esc | KeyCode::Char('n' | 'N' | 'q') => Answer::Leave(Reply::Agreed(false)),
            _ => Answer::Same,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
