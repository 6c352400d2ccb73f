//! Key and mouse handling of a report; the keys of the event menu are in `events`.

use crossterm::event::{KeyCode, KeyEvent, MouseEvent};

use super::help::keys;
use super::messages::{BrowserRequest, ReaderMessage, SessionEnd};
use super::screen::{PopupPurpose, ReportScreen};
use super::table::TableView;
use super::zoom::{ZoomFilter, ZoomKind};
use crate::list::MouseEffect;
use crate::popup::{Help, Notice, Prompt};
use crate::screen::InputResult;

/// Characters per horizontal scroll step once only the last column is left.
const SHIFT: usize = 8;

impl ReportScreen {
    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> InputResult<ReaderMessage> {
        if self.view().is_some_and(|view| view.list.key(key)) {
            return InputResult::Changed;
        }
        match key.code {
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                InputResult::Push(Box::new(Help::new("Keys", &keys(self.is_live))))
            }
            KeyCode::Char('q') => self.close_table(),
            KeyCode::Esc => self.zoom_out(),
            KeyCode::Left | KeyCode::Right => {
                let to_right = key.code == KeyCode::Right;
                self.scroll(to_right)
            }
            KeyCode::Tab | KeyCode::BackTab => {
                let backwards = key.code == KeyCode::BackTab;
                self.switch_table(backwards)
            }
            KeyCode::Enter | KeyCode::Char('m') => self.open_menu(),
            KeyCode::Char('i') => self.request(BrowserRequest::Header),
            // `None`: the samples of all functions.
            KeyCode::Char('r') => self.request(BrowserRequest::Samples(None)),
            KeyCode::Char('s') => self.request(BrowserRequest::Recordings),
            KeyCode::Char('a') => self.annotate(),
            KeyCode::Char('V') if !self.is_live => self.end(SessionEnd::Verbose(!self.is_verbose)),
            KeyCode::Char('H') => {
                self.has_headings = !self.has_headings;
                InputResult::Changed
            }
            KeyCode::Char('P') => {
                let theme = self.theme;
                match self.view().map(|view| view.text(&theme)) {
                    Some(text) => self.request(BrowserRequest::Save(text)),
                    None => InputResult::Unchanged,
                }
            }
            KeyCode::Char('z') if self.is_live => self.request(BrowserRequest::Zero),
            KeyCode::Char('f') if self.is_live => {
                // Not `Self::request`, which sets `is_waiting`: no answer comes. The effect is visible at the next refresh.
                let _ = self.requests.send(BrowserRequest::Stop);
                InputResult::Unchanged
            }
            KeyCode::Char(letter) => self.letter(letter),
            _ => InputResult::Unchanged,
        }
    }

    /// Handles the other characters (letters, digits, `/` and `+`), most of which change the rows that are shown.
    fn letter(&mut self, letter: char) -> InputResult<ReaderMessage> {
        match letter {
            'd' => return self.zoom(ZoomKind::Dso),
            't' => return self.zoom(ZoomKind::Thread),
            'S' => return self.zoom(ZoomKind::Socket),
            'k' => return self.zoom(ZoomKind::Kernel),
            'g' => return self.open_flame(),
            'o' => {
                if let Some(view) = self.view() {
                    view.order_by_next();
                }
                return InputResult::Changed;
            }
            '/' => {
                self.purpose = Some(PopupPurpose::Symbol);
                let description = "Show only functions whose name contains this text.\nLeave it empty to show all.";
                return InputResult::Push(Box::new(Prompt::new("Symbol to show", description, "")));
            }
            'L' => {
                self.purpose = Some(PopupPurpose::Limit);
                let description = "Rows with a lower percentage are hidden.";
                return InputResult::Push(Box::new(Prompt::new("Percent limit", description, "")));
            }
            _ => {}
        }
        match self.view().is_some_and(|view| view.letter(letter)) {
            true => InputResult::Changed,
            false => InputResult::Unchanged,
        }
    }

    /// Handles a click or the wheel, in a table or in the event menu.
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> InputResult<ReaderMessage> {
        let effect = match self.view() {
            Some(view) => view.list.mouse(mouse),
            None => match self.event_menu.mouse(mouse) {
                MouseEffect::CursorClicked => return self.open_chosen(),
                effect => effect,
            },
        };
        match effect {
            MouseEffect::None => InputResult::Unchanged,
            MouseEffect::Moved => InputResult::Changed,
            MouseEffect::CursorClicked => self.open_menu(),
        }
    }

    /// Returns to the menu of events, or exits if there is only one table.
    fn close_table(&mut self) -> InputResult<ReaderMessage> {
        if self.views.len() > 1 {
            self.current = None;
            return InputResult::Changed;
        }
        InputResult::Quit
    }

    /// Removes the last zoom. Without zooms, returns to the menu of events, or asks whether to exit if there is only one table.
    fn zoom_out(&mut self) -> InputResult<ReaderMessage> {
        if let Some(view) = self.view()
            && view.zooms.pop().is_some()
        {
            view.refresh();
            return InputResult::Changed;
        }
        match self.views.len() > 1 {
            true => self.close_table(),
            false => self.ask_to_exit(),
        }
    }

    /// Zooms into the kernel or a value of the cursor's row; if there is a zoom of this kind already, removes it.
    pub(super) fn zoom(&mut self, kind: ZoomKind) -> InputResult<ReaderMessage> {
        let Some(view) = self.view() else {
            return InputResult::Unchanged;
        };
        if let Some(place) = view.zooms.iter().position(|zoom| zoom.kind == kind) {
            view.zooms.remove(place);
            view.refresh();
            return InputResult::Changed;
        }
        match view.new_zoom(kind) {
            Ok(zoom) => {
                view.zooms.push(zoom);
                view.refresh();
                InputResult::Changed
            }
            Err(text) => InputResult::Push(Box::new(Notice::new("", text.as_str()))),
        }
    }

    /// Shows only functions whose name contains `text`; all if `text` is empty.
    pub(super) fn show_symbols(&mut self, text: &str) -> InputResult<ReaderMessage> {
        if let Some(view) = self.view() {
            view.zooms.retain(|zoom| zoom.kind != ZoomKind::Symbol);
            let zoom = match (text, view.histogram()) {
                ("", _) | (_, None) => None,
                (text, Some(histogram)) => {
                    ZoomFilter::new(ZoomKind::Symbol, histogram, text.to_owned())
                }
            };
            view.zooms.extend(zoom);
            view.refresh();
        }
        InputResult::Changed
    }

    /// Hides rows below the percentage in `text`.
    pub(super) fn set_limit(&mut self, text: &str) -> InputResult<ReaderMessage> {
        let percent = text.trim().trim_end_matches('%').parse::<f64>().ok();
        let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else {
            let text = format!("'{text}' is not a percentage from 0 to 100.");
            return InputResult::Push(Box::new(Notice::new("", text)));
        };
        if let Some(view) = self.view() {
            view.min_percent = percent;
            view.refresh();
        }
        InputResult::Changed
    }

    /// Scrolls to the right or left: by columns until only the last one is left, then by characters.
    fn scroll(&mut self, to_right: bool) -> InputResult<ReaderMessage> {
        let columns = self.view().map_or(0, |view| view.cells.len());
        // `first` is the first column shown; `left` is the number of its characters out of view, 0 unless it is the last column.
        self.scrolled = match (self.scrolled, to_right) {
            ((first, 0), true) if first + 1 < columns => (first + 1, 0),
            ((first, left), true) => (first, left + SHIFT),
            ((first, 0), false) => (first.saturating_sub(1), 0),
            ((first, left), false) => (first, left.saturating_sub(SHIFT)),
        };
        InputResult::Changed
    }
}

impl TableView {
    /// Returns the zoom into a value of the cursor's row, or why there is none.
    fn new_zoom(&self, kind: ZoomKind) -> Result<ZoomFilter, String> {
        let histogram = self.histogram().ok_or("There are no samples.")?;
        if kind.column(histogram).is_none() {
            let sort_keys = kind.keys().join(" or ");
            return Err(format!(
                "There is no such column: run with --sort {sort_keys}."
            ));
        }
        let value = match kind {
            ZoomKind::Kernel => Some("kernel".to_owned()),
            _ => self.value(kind),
        };
        let zoom = value.and_then(|value| ZoomFilter::new(kind, histogram, value));
        let zoom = zoom.ok_or(match self.has_levels() {
            true => "In a hierarchy, only the kernel can be zoomed into.",
            false => "There is no row at the cursor.",
        })?;
        match histogram.rows.iter().any(|row| zoom.passes(row)) {
            true => Ok(zoom),
            false => Err(format!("No row belongs to {}.", zoom.title())),
        }
    }

    /// Returns the value of the cursor's row in the column of that kind. `None` in a hierarchy, whose rows have the cell of only
    /// one key.
    pub(super) fn value(&self, kind: ZoomKind) -> Option<String> {
        if self.has_levels() {
            return None;
        }
        let row = self.entries.row(self.list.cursor()?)?;
        kind.value(self.histogram()?, row)
    }

    /// Handles `F`, the characters that fold and unfold (letters and `+`), and the digits that select an event of a group.
    /// Returns whether the character had an effect; in an empty table, none has.
    pub(super) fn letter(&mut self, letter: char) -> bool {
        let Some(line) = self.list.cursor() else {
            return false;
        };
        // Identifies the row: its line may change below.
        let row_key = self.entries.key_of(line);
        match letter {
            '+' => {
                if !self.entries.toggle(line) {
                    return false;
                }
            }
            // `e` folds if the row is unfolded.
            'e' | 'c' => {
                let is_open = letter == 'e' && !self.entries.is_row_open(line);
                let Some(row_line) = self.entries.set_row_and_below(line, is_open) else {
                    return false;
                };
                self.list.set_len(self.entries.len());
                self.list.go_to(row_line);
            }
            'E' | 'C' => {
                self.entries.set_all(letter == 'E');
                self.list.set_len(self.entries.len());
                let row_line = row_key.and_then(|key| self.entries.line_of(key));
                // Unlike `go_to`, this keeps the position of the row on the screen.
                self.list.follow(row_line.unwrap_or_default());
            }
            'F' => {
                self.is_relative_to_visible = !self.is_relative_to_visible;
                self.refresh();
            }
            '0'..='9' => {
                let event = letter.to_digit(10).unwrap_or_default() as usize;
                let histogram = self.histogram();
                let events = histogram.map_or(0, |histogram| histogram.totals.len());
                if event >= events {
                    return false;
                }
                self.order.event = event;
                self.refresh();
            }
            _ => return false,
        }
        self.list.set_len(self.entries.len());
        true
    }
}
