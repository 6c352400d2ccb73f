//! The terminal browser: terminal guard, screen stack, event loop, lists, popups, colours.
//!
//! ```text
//! keys, mouse, resize --InputSource--+
//!                                    +--> Session --Input--> screen on top --InputResult--> Session --draw--> Terminal
//! messages of other threads ---------+              (messages: every screen of the stack)
//! ```
//!
//! A browser is a [`Screen`]. Popups such as menus, questions and help are screens, too: they are drawn over the screen below and
//! return a [`Reply`] to it. Only the visible rows of a list are rendered, so a paint costs the same for ten rows and for a
//! million.
//!
//! A message of another thread goes to every screen of the stack; other inputs go only to the screen on top.
//!
//! **Invariants.** This crate does not read files or the environment. The terminal is restored (raw mode, alternate screen and
//! mouse capture end) when [`Terminal`] is dropped, when any thread panics, and when [`Restorer::restore`] is called, such as by
//! a thread that receives signals.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod annotate;
mod error;
mod keys;
mod list;
mod page;
mod popup;
mod report;
mod screen;
mod session;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod theme;

pub use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
pub use ratatui::Frame;
pub use ratatui::layout::Rect;
pub use ratatui::style::{Modifier, Style};
pub use ratatui::text::{Line, Span};

pub use annotate::{AnnotateScreen, Annotated};
pub use error::Error;
pub use keys::{InputSource, TerminalInput};
pub use list::{List, MouseEffect};
pub use page::{Page, ScrolledList};
pub use popup::{Help, Menu, Notice, Prompt, Question};
pub use report::{
    BrowserRequest, FunctionKey, LiveStatus, PreparedScreen, ReaderMessage, ReportScreen,
    ReportTable, ReportTables, SessionEnd, SharedSessionEnd, ShownFunction,
};
pub use screen::{Input, InputResult, Reply, Screen};
pub use session::Session;
pub use terminal::{Restorer, Terminal};
pub use text::TextScreen;
pub use theme::{PercentHeat, Theme};
