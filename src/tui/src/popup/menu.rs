//! A menu popup.

use crossterm::event::KeyCode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{PopupSize, width, window};
use crate::list::{List, MouseEffect};
use crate::page::put;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// A box with a line for each choice. ENTER, RIGHT or a click on the line of the cursor returns [`Reply::Chosen`], or
/// [`Reply::Cancelled`] if there are no choices. ESC, LEFT or `q` returns [`Reply::Cancelled`].
#[derive(Debug)]
pub struct Menu {
    title: String,
    choices: Vec<String>,
    list: List,
}

impl Menu {
    /// Creates a menu with the cursor on the first choice.
    #[must_use]
    pub fn new(title: &str, choices: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            list: List::new(choices.len()),
            choices,
        }
    }

    /// Returns the menu with the cursor on another choice, by index.
    #[must_use]
    pub fn at(mut self, choice: usize) -> Self {
        self.list.go_to(choice);
        self
    }

    fn choose<M>(&self) -> InputResult<M> {
        InputResult::Close(self.list.cursor().map_or(Reply::Cancelled, Reply::Chosen))
    }
}

// `M` is the type of messages from other threads; a menu handles none.
impl<M> Screen<M> for Menu {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let size = PopupSize {
            width: width(self.choices.iter().map(String::as_str)),
            height: self.choices.len(),
        };
        let inside = window(frame, area, theme, &self.title, size);
        let visible = self.list.lay_out(inside);
        let cursor = self.list.cursor();
        let choices = self.choices.iter().enumerate().skip(visible.start);
        for ((number, choice), place) in choices.zip(inside.rows()) {
            if cursor == Some(number) {
                frame.buffer_mut().set_style(place, theme.selected);
            }
            put(frame, Line::from(Span::raw(choice)), place);
        }
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        match input {
            Input::Key(key) if self.list.key(key) => InputResult::Changed,
            Input::Key(key) => match key.code {
                KeyCode::Enter | KeyCode::Right => self.choose(),
                KeyCode::Esc | KeyCode::Left | KeyCode::Char('q') => {
                    InputResult::Close(Reply::Cancelled)
                }
                _ => InputResult::Unchanged,
            },
            Input::Mouse(mouse) => match self.list.mouse(mouse) {
                MouseEffect::None => InputResult::Unchanged,
                MouseEffect::Moved => InputResult::Changed,
                MouseEffect::CursorClicked => self.choose(),
            },
            Input::Tick | Input::Reply(_) => InputResult::Unchanged,
        }
    }

    fn is_popup(&self) -> bool {
        true
    }
}
