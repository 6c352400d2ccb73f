//! The menu of events, where a recording has several.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_view::report::rough;

use super::help::keys;
use super::news::News;
use super::screen::{Asked, ReportScreen};
use crate::page::Page;
use crate::popup::{Help, Question};
use crate::screen::Answer;
use crate::theme::Theme;

impl ReportScreen {
    /// Draws the menu.
    pub(super) fn draw_events(
        &mut self,
        frame: &mut Frame<'_>,
        area: Rect,
        theme: &Theme,
        bottom: Line<'_>,
    ) {
        let page = Page {
            title: Line::from("Available samples"),
            headings: Vec::new(),
            bottom,
        };
        let tables = &self.report.tables;
        let row = |number: usize, _| match tables.get(number) {
            Some(table) => {
                let seen = table.live.as_ref().map(|live| live.seen);
                let samples = rough(seen.unwrap_or(table.histogram.whole().samples));
                Line::from(Span::raw(format!("{samples:>8}{}", table.name)))
            }
            None => Line::default(),
        };
        page.draw(frame, area, theme, (&mut self.events, 0), row);
    }

    /// A key in the menu.
    pub(super) fn event_key(&mut self, key: KeyEvent) -> Answer<News> {
        if self.events.key(key) {
            return Answer::Changed;
        }
        match key.code {
            KeyCode::Enter | KeyCode::Right => self.open_chosen(),
            KeyCode::Char('q') => Answer::Quit,
            KeyCode::Esc | KeyCode::Left => self.ask_to_exit(),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                Answer::Push(Box::new(Help::new("Keys", &keys(self.is_live))))
            }
            _ => Answer::Same,
        }
    }

    /// Shows the table of the menu's cursor.
    pub(super) fn open_chosen(&mut self) -> Answer<News> {
        match self.events.cursor() {
            Some(number) => {
                self.open(number);
                Answer::Changed
            }
            None => Answer::Same,
        }
    }

    /// Goes to the next table, or to the one before.
    pub(super) fn turn(&mut self, backwards: bool) -> Answer<News> {
        let count = self.views.len();
        let (Some(current), true) = (self.current, count > 1) else {
            return Answer::Same;
        };
        let step = if backwards { count - 1 } else { 1 };
        self.open((current + step) % count);
        Answer::Changed
    }

    /// ESC where there is nothing left to leave.
    pub(super) fn ask_to_exit(&mut self) -> Answer<News> {
        self.asked = Some(Asked::Exit);
        Answer::Push(Box::new(Question::new("Do you really want to exit?")))
    }
}
