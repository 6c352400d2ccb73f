//! A choice of several.

use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{width, window};
use crate::list::{List, Pointed};
use crate::page::put;
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// A box with a line for each choice. Leaves [`Reply::Chosen`] or [`Reply::Cancelled`].
#[derive(Debug)]
pub struct Menu {
    title: String,
    choices: Vec<String>,
    list: List,
}

impl Menu {
    /// A menu, the cursor on its first choice.
    #[must_use]
    pub fn new(title: &str, choices: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            list: List::new(choices.len()),
            choices,
        }
    }

    /// The same with the cursor on another choice.
    #[must_use]
    pub fn at(mut self, choice: usize) -> Self {
        self.list.go_to(choice);
        self
    }

    fn choose<M>(&self) -> Answer<M> {
        Answer::Leave(self.list.cursor().map_or(Reply::Cancelled, Reply::Chosen))
    }
}

impl<M> Screen<M> for Menu {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let size = (
            width(self.choices.iter().map(String::as_str)),
            self.choices.len(),
        );
        let inside = window(frame, area, theme, &self.title, size);
        let seen = self.list.lay_out(inside);
        let cursor = self.list.cursor();
        let choices = self.choices.iter().enumerate().skip(seen.start);
        for ((number, choice), place) in choices.zip(inside.rows()) {
            if cursor == Some(number) {
                frame.buffer_mut().set_style(place, theme.selected);
            }
            put(frame, Line::from(Span::raw(choice)), place);
        }
    }

    fn input(&mut self, input: Input) -> Answer<M> {
        match input {
            Input::Key(key) if self.list.key(key) => Answer::Changed,
            Input::Key(key) => match key.code {
                KeyCode::Enter | KeyCode::Right => self.choose(),
                KeyCode::Esc | KeyCode::Left | KeyCode::Char('q') => {
                    Answer::Leave(Reply::Cancelled)
                }
                _ => Answer::Same,
            },
            Input::Mouse(mouse) => match self.list.mouse(mouse) {
                Pointed::Nowhere => Answer::Same,
                Pointed::Moved => Answer::Changed,
                Pointed::Again => self.choose(),
            },
            Input::Tick | Input::Reply(_) => Answer::Same,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
