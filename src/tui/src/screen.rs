//! Screens: they fill the terminal and handle its input.

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;

use crate::theme::Theme;

/// A screen of a [`Session`](crate::Session); `M` is the type of messages from other threads.
pub trait Screen<M> {
    /// Draws the screen into `area`. Called before the screen's first input, and again after changes while the screen is
    /// visible. Visible are the top screen and, if that is a popup, the screens below it, down to the first that is not a popup.
    /// Size-dependent state, such as the rows per page, is updated here.
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme);

    /// Handles an input while it is the top screen.
    fn input(&mut self, input: Input) -> InputResult<M>;

    /// Handles a message from another thread. All screens of the stack receive it, but only the top one can be closed or replaced
    /// in response.
    fn message(&mut self, message: &M) -> InputResult<M> {
        let _ = message;
        InputResult::Unchanged
    }

    /// Returns the interval of [`Input::Tick`] while it is the top screen.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Whether the screen below it stays visible.
    fn is_popup(&self) -> bool {
        false
    }
}

/// An input for the top screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// A mouse event; positions are relative to the terminal.
    Mouse(MouseEvent),
    /// The interval of [`Screen::tick_interval`] has passed.
    Tick,
    /// The reply of a screen above that has closed.
    Reply(Reply),
}

/// The reply of a closed screen to the screen below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The screen was closed without a choice, an answer or a text.
    Cancelled,
    /// The index of the choice.
    Chosen(usize),
    /// The answer to a yes-or-no question.
    Confirmed(bool),
    /// The typed text.
    Typed(String),
}

/// The result of an input or a message.
pub enum InputResult<M> {
    /// Nothing changed.
    Unchanged,
    /// The screen must be redrawn.
    Changed,
    /// The screen closes; the one below receives the reply.
    Close(Reply),
    /// Opens a screen on top.
    Push(Box<dyn Screen<M>>),
    /// Replaces the screen.
    Replace(Box<dyn Screen<M>>),
    /// The session ends.
    Quit,
}
