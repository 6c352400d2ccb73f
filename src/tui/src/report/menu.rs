//! What can be done with the row or the branch of the cursor.

use super::entries::Entry;
use super::news::{News, Place, Request};
use super::screen::{Asked, ReportScreen};
use super::table::View;
use super::zoom::Kind;
use crate::popup::{Menu, Notice};
use crate::screen::Answer;

/// A line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Annotate(Place),
    Map(Place),
    Zoom(Kind),
    /// The line of the cursor is unfolded, or folded.
    Toggle,
    Samples(Option<Place>),
    Flame,
    Recordings,
    Exit,
}

impl ReportScreen {
    /// Opens the menu.
    pub(super) fn menu(&mut self) -> Answer<News> {
        let choices = self.choices();
        let (texts, actions) = choices.into_iter().unzip();
        self.asked = Some(Asked::Menu(actions));
        Answer::Push(Box::new(Menu::new("", texts)))
    }

    fn choices(&mut self) -> Vec<(String, Action)> {
        let mut choices = Vec::new();
        let place = self.place();
        if let Some(place) = &place {
            let text = format!("Annotate {}", place.symbol);
            choices.push((text, Action::Annotate(place.clone())));
        }
        if let Some(view) = self.view() {
            for kind in [Kind::Thread, Kind::Dso, Kind::Socket] {
                choices.extend(view.zoom_choice(kind));
            }
            choices.extend(view.fold_choice());
        }
        choices.push(("Flame view of this".to_owned(), Action::Flame));
        if let Some(place) = &place {
            let text = "Browse map details".to_owned();
            choices.push((text, Action::Map(place.clone())));
        }
        if let Some(place) = place {
            let text = format!("Run scripts for samples of symbol [{}]", place.symbol);
            choices.push((text, Action::Samples(Some(place))));
        }
        let more = [
            ("Run scripts for all samples", Action::Samples(None)),
            ("Switch to another data file in PWD", Action::Recordings),
            ("Exit", Action::Exit),
        ];
        choices.extend(more.map(|(text, action)| (text.to_owned(), action)));
        choices
    }

    /// Does what a line of the menu says.
    pub(super) fn act(&mut self, action: Action) -> Answer<News> {
        match action {
            Action::Annotate(place) => self.request(Request::Annotate(place)),
            Action::Map(place) => self.request(Request::Map(place)),
            Action::Zoom(kind) => self.zoom(kind),
            Action::Toggle => {
                if let Some(view) = self.view() {
                    view.fold('+');
                }
                Answer::Changed
            }
            Action::Samples(place) => self.request(Request::Samples(place)),
            Action::Flame => self.flame(),
            Action::Recordings => self.request(Request::Recordings),
            Action::Exit => Answer::Quit,
        }
    }

    /// Asks for the instructions of the function at the cursor.
    pub(super) fn annotate(&mut self) -> Answer<News> {
        match self.place() {
            Some(place) => self.request(Request::Annotate(place)),
            None => {
                let text = "No function is known here: --sort has to have the key symbol.";
                Answer::Push(Box::new(Notice::new("", text)))
            }
        }
    }

    /// The function at the cursor.
    fn place(&mut self) -> Option<Place> {
        let view = self.view()?;
        let (symbol, dso) = view.function(view.list.cursor()?)?;
        let event = view.histogram()?.events.first().copied()?;
        Some(Place { symbol, dso, event })
    }
}

impl View {
    /// The line of the menu that zooms in, or out again.
    fn zoom_choice(&self, kind: Kind) -> Option<(String, Action)> {
        let value = self.value(kind)?;
        let what = match kind {
            Kind::Thread => format!("{value} thread"),
            Kind::Socket => format!("Processor Socket {value}"),
            _ => format!("{value} DSO (use the 'k' hotkey to zoom directly into the kernel)"),
        };
        let way = match self.zooms.iter().any(|zoom| zoom.kind == kind) {
            true => "out of",
            false => "into",
        };
        Some((format!("Zoom {way} {what}"), Action::Zoom(kind)))
    }

    /// The line of the menu that unfolds the line of the cursor, or folds it.
    fn fold_choice(&self) -> Option<(String, Action)> {
        let line = self.list.cursor()?;
        let (is_open, name) = match self.entries.get(line)? {
            Entry::Row(_, is_open) => (is_open?, self.function(line).map(|found| found.0)),
            Entry::Chain(_, chain) => (chain.is_open?, Some(chain.frame.to_string())),
        };
        let way = if is_open { "Collapse" } else { "Expand" };
        let name = name.map(|name| format!(" [{name}]")).unwrap_or_default();
        let keys = "(one level, same as '+' hotkey, use 'e'/'c' for the whole)";
        Some((format!("{way}{name} callchain {keys}"), Action::Toggle))
    }
}
