//! A message popup.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{PopupSize, width, window};
use crate::page::put;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// A box with text; any key closes it.
#[derive(Debug)]
pub struct Notice {
    title: String,
    text: String,
}

impl Notice {
    /// Creates a notice of one or more lines.
    #[must_use]
    pub fn new(title: &str, text: impl Into<String>) -> Self {
        Self {
            title: title.to_owned(),
            text: text.into(),
        }
    }
}

impl<M> Screen<M> for Notice {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let lines = self.text.lines().chain(["", "Press any key..."]);
        let size = PopupSize {
            width: width(lines.clone()),
            height: lines.clone().count(),
        };
        let inside = window(frame, area, theme, &self.title, size);
        for (line, place) in lines.zip(inside.rows()) {
            put(frame, Line::from(line), place);
        }
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        match input {
            Input::Key(_) => InputResult::Close(Reply::Cancelled),
            _ => InputResult::Unchanged,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
