//! Sources of input events.

use std::io;
use std::time::Duration;

use crossterm::event::{self, Event};

/// A source of keys, mouse events and resizes.
pub trait InputSource {
    /// Returns an event that arrives within `wait`; otherwise `None`.
    ///
    /// # Errors
    ///
    /// Errors of reading input.
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>>;
}

/// The keyboard and the mouse of the process's terminal.
#[derive(Debug, Default)]
pub struct TerminalInput;

impl InputSource for TerminalInput {
    fn next(&mut self, wait: Duration) -> io::Result<Option<Event>> {
        match event::poll(wait)? {
            true => event::read().map(Some),
            false => Ok(None),
        }
    }
}
