//! What fills the terminal and takes its keys.

use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::Frame;
use ratatui::layout::Rect;

use crate::theme::Theme;

/// A screen of a [`Session`](crate::Session); `M` are the messages that other threads send.
pub trait Screen<M> {
    /// Draws itself into `area`. Called after something changed, for the screen on top and, where that is a popup, for
    /// those below it. What depends on the size, like how many rows a page has, is learned here.
    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, theme: &Theme);

    /// Takes what came in while it is on top.
    fn input(&mut self, input: Input) -> Answer<M>;

    /// Takes news from another thread, wherever in the stack it is. Only the screen on top can leave or be replaced for it.
    fn message(&mut self, message: &M) -> Answer<M> {
        let _ = message;
        Answer::Same
    }

    /// How often it wants [`Input::Tick`] while it is on top.
    fn every(&self) -> Option<Duration> {
        None
    }

    /// Whether what is below it stays visible.
    fn is_popup(&self) -> bool {
        false
    }
}

/// What the screen on top is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was used; places are those of the whole terminal.
    Mouse(MouseEvent),
    /// The time of [`Screen::every`] has passed.
    Tick,
    /// The screen that was above it has left.
    Reply(Reply),
}

/// What a popup leaves to the screen below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Nothing was chosen.
    Cancelled,
    /// The place of what was chosen.
    Chosen(usize),
    /// The answer to a question.
    Agreed(bool),
    /// What was typed.
    Typed(String),
}

/// What is to happen after an input.
pub enum Answer<M> {
    /// Nothing changed.
    Same,
    /// It looks different now.
    Changed,
    /// It is done; what is below gets the reply.
    Leave(Reply),
    /// This comes on top of it.
    Push(Box<dyn Screen<M>>),
    /// This comes in its place.
    Replace(Box<dyn Screen<M>>),
    /// The session ends.
    Quit,
}
