//! The text screen on a terminal, in the layout of `perf top --stdio`.

use std::io::{self, Write};
use std::time::Duration;

use rperf_hist::WatchedFunction;
use rperf_sys::KeyInput;
use rperf_view::annotate::expand_tabs;
use rperf_view::report::ReportLayout;
use rperf_view::terminal::Csi;
use rperf_view::top::{RowLimits, write_first_rows, write_truncated};

use super::LOST;
use super::RowBounds;
use super::code::LiveCode;
use super::keys::{KeyAction, KeyMenu, PromptedValue};
use super::session::{StepEnd, TopSession};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Lines other than rows: the four above them, and that of the cursor below.
const OTHER_LINES: usize = 5;
/// Lines and columns of a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (25, 80);
/// The minimum number of samples of a row (perf's `count filter`) that the menu shows if none is given. As in perf, this default
/// is only shown: unless a minimum is given, no rows are hidden.
const DEFAULT_COUNT: u64 = 5;
/// The default minimum percentage of an annotated instruction, as in perf.
pub(super) const DEFAULT_PERCENT: u8 = 5;

/// For lines without colours.
const NO_COLORS: Option<Csi> = None;

/// The screen's state, which keys change.
pub(super) struct TopScreen<'a> {
    context: &'a Context,
    layout: ReportLayout,
    /// Maximum number of rows, if given.
    max_rows: Option<usize>,
    /// Minimum number of samples of a row, if given.
    min_samples: Option<u64>,
    /// The function that is annotated instead of showing rows.
    symbol: Option<String>,
    /// The minimum percentage of shown instructions of that function.
    percent: u8,
    code: LiveCode,
    /// The index of the table that is shown: one table for each event or, with `--group`, one for all.
    table: usize,
    keys: Option<KeyInput>,
    key_mode: KeyMode,
    /// The effect of the last key, shown until the screen is drawn again.
    notice: &'static str,
}

/// The interpretation of the next key. Refreshed rows are drawn in mode `Key` only, so that the menu and prompts stay visible.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyMode {
    /// As a command.
    Key,
    /// As a selection from the menu.
    Selection,
    /// As the next character of a number or a name, with the text typed so far.
    Text(PromptedValue, String),
}

impl<'a> TopScreen<'a> {
    /// Creates a screen whose rows are limited by `bounds`. If `reads_keys`, it reads keys from the terminal at stdin.
    pub(super) fn new(
        context: &'a Context,
        layout: ReportLayout,
        code: LiveCode,
        bounds: RowBounds,
        reads_keys: bool,
    ) -> Self {
        Self {
            context,
            layout,
            max_rows: bounds.max_rows,
            min_samples: bounds.min_samples,
            symbol: None,
            percent: DEFAULT_PERCENT,
            code,
            table: 0,
            keys: reads_keys
                .then(|| KeyInput::begin(&io::stdin()).ok())
                .flatten(),
            key_mode: KeyMode::Key,
            notice: "",
        }
    }

    /// Shows one interval after the other; returns the signal that ended it, if any.
    pub(super) fn run(
        mut self,
        session: &mut TopSession,
        intervals: Option<u64>,
    ) -> Result<Option<i32>, CliError> {
        let no_timeout = None;
        let mut left = intervals;
        self.draw(session)?;
        while left != Some(0) {
            let input = self.keys.as_ref().map(std::os::fd::AsFd::as_fd);
            match session.step(input, no_timeout)? {
                StepEnd::Signal(signal) => return Ok(Some(signal)),
                StepEnd::Idle => {}
                StepEnd::Refreshed => {
                    if self.key_mode == KeyMode::Key {
                        self.draw(session)?;
                    }
                    left = left.map(|left| left - 1);
                }
                StepEnd::Input => {
                    let pressed = self.keys.as_ref().map(KeyInput::pressed);
                    let pressed = pressed.and_then(Result::ok).unwrap_or_default();
                    if pressed.is_empty() {
                        // End of input: the screen continues without keys.
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
    fn draw(&mut self, session: &mut TopSession) -> io::Result<()> {
        let out = &mut self.context.stdout();
        let (height, columns) = self.size();
        out.clear()?;
        out.write_all(b"\n")?;
        session.status(self.table, |status| {
            write_truncated(out, &status.to_string(), columns, NO_COLORS)
        })?;
        writeln!(out, "{}", "-".repeat(columns.saturating_sub(1)))?;
        let mut warning_lines = 0;
        if session.interval().has_losses() {
            let line = format!("WARNING: {LOST}");
            write_truncated(out, &line, columns.saturating_sub(1), NO_COLORS)?;
            warning_lines = 1;
        }
        writeln!(out, "{}", std::mem::take(&mut self.notice))?;
        let lines = height.saturating_sub(OTHER_LINES + warning_lines);
        let limits = RowLimits {
            // As in perf, the warning takes the place of a row, even if a maximum is given.
            max_rows: self.entries().saturating_sub(warning_lines),
            min_samples: self.min_samples.unwrap_or_default(),
            screen: Some((lines, columns.saturating_sub(1))),
        };
        if self.symbol.is_some() {
            self.draw_code(out, session, lines, columns)?;
        } else if let Some((_, table)) = session.table(self.table) {
            let histogram = table.histogram();
            if histogram.rows.is_empty() {
                let text = format!("   {}", session.why_empty());
                write_truncated(out, &text, columns.saturating_sub(1), NO_COLORS)?;
            }
            write_first_rows(out, histogram, &self.layout, limits)?;
        }
        out.flush()
    }

    /// Shows the annotated function, as far as it fits.
    fn draw_code(
        &mut self,
        out: &mut dyn Write,
        session: &mut TopSession,
        lines: usize,
        columns: usize,
    ) -> io::Result<()> {
        let mut text = Vec::new();
        self.code
            .write(&mut text, session, self.table, self.percent)?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().take(lines);
        lines.try_for_each(|line| {
            write_truncated(
                out,
                &expand_tabs(line),
                columns.saturating_sub(1),
                NO_COLORS,
            )
        })
    }

    /// Handles a key; returns whether the key quits. A key without an action shows the menu; in the menu, it closes the menu.
    fn press(&mut self, byte: u8, session: &mut TopSession) -> io::Result<bool> {
        match std::mem::replace(&mut self.key_mode, KeyMode::Key) {
            KeyMode::Text(prompted, typed) => self.type_text(byte, prompted, typed, session)?,
            KeyMode::Key if KeyAction::of(byte, session.table_count()).is_none() => {
                let menu = self.menu(session);
                self.show_message(&menu)?;
                self.key_mode = KeyMode::Selection;
            }
            KeyMode::Key | KeyMode::Selection => {
                let key = KeyAction::of(byte, session.table_count());
                return self.handle_key(key, session);
            }
        }
        Ok(false)
    }

    /// Performs the action of a key and draws the screen, unless a prompt follows; returns whether the key quits.
    fn handle_key(&mut self, key: Option<KeyAction>, session: &mut TopSession) -> io::Result<bool> {
        let hidden = session.live.hidden_mut();
        match key {
            Some(KeyAction::Quit) => return Ok(true),
            Some(KeyAction::Ask(prompted)) => {
                self.show_message(&format!("\n{}: ", prompted.prompt()))?;
                self.key_mode = KeyMode::Text(prompted, String::new());
                return Ok(false);
            }
            Some(KeyAction::NextEvent) => {
                self.table = (self.table + 1) % session.table_count().max(1)
            }
            Some(KeyAction::HideKernel) => hidden.kernel = !hidden.kernel,
            Some(KeyAction::HideUser) => hidden.user = !hidden.user,
            Some(KeyAction::StopAnnotation) => self.show_code(None, session),
            Some(KeyAction::Zero) => {
                session.zero = !session.zero;
                self.notice = match session.zero {
                    true => "Sample zeroing on.",
                    false => "Sample zeroing off.",
                };
            }
            None => {}
        }
        self.draw(session)?;
        Ok(false)
    }

    /// Handles a key of a prompt; ENTER accepts the text, ESC cancels.
    fn type_text(
        &mut self,
        byte: u8,
        prompted: PromptedValue,
        mut typed: String,
        session: &mut TopSession,
    ) -> io::Result<()> {
        const ESCAPE: u8 = 27;
        const ERASE: [u8; 2] = [8, 127];
        let takes = |byte: u8| match prompted {
            PromptedValue::Symbol => byte.is_ascii_graphic() || byte == b' ',
            _ => byte.is_ascii_digit(),
        };
        match byte {
            b'\r' | b'\n' => {
                self.set(prompted, &typed, session);
                return self.draw(session);
            }
            ESCAPE => return self.draw(session),
            byte if takes(byte) => {
                typed.push(char::from(byte));
                self.show_message(&char::from(byte).to_string())?;
            }
            byte if ERASE.contains(&byte) => self.erase_last(&mut typed)?,
            _ => {}
        }
        self.key_mode = KeyMode::Text(prompted, typed);
        Ok(())
    }

    /// Removes the last character of the typed text, if there is one, also from the screen.
    fn erase_last(&self, typed: &mut String) -> io::Result<()> {
        if typed.pop().is_none() {
            return Ok(());
        }
        // Moves left (ECMA-48: CUB), overwrites the character, and moves left again.
        let csi = self.context.output.csi();
        self.show_message(&format!("{csi}D {csi}D"))
    }

    /// Sets the value that was prompted for. Text that is not a number changes no number.
    fn set(&mut self, prompted: PromptedValue, typed: &str, session: &mut TopSession) {
        if prompted == PromptedValue::Symbol {
            self.show_code((!typed.is_empty()).then_some(typed), session);
            return session.refresh_now();
        }
        let Ok(number) = typed.parse::<u64>() else {
            return;
        };
        match prompted {
            PromptedValue::Delay => {
                session.delay = Duration::from_secs(number.clamp(1, 1_000_000));
                session.refresh_now();
            }
            // 0: as many as fit.
            PromptedValue::Entries => {
                self.max_rows = usize::try_from(number).ok().filter(|rows| *rows > 0)
            }
            PromptedValue::Count => self.min_samples = Some(number),
            PromptedValue::Percent => {
                self.percent = u8::try_from(number.min(100)).unwrap_or(self.percent)
            }
            // Handled above.
            PromptedValue::Symbol => {}
        }
    }

    /// Annotates the function `symbol` instead of showing rows; if `None`, shows rows again.
    pub(super) fn show_code(&mut self, symbol: Option<&str>, session: &mut TopSession) {
        session.live.watched_mut().clear();
        self.symbol = symbol.map(str::to_owned);
        if let Some(symbol) = symbol {
            let any_object = None;
            session.watch(WatchedFunction::named(symbol, any_object));
        }
    }

    fn menu(&self, session: &TopSession) -> String {
        let name = session.table(self.table).map(|(name, _)| name);
        let hidden = session.live.hidden();
        let menu = KeyMenu {
            delay: session.delay.as_secs_f64(),
            entries: self.entries(),
            event: name.as_deref().filter(|_| session.table_count() > 1),
            min_samples: self.min_samples.unwrap_or(DEFAULT_COUNT),
            min_percent: self.percent,
            symbol: self.symbol.as_deref(),
            hides_kernel: hidden.kernel,
            hides_user: hidden.user,
            zero: session.zero,
            own_cpu: session.interval().own_cpu,
        };
        menu.text()
    }

    /// The maximum number of rows (perf's `display entries`): as given, otherwise as many as fit.
    fn entries(&self) -> usize {
        let fit = self.size().0.saturating_sub(OTHER_LINES);
        self.max_rows.unwrap_or(fit).max(1)
    }

    /// The lines and columns of the terminal.
    fn size(&self) -> (usize, usize) {
        let of_output = self.context.output.window_size();
        of_output.unwrap_or(DEFAULT_SIZE)
    }

    fn show_message(&self, text: &str) -> io::Result<()> {
        let out = &mut self.context.stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
