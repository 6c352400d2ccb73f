//! A screen of text on a terminal, in the layout of `perf top --stdio`.

use std::io::{self, Write};
use std::time::Duration;

use rperf_hist::Watched;
use rperf_sys::KeyInput;
use rperf_view::annotate::spaced;
use rperf_view::report::Layout;
use rperf_view::top::{Room, write_cut, write_first_rows};

use super::LOST;
use super::code::LiveCode;
use super::keys::{Asked, Key, Menu};
use super::session::{Session, Step};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Lines around the rows.
const AROUND: usize = 5;
/// A terminal that does not tell its size.
const USUAL_SIZE: (usize, usize) = (25, 80);
/// What perf shows for the least samples of a row where nothing is said; without effect there.
const COUNT: u64 = 5;
/// The share that an annotated instruction needs where nothing is said, in percent, as in perf.
pub(super) const PERCENT: u8 = 5;

/// What is shown, and what keys have made of it.
pub(super) struct Screen<'a> {
    context: &'a Context,
    layout: Layout,
    /// Most rows, if that was said.
    most: Option<usize>,
    /// Samples that a row needs, if that was said.
    least: Option<u64>,
    /// The function that is shown in place of rows.
    symbol: Option<String>,
    /// The share that its instructions need, in percent.
    percent: u8,
    code: LiveCode,
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
    /// A number or a name, of which this was typed.
    Text(Asked, String),
}

impl<'a> Screen<'a> {
    /// Shows at most so many rows of so many samples; with `keys` from the terminal at stdin.
    pub(super) fn new(
        context: &'a Context,
        (layout, code): (Layout, LiveCode),
        (most, least): (Option<usize>, Option<u64>),
        keys: bool,
    ) -> Self {
        Self {
            context,
            layout,
            most,
            least,
            symbol: None,
            percent: PERCENT,
            code,
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
    fn draw(&mut self, session: &mut Session) -> io::Result<()> {
        let out = &mut self.context.stdout();
        let (height, columns) = self.size();
        out.clear()?;
        out.write_all(b"\n")?;
        session.status(self.table, |status| {
            write_cut(out, &status.to_string(), columns, None)
        })?;
        writeln!(out, "{}", "-".repeat(columns.saturating_sub(1)))?;
        let mut lost = 0;
        if session.interval().losses > 0 {
            let line = format!("WARNING: {LOST}");
            write_cut(out, &line, columns.saturating_sub(1), None)?;
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
        if self.symbol.is_some() {
            self.draw_code(
                out,
                session,
                (height.saturating_sub(AROUND + lost), columns),
            )?;
        } else if let Some((_, table)) = session.table(self.table) {
            let histogram = table.histogram();
            if histogram.rows.is_empty() {
                let text = format!("   {}", session.why_empty());
                write_cut(out, &text, columns.saturating_sub(1), None)?;
            }
            write_first_rows(out, histogram, &self.layout, room)?;
        }
        out.flush()
    }

    /// Shows the function that was asked for, as far as it fits.
    fn draw_code(
        &mut self,
        out: &mut dyn Write,
        session: &mut Session,
        (lines, columns): (usize, usize),
    ) -> io::Result<()> {
        let mut text = Vec::new();
        self.code
            .write(&mut text, session, (self.table, self.percent))?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().take(lines);
        lines.try_for_each(|line| write_cut(out, &spaced(line), columns.saturating_sub(1), None))
    }

    /// Does what a key asks for; whether that was to end.
    fn press(&mut self, byte: u8, session: &mut Session) -> io::Result<bool> {
        match std::mem::replace(&mut self.waits_for, Waits::Key) {
            Waits::Text(asked, typed) => self.type_text(byte, asked, typed, session)?,
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
                self.waits_for = Waits::Text(asked, String::new());
                return Ok(false);
            }
            Some(Key::NextEvent) => self.table = (self.table + 1) % session.tables().max(1),
            Some(Key::HideKernel) => hidden.kernel = !hidden.kernel,
            Some(Key::HideUser) => hidden.user = !hidden.user,
            Some(Key::StopCode) => self.show_code(None, session),
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

    /// A key of a number or a name; ENTER ends it, ESC leaves all as it is.
    fn type_text(
        &mut self,
        byte: u8,
        asked: Asked,
        mut typed: String,
        session: &mut Session,
    ) -> io::Result<()> {
        const ESCAPE: u8 = 27;
        const ERASE: [u8; 2] = [8, 127];
        let takes = |byte: u8| match asked {
            Asked::Symbol => byte.is_ascii_graphic() || byte == b' ',
            _ => byte.is_ascii_digit(),
        };
        match byte {
            b'\r' | b'\n' => {
                self.set(asked, &typed, session);
                return self.draw(session);
            }
            ESCAPE => return self.draw(session),
            byte if takes(byte) => {
                typed.push(char::from(byte));
                self.say(&char::from(byte).to_string())?;
            }
            erase if ERASE.contains(&erase) && typed.pop().is_some() => {
                // One to the left (ECMA-48: CUB), over the letter, and back.
                let csi = self.context.output.csi();
                self.say(&format!("{csi}D {csi}D"))?;
            }
            _ => {}
        }
        self.waits_for = Waits::Text(asked, typed);
        Ok(())
    }

    fn set(&mut self, asked: Asked, typed: &str, session: &mut Session) {
        if asked == Asked::Symbol {
            return self.show_code((!typed.is_empty()).then_some(typed), session);
        }
        let Ok(number) = typed.parse::<u64>() else {
            return;
        };
        match asked {
            Asked::Delay => {
                session.delay = Duration::from_secs(number.clamp(1, 1_000_000));
                session.hurry();
            }
            // 0: as many as there is room for.
            Asked::Entries => self.most = usize::try_from(number).ok().filter(|rows| *rows > 0),
            Asked::Count => self.least = Some(number),
            Asked::Percent => self.percent = u8::try_from(number.min(100)).unwrap_or(self.percent),
            Asked::Symbol => {}
        }
    }

    /// Shows a function in place of rows, or rows again.
    pub(super) fn show_code(&mut self, symbol: Option<&str>, session: &mut Session) {
        session.live.watched_mut().clear();
        self.symbol = symbol.map(str::to_owned);
        if let Some(symbol) = symbol {
            session.watch(Watched::named(symbol, None));
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
            percent: self.percent,
            symbol: self.symbol.as_deref(),
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
