//! The browser of a report: rows with call graphs that unfold, zooms, menus.

mod chain;
mod draw;
mod entries;
mod events;
mod export;
mod flame;
mod help;
mod keys;
mod menu;
mod news;
mod screen;
mod table;
mod zoom;

pub use self::news::{Live, News, Next, Outcome, Place, Report, Request, Seen, Shown, Table};
pub use self::screen::ReportScreen;
