//! Key handling in annotated code.

use crossterm::event::{KeyCode, KeyEvent};
use rperf_disasm::{Arrow, BranchTarget};

use super::help::KEYS;
use super::rows::RowContent;
use super::screen::{AnnotateScreen, ShownLabels};
use crate::list::{BACKWARDS, FORWARDS};
use crate::popup::{Help, Prompt};
use crate::report::{BrowserRequest, ReaderMessage};
use crate::screen::{InputResult, Reply};

/// Columns per horizontal scroll step.
const SHIFT: usize = 8;

// Arguments of `go_to_hot`.
const COLDER: bool = false;
const HOTTER: bool = true;

impl AnnotateScreen {
    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> InputResult<ReaderMessage> {
        self.notice = None;
        if self.list.key(key) {
            return InputResult::Changed;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => InputResult::Close(Reply::Cancelled),
            KeyCode::Left if self.left == 0 => InputResult::Close(Reply::Cancelled),
            KeyCode::Left => self.scroll(self.left.saturating_sub(SHIFT)),
            KeyCode::Right => self.scroll(self.left + SHIFT),
            KeyCode::Enter => self.enter(),
            KeyCode::Tab => self.go_to_hot(COLDER),
            KeyCode::BackTab => self.go_to_hot(HOTTER),
            KeyCode::Char('h') | KeyCode::F(1) => {
                InputResult::Push(Box::new(Help::new("Keys", KEYS)))
            }
            KeyCode::Char('/') => self.prompt_search(FORWARDS),
            KeyCode::Char('?') => self.prompt_search(BACKWARDS),
            KeyCode::Char('n') => self.find(self.search.backwards),
            KeyCode::Char('N') => self.find(!self.search.backwards),
            // Another function with a higher or lower period; TAB and BACKTAB stay in this function.
            KeyCode::Char('<') => self.request(BrowserRequest::Hotter(self.shown.key())),
            KeyCode::Char('>') => self.request(BrowserRequest::Colder(self.shown.key())),
            KeyCode::Char('r') => {
                self.request(BrowserRequest::Samples(Some(self.shown_function())))
            }
            KeyCode::Char('P') => {
                let name = self.shown.code.name.clone();
                self.request(BrowserRequest::SaveFunction(name, self.text()))
            }
            KeyCode::Char(letter) => self.letter(letter),
            _ => InputResult::Unchanged,
        }
    }

    /// Handles the letters that change how the function is shown, move the cursor, or (`l`) show the source location.
    fn letter(&mut self, letter: char) -> InputResult<ReaderMessage> {
        let looks = &mut self.looks;
        match letter {
            'H' => match self.hottest.first() {
                Some(hottest) => self.go_to(*hottest),
                None => self.notice = Some("This function has no samples".to_owned()),
            },
            'j' => looks.arrows = !looks.arrows,
            'J' => looks.jump_counts = !looks.jump_counts,
            // The address of every instruction, instead of labels only.
            'o' => looks.addresses = !looks.addresses,
            // Labels are addresses in memory, instead of offsets in the function (or, with `o`, addresses in the object).
            'f' => looks.in_memory = !looks.in_memory,
            'k' => looks.line_numbers = !looks.line_numbers,
            'O' => {
                looks.labels = match looks.labels {
                    ShownLabels::Targets => ShownLabels::Calls,
                    ShownLabels::Calls => ShownLabels::All,
                    ShownLabels::All => ShownLabels::Targets,
                }
            }
            's' => {
                looks.split = false;
                self.options.source = !self.options.source;
                self.lay_out();
            }
            'S' | 'v' => {
                looks.split = !looks.split;
                self.lay_out();
            }
            'l' => {
                let unknown = || "The source line of this instruction is unknown".to_owned();
                self.notice = Some(self.location().unwrap_or_else(unknown));
            }
            't' => self.column_options.next_column(),
            // Percentages of the event's total (global), or of the function's.
            'p' => {
                self.column_options.global = !self.column_options.global;
                // Recomputes the hottest instructions, whose order depends on the options.
                self.measure();
            }
            'b' => {
                self.column_options.by_samples = !self.column_options.by_samples;
                self.measure();
            }
            _ => return InputResult::Unchanged,
        }
        InputResult::Changed
    }

    fn scroll(&mut self, left: usize) -> InputResult<ReaderMessage> {
        self.left = left;
        InputResult::Changed
    }

    /// Moves to the next colder instruction that has samples, or to the next hotter one if `hotter`; wraps around at the ends.
    /// Moves to the hottest instruction if the cursor is at an instruction without samples.
    fn go_to_hot(&mut self, hotter: bool) -> InputResult<ReaderMessage> {
        let count = self.hottest.len();
        if count == 0 {
            return InputResult::Unchanged;
        }
        let here = self.instruction();
        let place = self.hottest.iter().position(|hot| Some(*hot) == here);
        let next = match (place, hotter) {
            (None, _) => 0,
            (Some(place), false) => (place + 1) % count,
            (Some(place), true) => (place + count - 1) % count,
        };
        if let Some(instruction) = self.hottest.get(next).copied() {
            self.go_to(instruction);
        }
        InputResult::Changed
    }

    /// Follows the jump or call at the cursor; closes the screen at a return.
    pub(super) fn enter(&mut self) -> InputResult<ReaderMessage> {
        let row = self.list.cursor().and_then(|row| self.rows.get(row));
        let row = row.filter(|row| row.kind == RowContent::Code);
        let instruction = row.and_then(|row| self.shown.code.instructions.get(row.instruction));
        let Some(instruction) = instruction else {
            return self.show_message("Only instructions can be followed.");
        };
        match (instruction.target, instruction.arrow) {
            (Some(BranchTarget::Within(target)), _) => {
                self.go_to(target);
                InputResult::Changed
            }
            (Some(BranchTarget::To(address)), _) => {
                self.request(BrowserRequest::Follow(self.shown.key(), address))
            }
            // A return.
            (None, Some(Arrow::Back)) => InputResult::Close(Reply::Cancelled),
            (None, Some(_)) => {
                self.show_message("The target of this instruction is only known at run time.")
            }
            (None, None) => {
                self.show_message("This instruction is not a jump, a call or a return.")
            }
        }
    }

    fn show_message(&mut self, text: &str) -> InputResult<ReaderMessage> {
        self.notice = Some(text.to_owned());
        InputResult::Changed
    }

    fn prompt_search(&mut self, backwards: bool) -> InputResult<ReaderMessage> {
        self.search.backwards = backwards;
        let title = if backwards {
            "Search upwards"
        } else {
            "Search"
        };
        InputResult::Push(Box::new(Prompt::new(title, "Text to search for", "")))
    }

    /// Moves to the next line, or the previous one if `backwards`, that contains the search text.
    pub(super) fn find(&mut self, backwards: bool) -> InputResult<ReaderMessage> {
        if self.search.text.is_empty() {
            return InputResult::Changed;
        }
        let fits = |row: usize| self.line_text(row).contains(&self.search.text);
        match self.list.find(backwards, fits) {
            Some(row) => self.list.center(row),
            None => return self.show_message(&format!("'{}' not found", self.search.text)),
        }
        InputResult::Changed
    }
}
