//! Messages between the browser and the thread that reads the recording, or that samples in `top`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use rperf_disasm::CodeLocation;
use rperf_hist::Histogram;
use rperf_view::annotate::AnnotateOptions;
use rperf_view::report::ReportLayout;

use crate::annotate::Annotated;
use crate::screen::Screen;

/// A message to the browser.
pub enum ReaderMessage {
    /// The progress of a long operation, from 0 to 1.
    Progress(f64),
    /// A report, which replaces the one shown.
    Report {
        /// The tables.
        report: Arc<ReportTables>,
        /// The percentage of the recording in the report; `None` if the report is complete, and in `top`.
        partial: Option<f64>,
    },
    /// The answer to a request: a screen.
    Shown(PreparedScreen),
    /// The answer to a request: a function's code.
    Code(Arc<Annotated>),
    /// New counts of a function that may be on a screen.
    Update(Arc<Annotated>),
    /// The answer to [`BrowserRequest::Recordings`].
    Recordings(Vec<String>),
    /// The answer to a request: a text for a popup, such as why the request failed.
    Notice(String),
    /// The sending thread has ended, after an error or, in `top`, for any reason: the session ends.
    Failed,
}

/// A screen made by another thread. It can be taken once, through a shared reference: all screens receive a message by reference.
pub struct PreparedScreen(Mutex<Option<Box<dyn Screen<ReaderMessage> + Send>>>);

impl PreparedScreen {
    /// Wraps a screen.
    #[must_use]
    pub fn new(screen: impl Screen<ReaderMessage> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(screen))))
    }

    /// Returns the screen on the first call, then `None`.
    pub(crate) fn take(&self) -> Option<Box<dyn Screen<ReaderMessage> + Send>> {
        let mut screen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        screen.take()
    }
}

/// A request of the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowserRequest {
    /// The header of the recording.
    Header,
    /// The instructions of a function.
    Annotate(ShownFunction),
    /// The symbols of a function's object.
    Map(ShownFunction),
    /// The function at an address in the object of the given function.
    Follow(FunctionKey, u64),
    /// The function with the next higher period.
    Hotter(FunctionKey),
    /// The function with the next lower period.
    Colder(FunctionKey),
    /// No answer needed: this function is no longer shown.
    Closed(FunctionKey),
    /// The individual samples: all, or those of a function.
    Samples(Option<ShownFunction>),
    /// The names of the recordings in the working directory.
    Recordings,
    /// Save this text to a new file `perf.hist.N`.
    Save(String),
    /// Save a function to a file named after it: the function's name, and the text of its lines.
    SaveFunction(String, String),
    /// In `top`: toggle between resetting and decaying counts at each refresh.
    Zero,
    /// In `top`: stop or restart the events. There is no answer.
    Stop,
}

/// The identity of a displayed function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionKey {
    /// Location of its first byte.
    pub start_location: CodeLocation,
    /// The event of its samples, or the first event of their group: an index into the recording's events.
    pub event: usize,
}

/// A function as shown in rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFunction {
    /// Its name.
    pub symbol: String,
    /// The name of its object, if shown.
    pub dso: Option<String>,
    /// The event of the rows, or the first event of their group: an index into the recording's events.
    pub event: usize,
}

/// The tables of a recording.
#[derive(Debug, Default)]
pub struct ReportTables {
    /// One for each event or group.
    pub tables: Vec<ReportTable>,
    /// A tip for the last line; empty if there is none.
    pub tip: &'static str,
    /// The initial options of annotated code, and whether percentages in annotated code are relative to all functions.
    pub annotate: (AnnotateOptions, bool),
}

/// The rows of one event or group.
#[derive(Debug, Default)]
pub struct ReportTable {
    /// The event's name, or that of its group.
    pub name: String,
    /// Whether the title says "events" instead of "event".
    pub plural: bool,
    /// The rows.
    pub histogram: Histogram,
    /// Their columns and format.
    pub layout: ReportLayout,
    /// Additional status in `top`.
    pub live: Option<LiveStatus>,
}

/// The status of a table in `top`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveStatus {
    /// The text after the event's name: `, 499 Hz`.
    pub rate: String,
    /// The text at the end of the first line: ` lost: 0/0 drop: 0/0`.
    pub losses: String,
    /// The number of samples that the event menu shows.
    pub sample_count: u64,
    /// The last line.
    pub bottom: String,
}

/// The action after the session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionEnd {
    /// Exit.
    #[default]
    Nothing,
    /// Show another recording.
    Open(String),
    /// Show this recording with or without the details of `-v`.
    Verbose(bool),
}

/// Receives the result of a session.
pub type SharedSessionEnd = Rc<RefCell<SessionEnd>>;
