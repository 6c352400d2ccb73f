//! A screen of text on a terminal, in the layout of `perf top --stdio`.

use std::io::{self, Write};
use std::time::Duration;

use rperf_sys::KeyInput;
use rperf_view::report::Layout;
use rperf_view::top::{Room, write_cut, write_first_rows};

use super::LOST;
use super::keys::{Asked, Key, Menu};
use super::session::{Session, Step};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Clears the screen (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Lines around the rows.
const AROUND: usize = 5;
/// A terminal that does not tell its size.
const USUAL_SIZE: (usize, usize) = (25, 80);
/// What perf shows for the least samples of a row where nothing is said; without effect there.
const COUNT: u64 = 5;

/// What is shown, and what keys have made of it.
pub(super) struct Screen<'a> {
    context: &'a Context,
    layout: Layout,
    /// Most rows, if that was said.
    most: Option<usize>,
    /// Samples that a row needs, if that was said.
    least: Option<u64>,
    /// The number of the table that is shown.
    table: usize,
    keys: Option<KeyInput>,
    waits_for: Waits,
}

/// What the next key is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waits {
    /// Whatever it means.
    Key,
    /// An answer to the menu: refreshes would wipe it away.
    Selection,
    /// A number, of which these digits were typed.
    Number(Asked, String),
}

impl<'a> Screen<'a> {
    /// Shows at most so many rows of so many samples; with `keys` from the terminal at stdin.
    pub(super) fn new(
        context: &'a Context,
        layout: Layout,
        (most, least): (Option<usize>, Option<u64>),
        keys: bool,
    ) -> Self {
        Self {
            context,
            layout,
            most,
            least,
            table: 0,
            keys: keys.then(|| KeyInput::begin(&io::stdin()).ok()).flatten(),
            waits_for: Waits::Key,
        }
    }

    /// Shows interval after interval; returns the signal that ended it, if one did.
    pub(super) fn run(
        mut self,
        session: &mut Session,
        intervals: Option<u64>,
    ) -> Result<Option<i32>, CliError> {
        let mut left = intervals;
        self.draw(session)?;
        while left != Some(0) {
            let input = self.keys.as_ref().map(std::os::fd::AsFd::as_fd);
            match session.step(input, None)? {
                Step::Signal(signal) => return Ok(Some(signal)),
                Step::Idle => {}
                Step::Refreshed => {
                    if self.waits_for == Waits::Key {
                        self.draw(session)?;
                    }
                    left = left.map(|left| left - 1);
                }
                Step::Input => {
                    let pressed = self.keys.as_ref().map(KeyInput::pressed);
                    let pressed = pressed.and_then(Result::ok).unwrap_or_default();
                    if pressed.is_empty() {
                        // The terminal's end: there are no more keys, and the screen goes on.
                        self.keys = None;
                    }
                    for byte in pressed {
                        if self.press(byte, session)? {
                            return Ok(None);
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Shows the last interval.
    fn draw(&self, session: &Session) -> io::Result<()> {
        let out = &mut self.context.stdout();
        let (height, columns) = self.size();
        writeln!(out, "{CLEAR}")?;
        session.status(self.table, |status| {
            write_cut(out, &status.to_string(), columns)
        })?;
        writeln!(out, "{}", "-".repeat(columns.saturating_sub(1)))?;
        let mut lost = 0;
        if session.interval().losses > 0 {
            write_cut(out, &format!("WARNING: {LOST}"), columns.saturating_sub(1))?;
            lost = 1;
        }
        out.write_all(b"\n")?;
        let room = Room {
            rows: self.entries().saturating_sub(lost),
            samples: self.least.unwrap_or_default(),
            screen: Some((
                height.saturating_sub(AROUND + lost),
                columns.saturating_sub(1),
            )),
        };
        if let Some((_, table)) = session.table(self.table) {
            let histogram = table.histogram();
            if histogram.rows.is_empty() {
                let text = format!("   {}", session.why_empty());
                write_cut(out, &text, columns.saturating_sub(1))?;
            }
            write_first_rows(out, histogram, &self.layout, room)?;
        }
        out.flush()
    }

    /// Does what a key asks for; whether that was to end.
    fn press(&mut self, byte: u8, session: &mut Session) -> io::Result<bool> {
        match std::mem::replace(&mut self.waits_for, Waits::Key) {
            Waits::Number(asked, digits) => self.type_number(byte, asked, digits, session)?,
            Waits::Key if Key::of(byte, session.tables()).is_none() => {
                let menu = self.menu(session);
                self.say(&menu)?;
                self.waits_for = Waits::Selection;
            }
            Waits::Key | Waits::Selection => {
                let key = Key::of(byte, session.tables());
                return self.obey(key, session);
            }
        }
        Ok(false)
    }

    fn obey(&mut self, key: Option<Key>, session: &mut Session) -> io::Result<bool> {
        let hidden = session.live.hidden_mut();
        match key {
            Some(Key::Quit) => return Ok(true),
            Some(Key::Ask(asked)) => {
                self.say(&format!("\n{}: ", asked.prompt()))?;
                self.waits_for = Waits::Number(asked, String::new());
                return Ok(false);
            }
            Some(Key::NextEvent) => self.table = (self.table + 1) % session.tables().max(1),
            Some(Key::HideKernel) => hidden.kernel = !hidden.kernel,
            Some(Key::HideUser) => hidden.user = !hidden.user,
            Some(Key::Zero) => {
                session.zero = !session.zero;
                self.say(&format!(
                    "\nSample zeroing {}.\n",
                    if session.zero { "on" } else { "off" }
                ))?;
            }
            None => {}
        }
        self.draw(session)?;
        Ok(false)
    }

    /// A key of a number; ENTER ends it, ESC leaves all as it is.
    fn type_number(
        &mut self,
        byte: u8,
        asked: Asked,
        mut digits: String,
        session: &mut Session,
    ) -> io::Result<()> {
        const ESCAPE: u8 = 27;
        const ERASE: [u8; 2] = [8, 127];
        match byte {
            b'\r' | b'\n' => {
                if let Ok(number) = digits.parse() {
                    self.set(asked, number, session);
                }
                return self.draw(session);
            }
            ESCAPE => return self.draw(session),
            digit if digit.is_ascii_digit() => {
                digits.push(char::from(digit));
                self.say(&char::from(digit).to_string())?;
            }
            erase if ERASE.contains(&erase) && digits.pop().is_some() => self.say("\x08 \x08")?,
            _ => {}
        }
        self.waits_for = Waits::Number(asked, digits);
        Ok(())
    }

    fn set(&mut self, asked: Asked, number: u64, session: &mut Session) {
        match asked {
            Asked::Delay => {
                session.delay = Duration::from_secs(number.clamp(1, 1_000_000));
                session.hurry();
            }
            // 0: as many as there is room for.
            Asked::Entries => self.most = usize::try_from(number).ok().filter(|rows| *rows > 0),
            Asked::Count => self.least = Some(number),
        }
    }

    fn menu(&self, session: &Session) -> String {
        let name = session.table(self.table).map(|(name, _)| name);
        let hidden = session.live.hidden();
        let menu = Menu {
            delay: session.delay.as_secs_f64(),
            entries: self.entries(),
            event: name.as_deref().filter(|_| session.tables() > 1),
            count: self.least.unwrap_or(COUNT),
            hides_kernel: hidden.kernel,
            hides_user: hidden.user,
            zero: session.zero,
            own_cost: session.interval().own_cost,
        };
        menu.text()
    }

    fn entries(&self) -> usize {
        let fit = self.size().0.saturating_sub(AROUND);
        self.most.unwrap_or(fit).max(1)
    }

    fn size(&self) -> (usize, usize) {
        let of_output = self.context.output.window_size();
        of_output.unwrap_or(USUAL_SIZE)
    }

    fn say(&self, text: &str) -> io::Result<()> {
        let out = &mut self.context.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
