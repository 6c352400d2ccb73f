//! The help popup.

use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::{PopupSize, width, window};
use crate::list::List;
use crate::page::put;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// A box that lists keys and what they do. Any key that does not scroll closes it; so does SPACE, which scrolls other lists.
#[derive(Debug)]
pub struct Help {
    title: String,
    lines: Vec<String>,
    /// The first visible line.
    top: usize,
    /// The maximum of `top`, at which the last line is visible.
    max_top: usize,
}

impl Help {
    /// Creates help with these keys and their descriptions; a line without a key is a heading.
    #[must_use]
    pub fn new(title: &str, keys: &[(&str, &str)]) -> Self {
        let widest = width(keys.iter().map(|(key, _)| *key));
        let line = |(key, description): &(&str, &str)| match key.is_empty() {
            true => (*description).to_owned(),
            false => format!("{key:<widest$}  {description}"),
        };
        Self {
            title: title.to_owned(),
            lines: keys.iter().map(line).collect(),
            top: 0,
            max_top: 0,
        }
    }
}

impl<M> Screen<M> for Help {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let size = PopupSize {
            width: width(self.lines.iter().map(String::as_str)),
            height: self.lines.len(),
        };
        let inside = window(frame, area, theme, &self.title, size);
        self.max_top = self.lines.len().saturating_sub(usize::from(inside.height));
        self.top = self.top.min(self.max_top);
        let lines = self.lines.iter().skip(self.top);
        for (line, place) in lines.zip(inside.rows()) {
            put(frame, Line::from(line.as_str()), place);
        }
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        match input {
            Input::Key(key) => {
                // The possible values of `top` as a list with the cursor on `top`: the keys that move the cursor scroll.
                let mut tops = List::new(self.max_top + 1);
                tops.go_to(self.top);
                if key.code == KeyCode::Char(' ') || !tops.key(key) {
                    // Help asks nothing, so this is its only reply.
                    return InputResult::Close(Reply::Cancelled);
                }
                self.top = tops.cursor().unwrap_or_default();
                InputResult::Changed
            }
            _ => InputResult::Unchanged,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
