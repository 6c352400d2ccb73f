//! What keys and clicks do in a table.

use crossterm::event::{KeyCode, KeyEvent, MouseEvent};

use super::help::keys;
use super::news::{News, Next, Request};
use super::screen::{Asked, ReportScreen};
use super::table::View;
use super::zoom::{Kind, Zoom};
use crate::list::Pointed;
use crate::popup::{Help, Notice, Prompt};
use crate::screen::Answer;

/// Characters that a step to the right goes where no column is left.
const SHIFT: usize = 8;

impl ReportScreen {
    /// A key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer<News> {
        if self.view().is_some_and(|view| view.list.key(key)) {
            return Answer::Changed;
        }
        match key.code {
            KeyCode::Char('h' | '?') | KeyCode::F(1) => {
                Answer::Push(Box::new(Help::new("Keys", &keys(self.is_live))))
            }
            KeyCode::Char('q') => self.leave(),
            KeyCode::Esc => self.zoom_out(),
            KeyCode::Left => self.scroll(false),
            KeyCode::Right => self.scroll(true),
            KeyCode::Tab => self.turn(false),
            KeyCode::BackTab => self.turn(true),
            KeyCode::Enter | KeyCode::Char('m') => self.menu(),
            KeyCode::Char('i') => self.request(Request::Header),
            KeyCode::Char('r') => self.request(Request::Samples(None)),
            KeyCode::Char('s') => self.request(Request::Recordings),
            KeyCode::Char('a') => self.annotate(),
            KeyCode::Char('V') => self.end(Next::Verbose(!self.is_verbose)),
            KeyCode::Char('H') => {
                self.has_titles = !self.has_titles;
                Answer::Changed
            }
            KeyCode::Char('P') => {
                let theme = self.theme;
                match self.view().map(|view| view.text(&theme)) {
                    Some(text) => self.request(Request::Save(text)),
                    None => Answer::Same,
                }
            }
            KeyCode::Char('z') if self.is_live => self.request(Request::Zero),
            KeyCode::Char('f') if self.is_live => {
                // What comes of it is seen at the next refresh.
                let _ = self.requests.send(Request::Stop);
                Answer::Same
            }
            KeyCode::Char(letter) => self.letter(letter),
            _ => Answer::Same,
        }
    }

    /// The letters that change what is seen of the rows.
    fn letter(&mut self, letter: char) -> Answer<News> {
        match letter {
            'd' => return self.zoom(Kind::Dso),
            't' => return self.zoom(Kind::Thread),
            'S' => return self.zoom(Kind::Socket),
            'k' => return self.zoom(Kind::Kernel),
            'g' => return self.flame(),
            '/' => {
                self.asked = Some(Asked::Symbol);
                let about =
                    "Part of the names of the functions you want to see.\nNothing shows all again.";
                return Answer::Push(Box::new(Prompt::new("Symbol to show", about, "")));
            }
            'L' => {
                self.asked = Some(Asked::Limit);
                let about = "Rows with a smaller share than this are hidden, in percent.";
                return Answer::Push(Box::new(Prompt::new("Percent limit", about, "")));
            }
            _ => {}
        }
        match self.view().is_some_and(|view| view.fold(letter)) {
            true => Answer::Changed,
            false => Answer::Same,
        }
    }

    /// A click, or the wheel.
    pub(super) fn mouse(&mut self, mouse: MouseEvent) -> Answer<News> {
        let pointed = match self.view() {
            Some(view) => view.list.mouse(mouse),
            None => match self.events.mouse(mouse) {
                Pointed::Again => return self.open_chosen(),
                pointed => pointed,
            },
        };
        match pointed {
            Pointed::Nowhere => Answer::Same,
            Pointed::Moved => Answer::Changed,
            Pointed::Again => self.menu(),
        }
    }

    /// Back to the menu of events, or to the shell.
    fn leave(&mut self) -> Answer<News> {
        if self.views.len() > 1 {
            self.current = None;
            return Answer::Changed;
        }
        Answer::Quit
    }

    fn zoom_out(&mut self) -> Answer<News> {
        if let Some(view) = self.view()
            && view.zooms.pop().is_some()
        {
            view.refresh();
            return Answer::Changed;
        }
        match self.views.len() > 1 {
            true => self.leave(),
            false => self.ask_to_exit(),
        }
    }

    /// Zooms into what the row of the cursor is of, or out again if it is zoomed into that.
    pub(super) fn zoom(&mut self, kind: Kind) -> Answer<News> {
        let Some(view) = self.view() else {
            return Answer::Same;
        };
        if let Some(place) = view.zooms.iter().position(|zoom| zoom.kind == kind) {
            view.zooms.remove(place);
            view.refresh();
            return Answer::Changed;
        }
        let value = match kind {
            Kind::Kernel => Some("kernel".to_owned()),
            _ => view.value(kind),
        };
        let histogram = view.histogram();
        let zoom = value
            .zip(histogram)
            .and_then(|(value, histogram)| Zoom::new(kind, histogram, value));
        match zoom {
            Some(zoom) => {
                view.zooms.push(zoom);
                view.refresh();
                Answer::Changed
            }
            None => {
                let text = "No column tells: --sort has to have its key.";
                Answer::Push(Box::new(Notice::new("", text)))
            }
        }
    }

    /// Shows the functions whose name contains a text, or all for none.
    pub(super) fn show_symbols(&mut self, text: &str) -> Answer<News> {
        if let Some(view) = self.view() {
            view.zooms.retain(|zoom| zoom.kind != Kind::Symbol);
            let zoom = match (text, view.histogram()) {
                ("", _) | (_, None) => None,
                (text, Some(histogram)) => Zoom::new(Kind::Symbol, histogram, text.to_owned()),
            };
            view.zooms.extend(zoom);
            view.refresh();
        }
        Answer::Changed
    }

    /// Hides rows below a share.
    pub(super) fn limit(&mut self, text: &str) -> Answer<News> {
        let share = text.trim().trim_end_matches('%').parse::<f64>().ok();
        let Some(share) = share.filter(|share| (0.0..=100.0).contains(share)) else {
            let text = format!("'{text}' is no share from 0 to 100.");
            return Answer::Push(Box::new(Notice::new("", text)));
        };
        if let Some(view) = self.view() {
            view.least = share;
            view.refresh();
        }
        Answer::Changed
    }

    fn scroll(&mut self, right: bool) -> Answer<News> {
        let columns = self.view().map_or(0, |view| view.cells.len());
        self.scrolled = match (self.scrolled, right) {
            ((first, 0), true) if first + 1 < columns => (first + 1, 0),
            ((first, left), true) => (first, left + SHIFT),
            ((first, 0), false) => (first.saturating_sub(1), 0),
            ((first, left), false) => (first, left.saturating_sub(SHIFT)),
        };
        Answer::Changed
    }
}

impl View {
    /// What the row of the cursor has in the column of that kind.
    pub(super) fn value(&self, kind: Kind) -> Option<String> {
        if self.has_levels() {
            return None;
        }
        let row = self.entries.row(self.list.cursor()?)?;
        kind.value(self.histogram()?, row)
    }

    /// Folds, unfolds, orders as a letter says; whether it is one of those.
    pub(super) fn fold(&mut self, letter: char) -> bool {
        let Some(line) = self.list.cursor() else {
            return false;
        };
        let row = self.entries.key_of(line);
        match letter {
            '+' => {
                if !self.entries.toggle(line) {
                    return false;
                }
            }
            'e' | 'c' => {
                let is_open = letter == 'e' && !self.entries.is_open(line);
                let Some(line) = self.entries.set_whole(line, is_open) else {
                    return false;
                };
                self.list.set_len(self.entries.len());
                self.list.go_to(line);
            }
            'E' | 'C' => {
                self.entries.set_all(letter == 'E');
                self.list.set_len(self.entries.len());
                let line = row.and_then(|row| self.entries.line_of(row));
                self.list.follow(line.unwrap_or_default());
            }
            'F' => {
                self.is_relative = !self.is_relative;
                self.refresh();
            }
            '0'..='9' => {
                let event = letter.to_digit(10).unwrap_or_default() as usize;
                if event
                    >= self
                        .histogram()
                        .map_or(0, |histogram| histogram.wholes.len())
                {
                    return false;
                }
                self.by = event;
                self.refresh();
            }
            _ => return false,
        }
        self.list.set_len(self.entries.len());
        true
    }
}
