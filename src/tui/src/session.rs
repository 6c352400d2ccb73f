//! The loop: inputs to the screen on top, messages to all, a paint when something changed.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::backend::Backend;

use crate::error::Error;
use crate::keys::Source;
use crate::screen::{Answer, Input, Reply, Screen};
use crate::theme::Theme;

/// How long a message may lie around before it is looked at.
const LATENCY: Duration = Duration::from_millis(20);
/// How long is waited for a key where nothing else can happen.
const IDLE: Duration = Duration::from_secs(3600);

/// A stack of screens, and where news for them comes from.
pub struct Session<M> {
    screens: Vec<Box<dyn Screen<M>>>,
    /// None as soon as nobody is left to send.
    messages: Option<Receiver<M>>,
    theme: Theme,
    /// When the screen on top wants to be woken.
    tick: Option<Instant>,
    /// Whether the screen on top was never drawn, and so does not know its size.
    is_new: bool,
}

/// What a turn of the loop has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Nothing,
    Painting,
    /// What is on the terminal counts for nothing: it was resized, or somebody wrote over it.
    Everything,
}

impl<M> Session<M> {
    /// A session with one screen. Messages are taken until all their senders are gone.
    #[must_use]
    pub fn new(first: Box<dyn Screen<M>>, messages: Receiver<M>, theme: Theme) -> Self {
        Self {
            screens: vec![first],
            messages: Some(messages),
            theme,
            tick: None,
            is_new: true,
        }
    }

    /// Runs until the last screen has left, one asks for the end, or ^C is pressed.
    ///
    /// # Errors
    ///
    /// [`Error::Terminal`]: it cannot be read or written to.
    pub fn run<B>(
        &mut self,
        terminal: &mut ratatui::Terminal<B>,
        source: &mut dyn Source,
    ) -> Result<(), Error>
    where
        B: Backend<Error: Send + Sync + 'static>,
    {
        let written = |error: B::Error| Error::terminal("write to")(io::Error::other(error));
        let mut change = Change::Painting;
        while !self.screens.is_empty() {
            if change == Change::Everything {
                terminal.clear().map_err(written)?;
            }
            if change > Change::Nothing {
                terminal.draw(|frame| self.draw(frame)).map_err(written)?;
            }
            change = self.turn(source)?;
        }
        Ok(())
    }

    /// Draws the screen on top, and those that are seen below it.
    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        let whole = self.screens.iter().rposition(|screen| !screen.is_popup());
        let area = frame.area();
        self.is_new = false;
        for screen in self.screens.iter_mut().skip(whole.unwrap_or_default()) {
            screen.draw(frame, area, &self.theme);
        }
    }

    /// Waits for something, and takes all that has come: one paint is enough for a page of key strokes. What comes behind
    /// one that opens a screen waits for its first paint, by which it learns its size.
    fn turn(&mut self, source: &mut dyn Source) -> Result<Change, Error> {
        let read = Error::terminal("read");
        let mut change = self.take_messages();
        let mut wait = match change {
            Change::Nothing => self.patience(),
            _ => Duration::ZERO,
        };
        while let Some(event) = source.next(wait).map_err(&read)? {
            change = change.max(self.take_event(event));
            wait = Duration::ZERO;
            if self.screens.is_empty() || self.is_new {
                return Ok(change);
            }
        }
        Ok(change.max(self.take_tick()))
    }

    fn take_messages(&mut self) -> Change {
        let mut change = Change::Nothing;
        while let Some(messages) = &self.messages {
            match messages.try_recv() {
                Ok(message) => {
                    for place in 0..self.screens.len() {
                        let screen = self.screens.get_mut(place);
                        let answer = screen.map_or(Answer::Same, |screen| screen.message(&message));
                        change = change.max(self.follow(answer, place));
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.messages = None,
            }
        }
        change
    }

    /// How long a key is waited for.
    fn patience(&mut self) -> Duration {
        let now = Instant::now();
        let every = self.screens.last().and_then(|screen| screen.every());
        self.tick = every.map(|every| self.tick.unwrap_or(now + every).min(now + every));
        let tick = self.tick.map_or(IDLE, |tick| tick.duration_since(now));
        match self.messages {
            Some(_) => tick.min(LATENCY),
            None => tick,
        }
    }

    fn take_tick(&mut self) -> Change {
        if self.tick.is_none_or(|tick| Instant::now() < tick) {
            return Change::Nothing;
        }
        self.tick = None;
        self.give(Input::Tick)
    }

    fn take_event(&mut self, event: Event) -> Change {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => Change::Nothing,
            Event::Key(key) if is_control(key, 'c') => {
                self.screens.clear();
                Change::Nothing
            }
            Event::Key(key) if is_control(key, 'l') => Change::Everything,
            Event::Key(key) => self.give(Input::Key(key)),
            Event::Mouse(mouse) => self.give(Input::Mouse(mouse)),
            Event::Resize(..) => Change::Painting,
            _ => Change::Nothing,
        }
    }

    /// Gives an input to the screen on top, and does what it answers.
    fn give(&mut self, input: Input) -> Change {
        let Some(screen) = self.screens.last_mut() else {
            return Change::Nothing;
        };
        let answer = screen.input(input);
        self.follow(answer, self.screens.len() - 1)
    }

    /// Does what the screen at `place` answers.
    fn follow(&mut self, answer: Answer<M>, place: usize) -> Change {
        let is_on_top = place + 1 == self.screens.len();
        match answer {
            Answer::Same => return Change::Nothing,
            Answer::Push(screen) => {
                self.screens.push(screen);
                self.is_new = true;
            }
            Answer::Leave(reply) if is_on_top => self.leave(reply),
            Answer::Replace(screen) if is_on_top => {
                self.screens.pop();
                self.screens.push(screen);
                self.is_new = true;
            }
            Answer::Quit => self.screens.clear(),
            Answer::Changed | Answer::Leave(_) | Answer::Replace(_) => {}
        }
        Change::Painting
    }

    /// Takes the screen on top away.
    fn leave(&mut self, reply: Reply) {
        self.screens.pop();
        self.tick = None;
        self.give(Input::Reply(reply));
    }
}

/// Whether it is this letter with the control key.
fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}
