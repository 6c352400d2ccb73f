//! The terminal browser: a guard for the terminal, a stack of screens and its loop, lists, popups, colours.
//!
//! ```text
//! keys, mouse, resize --Source--+
//!                               +--> Session --Input--> the screen on top --Answer--> Session --draw--> Terminal
//! messages of other threads ----+              (messages: every screen of the stack)
//! ```
//!
//! A browser is a [`Screen`]; menus, questions and help are screens too, drawn over the one below, to which they leave a
//! [`Reply`]. The session paints when an answer says that something changed, and never otherwise. Screens make the text of
//! what is visible and of nothing else, so that paints cost the same for ten rows and for a million.
//!
//! **Invariants.** The terminal is handed in: this crate opens, prints and reads the environment nowhere. Whatever ends the
//! process, [`Terminal`]'s modes go back first: when it is dropped, when any thread panics, and when whoever takes signals
//! calls [`Restorer::restore`].

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
pub use keys::{Source, TerminalKeys};
pub use list::{List, Pointed};
pub use page::Page;
pub use popup::{Help, Menu, Notice, Prompt, Question};
pub use report::{
    Live, News, Next, Outcome, Place, Report, ReportScreen, Request, Seen, Shown, Table,
};
pub use screen::{Answer, Input, Reply, Screen};
pub use session::Session;
pub use terminal::{Restorer, Terminal};
pub use text::Text;
pub use theme::{Heat, Theme};
