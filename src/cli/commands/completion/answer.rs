//! What may take the place of the word that is being typed.

use std::ffi::OsString;
use std::fmt;

use clap::Command;

use super::{options, values, words};
use crate::cli::argv::{self, Cursor};
use crate::cli::commands::{COMMANDS, Entry, PARTS, part};
use crate::cli::context::Context;
use crate::cli::globals;

/// A word with its meaning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) meaning: String,
}

impl Candidate {
    pub(super) fn new(word: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self {
            word: word.into(),
            meaning: meaning.into(),
        }
    }
}

/// What the shell adds to the candidates.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// Nothing.
    #[default]
    None,
    /// Files; their names begin after this part of the word.
    Files(String),
    /// Directories, likewise.
    Directories(String),
    /// What completes the command line that begins with the word of this index; 0 is the program's name.
    Command(usize),
}

/// What may take the place of a word. The shell leaves out the candidates that do not match what is typed.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) source: Source,
    pub(super) candidates: Vec<Candidate>,
}

impl From<Source> for Answer {
    fn from(source: Source) -> Self {
        Self {
            source,
            candidates: Vec::new(),
        }
    }
}

impl From<Vec<Candidate>> for Answer {
    fn from(candidates: Vec<Candidate>) -> Self {
        Self {
            source: Source::None,
            candidates,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::None => writeln!(f, "none")?,
            Source::Files(prefix) => writeln!(f, "files {prefix}")?,
            Source::Directories(prefix) => writeln!(f, "directories {prefix}")?,
            Source::Command(first) => writeln!(f, "command {first}")?,
        }
        for Candidate { word, meaning } in &self.candidates {
            let meaning = meaning.lines().next().unwrap_or_default();
            writeln!(f, "{word}\t{meaning}")?;
        }
        Ok(())
    }
}

/// What may take the place of the last of `words`, the first of which is the program's name.
pub(super) fn answer(words: &[OsString], context: &Context) -> Answer {
    let program = globals::options();
    let own = words.get(1..).unwrap_or_default();
    match Cursor::find(&program, own) {
        Some(Cursor::Workload { first }) if first + 1 == own.len() => commands().into(),
        Some(Cursor::Workload { first }) => of_command(words, first + 1, context),
        Some(cursor) => {
            let line = Line {
                entry: None,
                command: &program,
                words: own,
            };
            line.answer(&cursor, context)
        }
        None => Answer::default(),
    }
}

/// The names of the commands.
pub(super) fn commands() -> Vec<Candidate> {
    let named = |entry: &Entry| Candidate::new(entry.name, entry.summary);
    COMMANDS.iter().map(named).collect()
}

/// The same where the word at `place` is the command.
fn of_command(words: &[OsString], place: usize, context: &Context) -> Answer {
    let (before, line) = words.split_at(place);
    let Some((name, own)) = line.split_first() else {
        return Answer::default();
    };
    let Some(entry) = COMMANDS.iter().find(|entry| name == entry.name) else {
        return Answer::default();
    };
    let mut line = Line {
        entry: Some(entry),
        command: &(entry.build)(),
        words: own,
    };
    let typed = own.len().saturating_sub(1);
    let word = argv::first_word(line.command, own.get(..typed).unwrap_or_default());
    let part = word.and_then(|at| Some((at, part(entry, own.get(at)?.to_str()?)?)));
    // As when it runs, the word that names a part is taken out.
    let (without, command);
    let mut taken_out = None;
    if let Some((at, part)) = part {
        command = (part.build)();
        let (before, behind) = own.split_at(at);
        without = [before, behind.get(1..).unwrap_or_default()].concat();
        line = Line {
            entry: Some(part),
            command: &command,
            words: &without,
        };
        taken_out = Some(at);
    }
    let Some(cursor) = Cursor::find(line.command, line.words) else {
        return Answer::default();
    };
    let mut answer = line.answer(&cursor, context);
    if let Source::Command(first) = &mut answer.source {
        let shift = usize::from(taken_out.is_some_and(|at| at <= *first));
        *first += before.len() + 1 + shift;
    }
    answer
}

/// A command with the words after it.
struct Line<'a> {
    /// `None` for the program itself.
    entry: Option<&'static Entry>,
    command: &'a Command,
    words: &'a [OsString],
}

impl Line<'_> {
    /// What may take the place of the last word, which is at `cursor`. Indices count from the first word.
    fn answer(&self, cursor: &Cursor<'_>, context: &Context) -> Answer {
        let name = self.entry.map_or("", |entry| entry.name);
        let typed = self.words.last().map(|word| word.to_string_lossy());
        let typed = typed.unwrap_or_default();
        match *cursor {
            // The options before the command have no negatives.
            Cursor::Option => {
                options::candidates(self.command, &typed, self.entry.is_some()).into()
            }
            Cursor::Value { arg, start } => {
                let (prefix, value) = typed.split_at_checked(start).unwrap_or_default();
                let place = values::Place {
                    command: name,
                    arg,
                    prefix,
                    value,
                };
                place.answer(context)
            }
            Cursor::Workload { first } if name == "script" => {
                words::of_script(self.words.get(first..).unwrap_or_default())
            }
            Cursor::Workload { first } => {
                let is_first = first + 1 == self.words.len();
                Answer {
                    source: Source::Command(first),
                    candidates: if is_first { parts(name) } else { Vec::new() },
                }
            }
            Cursor::Word { before } => words::of(name, before, &typed),
        }
    }
}

/// The words that name parts of a command.
fn parts(command: &str) -> Vec<Candidate> {
    let part = |entry: &Entry| {
        let word = entry.name.strip_prefix(command)?.strip_prefix(' ')?;
        Some(Candidate::new(word, entry.summary))
    };
    PARTS.iter().filter_map(part).collect()
}
