//! The state of a list: the cursor and the visible rows.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// The argument of [`List::find`] for the rows after the cursor.
pub(crate) const FORWARDS: bool = false;
/// The argument of [`List::find`] for the rows before the cursor.
pub(crate) const BACKWARDS: bool = true;

/// Rows per wheel step.
const ROWS_PER_WHEEL_STEP: usize = 3;

/// A list of any length: it only knows row numbers, not the contents of rows.
#[derive(Debug, Clone, Default)]
pub struct List {
    len: usize,
    cursor: usize,
    /// The first visible row.
    top: usize,
    /// The area in which the list was last drawn.
    area: Rect,
}

/// The effect of a mouse event on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseEffect {
    /// No effect.
    None,
    /// The wheel was turned, or a row other than the cursor's was clicked.
    Moved,
    /// A click on the row of the cursor.
    CursorClicked,
}

impl List {
    /// Creates a list of `len` rows with the cursor on the first.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self {
            len,
            ..Self::default()
        }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the row of the cursor; `None` in an empty list.
    #[must_use]
    pub fn cursor(&self) -> Option<usize> {
        (self.cursor < self.len).then_some(self.cursor)
    }

    /// Sets the number of rows. The cursor keeps its row, or moves to the last.
    pub fn set_len(&mut self, len: usize) {
        self.len = len;
        self.go_to(self.cursor);
    }

    /// Moves the cursor to a row, or to the last if it does not exist, and scrolls to it.
    pub fn go_to(&mut self, row: usize) {
        self.cursor = row.min(self.len.saturating_sub(1));
        self.show_cursor();
    }

    /// Moves the cursor to a row and centers it, as after a search.
    pub fn center(&mut self, row: usize) {
        self.cursor = row.min(self.len.saturating_sub(1));
        self.top = self.cursor.saturating_sub(self.height() / 2);
        self.show_cursor();
    }

    /// Moves the cursor to a new row number and keeps its position on the screen, for when rows above it were added or removed.
    pub fn follow(&mut self, row: usize) {
        let offset = self.cursor.saturating_sub(self.top);
        self.cursor = row.min(self.len.saturating_sub(1));
        self.top = self.cursor.saturating_sub(offset);
        self.show_cursor();
    }

    /// Sets the drawing area, one row per line, and returns the visible rows.
    pub fn lay_out(&mut self, area: Rect) -> Range<usize> {
        self.area = area;
        self.show_cursor();
        self.top..self.len.min(self.top + self.height())
    }

    /// Handles a movement key; returns whether the key is one.
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

    /// Handles the mouse: the wheel and a click move the cursor.
    pub fn mouse(&mut self, mouse: MouseEvent) -> MouseEffect {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.go_to(self.cursor.saturating_sub(ROWS_PER_WHEEL_STEP)),
            MouseEventKind::ScrollDown => self.go_to(self.cursor + ROWS_PER_WHEEL_STEP),
            MouseEventKind::Down(MouseButton::Left) => {
                let place = Position::new(mouse.column, mouse.row);
                let row = self.top + usize::from(mouse.row.saturating_sub(self.area.y));
                if !self.area.contains(place) || row >= self.len {
                    return MouseEffect::None;
                }
                if row == self.cursor {
                    return MouseEffect::CursorClicked;
                }
                self.go_to(row);
            }
            _ => return MouseEffect::None,
        }
        MouseEffect::Moved
    }

    /// Returns the nearest row after the cursor that `fits`, or before it if `backwards`; wraps around, and tries the cursor's
    /// row last.
    pub fn find(&self, backwards: bool, mut fits: impl FnMut(usize) -> bool) -> Option<usize> {
        if backwards {
            let before = (0..self.cursor).rev();
            let mut rows = before.chain((self.cursor..self.len).rev());
            return rows.find(|row| fits(*row));
        }
        let after = self.cursor + 1..self.len;
        let mut rows = after.chain(0..self.len.min(self.cursor + 1));
        rows.find(|row| fits(*row))
    }

    fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Scrolls so that the cursor's row is visible.
    fn show_cursor(&mut self) {
        let height = self.height().max(1);
        let min_top = self.cursor.saturating_sub(height - 1);
        self.top = self.top.clamp(min_top, self.cursor);
        // Avoids empty lines below the last row while there are hidden rows above.
        self.top = self.top.min(self.len.saturating_sub(height)).max(min_top);
    }
}
