//! An input line popup.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use rperf_view::terminal::escaped_line;

use super::{PopupSize, width, window};
use crate::page::put;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// The minimum width of the input field, in columns, if the screen has room.
const MIN_FIELD_WIDTH: usize = 40;

/// A box with an input line. Enter returns [`Reply::Typed`], ESC [`Reply::Cancelled`]; Ctrl-U clears the line.
#[derive(Debug)]
pub struct Prompt {
    title: String,
    description: String,
    typed: String,
}

impl Prompt {
    /// Creates a prompt with a description and an initial text.
    #[must_use]
    pub fn new(title: &str, description: &str, typed: &str) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            typed: typed.to_owned(),
        }
    }
}

impl<M> Screen<M> for Prompt {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let lines = self
            .description
            .lines()
            .chain(["", "Enter: Ok, ESC: Cancel", ""]);
        let size = PopupSize {
            width: width(lines.clone()).max(MIN_FIELD_WIDTH),
            height: lines.clone().count() + 1,
        };
        let inside = window(frame, area, theme, &self.title, size);
        let mut rows = inside.rows();
        let Some(field) = rows.next_back() else {
            return;
        };
        for (line, row) in lines.zip(rows) {
            put(frame, Line::from(line), row);
        }
        frame.buffer_mut().set_style(field, theme.selected);
        // Of a text that is wider than the field, only the end is shown. The last column is left free for the cursor.
        let columns = usize::from(field.width).saturating_sub(1);
        let escaped = escaped_line(&self.typed);
        let mut visible = escaped.chars();
        while Line::from(visible.as_str()).width() > columns {
            visible.next();
        }
        let visible = Line::from(visible.as_str());
        let column = u16::try_from(visible.width()).unwrap_or_default();
        put(frame, visible, field);
        frame.set_cursor_position(Position::new(field.x + column, field.y));
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        let Input::Key(key) = input else {
            return InputResult::Unchanged;
        };
        match key.code {
            KeyCode::Enter => return InputResult::Close(Reply::Typed(self.typed.clone())),
            KeyCode::Esc => return InputResult::Close(Reply::Cancelled),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.typed.clear();
            }
            KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.typed.push(letter);
            }
            KeyCode::Backspace => {
                self.typed.pop();
            }
            _ => return InputResult::Unchanged,
        }
        InputResult::Changed
    }

    fn is_popup(&self) -> bool {
        true
    }
}
