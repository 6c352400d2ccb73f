//! The screen of a report.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::menu::MenuAction;
use super::messages::{BrowserRequest, ReaderMessage, ReportTables, SessionEnd, SharedSessionEnd};
use super::table::TableView;
use crate::annotate::AnnotateScreen;
use crate::list::List;
use crate::page::{Page, ScrolledList};
use crate::popup::{Menu, Notice};
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// Columns of the progress bar.
const BAR: usize = 20;

/// A report: the menu of events, and the table of the selected event.
pub struct ReportScreen {
    pub(super) report: Arc<ReportTables>,
    /// By table, its view; `None` if the table was not opened yet.
    pub(super) views: Vec<Option<TableView>>,
    /// The displayed table; `None` in the menu.
    pub(super) current: Option<usize>,
    /// The menu of events, each of which has a table.
    pub(super) event_menu: List,
    /// Whether column headings are shown.
    pub(super) has_headings: bool,
    /// How much is scrolled out of view: the number of whole columns, and the number of characters of the first visible column
    /// (0 unless it is the last column).
    pub(super) scrolled: (usize, usize),
    /// The purpose of the open popup, if its reply has an effect.
    pub(super) purpose: Option<PopupPurpose>,
    pub(super) requests: Sender<BrowserRequest>,
    /// Receives the action after the session.
    pub(super) outcome: SharedSessionEnd,
    /// Whether addresses and paths are shown.
    pub(super) is_verbose: bool,
    pub(super) theme: Theme,
    /// Whether this is the screen of `top`.
    pub(super) is_live: bool,
    state: ReadingState,
}

/// The purpose of a popup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PopupPurpose {
    /// The choice of an action.
    Menu(Vec<MenuAction>),
    /// The text that the names of shown functions contain.
    Symbol,
    /// The minimum percentage of rows.
    Limit,
    /// The choice of a recording, by file name.
    Recordings(Vec<String>),
    /// Whether to quit.
    Exit,
}

/// The state of reading.
#[derive(Debug, Clone, Copy, Default)]
struct ReadingState {
    /// Whether a report has arrived.
    has_report: bool,
    /// The percentage of the recording in the report; `None` if the report is complete, and before the first report.
    partial: Option<f64>,
    /// The progress of reading, from 0 to 1; `None` when it has ended, and in `top`.
    progress: Option<f64>,
    /// Whether an answer to a request is awaited.
    is_waiting: bool,
}

impl ReportScreen {
    /// Creates a screen that is empty until [`ReaderMessage::Report`] arrives. Requests are sent to `requests`; `outcome`
    /// receives the action after the session. `is_verbose` means that rows have addresses and paths.
    #[must_use]
    pub fn new(
        requests: Sender<BrowserRequest>,
        outcome: SharedSessionEnd,
        is_verbose: bool,
        theme: Theme,
    ) -> Self {
        Self {
            report: Arc::default(),
            views: Vec::new(),
            current: None,
            event_menu: List::new(0),
            has_headings: true,
            scrolled: (0, 0),
            purpose: None,
            requests,
            outcome,
            is_verbose,
            theme,
            is_live: false,
            state: ReadingState {
                progress: Some(0.0),
                ..ReadingState::default()
            },
        }
    }

    /// Makes this the screen of `top`, which has other keys and another last line, and no progress of reading.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.is_live = true;
        self.state.progress = None;
        self
    }

    /// Sends a request before the screen is shown.
    #[must_use]
    pub fn asking(mut self, request: BrowserRequest) -> Self {
        self.state.is_waiting = self.requests.send(request).is_ok();
        self
    }

    /// Returns the last line of `top`, which is shown instead of a tip; `None` for other reports, and in the event menu.
    fn live_bottom(&self) -> Option<&str> {
        if !self.is_live {
            return None;
        }
        if !self.state.has_report {
            return Some("Collecting samples...");
        }
        let table = self.report.tables.get(self.current?)?;
        table.live.as_ref().map(|live| live.bottom.as_str())
    }

    /// Returns the displayed table.
    pub(super) fn view(&mut self) -> Option<&mut TableView> {
        self.views.get_mut(self.current?)?.as_mut()
    }

    /// Shows a table. The horizontal scroll position is kept only if the table is already shown.
    pub(super) fn open(&mut self, number: usize) {
        let Some(slot) = self.views.get_mut(number) else {
            return;
        };
        if slot.is_none() {
            let view_before = None;
            *slot = TableView::new(&self.report, number, view_before);
        }
        if self.current != Some(number) {
            self.scrolled = (0, 0);
        }
        self.current = Some(number);
        self.event_menu.go_to(number);
    }

    /// Sends a request to the reading thread.
    pub(super) fn request(&mut self, request: BrowserRequest) -> InputResult<ReaderMessage> {
        // If the reading thread has failed, the session ends by itself.
        self.state.is_waiting = self.requests.send(request).is_ok();
        InputResult::Changed
    }

    /// Ends the session; `next` is the action after it.
    pub(super) fn end(&self, next: SessionEnd) -> InputResult<ReaderMessage> {
        *self.outcome.borrow_mut() = next;
        InputResult::Quit
    }

    /// Stops waiting for an answer; returns whether one was awaited.
    fn clear_waiting(&mut self) -> bool {
        std::mem::take(&mut self.state.is_waiting)
    }

    /// Shows a new report. If the new report has as many tables as the previous one, the tables' views and the choice of the
    /// displayed table are kept; otherwise the event menu is shown, unless there is only one table. `partial` is the percentage
    /// of the recording in the report; `None` if complete.
    fn show_report(&mut self, report: &Arc<ReportTables>, partial: Option<f64>) {
        let count = report.tables.len();
        let has_same_count = count == self.views.len();
        self.report = Arc::clone(report);
        let mut before = std::mem::take(&mut self.views);
        before.resize_with(count, || None);
        let views = before.into_iter().enumerate().map(|(number, view)| {
            let view = view.filter(|_| has_same_count)?;
            TableView::new(report, number, Some(view))
        });
        self.views = views.collect();
        self.event_menu.set_len(count);
        self.state.has_report = true;
        self.state.partial = partial;
        match self.current.filter(|_| has_same_count) {
            Some(current) => self.open(current),
            None if count == 1 => self.open(0),
            None => self.current = None,
        }
    }

    /// Returns the last line: the progress of reading, a pending request, the event menu's keys, the line of `top`, or a tip.
    fn bottom(&self) -> String {
        if let Some(done) = self.state.progress {
            let filled = (done.clamp(0.0, 1.0) * BAR as f64).round() as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled));
            let partial = match self.state.partial {
                Some(partial) => format!("; shown: the first {partial:.0}% of the recording"),
                None => String::new(),
            };
            return format!("Reading [{bar}] {:3.0}%{partial}", done * 100.0);
        }
        if self.state.is_waiting {
            return "Working...".to_owned();
        }
        if self.current.is_none() && self.state.has_report {
            return "ESC: exit, ENTER|->: Browse histograms, ?: help".to_owned();
        }
        if let Some(live) = self.live_bottom() {
            return live.to_owned();
        }
        match self.report.tip {
            "" => "Press '?' for help on key bindings".to_owned(),
            tip => format!("Tip: {tip} (press '?' for help)"),
        }
    }
}

impl Screen<ReaderMessage> for ReportScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let bottom = Line::from(Span::raw(self.bottom()));
        if self.current.is_none() {
            return self.draw_events(frame, area, theme, bottom);
        }
        // The first column shown, and the number of its characters that are out of view on the left.
        let (first, left) = self.scrolled;
        let has_headings = self.has_headings;
        let partial = self.state.partial;
        let Some(view) = self.view() else {
            return;
        };
        let mut title = view.title();
        if let Some(partial) = partial {
            title.push_str(&format!(" (partial: {partial:.0}%)"));
        }
        let page = Page {
            title: Line::from(Span::raw(title)),
            headings: has_headings
                .then(|| view.heading(first))
                .into_iter()
                .collect(),
            bottom,
        };
        // `row` borrows the view, so the drawing changes a copy of its list.
        let mut list = view.list.clone();
        let row = |line, _is_selected| view.line(line, first, theme);
        let scrolled = ScrolledList {
            list: &mut list,
            left,
        };
        page.draw(frame, area, theme, scrolled, row);
        view.list = list;
    }

    fn input(&mut self, input: Input) -> InputResult<ReaderMessage> {
        match input {
            Input::Key(key) if self.current.is_none() => self.event_key(key),
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => self.mouse(mouse),
            Input::Reply(reply) => match self.purpose.take() {
                Some(purpose) => self.apply_reply(purpose, reply),
                None => InputResult::Changed,
            },
            Input::Tick => InputResult::Unchanged,
        }
    }

    fn message(&mut self, message: &ReaderMessage) -> InputResult<ReaderMessage> {
        match message {
            ReaderMessage::Progress(done) => self.state.progress = Some(*done),
            ReaderMessage::Report { report, partial } => {
                self.show_report(report, *partial);
                if partial.is_none() {
                    self.state.progress = None;
                }
            }
            ReaderMessage::Code(code) if self.clear_waiting() => {
                // `is_global`: percentages are relative to all functions, not to the shown one.
                let (options, is_global) = self.report.annotate;
                let requests = self.requests.clone();
                let screen =
                    AnnotateScreen::new(Arc::clone(code), options, is_global, requests, self.theme);
                return InputResult::Push(Box::new(screen));
            }
            ReaderMessage::Shown(prepared) if self.clear_waiting() => {
                // The screen can be taken only once: `None` if another waiting screen has taken it.
                if let Some(screen) = prepared.take() {
                    return InputResult::Push(screen);
                }
            }
            // Dropped if another popup was opened meanwhile: that popup's reply would be taken for the choice of a recording.
            ReaderMessage::Recordings(names) if self.clear_waiting() && self.purpose.is_none() => {
                self.purpose = Some(PopupPurpose::Recordings(names.clone()));
                return InputResult::Push(Box::new(Menu::new("Recordings", names.clone())));
            }
            ReaderMessage::Notice(text) if self.clear_waiting() => {
                return InputResult::Push(Box::new(Notice::new("", text.as_str())));
            }
            // Answers to requests of other screens, and new counts (`Update`) for a screen of annotated code.
            ReaderMessage::Code(_)
            | ReaderMessage::Recordings(_)
            | ReaderMessage::Update(_)
            | ReaderMessage::Shown(_)
            | ReaderMessage::Notice(_) => {
                return InputResult::Unchanged;
            }
            ReaderMessage::Failed => return InputResult::Quit,
        }
        InputResult::Changed
    }
}

impl ReportScreen {
    /// Applies the reply of a popup.
    fn apply_reply(&mut self, purpose: PopupPurpose, reply: Reply) -> InputResult<ReaderMessage> {
        match (purpose, reply) {
            (PopupPurpose::Menu(actions), Reply::Chosen(place)) => match actions.get(place) {
                Some(action) => self.act(action.clone()),
                None => InputResult::Changed,
            },
            (PopupPurpose::Symbol, Reply::Typed(text)) => self.show_symbols(&text),
            (PopupPurpose::Limit, Reply::Typed(text)) => self.set_limit(&text),
            (PopupPurpose::Recordings(names), Reply::Chosen(place)) => match names.get(place) {
                Some(name) => self.end(SessionEnd::Open(name.clone())),
                None => InputResult::Changed,
            },
            (PopupPurpose::Exit, Reply::Confirmed(true)) => InputResult::Quit,
            _ => InputResult::Changed,
        }
    }
}
