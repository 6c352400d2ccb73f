//! Lines to be read, scrolled and searched.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::list::List;
use crate::page::Page;
use crate::popup::{Help, Prompt};
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// Characters that a step sideways goes.
const SHIFT: usize = 8;

const KEYS: &[(&str, &str)] = &[
    ("UP DOWN PGUP PGDN SPACE HOME END", "Navigate"),
    ("LEFT RIGHT", "Scroll sideways"),
    ("/", "Search"),
    ("n N", "Next line that fits, or the one before"),
    ("ENTER", "Choose, where this is a choice"),
    ("q ESC", "Leave"),
];

/// A screen of text. Leaves [`Reply::Chosen`] with the line of the cursor for Enter if lines are to be chosen, else
/// [`Reply::Cancelled`].
#[derive(Debug)]
pub struct Text {
    title: String,
    lines: Vec<String>,
    list: List,
    left: usize,
    found: String,
}

impl Text {
    /// A screen of these lines.
    #[must_use]
    pub fn new(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self {
            title: title.into(),
            list: List::new(lines.len()),
            lines,
            left: 0,
            found: String::new(),
        }
    }

    fn search<M>(&mut self, backwards: bool) -> Answer<M> {
        if self.found.is_empty() {
            return Answer::Same;
        }
        let fits = |line: usize| {
            let line = self.lines.get(line);
            line.is_some_and(|line| line.contains(&self.found))
        };
        if let Some(line) = self.list.find(backwards, fits) {
            self.list.center(line);
        }
        Answer::Changed
    }

    fn key<M>(&mut self, key: KeyEvent) -> Answer<M> {
        if self.list.key(key) {
            return Answer::Changed;
        }
        match key.code {
            KeyCode::Left => self.left = self.left.saturating_sub(SHIFT),
            KeyCode::Right => self.left += SHIFT,
            KeyCode::Char('/') => {
                let about = "Text to look for";
                return Answer::Push(Box::new(Prompt::new("Search", about, "")));
            }
            KeyCode::Char('n') => return self.search(false),
            KeyCode::Char('N') => return self.search(true),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                return Answer::Push(Box::new(Help::new("Keys", KEYS)));
            }
            KeyCode::Enter => {
                let line = self.list.cursor();
                return Answer::Leave(line.map_or(Reply::Cancelled, Reply::Chosen));
            }
            KeyCode::Esc | KeyCode::Char('q') => return Answer::Leave(Reply::Cancelled),
            _ => return Answer::Same,
        }
        Answer::Changed
    }
}

impl<M> Screen<M> for Text {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let page = Page {
            title: Line::from(Span::raw(&self.title)),
            headings: Vec::new(),
            bottom: Line::from("Press 'q' to leave, '/' to search"),
        };
        let lines = &self.lines;
        let row =
            |line: usize, _| Line::from(Span::raw(lines.get(line).map_or("", String::as_str)));
        page.draw(frame, area, theme, (&mut self.list, self.left), row);
    }

    fn input(&mut self, input: Input) -> Answer<M> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => {
                self.list.mouse(mouse);
                Answer::Changed
            }
            Input::Reply(Reply::Typed(text)) => {
                self.found = text;
                self.search(false)
            }
            Input::Reply(_) => Answer::Changed,
            Input::Tick => Answer::Same,
        }
    }
}
