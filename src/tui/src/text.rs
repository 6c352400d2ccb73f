//! Text to read, scroll and search.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::list::{BACKWARDS, FORWARDS, List};
use crate::page::{Page, ScrolledList};
use crate::popup::{Help, Prompt};
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// Columns per horizontal scroll step.
const SHIFT: usize = 8;

const KEYS: &[(&str, &str)] = &[
    ("UP DOWN PGUP PGDN SPACE HOME END", "Navigate"),
    ("LEFT RIGHT", "Scroll sideways"),
    ("/", "Search"),
    ("n N", "Next or previous match"),
    ("q ESC ENTER", "Leave"),
];

/// A screen of text. Enter closes it with [`Reply::Chosen`], the index of the cursor's line, or with [`Reply::Cancelled`] if
/// there are no lines.
#[derive(Debug)]
pub struct TextScreen {
    title: String,
    lines: Vec<String>,
    list: List,
    /// Number of columns that are scrolled out of view on the left.
    left: usize,
    search_text: String,
}

impl TextScreen {
    /// Creates a screen of these lines.
    #[must_use]
    pub fn new(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self {
            title: title.into(),
            list: List::new(lines.len()),
            lines,
            left: 0,
            search_text: String::new(),
        }
    }

    /// Moves the cursor to the next line that contains the search text; to the previous such line if `backwards`.
    fn search<M>(&mut self, backwards: bool) -> InputResult<M> {
        if self.search_text.is_empty() {
            return InputResult::Unchanged;
        }
        let is_match = |row: usize| {
            let line = self.lines.get(row);
            line.is_some_and(|line| line.contains(&self.search_text))
        };
        if let Some(row) = self.list.find(backwards, is_match) {
            self.list.center(row);
        }
        InputResult::Changed
    }

    fn key<M>(&mut self, key: KeyEvent) -> InputResult<M> {
        if self.list.key(key) {
            return InputResult::Changed;
        }
        match key.code {
            KeyCode::Left => self.left = self.left.saturating_sub(SHIFT),
            KeyCode::Right => self.left += SHIFT,
            KeyCode::Char('/') => {
                let description = "Text to search for";
                return InputResult::Push(Box::new(Prompt::new("Search", description, "")));
            }
            KeyCode::Char('n') => return self.search(FORWARDS),
            KeyCode::Char('N') => return self.search(BACKWARDS),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                return InputResult::Push(Box::new(Help::new("Keys", KEYS)));
            }
            KeyCode::Enter => {
                let row = self.list.cursor();
                return InputResult::Close(row.map_or(Reply::Cancelled, Reply::Chosen));
            }
            KeyCode::Esc | KeyCode::Char('q') => return InputResult::Close(Reply::Cancelled),
            _ => return InputResult::Unchanged,
        }
        InputResult::Changed
    }
}

impl<M> Screen<M> for TextScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let page = Page {
            title: Line::from(Span::raw(&self.title)),
            headings: Vec::new(),
            bottom: Line::from("Press 'q' to leave, '/' to search"),
        };
        let lines = &self.lines;
        let row = |number: usize, _is_selected| {
            let line = lines.get(number);
            Line::from(Span::raw(line.map_or("", String::as_str)))
        };
        let scrolled = ScrolledList {
            list: &mut self.list,
            left: self.left,
        };
        page.draw(frame, area, theme, scrolled, row);
    }

    fn input(&mut self, input: Input) -> InputResult<M> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => {
                self.list.mouse(mouse);
                InputResult::Changed
            }
            Input::Reply(Reply::Typed(text)) => {
                self.search_text = text;
                self.search(FORWARDS)
            }
            Input::Reply(_) => InputResult::Changed,
            Input::Tick => InputResult::Unchanged,
        }
    }
}
