//! What keys do in annotated code.

use crossterm::event::{KeyCode, KeyEvent};
use rperf_disasm::{Arrow, Goes};

use super::help::KEYS;
use super::rows::Kind;
use super::screen::{AnnotateScreen, Offsets};
use crate::popup::{Help, Prompt};
use crate::report::{News, Request};
use crate::screen::{Answer, Reply};

/// Characters that a step sideways goes.
const SHIFT: usize = 8;

impl AnnotateScreen {
    /// A key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer<News> {
        self.said = None;
        if self.list.key(key) {
            return Answer::Changed;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => Answer::Leave(Reply::Cancelled),
            KeyCode::Left if self.left == 0 => Answer::Leave(Reply::Cancelled),
            KeyCode::Left => self.scroll(self.left.saturating_sub(SHIFT)),
            KeyCode::Right => self.scroll(self.left + SHIFT),
            KeyCode::Enter => self.enter(),
            KeyCode::Tab => self.turn(false),
            KeyCode::BackTab => self.turn(true),
            KeyCode::Char('h') | KeyCode::F(1) => Answer::Push(Box::new(Help::new("Keys", KEYS))),
            KeyCode::Char('/') => self.ask(false),
            KeyCode::Char('?') => self.ask(true),
            KeyCode::Char('n') => self.find(self.search.backwards),
            KeyCode::Char('N') => self.find(!self.search.backwards),
            KeyCode::Char('<') => self.request(Request::Hotter(self.shown.seen())),
            KeyCode::Char('>') => self.request(Request::Colder(self.shown.seen())),
            KeyCode::Char('r') => self.request(Request::Samples(Some(self.place()))),
            KeyCode::Char('P') => {
                let name = self.shown.code.name.clone();
                self.request(Request::SaveFunction(name, self.text()))
            }
            KeyCode::Char(letter) => self.letter(letter),
            _ => Answer::Same,
        }
    }

    /// The letters that change what is seen.
    fn letter(&mut self, letter: char) -> Answer<News> {
        let looks = &mut self.looks;
        match letter {
            'H' => match self.hottest.first() {
                Some(hottest) => self.go_to(*hottest),
                None => self.said = Some("No samples fell on this function".to_owned()),
            },
            'j' => looks.arrows = !looks.arrows,
            'J' => looks.sources = !looks.sources,
            'o' => looks.addresses = !looks.addresses,
            'f' => looks.in_memory = !looks.in_memory,
            'k' => looks.numbers = !looks.numbers,
            'O' => {
                looks.offsets = match looks.offsets {
                    Offsets::Targets => Offsets::Calls,
                    Offsets::Calls => Offsets::All,
                    Offsets::All => Offsets::Targets,
                }
            }
            's' => {
                self.options.source = !self.options.source;
                self.looks.split = false;
                self.lay_out();
            }
            'S' | 'v' => {
                looks.split = !looks.split;
                self.lay_out();
            }
            'l' => {
                let unknown = || "No line of the source is known here".to_owned();
                self.said = Some(self.location().unwrap_or_else(unknown));
            }
            't' => self.values.turn(),
            'p' => self.values.global = !self.values.global,
            'b' => self.values.by_samples = !self.values.by_samples,
            _ => return Answer::Same,
        }
        if matches!(letter, 'p' | 'b') {
            self.measure();
        }
        Answer::Changed
    }

    fn scroll(&mut self, left: usize) -> Answer<News> {
        self.left = left;
        Answer::Changed
    }

    /// The instruction that is next in heat.
    fn turn(&mut self, hotter: bool) -> Answer<News> {
        let count = self.hottest.len();
        if count == 0 {
            return Answer::Same;
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
        Answer::Changed
    }

    /// Goes where the instruction at the cursor goes.
    pub(super) fn enter(&mut self) -> Answer<News> {
        let row = self.list.cursor().and_then(|row| self.rows.get(row));
        let row = row.filter(|row| row.kind == Kind::Code);
        let found = row.and_then(|row| self.shown.code.instructions.get(row.instruction));
        let Some(found) = found else {
            return self.say("Actions are only available for assembly lines.");
        };
        match (found.goes, found.arrow) {
            (Some(Goes::Within(target)), _) => {
                self.go_to(target);
                Answer::Changed
            }
            (Some(Goes::To(address)), _) => {
                self.request(Request::Follow(self.shown.seen(), address))
            }
            (None, Some(Arrow::Back)) => Answer::Leave(Reply::Cancelled),
            (None, Some(_)) => self.say("Where this goes is known at run time only."),
            (None, None) => self.say(
                "Actions are only available for function call/return & jump/branch instructions.",
            ),
        }
    }

    fn say(&mut self, text: &str) -> Answer<News> {
        self.said = Some(text.to_owned());
        Answer::Changed
    }

    fn ask(&mut self, backwards: bool) -> Answer<News> {
        self.search.backwards = backwards;
        let title = if backwards {
            "Search upwards"
        } else {
            "Search"
        };
        Answer::Push(Box::new(Prompt::new(title, "Text to look for", "")))
    }

    /// Goes to the next line with the text that was looked for.
    pub(super) fn find(&mut self, backwards: bool) -> Answer<News> {
        if self.search.text.is_empty() {
            return Answer::Changed;
        }
        let fits = |row: usize| self.words(row).contains(&self.search.text);
        match self.list.find(backwards, fits) {
            Some(row) => self.list.center(row),
            None => return self.say(&format!("'{}' not found", self.search.text)),
        }
        Answer::Changed
    }
}
