//! rperf-view.

pub mod annotate;
pub mod dump;
pub mod evlist;
mod groups;
pub mod header;
pub mod list;
#[cfg(test)]
mod made;
pub mod padding;
mod percent;
pub mod report;
pub mod script;
pub mod stat;
pub mod terminal;
pub mod top;

pub use groups::{Group, Groups};
