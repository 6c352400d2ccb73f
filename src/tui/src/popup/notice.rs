//! Something to be read.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{width, window};
use crate::page::put;
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// A box with text; any key closes it.
#[derive(Debug)]
pub struct Notice {
    title: String,
    text: String,
}

impl Notice {
    /// A notice of one or several lines.
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
        let size = (width(lines.clone()), lines.clone().count());
        let inside = window(frame, area, theme, &self.title, size);
        for (line, place) in lines.zip(inside.rows()) {
            put(frame, Line::from(line), place);
        }
    }

    fn input(&mut self, input: Input) -> Answer<M> {
        match input {
            Input::Key(_) => Answer::Leave(Reply::Cancelled),
            _ => Answer::Same,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
