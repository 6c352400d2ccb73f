//! What the browser and the thread that reads the recording tell each other.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use rperf_disasm::Landmark;
use rperf_hist::Histogram;
use rperf_view::annotate::AnnotateOptions;
use rperf_view::report::Layout;

use crate::annotate::Annotated;
use crate::screen::Screen;

/// What the reading thread tells.
pub enum News {
    /// So much is done of what takes its time, from 0 to 1.
    Progress(f64),
    /// What was counted; `partial` is how much of the recording it is of, in percent, while more follows.
    Report {
        /// The tables.
        report: Arc<Report>,
        /// None for all of it.
        partial: Option<f64>,
    },
    /// The answer to a [`Request`].
    Shown(Shown),
    /// The same: a function's code.
    Code(Arc<Annotated>),
    /// What fell by now on a function that may be on a screen.
    Update(Arc<Annotated>),
    /// The names of other recordings.
    Recordings(Vec<String>),
    /// A request cannot be fulfilled, or has nothing to show but this.
    Said(String),
    /// There is nothing to be shown: the session ends.
    Failed,
}

/// A screen made by another thread, to be taken once.
pub struct Shown(Mutex<Option<Box<dyn Screen<News> + Send>>>);

impl Shown {
    /// Takes a screen along.
    #[must_use]
    pub fn new(screen: impl Screen<News> + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(screen))))
    }

    /// The screen, for the first who asks.
    pub(crate) fn take(&self) -> Option<Box<dyn Screen<News> + Send>> {
        let mut screen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        screen.take()
    }
}

/// What the browser asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The header of the recording.
    Header,
    /// The instructions of a function.
    Annotate(Place),
    /// The symbols of the object that a function is in.
    Map(Place),
    /// The function at an address of the object that this one is in.
    Follow(Seen, u64),
    /// The function that has next more samples than this one.
    Hotter(Seen),
    /// The one that has next fewer.
    Colder(Seen),
    /// Nothing: this function is not shown any more.
    Left(Seen),
    /// The samples one by one: all, or those of a function.
    Samples(Option<Place>),
    /// Other recordings beside this one.
    Recordings,
    /// To write this into a file of its own.
    Save(String),
    /// To write this, of a function of that name, into the file that is called like it.
    SaveFunction(String, String),
    /// Of what runs now: to forget older samples at each refresh, or to let them fade again.
    Zero,
    /// Of what runs now: to stop the events, or to start them again.
    Stop,
}

/// A function whose code is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Where it begins.
    pub begin: Landmark,
    /// The place of its first event among those of the recording.
    pub event: usize,
}

/// A function as rows show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub symbol: String,
    /// The name of its object, if rows tell.
    pub dso: Option<String>,
    /// The event's place among those of the recording.
    pub event: usize,
}

/// Tables beside each other.
#[derive(Debug, Default)]
pub struct Report {
    /// One for each event or group.
    pub tables: Vec<Table>,
    /// Advice for the last line.
    pub tip: &'static str,
    /// How annotated code looks first, and whether shares of it are of all functions.
    pub annotate: (AnnotateOptions, bool),
}

/// The rows of one event or group.
#[derive(Debug, Default)]
pub struct Table {
    /// The event's name, or that of its group.
    pub name: String,
    /// Whether it is spoken of as events.
    pub plural: bool,
    /// The rows.
    pub histogram: Histogram,
    /// How they are laid out.
    pub layout: Layout,
    /// What is told of it besides, where it is of what runs now.
    pub live: Option<Live>,
}

/// What is told of a table that changes by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Live {
    /// Behind the event's name: `, 499 Hz`.
    pub rate: String,
    /// At the end of the first line: ` lost: 0/0 drop: 0/0`.
    pub losses: String,
    /// All samples that ever came.
    pub seen: u64,
    /// The last line.
    pub bottom: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Next {
    /// For good.
    #[default]
    Nothing,
    /// To show another recording.
    Open(String),
    /// To show this one with what `-v` shows, or without.
    Verbose(bool),
}

/// Tells whoever ran a session how it ended.
pub type Outcome = Rc<RefCell<Next>>;
