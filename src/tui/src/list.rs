//! The state of a list: where the cursor is, and which rows are seen.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Rows that the wheel goes at a time.
const WHEEL: usize = 3;

/// A list of any length: it knows numbers of rows, and nothing of what is in them.
#[derive(Debug, Clone, Default)]
pub struct List {
    len: usize,
    cursor: usize,
    /// The first row that is seen.
    top: usize,
    /// Where rows were drawn last.
    area: Rect,
}

/// What the mouse did to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointed {
    /// Nothing.
    Nowhere,
    /// It moved the cursor, or turned the wheel.
    Moved,
    /// It clicked on the row where the cursor was already.
    Again,
}

impl List {
    /// A list of so many rows, the cursor on the first.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            len,
            ..Self::default()
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row of the cursor; None in an empty list.
    #[must_use]
    pub fn cursor(&self) -> Option<usize> {
        (self.cursor < self.len).then_some(self.cursor)
    }

    /// There are so many rows now. The cursor keeps its place, or stands on the last.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
        self.go_to(self.cursor);
    }

    /// Puts the cursor on a row, or on the last if there is none there, and shows it.
    pub fn go_to(&mut self, row: usize) {
        self.cursor = row.min(self.len.saturating_sub(1));
        self.show_cursor();
    }

    /// Puts the cursor on a row and that row in the middle, as after a search.
    pub fn center(&mut self, row: usize) {
        self.cursor = row.min(self.len.saturating_sub(1));
        self.top = self.cursor.saturating_sub(self.height() / 2);
        self.show_cursor();
    }

    /// Keeps a row at the height where it is seen now, while it gets another number: after rows above it came or went.
    pub fn follow(&mut self, row: usize) {
        let height = self.cursor.saturating_sub(self.top);
        self.cursor = row.min(self.len.saturating_sub(1));
        self.top = self.cursor.saturating_sub(height);
        self.show_cursor();
    }

    /// Tells where rows are drawn, one in each line, and returns those that are seen.
    pub fn lay_out(&mut self, area: Rect) -> Range<usize> {
        self.area = area;
        self.show_cursor();
        self.top..self.len.min(self.top + self.height())
    }

    /// Moves as a key says; whether it is one of those that move.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.height().max(1);
        let row = match key.code {
            KeyCode::Up => self.cursor.saturating_sub(1),
            KeyCode::Down => self.cursor + 1,
            KeyCode::PageUp => self.cursor.saturating_sub(page),
            KeyCode::PageDown => self.cursor + page,
            KeyCode::Char(' ') => self.cursor + page,
            KeyCode::Char('b') if control => self.cursor.saturating_sub(page),
            KeyCode::Char('p') if control => self.cursor.saturating_sub(1),
            KeyCode::Char('n') if control => self.cursor + 1,
            KeyCode::Home => 0,
            KeyCode::End => self.len,
            _ => return false,
        };
        self.go_to(row);
        true
    }

    /// Moves as the mouse says: the wheel by some rows, a click to its row.
    pub fn mouse(&mut self, mouse: MouseEvent) -> Pointed {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.go_to(self.cursor.saturating_sub(WHEEL)),
            MouseEventKind::ScrollDown => self.go_to(self.cursor + WHEEL),
            MouseEventKind::Down(MouseButton::Left) => {
                let place = Position::new(mouse.column, mouse.row);
                let row = self.top + usize::from(mouse.row.saturating_sub(self.area.y));
                if !self.area.contains(place) || row >= self.len {
                    return Pointed::Nowhere;
                }
                if row == self.cursor {
                    return Pointed::Again;
                }
                self.go_to(row);
            }
            _ => return Pointed::Nowhere,
        }
        Pointed::Moved
    }

    /// The nearest row behind the cursor that fits, or before it; around the ends to the cursor itself.
    pub fn find(&self, backwards: bool, mut fits: impl FnMut(usize) -> bool) -> Option<usize> {
        let behind = (self.cursor + 1..self.len).chain(0..self.len.min(self.cursor + 1));
        if !backwards {
            return behind.into_iter().find(|row| fits(*row));
        }
        let before = (0..self.cursor).rev();
        let mut rows = before.chain((self.cursor..self.len).rev());
        rows.find(|row| fits(*row))
    }

    fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    fn show_cursor(&mut self) {
        let height = self.height().max(1);
        let lowest = self.cursor.saturating_sub(height - 1);
        self.top = self.top.clamp(lowest, self.cursor);
        // No empty lines below the last row while there are rows above the first.
        self.top = self.top.min(self.len.saturating_sub(height)).max(lowest);
    }
}
