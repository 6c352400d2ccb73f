//! The screen of a function's instructions.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use rperf_disasm::{FunctionCode, HitCount};
use rperf_view::annotate::{AnnotateOptions, file_name};

use super::rows::{CodeRow, row_of, rows};
use super::source::{LineHits, line_hits};
use super::values::ColumnOptions;
use crate::list::{List, MouseEffect};
use crate::popup::Notice;
use crate::report::{BrowserRequest, FunctionKey, ReaderMessage, ShownFunction};
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// A function with its samples, and the text shown around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotated {
    /// Its instructions.
    pub code: FunctionCode,
    /// The first line: the counted events.
    pub title: String,
    /// The event of its samples, or the first one if there are several: an index into the recording's events.
    pub event: usize,
    /// The totals of all functions, by event.
    pub totals: Vec<HitCount>,
    /// The text lines of each of [`FunctionCode::files`], if available.
    pub sources: Vec<Option<Arc<[String]>>>,
    /// The last line; if empty, a hint on the keys is shown.
    pub bottom: String,
}

impl Annotated {
    /// Returns the function's identity.
    #[must_use]
    pub fn key(&self) -> FunctionKey {
        FunctionKey {
            start_location: self.code.start_location,
            event: self.event,
        }
    }
}

/// A function: its instructions with labels and arrows, with source lines between or next to them.
pub struct AnnotateScreen {
    pub(super) shown: Arc<Annotated>,
    pub(super) rows: Vec<CodeRow>,
    pub(super) list: List,
    /// Number of columns that are scrolled out of view on the left.
    pub(super) left: usize,
    /// The options; `column` and `by_samples` are only the initial ones, those in use are in `column_options`.
    pub(super) options: AnnotateOptions,
    pub(super) column_options: ColumnOptions,
    pub(super) looks: InstructionStyle,
    /// The instructions with samples, hottest first.
    pub(super) hottest: Vec<usize>,
    pub(super) line_hits: LineHits,
    pub(super) search: SearchState,
    /// A message in the last line until the next key.
    pub(super) notice: Option<String>,
    /// Whether the screen has not been drawn yet.
    pub(super) is_fresh: bool,
    requests: Sender<BrowserRequest>,
    /// Whether an answer is pending.
    is_waiting: bool,
    pub(super) theme: Theme,
}

/// How instructions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InstructionStyle {
    /// Whether the jump at the cursor has an arrow to its target.
    pub(super) arrows: bool,
    /// Whether the number of jumps to an instruction is shown.
    pub(super) jump_counts: bool,
    /// Whether every instruction has a label and its full disassembly. If so, labels are addresses in the object, otherwise
    /// offsets in the function; `in_memory` overrides both.
    pub(super) addresses: bool,
    /// Whether labels are addresses in memory, whatever `addresses` is.
    pub(super) in_memory: bool,
    /// The instructions that have a label, unless all have one because of `addresses`.
    pub(super) labels: ShownLabels,
    /// Whether source lines between instructions have their numbers.
    pub(super) line_numbers: bool,
    /// Whether the source is shown next to the instructions.
    pub(super) split: bool,
}

/// The instructions that have a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ShownLabels {
    /// Jump targets.
    #[default]
    Targets,
    /// Jump targets and calls.
    Calls,
    /// All instructions.
    All,
}

/// The search state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SearchState {
    pub(super) text: String,
    pub(super) backwards: bool,
}

impl AnnotateScreen {
    /// Creates a screen with the initial `options`, the cursor on the hottest instruction. `global` means that percentages are
    /// relative to all functions. Other functions are requested through `requests` and arrive as [`ReaderMessage::Code`].
    #[must_use]
    pub fn new(
        shown: Arc<Annotated>,
        options: AnnotateOptions,
        global: bool,
        requests: Sender<BrowserRequest>,
        theme: Theme,
    ) -> Self {
        let mut screen = Self {
            shown,
            rows: Vec::new(),
            list: List::new(0),
            left: 0,
            options,
            column_options: ColumnOptions {
                column: options.column,
                global,
                by_samples: options.by_samples,
            },
            looks: InstructionStyle {
                arrows: true,
                jump_counts: false,
                addresses: false,
                in_memory: false,
                labels: ShownLabels::Targets,
                // In the printed output, this option instead adds a summary by source line and source locations.
                line_numbers: options.print_line,
                split: false,
            },
            hottest: Vec::new(),
            line_hits: LineHits::default(),
            search: SearchState::default(),
            notice: None,
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

    /// Rebuilds the rows, and keeps the cursor on its instruction.
    pub(super) fn lay_out(&mut self) {
        let at = self.instruction();
        let with_source = self.options.source && !self.looks.split;
        self.rows = rows(&self.shown.code, with_source);
        self.list.set_len(self.rows.len());
        if let Some(at) = at {
            self.list.follow(row_of(&self.rows, at));
        }
    }

    /// Recomputes the hottest instructions and the counts of source lines.
    pub(super) fn measure(&mut self) {
        let shown = &self.shown;
        self.hottest = self.column_options.hottest(&shown.code, &shown.totals);
        self.line_hits = line_hits(shown);
    }

    /// Returns the index of the instruction at the cursor, or of the next one if the cursor is on a source line.
    pub(super) fn instruction(&self) -> Option<usize> {
        let row = self.rows.get(self.list.cursor()?)?;
        Some(row.instruction)
    }

    /// Moves the cursor to an instruction.
    pub(super) fn go_to(&mut self, instruction: usize) {
        self.list.center(row_of(&self.rows, instruction));
    }

    /// Sends a request whose answer arrives as a message.
    pub(super) fn request(&mut self, request: BrowserRequest) -> InputResult<ReaderMessage> {
        self.is_waiting = self.requests.send(request).is_ok();
        InputResult::Changed
    }

    /// Returns the function, for a request of its samples.
    pub(super) fn shown_function(&self) -> ShownFunction {
        ShownFunction {
            symbol: self.shown.code.name.clone(),
            // The object is not shown on this screen, and a request of samples does not need it.
            dso: None,
            event: self.shown.event,
        }
    }

    /// Returns file and line of the instruction at the cursor, as text.
    pub(super) fn location(&self) -> Option<String> {
        let (file, line) = self.source_line()?;
        let path = self.shown.code.files.get(file)?;
        Some(format!("{}:{line}", file_name(path, &self.options)))
    }

    /// Returns the last line.
    fn bottom(&self) -> &str {
        match &self.notice {
            _ if self.is_waiting => "Working...",
            Some(notice) => notice,
            None if self.shown.bottom.is_empty() => "Press 'h' for help on key bindings",
            None => &self.shown.bottom,
        }
    }

    /// Applies new counts of this function.
    fn update(&mut self, shown: &Arc<Annotated>) -> InputResult<ReaderMessage> {
        if shown.key() != self.shown.key() {
            return InputResult::Unchanged;
        }
        self.shown = Arc::clone(shown);
        self.lay_out();
        self.measure();
        InputResult::Changed
    }

    /// Creates a screen for another function with the same view options.
    fn for_function(&self, shown: &Arc<Annotated>) -> Self {
        let options = AnnotateOptions {
            column: self.column_options.column,
            by_samples: self.column_options.by_samples,
            ..self.options
        };
        let mut screen = Self::new(
            Arc::clone(shown),
            options,
            self.column_options.global,
            self.requests.clone(),
            self.theme,
        );
        screen.looks = self.looks;
        screen.lay_out();
        screen
    }
}

impl Drop for AnnotateScreen {
    fn drop(&mut self) {
        // The receiver may be gone.
        let _ = self.requests.send(BrowserRequest::Closed(self.shown.key()));
    }
}

impl Screen<ReaderMessage> for AnnotateScreen {
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let bottom = Line::from(Span::raw(self.bottom().to_owned()));
        self.paint(frame, area, theme, bottom);
    }

    fn input(&mut self, input: Input) -> InputResult<ReaderMessage> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Mouse(mouse) => match self.list.mouse(mouse) {
                MouseEffect::None => InputResult::Unchanged,
                MouseEffect::Moved => InputResult::Changed,
                MouseEffect::CursorClicked => self.enter(),
            },
            Input::Reply(Reply::Typed(text)) => {
                self.search.text = text;
                self.find(self.search.backwards)
            }
            Input::Reply(_) => InputResult::Changed,
            Input::Tick => InputResult::Unchanged,
        }
    }

    fn message(&mut self, message: &ReaderMessage) -> InputResult<ReaderMessage> {
        match message {
            ReaderMessage::Update(shown) => return self.update(shown),
            // Every screen of the stack receives every answer; a screen uses it only if it is waiting for one.
            _ if !self.is_waiting => return InputResult::Unchanged,
            ReaderMessage::Code(shown) => {
                self.is_waiting = false;
                return InputResult::Push(Box::new(self.for_function(shown)));
            }
            ReaderMessage::Shown(prepared) => {
                self.is_waiting = false;
                // The screen can be taken only once: `None` if another waiting screen has taken it.
                if let Some(screen) = prepared.take() {
                    return InputResult::Push(screen);
                }
            }
            ReaderMessage::Notice(text) => {
                self.is_waiting = false;
                return InputResult::Push(Box::new(Notice::new("", text.as_str())));
            }
            _ => return InputResult::Unchanged,
        }
        InputResult::Changed
    }
}
