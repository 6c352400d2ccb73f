//! The event menu, for recordings with several events.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_view::report::short_count;

use super::help::keys;
use super::messages::ReaderMessage;
use super::screen::{PopupPurpose, ReportScreen};
use crate::page::{Page, ScrolledList};
use crate::popup::{Help, Question};
use crate::screen::InputResult;
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
        let row = |number: usize, _is_selected| match tables.get(number) {
            Some(table) => {
                let live_count = table.live.as_ref().map(|live| live.sample_count);
                let samples = short_count(live_count.unwrap_or(table.histogram.total().samples));
                // A count without a unit ends with a blank, which would shift it to the left.
                Line::from(Span::raw(format!(
                    "{:>7} {}",
                    samples.trim_end(),
                    table.name
                )))
            }
            None => Line::default(),
        };
        let scrolled = ScrolledList {
            list: &mut self.event_menu,
            // The menu is not scrolled sideways.
            left: 0,
        };
        page.draw(frame, area, theme, scrolled, row);
    }

    /// Handles a key in the menu.
    pub(super) fn event_key(&mut self, key: KeyEvent) -> InputResult<ReaderMessage> {
        if self.event_menu.key(key) {
            return InputResult::Changed;
        }
        match key.code {
            KeyCode::Enter | KeyCode::Right => self.open_chosen(),
            KeyCode::Char('q') => InputResult::Quit,
            KeyCode::Esc | KeyCode::Left => self.ask_to_exit(),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                InputResult::Push(Box::new(Help::new("Keys", &keys(self.is_live))))
            }
            _ => InputResult::Unchanged,
        }
    }

    /// Shows the table of the event at the menu's cursor.
    pub(super) fn open_chosen(&mut self) -> InputResult<ReaderMessage> {
        match self.event_menu.cursor() {
            Some(number) => {
                self.open(number);
                InputResult::Changed
            }
            None => InputResult::Unchanged,
        }
    }

    /// Switches to the next table, or to the previous one if `backwards`.
    pub(super) fn switch_table(&mut self, backwards: bool) -> InputResult<ReaderMessage> {
        let count = self.views.len();
        let (Some(current), true) = (self.current, count > 1) else {
            return InputResult::Unchanged;
        };
        let step = if backwards { count - 1 } else { 1 };
        self.open((current + step) % count);
        InputResult::Changed
    }

    /// Asks whether to exit: after ESC where there is nothing to go back to, and after LEFT in the menu.
    pub(super) fn ask_to_exit(&mut self) -> InputResult<ReaderMessage> {
        self.purpose = Some(PopupPurpose::Exit);
        InputResult::Push(Box::new(Question::new("Do you really want to exit?")))
    }
}
