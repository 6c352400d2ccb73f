//! The browser of a report: rows with foldable call graphs, zooms, menus.

mod chain;
mod draw;
mod entries;
mod events;
mod export;
mod flame;
mod help;
mod keys;
mod menu;
mod messages;
mod screen;
mod table;
mod zoom;

pub use self::messages::{
    BrowserRequest, FunctionKey, LiveStatus, PreparedScreen, ReaderMessage, ReportTable,
    ReportTables, SessionEnd, SharedSessionEnd, ShownFunction,
};
pub use self::screen::ReportScreen;
