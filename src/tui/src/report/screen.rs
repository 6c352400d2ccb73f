//! The screen of a report.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::menu::Action;
use super::news::{News, Next, Outcome, Report, Request};
use super::table::View;
use crate::annotate::AnnotateScreen;
use crate::list::List;
use crate::page::Page;
use crate::popup::{Menu, Notice};
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// Columns of a bar that shows progress.
const BAR: usize = 20;

/// A report: the menu of its events, and the rows of the one that was chosen.
pub struct ReportScreen {
    pub(super) report: Arc<Report>,
    /// The tables that were looked at.
    pub(super) views: Vec<Option<View>>,
    /// The table that is shown; None while one is being chosen.
    pub(super) current: Option<usize>,
    /// The menu of tables.
    pub(super) events: List,
    /// Whether titles of columns are shown.
    pub(super) has_titles: bool,
    /// Columns, and characters behind the last one, that are scrolled away.
    pub(super) scrolled: (usize, usize),
    /// What a popup was asked.
    pub(super) asked: Option<Asked>,
    pub(super) requests: Sender<Request>,
    pub(super) outcome: Outcome,
    /// Whether addresses and paths are shown.
    pub(super) is_verbose: bool,
    pub(super) theme: Theme,
    /// Whether it shows what runs now.
    pub(super) is_live: bool,
    state: State,
}

/// What a popup is to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Menu(Vec<Action>),
    Symbol,
    Limit,
    Recordings(Vec<String>),
    Exit,
}

/// How far the reading is.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Whether anything was shown yet.
    has_report: bool,
    /// None when all is read, else how much of the recording is shown, in percent.
    partial: Option<f64>,
    /// What is under way, and how far it is.
    progress: Option<f64>,
    /// Whether something was asked for that takes its time.
    is_waiting: bool,
}

impl ReportScreen {
    /// A screen that is empty until [`News::Report`] comes. Requests go to `requests`; `outcome` tells afterwards why the
    /// session ended. `is_verbose` is whether rows come with addresses.
    #[must_use]
    pub fn new(
        requests: Sender<Request>,
        outcome: Outcome,
        is_verbose: bool,
        theme: Theme,
    ) -> Self {
        Self {
            report: Arc::default(),
            views: Vec::new(),
            current: None,
            events: List::new(0),
            has_titles: true,
            scrolled: (0, 0),
            asked: None,
            requests,
            outcome,
            is_verbose,
            theme,
            is_live: false,
            state: State {
                progress: Some(0.0),
                ..State::default()
            },
        }
    }

    /// The same for what runs now: reports come again and again, and nothing has to be read.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.is_live = true;
        self.state.progress = None;
        self
    }

    /// The same with something that is asked for at once.
    #[must_use]
    pub fn asking(mut self, request: Request) -> Self {
        self.state.is_waiting = self.requests.send(request).is_ok();
        self
    }

    /// What goes on in place of advice, of what runs now.
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

    /// The table that is shown.
    pub(super) fn view(&mut self) -> Option<&mut View> {
        self.views.get_mut(self.current?)?.as_mut()
    }

    /// Shows a table.
    pub(super) fn open(&mut self, number: usize) {
        let Some(slot) = self.views.get_mut(number) else {
            return;
        };
        if slot.is_none() {
            *slot = View::new(&self.report, number, None);
        }
        self.current = Some(number);
        self.events.go_to(number);
        self.scrolled = (0, 0);
    }

    /// Asks the reading thread for something.
    pub(super) fn request(&mut self, request: Request) -> Answer<News> {
        // Nobody is there to answer where the reading has failed; the session ends for that by itself.
        self.state.is_waiting = self.requests.send(request).is_ok();
        Answer::Changed
    }

    /// Ends the session and says what comes next.
    pub(super) fn end(&self, next: Next) -> Answer<News> {
        *self.outcome.borrow_mut() = next;
        Answer::Quit
    }

    /// Whether an answer was waited for, which has come.
    fn answered_now(&mut self) -> bool {
        std::mem::take(&mut self.state.is_waiting)
    }

    fn take(&mut self, report: &Arc<Report>, partial: Option<f64>) {
        let count = report.tables.len();
        let same = count == self.views.len();
        self.report = Arc::clone(report);
        let mut before = std::mem::take(&mut self.views);
        before.resize_with(count, || None);
        let fresh = before.into_iter().enumerate().map(|(number, view)| {
            let view = view.filter(|_| same)?;
            View::new(report, number, Some(view))
        });
        self.views = fresh.collect();
        self.events.set_len(count);
        self.state.has_report = true;
        self.state.partial = partial;
        if count == 1 || (self.current.is_some() && same) {
            self.open(self.current.unwrap_or_default());
        } else if !same {
            self.current = None;
        }
    }

    /// The last line: what is going on, else advice.
    fn bottom(&self) -> String {
        if let Some(done) = self.state.progress {
            let filled = (done.clamp(0.0, 1.0) * BAR as f64).round() as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR - filled));
            let shown = match self.state.partial {
                Some(partial) => format!("; shown: the first {partial:.0}% of the recording"),
                None => String::new(),
            };
            return format!("Reading [{bar}] {:3.0}%{shown}", done * 100.0);
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

impl Screen<News> for ReportScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let bottom = Line::from(Span::raw(self.bottom()));
        if self.current.is_none() {
            return self.draw_events(frame, area, theme, bottom);
        }
        let (first, left) = self.scrolled;
        let has_titles = self.has_titles;
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
            headings: has_titles
                .then(|| view.heading(first))
                .into_iter()
                .collect(),
            bottom,
        };
        let mut list = view.list.clone();
        let row = |line, _| view.line(line, first, theme);
        page.draw(frame, area, theme, (&mut list, left), row);
        view.list = list;
    }

    fn input(&mut self, input: Input) -> Answer<News> {
        match input {
            Input::Key(key) if self.current.is_none() => self.event_key(key),
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => self.mouse(mouse),
            Input::Reply(reply) => match self.asked.take() {
                Some(asked) => self.answered(asked, reply),
                None => Answer::Changed,
            },
            Input::Tick => Answer::Same,
        }
    }

    fn message(&mut self, news: &News) -> Answer<News> {
        match news {
            News::Progress(done) => self.state.progress = Some(*done),
            News::Report { report, partial } => {
                self.take(report, *partial);
                if partial.is_none() {
                    self.state.progress = None;
                }
            }
            News::Code(shown) if self.answered_now() => {
                let (options, requests) = (self.report.annotate, self.requests.clone());
                let screen = AnnotateScreen::new(Arc::clone(shown), options, requests, self.theme);
                return Answer::Push(Box::new(screen));
            }
            News::Shown(shown) if self.answered_now() => {
                if let Some(screen) = shown.take() {
                    return Answer::Push(screen);
                }
            }
            News::Recordings(names) => {
                self.state.is_waiting = false;
                self.asked = Some(Asked::Recordings(names.clone()));
                return Answer::Push(Box::new(Menu::new("Recordings", names.clone())));
            }
            News::Said(text) if self.answered_now() => {
                return Answer::Push(Box::new(Notice::new("", text.as_str())));
            }
            // What another screen has asked for.
            News::Code(_) | News::Update(_) | News::Shown(_) | News::Said(_) => {
                return Answer::Same;
            }
            News::Failed => return Answer::Quit,
        }
        Answer::Changed
    }
}

impl ReportScreen {
    /// Does what was chosen or typed.
    fn answered(&mut self, asked: Asked, reply: Reply) -> Answer<News> {
        match (asked, reply) {
            (Asked::Menu(actions), Reply::Chosen(place)) => match actions.get(place) {
                Some(action) => self.act(action.clone()),
                None => Answer::Changed,
            },
            (Asked::Symbol, Reply::Typed(text)) => self.show_symbols(&text),
            (Asked::Limit, Reply::Typed(text)) => self.limit(&text),
            (Asked::Recordings(names), Reply::Chosen(place)) => match names.get(place) {
                Some(name) => self.end(Next::Open(name.clone())),
                None => Answer::Changed,
            },
            (Asked::Exit, Reply::Agreed(true)) => Answer::Quit,
            _ => Answer::Changed,
        }
    }
}
