//! Where keys come from.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event};

/// Gives keys, clicks and sizes.
pub trait Source {
    /// What comes within `wait`; None if nothing does.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>>;
}

/// The process's terminal.
#[derive(Debug, Default)]
pub struct TerminalKeys;

impl Source for TerminalKeys {
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
        match event::poll(wait)? {
            true => event::read().map(Some),
            false => Ok(None),
        }
    }
}
