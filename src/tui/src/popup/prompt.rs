//! A line to be typed.

use crossterm::event::{KeyCode, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::{width, window};
use crate::page::put;
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// Columns for what is typed.
const ROOM: usize = 40;

/// A box with a line to type in. Enter leaves [`Reply::Typed`], ESC [`Reply::Cancelled`].
#[derive(Debug)]
pub struct Prompt {
    title: String,
    about: String,
    typed: String,
}

impl Prompt {
    /// A prompt with some words about it, and what is typed already.
    #[must_use]
    pub fn new(title: &str, about: &str, typed: &str) -> Self {
        Self {
            title: title.to_owned(),
            about: about.to_owned(),
            typed: typed.to_owned(),
        }
    }
}

impl<M> Screen<M> for Prompt {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let lines = self.about.lines().chain(["", "Enter: Ok, ESC: Cancel", ""]);
        let size = (width(lines.clone()).max(ROOM), lines.clone().count() + 1);
        let inside = window(frame, area, theme, &self.title, size);
        let mut places = inside.rows();
        let Some(typing) = places.next_back() else {
            return;
        };
        for (line, place) in lines.zip(places) {
            put(frame, Line::from(line), place);
        }
        frame.buffer_mut().set_style(typing, theme.selected);
        // The end is what is being typed; the cursor needs a column.
        let room = usize::from(typing.width).saturating_sub(1);
        let count = self.typed.chars().count();
        let shown: String = self
            .typed
            .chars()
            .skip(count.saturating_sub(room))
            .collect();
        let column = u16::try_from(count.min(room)).unwrap_or_default();
        put(frame, Line::from(shown), typing);
        frame.set_cursor_position(Position::new(typing.x + column, typing.y));
    }

    fn input(&mut self, input: Input) -> Answer<M> {
        let Input::Key(key) = input else {
            return Answer::Same;
        };
        match key.code {
            KeyCode::Enter => return Answer::Leave(Reply::Typed(self.typed.clone())),
            KeyCode::Esc => return Answer::Leave(Reply::Cancelled),
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.typed.clear();
            }
            KeyCode::Char(letter) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.typed.push(letter);
            }
            KeyCode::Backspace => {
                self.typed.pop();
            }
            _ => return Answer::Same,
        }
        Answer::Changed
    }

    fn is_popup(&self) -> bool {
        true
    }
}
