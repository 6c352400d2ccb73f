//! Candidates for the word that is being typed.

use std::ffi::OsString;
use std::fmt;

use clap::Command;

use super::{options, values, words};
use crate::cli::argv::{self, WordRole};
use crate::cli::commands::{COMMANDS, CommandEntry, SUBCOMMANDS, subcommand};
use crate::cli::context::Context;
use crate::cli::globals;

/// A word with its description.
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

/// Candidates that the shell adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum ShellCandidates {
    #[default]
    None,
    /// File names. The string is the part of the typed word before the name, such as `--output=`.
    Files(String),
    /// Directory names; the string is the same part of the typed word.
    Directories(String),
    /// Candidates for the command line of another program, which begins at the word with this index; 0 is this program's name.
    Command(usize),
}

/// The candidates for a word. The shell drops those that do not match the typed text.
#[derive(Debug, Default)]
pub(super) struct Completion {
    pub(super) from_shell: ShellCandidates,
    pub(super) candidates: Vec<Candidate>,
}

impl From<ShellCandidates> for Completion {
    fn from(from_shell: ShellCandidates) -> Self {
        Self {
            from_shell,
            candidates: Vec::new(),
        }
    }
}

impl From<Vec<Candidate>> for Completion {
    fn from(candidates: Vec<Candidate>) -> Self {
        Self {
            from_shell: ShellCandidates::None,
            candidates,
        }
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from_shell {
            ShellCandidates::None => writeln!(f, "none")?,
            ShellCandidates::Files(prefix) => writeln!(f, "files {prefix}")?,
            ShellCandidates::Directories(prefix) => writeln!(f, "directories {prefix}")?,
            ShellCandidates::Command(first) => writeln!(f, "command {first}")?,
        }
        for Candidate { word, meaning } in &self.candidates {
            let meaning = meaning.lines().next().unwrap_or_default();
            writeln!(f, "{word}\t{meaning}")?;
        }
        Ok(())
    }
}

/// Returns the candidates for the last of `words`; `words[0]` is the program's name.
pub(super) fn answer(words: &[OsString], context: &Context) -> Completion {
    let program = globals::options();
    let arguments = words.get(1..).unwrap_or_default();
    // `program` declares only the options before the command. To its parser, the command and the words after it are a workload.
    // `first` is the command's index in `arguments`; if no word follows, the command itself is being typed.
    match WordRole::find(&program, arguments) {
        Some(WordRole::Workload { first }) if first + 1 == arguments.len() => commands().into(),
        Some(WordRole::Workload { first }) => of_command(words, first + 1, context),
        Some(role) => {
            let line = CommandWords {
                entry: None,
                command: &program,
                words: arguments,
            };
            line.answer(&role, context)
        }
        None => Completion::default(),
    }
}

/// The names and summaries of the commands.
pub(super) fn commands() -> Vec<Candidate> {
    let named = |entry: &CommandEntry| Candidate::new(entry.name, entry.summary);
    COMMANDS.iter().map(named).collect()
}

/// The candidates for the last of `words` if the word at `position` is the command.
fn of_command(words: &[OsString], position: usize, context: &Context) -> Completion {
    let (before, line) = words.split_at(position);
    let Some((name, arguments)) = line.split_first() else {
        return Completion::default();
    };
    let Some(entry) = COMMANDS.iter().find(|entry| name == entry.name) else {
        return Completion::default();
    };
    let (mut entry, mut command, mut arguments) = (entry, (entry.build)(), arguments.to_vec());
    // As on execution, words that name subcommands are removed, except for the last word, which is still being typed.
    let mut removed = Vec::new();
    loop {
        let complete_arguments = arguments
            .split_last()
            .map(|(_, complete)| complete)
            .unwrap_or_default();
        let word_index = argv::first_positional_index(&command, complete_arguments);
        let found =
            word_index.and_then(|at| Some((at, subcommand(entry, arguments.get(at)?.to_str()?)?)));
        let Some((at, selected)) = found else { break };
        (entry, command) = (selected, (selected.build)());
        arguments.remove(at);
        removed.push(at);
    }
    let line = CommandWords {
        entry: Some(entry),
        command: &command,
        words: &arguments,
    };
    let Some(role) = WordRole::find(line.command, line.words) else {
        return Completion::default();
    };
    let mut answer = line.answer(&role, context);
    // The index counts from the first of the remaining arguments: add the removed words that precede it, and the words up to and
    // including the command's name.
    if let ShellCandidates::Command(first) = &mut answer.from_shell {
        for at in removed.into_iter().rev() {
            *first += usize::from(at <= *first);
        }
        *first += before.len() + 1;
    }
    answer
}

/// A command with the words that follow it.
struct CommandWords<'a> {
    /// `None` for the program itself.
    entry: Option<&'static CommandEntry>,
    command: &'a Command,
    words: &'a [OsString],
}

impl CommandWords<'_> {
    /// The candidates for the last word, whose role is `role`. An index in the result counts from the first of `self.words`.
    fn answer(&self, role: &WordRole<'_>, context: &Context) -> Completion {
        let name = self.entry.map_or("", |entry| entry.name);
        let typed = self.words.last().map(|word| word.to_string_lossy());
        let typed = typed.unwrap_or_default();
        match *role {
            // Options before the command have no negated forms.
            WordRole::Option => {
                options::candidates(self.command, &typed, self.entry.is_some()).into()
            }
            WordRole::Value { arg, start } => {
                let (prefix, value) = typed.split_at_checked(start).unwrap_or_default();
                let partial = values::PartialValue {
                    command: name,
                    arg,
                    prefix,
                    value,
                };
                partial.answer(context)
            }
            // The first positional word of `script` is a script, not a program.
            WordRole::Workload { first } if name == "script" => {
                words::of_script(self.words.get(first..).unwrap_or_default())
            }
            WordRole::Workload { first } => {
                let is_first = first + 1 == self.words.len();
                Completion {
                    from_shell: ShellCandidates::Command(first),
                    candidates: if is_first {
                        subcommands(name)
                    } else {
                        Vec::new()
                    },
                }
            }
            // `before` is the number of positional words before this one.
            WordRole::Word { before } => words::of(name, before, &typed),
        }
    }
}

/// The words that may follow `command` as the name of a subcommand.
fn subcommands(command: &str) -> Vec<Candidate> {
    let candidate = |entry: &CommandEntry| {
        let word = entry.name.strip_prefix(command)?.strip_prefix(' ')?;
        // `stats diff` is a subcommand of `sched stats`, not of `sched`.
        (!word.contains(' ')).then(|| Candidate::new(word, entry.summary))
    };
    SUBCOMMANDS.iter().filter_map(candidate).collect()
}
