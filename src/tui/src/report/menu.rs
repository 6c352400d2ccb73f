//! The menu of actions for the row or branch at the cursor.

use super::entries::EntryLine;
use super::messages::{BrowserRequest, ReaderMessage, ShownFunction};
use super::screen::{PopupPurpose, ReportScreen};
use super::table::TableView;
use super::zoom::ZoomKind;
use crate::popup::{Menu, Notice};
use crate::screen::InputResult;

/// The action of a menu item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MenuAction {
    Annotate(ShownFunction),
    /// List the symbols of the function's object.
    Map(ShownFunction),
    /// Zoom in, or out of an existing zoom of this kind.
    Zoom(ZoomKind),
    /// Unfold or fold the cursor's line.
    Toggle,
    /// List the samples: all, or those of a function. The menu has perf's texts "Run scripts ...".
    Samples(Option<ShownFunction>),
    /// Open the flame view of the row.
    Flame,
    /// Choose another recording.
    Recordings,
    Exit,
}

impl ReportScreen {
    /// Opens the menu.
    pub(super) fn open_menu(&mut self) -> InputResult<ReaderMessage> {
        let choices = self.choices();
        let (texts, actions) = choices.into_iter().unzip();
        self.purpose = Some(PopupPurpose::Menu(actions));
        InputResult::Push(Box::new(Menu::new("", texts)))
    }

    /// Returns the texts of the menu items with their actions.
    fn choices(&mut self) -> Vec<(String, MenuAction)> {
        let mut choices = Vec::new();
        let function = self.function();
        if let Some(function) = &function {
            let text = format!("Annotate {}", function.symbol);
            choices.push((text, MenuAction::Annotate(function.clone())));
        }
        if let Some(view) = self.view() {
            for kind in [ZoomKind::Thread, ZoomKind::Dso, ZoomKind::Socket] {
                choices.extend(view.zoom_choice(kind));
            }
            choices.extend(view.fold_choice());
        }
        choices.push(("Flame view of this".to_owned(), MenuAction::Flame));
        if let Some(function) = &function {
            let text = "Browse map details".to_owned();
            choices.push((text, MenuAction::Map(function.clone())));
        }
        if let Some(function) = function {
            let text = format!("Run scripts for samples of symbol [{}]", function.symbol);
            choices.push((text, MenuAction::Samples(Some(function))));
        }
        let more = [
            ("Run scripts for all samples", MenuAction::Samples(None)),
            ("Switch to another data file in PWD", MenuAction::Recordings),
            ("Exit", MenuAction::Exit),
        ];
        choices.extend(more.map(|(text, action)| (text.to_owned(), action)));
        choices
    }

    /// Performs the action of a menu item.
    pub(super) fn act(&mut self, action: MenuAction) -> InputResult<ReaderMessage> {
        match action {
            MenuAction::Annotate(function) => self.request(BrowserRequest::Annotate(function)),
            MenuAction::Map(function) => self.request(BrowserRequest::Map(function)),
            MenuAction::Zoom(kind) => self.zoom(kind),
            MenuAction::Toggle => {
                if let Some(view) = self.view() {
                    view.letter('+');
                }
                InputResult::Changed
            }
            MenuAction::Samples(function) => self.request(BrowserRequest::Samples(function)),
            MenuAction::Flame => self.open_flame(),
            MenuAction::Recordings => self.request(BrowserRequest::Recordings),
            MenuAction::Exit => InputResult::Quit,
        }
    }

    /// Requests the instructions of the function at the cursor.
    pub(super) fn annotate(&mut self) -> InputResult<ReaderMessage> {
        match self.function() {
            Some(function) => self.request(BrowserRequest::Annotate(function)),
            None => InputResult::Push(Box::new(Notice::new("", self.why_no_function()))),
        }
    }

    /// Returns why there is no function at the cursor.
    fn why_no_function(&mut self) -> &'static str {
        let Some(view) = self.view() else {
            return "There are no samples.";
        };
        let histogram = view.histogram();
        if histogram
            .and_then(|histogram| ZoomKind::Symbol.column(histogram))
            .is_none()
        {
            return "There is no column of functions: run with --sort symbol.";
        }
        match view.list.cursor().and_then(|line| view.entries.row(line)) {
            None => "There is no row at the cursor.",
            // With a column of functions, only rows of a hierarchy have no function.
            Some(_) => "Rows of a hierarchy cannot be annotated: run without --hierarchy.",
        }
    }

    /// Returns the function at the cursor.
    fn function(&mut self) -> Option<ShownFunction> {
        let view = self.view()?;
        let (symbol, dso) = view.function(view.list.cursor()?)?;
        // Of a group, the leader.
        let event = view.histogram()?.events.first().copied()?;
        Some(ShownFunction { symbol, dso, event })
    }
}

impl TableView {
    /// Returns the menu item that zooms into a value of the cursor's row, or out again.
    fn zoom_choice(&self, kind: ZoomKind) -> Option<(String, MenuAction)> {
        let value = self.value(kind)?;
        let target = match kind {
            ZoomKind::Thread => format!("{value} thread"),
            ZoomKind::Socket => format!("Processor Socket {value}"),
            // The menu offers no other kinds than these and DSOs.
            _ => format!("{value} DSO (use the 'k' hotkey to zoom directly into the kernel)"),
        };
        let way = match self.zooms.iter().any(|zoom| zoom.kind == kind) {
            true => "out of",
            false => "into",
        };
        Some((format!("Zoom {way} {target}"), MenuAction::Zoom(kind)))
    }

    /// Returns the menu item that unfolds or folds the cursor's line.
    fn fold_choice(&self) -> Option<(String, MenuAction)> {
        let line = self.list.cursor()?;
        let (is_open, name) = match self.entries.get(line)? {
            EntryLine::Row(_, is_open) => (is_open?, self.function(line).map(|(symbol, _)| symbol)),
            EntryLine::Chain(_, chain) => (chain.is_open?, Some(chain.frame.to_string())),
        };
        let way = if is_open { "Collapse" } else { "Expand" };
        let name = name.map(|name| format!(" [{name}]")).unwrap_or_default();
        let keys = "(one level, same as '+' hotkey, use 'e'/'c' for the whole)";
        Some((format!("{way}{name} callchain {keys}"), MenuAction::Toggle))
    }
}
