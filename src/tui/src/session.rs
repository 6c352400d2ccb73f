//! The event loop: inputs go to the top screen, messages to all, and changes are painted.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::backend::Backend;

use crate::error::Error;
use crate::keys::InputSource;
use crate::screen::{Input, InputResult, Reply, Screen};
use crate::theme::Theme;

/// The maximum delay of a message while the session waits for a key.
const LATENCY: Duration = Duration::from_millis(20);
/// The maximum wait for a key if nothing else can happen.
const IDLE: Duration = Duration::from_secs(3600);

/// A stack of screens, and its source of messages.
pub struct Session<M> {
    screens: Vec<Box<dyn Screen<M>>>,
    /// `None` once all senders are gone.
    messages: Option<Receiver<M>>,
    theme: Theme,
    /// The time of the top screen's next tick; `None` if the screen has no tick interval, or before an interval begins.
    tick: Option<Instant>,
    /// Whether the top screen has not been drawn yet, so that it does not know its size.
    is_new: bool,
}

/// What one iteration of the loop leaves to paint, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LoopResult {
    Nothing,
    /// The changed cells must be painted.
    Painting,
    /// Everything must be redrawn: another program may have overwritten the terminal (^L).
    Everything,
}

impl<M> Session<M> {
    /// Creates a session with one screen. Messages are received until all senders are gone.
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

    /// Runs until the last screen is closed, a screen quits, or ^C is pressed.
    ///
    /// # Errors
    ///
    /// [`Error::Terminal`]: the terminal cannot be read or written.
    pub fn run<B>(
        &mut self,
        terminal: &mut ratatui::Terminal<B>,
        source: &mut dyn InputSource,
    ) -> Result<(), Error>
    where
        B: Backend<Error: Send + Sync + 'static>,
    {
        let write_error = |error: B::Error| Error::terminal("write to")(io::Error::other(error));
        let mut change = LoopResult::Painting;
        while !self.screens.is_empty() {
            if change == LoopResult::Everything {
                terminal.clear().map_err(write_error)?;
            }
            if change > LoopResult::Nothing {
                terminal
                    .draw(|frame| self.draw(frame))
                    .map_err(write_error)?;
            }
            change = self.run_once(source)?;
        }
        Ok(())
    }

    /// Draws the top screen, and the visible ones below it.
    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        let lowest_visible = self.screens.iter().rposition(|screen| !screen.is_popup());
        let area = frame.area();
        self.is_new = false;
        for screen in self
            .screens
            .iter_mut()
            .skip(lowest_visible.unwrap_or_default())
        {
            screen.draw(frame, area, &self.theme);
        }
    }

    /// Handles all pending messages and input before the next paint, and waits for input if no message changed anything. Once a
    /// screen is opened, further input waits for the paint, which sets the size of that screen.
    fn run_once(&mut self, source: &mut dyn InputSource) -> Result<LoopResult, Error> {
        let read_error = Error::terminal("read");
        let mut change = self.take_messages();
        if self.screens.is_empty() || self.is_new {
            return Ok(change);
        }
        let mut wait = match change {
            LoopResult::Nothing => self.key_timeout(),
            _ => Duration::ZERO,
        };
        while let Some(event) = source.next(wait).map_err(&read_error)? {
            change = change.max(self.take_event(event));
            wait = Duration::ZERO;
            if self.screens.is_empty() || self.is_new {
                return Ok(change);
            }
        }
        Ok(change.max(self.take_tick()))
    }

    fn take_messages(&mut self) -> LoopResult {
        let mut change = LoopResult::Nothing;
        while let Some(messages) = &self.messages {
            match messages.try_recv() {
                Ok(message) => {
                    // Screens that a message opens do not receive it.
                    for place in 0..self.screens.len() {
                        let screen = self.screens.get_mut(place);
                        let result = screen
                            .map_or(InputResult::Unchanged, |screen| screen.message(&message));
                        change = change.max(self.apply_result(result, place));
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => self.messages = None,
            }
        }
        change
    }

    /// Sets the time of the next tick, and returns how long to wait for a key.
    fn key_timeout(&mut self) -> Duration {
        let now = Instant::now();
        let interval = self
            .screens
            .last()
            .and_then(|screen| screen.tick_interval());
        // The time may have been set for a screen with a longer interval.
        self.tick =
            interval.map(|interval| self.tick.unwrap_or(now + interval).min(now + interval));
        let tick = self.tick.map_or(IDLE, |tick| tick.duration_since(now));
        match self.messages {
            Some(_) => tick.min(LATENCY),
            None => tick,
        }
    }

    fn take_tick(&mut self) -> LoopResult {
        if self.tick.is_none_or(|tick| Instant::now() < tick) {
            return LoopResult::Nothing;
        }
        self.tick = None;
        self.pass_input(Input::Tick)
    }

    fn take_event(&mut self, event: Event) -> LoopResult {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => LoopResult::Nothing,
            Event::Key(key) if is_control(key, 'c') => {
                self.screens.clear();
                LoopResult::Nothing
            }
            Event::Key(key) if is_control(key, 'l') => LoopResult::Everything,
            Event::Key(key) => self.pass_input(Input::Key(key)),
            Event::Mouse(mouse) => self.pass_input(Input::Mouse(mouse)),
            Event::Resize(..) => LoopResult::Painting,
            _ => LoopResult::Nothing,
        }
    }

    /// Passes an input to the top screen, and applies its result.
    fn pass_input(&mut self, input: Input) -> LoopResult {
        let Some(screen) = self.screens.last_mut() else {
            return LoopResult::Nothing;
        };
        let result = screen.input(input);
        self.apply_result(result, self.screens.len() - 1)
    }

    /// Applies what the screen at `place` of the stack returned for an input or a message.
    fn apply_result(&mut self, result: InputResult<M>, place: usize) -> LoopResult {
        let is_on_top = place + 1 == self.screens.len();
        match result {
            InputResult::Unchanged => return LoopResult::Nothing,
            InputResult::Push(screen) => {
                self.screens.push(screen);
                self.is_new = true;
            }
            InputResult::Close(reply) if is_on_top => self.pop_screen(reply),
            InputResult::Replace(screen) if is_on_top => {
                self.screens.pop();
                self.screens.push(screen);
                self.is_new = true;
            }
            InputResult::Quit => self.screens.clear(),
            // A screen below another one cannot be closed or replaced; it is only redrawn.
            InputResult::Changed | InputResult::Close(_) | InputResult::Replace(_) => {}
        }
        LoopResult::Painting
    }

    /// Removes the top screen, and passes its reply to the screen below.
    fn pop_screen(&mut self, reply: Reply) {
        self.screens.pop();
        self.tick = None;
        // The result is not needed: everything visible is painted after a screen closes.
        self.pass_input(Input::Reply(reply));
    }
}

/// Whether the key is this letter with Ctrl.
fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}
