//! The screen of a function's instructions.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_disasm::{Code, Hit};
use rperf_view::annotate::{AnnotateOptions, file_name};

use super::rows::{Row, row_of, rows};
use super::source::{LineHits, line_hits};
use super::values::Values;
use crate::list::{List, Pointed};
use crate::popup::Notice;
use crate::report::{News, Place, Request, Seen};
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// A function with what fell on it, and what is shown around that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotated {
    /// Its instructions.
    pub code: Code,
    /// The first line: what was counted.
    pub counted: String,
    /// The first of its events: the place among those of the recording.
    pub event: usize,
    /// What fell on all functions, by event.
    pub totals: Vec<Hit>,
    /// The lines of the files that [`Code::files`] names, as far as they are at hand.
    pub sources: Vec<Option<Arc<[String]>>>,
    /// The last line, where something is to be said in place of advice.
    pub bottom: String,
}

impl Annotated {
    /// What tells it from others.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen {
            begin: self.code.begin,
            event: self.event,
        }
    }
}

/// A function: its instructions with labels and arrows, the lines of its source between them or beside them.
pub struct AnnotateScreen {
    pub(super) shown: Arc<Annotated>,
    pub(super) rows: Vec<Row>,
    pub(super) list: List,
    /// Characters that are scrolled away.
    pub(super) left: usize,
    pub(super) options: AnnotateOptions,
    pub(super) values: Values,
    pub(super) looks: Looks,
    /// The instructions that anything fell on, the hottest first.
    pub(super) hottest: Vec<usize>,
    pub(super) line_hits: LineHits,
    pub(super) search: Search,
    /// What is said in the last line until the next key.
    pub(super) said: Option<String>,
    /// Whether it was not drawn yet.
    pub(super) is_fresh: bool,
    requests: Sender<Request>,
    /// Whether an answer is to come.
    is_waiting: bool,
    pub(super) theme: Theme,
}

/// How instructions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Looks {
    /// Whether the jump at the cursor has an arrow to its target.
    pub(super) arrows: bool,
    /// Whether it is told how many jumps lead to a place.
    pub(super) sources: bool,
    /// Whether all addresses are shown, those of the object.
    pub(super) addresses: bool,
    /// Whether addresses are those in memory.
    pub(super) in_memory: bool,
    /// Which instructions have their offset before them.
    pub(super) offsets: Offsets,
    /// Whether source lines have their numbers.
    pub(super) numbers: bool,
    /// Whether the source stands beside the instructions.
    pub(super) split: bool,
}

/// Which instructions have their offset before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Offsets {
    /// Those that jumps lead to.
    #[default]
    Targets,
    /// Those and calls.
    Calls,
    /// All.
    All,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Search {
    pub(super) text: String,
    pub(super) backwards: bool,
}

impl AnnotateScreen {
    /// A screen that begins as `options` say, the cursor on the hottest instruction. `global` is whether shares are of all
    /// functions. Other functions are asked for through `requests` and come as [`News::Code`].
    #[must_use]
    pub fn new(
        shown: Arc<Annotated>,
        (options, global): (AnnotateOptions, bool),
        requests: Sender<Request>,
        theme: Theme,
    ) -> Self {
        let mut screen = Self {
            shown,
            rows: Vec::new(),
            list: List::new(0),
            left: 0,
            options,
            values: Values {
                column: options.column,
                global,
                by_samples: options.by_samples,
            },
            looks: Looks {
                arrows: true,
                sources: false,
                addresses: false,
                in_memory: false,
                offsets: Offsets::Targets,
                numbers: options.lines,
                split: false,
            },
            hottest: Vec::new(),
            line_hits: LineHits::default(),
            search: Search::default(),
            said: None,
            is_fresh: true,
            requests,
            is_waiting: false,
            theme,
        };
        screen.lay_out();
        screen.measure();
        if let Some(hottest) = screen.hottest.first().copied() {
            screen.go_to(hottest);
        }
        screen
    }

    /// Finds the lines anew, and keeps the cursor on its instruction.
    pub(super) fn lay_out(&mut self) {
        let at = self.instruction();
        let with_source = self.options.source && !self.looks.split;
        self.rows = rows(&self.shown.code, with_source);
        self.list.set_len(self.rows.len());
        if let Some(at) = at {
            self.list.follow(row_of(&self.rows, at));
        }
    }

    /// Adds up anew what fell where.
    pub(super) fn measure(&mut self) {
        let shown = &self.shown;
        self.hottest = self.values.hottest(&shown.code, &shown.totals);
        self.line_hits = line_hits(shown);
    }

    /// The number of the instruction at the cursor, or behind it.
    pub(super) fn instruction(&self) -> Option<usize> {
        let row = self.rows.get(self.list.cursor()?)?;
        Some(row.instruction)
    }

    /// Puts the cursor on an instruction.
    pub(super) fn go_to(&mut self, instruction: usize) {
        self.list.center(row_of(&self.rows, instruction));
    }

    /// Asks for something that comes as news.
    pub(super) fn request(&mut self, request: Request) -> Answer<News> {
        self.is_waiting = self.requests.send(request).is_ok();
        Answer::Changed
    }

    /// The function as others know it.
    pub(super) fn place(&self) -> Place {
        Place {
            symbol: self.shown.code.name.clone(),
            dso: None,
            event: self.shown.event,
        }
    }

    /// Where the cursor is in the source.
    pub(super) fn location(&self) -> Option<String> {
        let (file, line) = self.source_line()?;
        let path = self.shown.code.files.get(file)?;
        Some(format!("{}:{line}", file_name(path, &self.options)))
    }

    fn bottom(&self) -> &str {
        match &self.said {
            _ if self.is_waiting => "Working...",
            Some(said) => said,
            None if self.shown.bottom.is_empty() => "Press 'h' for help on key bindings",
            None => &self.shown.bottom,
        }
    }

    /// Takes what fell on this function meanwhile.
    fn update(&mut self, shown: &Arc<Annotated>) -> Answer<News> {
        if shown.seen() != self.shown.seen() {
            return Answer::Same;
        }
        self.shown = Arc::clone(shown);
        self.lay_out();
        self.measure();
        Answer::Changed
    }

    /// Another function, shown as this one is.
    fn beside(&self, shown: &Arc<Annotated>) -> Self {
        let options = AnnotateOptions {
            column: self.values.column,
            by_samples: self.values.by_samples,
            ..self.options
        };
        let requests = self.requests.clone();
        let options = (options, self.values.global);
        let mut screen = Self::new(Arc::clone(shown), options, requests, self.theme);
        screen.looks = self.looks;
        screen.lay_out();
        screen
    }
}

impl Drop for AnnotateScreen {
    fn drop(&mut self) {
        // Nobody may be left to hear it.
        let _ = self.requests.send(Request::Left(self.shown.seen()));
    }
}

impl Screen<News> for AnnotateScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let bottom = Line::from(Span::raw(self.bottom().to_owned()));
        self.paint(frame, area, theme, bottom);
    }

    fn input(&mut self, input: Input) -> Answer<News> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => match self.list.mouse(mouse) {
                Pointed::Nowhere => Answer::Same,
                Pointed::Moved => Answer::Changed,
                Pointed::Again => self.enter(),
            },
            Input::Reply(Reply::Typed(text)) => {
                self.search.text = text;
                self.find(self.search.backwards)
            }
            Input::Reply(_) => Answer::Changed,
            Input::Tick => Answer::Same,
        }
    }

    fn message(&mut self, news: &News) -> Answer<News> {
        match news {
            News::Update(shown) => return self.update(shown),
            _ if !self.is_waiting => return Answer::Same,
            News::Code(shown) => {
                self.is_waiting = false;
                return Answer::Push(Box::new(self.beside(shown)));
            }
            News::Shown(shown) => {
                self.is_waiting = false;
                if let Some(screen) = shown.take() {
                    return Answer::Push(screen);
                }
            }
            News::Said(text) => {
                self.is_waiting = false;
                return Answer::Push(Box::new(Notice::new("", text.as_str())));
            }
            _ => return Answer::Same,
        }
        Answer::Changed
    }
}
