//! Rewrites perf's option grammar into words that clap parses unambiguously.
//!
//! perf accepts unique prefixes, bundles, attached values, negatives of every option, and a workload with options of its own.
//! This pass resolves these words against the command's declaration and emits each option in the order given: as `--name`,
//! `--name=false` or `--name=value`, or `-x` if it has only a short form. `--` and the remaining words follow, if there are any.
//! If the words after `--` are an argument of their own (clap's `last`), the other words stay before `--`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::{Arg, Command};

use super::options::{OptionShape, options, spelling};
use rperf_names::nearest;

mod word_role;

pub(crate) use self::word_role::WordRole;

/// The request expressed by the words after the command's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedCommand {
    /// Run the command with these words, which clap parses.
    Run(Vec<OsString>),
    /// `-h [keyword…]`: the option summary, narrowed to the keywords.
    Summary(Vec<String>),
    /// `--help`: the manual text.
    Manual,
    /// `--list-opts`: every long option on one line.
    ListOptions,
}

/// Why the words cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UsageError {
    /// No such long option. The second value is the most similar option, if any is similar.
    UnknownOption(String, Option<String>),
    /// No such short option: its letter. The second value is a long option that begins with the word: the user may have
    /// meant that option, with two dashes instead of one (`-freq`). `None` if there is no such option.
    UnknownSwitch(String, Option<String>),
    /// A prefix of several options: as given, the last two candidates as perf's message names them, and the ids of all.
    Ambiguous {
        given: String,
        pair: [String; 2],
        ids: Vec<String>,
    },
    /// The option as spelled by the user needs a value.
    NeedsValue(String),
    /// The option as spelled by the user takes no value.
    TakesNoValue(String),
    /// Supported by perf but not by rperf yet: the option, and advice on a replacement (may be empty).
    NotYet(String, String),
}

/// Returns the index of the first word that is neither an option nor an option's value. `None` if there is no such word, or if
/// `--`, `-h`, `--help`, `--list-opts` or an invalid option precedes it.
pub(crate) fn first_positional_index(command: &Command, words: &[OsString]) -> Option<usize> {
    let mut pass = WordPass::new(command, words);
    while let Some(word) = pass.take() {
        let bytes = word.as_bytes();
        let request = match bytes {
            b"--" => return None,
            [b'-', b'-', long @ ..] => pass.long(long),
            [b'-', short @ ..] if !short.is_empty() => pass.bundle(short),
            _ => return Some(pass.next - 1),
        };
        if !matches!(request, Ok(None)) {
            return None;
        }
    }
    None
}

/// Removes a switch with a long form only, which may be abbreviated, from the options before the workload. Returns the other
/// words, and the switch's state: `None` if it is not given. From an invalid option, `-h`, `--help` or `--list-opts` on, all
/// words are kept.
pub(crate) fn take_switch(
    command: &Command,
    words: &[OsString],
    id: &str,
) -> (Vec<OsString>, Option<bool>) {
    let mut pass = WordPass::new(command, words);
    let (mut kept, mut state) = (Vec::new(), None);
    loop {
        let first = pass.next;
        let request = match pass.take().map(|word| word.as_bytes()) {
            Some([b'-', b'-', long @ ..]) if !long.is_empty() => pass.long(long),
            Some([b'-', short @ ..]) if !short.is_empty() => pass.bundle(short),
            // The workload, or the end. Which request is returned does not matter: all requests and errors end the loop below,
            // also the error of `--`, which the previous arm takes for an unknown switch.
            _ => Ok(Some(ParsedCommand::Manual)),
        };
        if !matches!(request, Ok(None)) {
            kept.extend_from_slice(words.get(first..).unwrap_or_default());
            return (kept, state);
        }
        // Only bundles have several options, none of which is the switch: it has no short form.
        match pass.out.drain(..).next_back() {
            Some((arg, word)) if arg.get_id() == id => {
                state = Some(!word.as_bytes().ends_with(b"=false"));
            }
            _ => kept.extend_from_slice(words.get(first..pass.next).unwrap_or_default()),
        }
    }
}

/// Rewrites `words`, the words after the command's name.
pub(crate) fn normalise(
    command: &Command,
    words: &[OsString],
) -> Result<ParsedCommand, UsageError> {
    let has_workload = command.get_positionals().any(Arg::is_trailing_var_arg_set);
    let mut pass = WordPass::new(command, words);
    // The words that are neither options nor their values; from the first word of a workload, all words.
    let mut others: Vec<OsString> = Vec::new();
    // The words after `--`.
    let mut after: Vec<OsString> = Vec::new();
    while let Some(word) = pass.take() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            after = pass.remaining().to_vec();
            break;
        }
        let request = if let Some(long) = bytes.strip_prefix(b"--") {
            pass.long(long)?
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            pass.bundle(&bytes[1..])?
        } else if has_workload {
            others.push(word.clone());
            others.extend_from_slice(pass.remaining());
            break;
        } else {
            others.push(word.clone());
            None
        };
        if let Some(request) = request {
            return Ok(request);
        }
    }
    let mut out: Vec<OsString> = pass.out.into_iter().map(|(_, word)| word).collect();
    if command.get_positionals().any(Arg::is_last_set) {
        out.append(&mut others);
    }
    others.append(&mut after);
    if !others.is_empty() {
        out.push("--".into());
        out.append(&mut others);
    }
    Ok(ParsedCommand::Run(out))
}

/// The state of one pass over the words.
struct WordPass<'a> {
    command: &'a Command,
    words: &'a [OsString],
    /// The index of the first word that has not been taken.
    next: usize,
    /// The rewritten words, each with its option. The negative of an option that is not a switch removes its earlier words.
    out: Vec<(&'a Arg, OsString)>,
}

/// An option found by name, and whether it was given in its negative form.
#[derive(Clone, Copy)]
struct FoundOption<'a> {
    arg: &'a Arg,
    negative: bool,
}

impl<'a> WordPass<'a> {
    fn new(command: &'a Command, words: &'a [OsString]) -> Self {
        Self {
            command,
            words,
            next: 0,
            out: Vec::new(),
        }
    }

    fn take(&mut self) -> Option<&'a OsString> {
        let word = self.words.get(self.next)?;
        self.next += 1;
        Some(word)
    }

    fn remaining(&self) -> &'a [OsString] {
        self.words.get(self.next..).unwrap_or_default()
    }

    /// Parses `--name` or `--name=value`, given without the dashes; the value may be the next word. `Some` for `--help` and
    /// `--list-opts`.
    fn long(&mut self, word: &'a [u8]) -> Result<Option<ParsedCommand>, UsageError> {
        let (name, attached) = match word.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&word[..equals], Some(&word[equals + 1..])),
            None => (word, None),
        };
        let name = String::from_utf8_lossy(name);
        match name.as_ref() {
            "help" => return Ok(Some(ParsedCommand::Manual)),
            "list-opts" => return Ok(Some(ParsedCommand::ListOptions)),
            _ => {}
        }
        let found = resolve(self.command, &name)?;
        let given = format!("option `{name}'");
        self.apply(found, attached, &given)?;
        Ok(None)
    }

    /// Parses `-x`, `-xyz` or `-xVALUE`, given without the dash; the value may be the next word. `Some` for `-h`.
    fn bundle(&mut self, word: &'a [u8]) -> Result<Option<ParsedCommand>, UsageError> {
        for (position, &byte) in word.iter().enumerate() {
            let letter = char::from(byte);
            let Some(arg) = options(self.command).find(|arg| arg.get_short() == Some(letter))
            else {
                if byte == b'h' {
                    let keywords = self
                        .remaining()
                        .iter()
                        .map(|word| word.to_string_lossy().into_owned())
                        .collect();
                    return Ok(Some(ParsedCommand::Summary(keywords)));
                }
                return Err(self.unknown_switch(word, position));
            };
            let found = FoundOption {
                arg,
                negative: false,
            };
            let given = format!("switch `{letter}'");
            let following = &word[position + 1..];
            match OptionShape::of(arg) {
                OptionShape::Switch | OptionShape::Counter | OptionShape::NotYet => {
                    let attached = None;
                    self.apply(found, attached, &given)?;
                }
                _ => {
                    let attached = Some(following).filter(|value| !value.is_empty());
                    self.apply(found, attached, &given)?;
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Returns the error for an unknown letter at the byte `position` of `word`.
    fn unknown_switch(&self, word: &[u8], position: usize) -> UsageError {
        let letter = String::from_utf8_lossy(&word[position..])
            .chars()
            .take(1)
            .collect();
        let word_text = String::from_utf8_lossy(word);
        // As in perf, words of one or two letters are not compared with long options.
        let long = (word.len() > 2)
            .then(|| {
                options(self.command)
                    .filter_map(Arg::get_long)
                    .find(|long| long.starts_with(word_text.as_ref()))
            })
            .flatten();
        UsageError::UnknownSwitch(letter, long.map(|long| format!("--{long}")))
    }

    /// Emits one option, or removes its earlier words for the negative of an option that is not a switch. If no value is
    /// attached, takes the next word as the value if the option needs one, or if it is an [`OptionShape::Optional`] and the word
    /// has no leading dash. `given` is the option's name in messages.
    fn apply(
        &mut self,
        found: FoundOption<'a>,
        attached: Option<&[u8]>,
        given: &str,
    ) -> Result<(), UsageError> {
        let FoundOption { arg, negative } = found;
        let shape = OptionShape::of(arg);
        if shape == OptionShape::NotYet {
            let advice = arg.get_help().map(ToString::to_string).unwrap_or_default();
            return Err(UsageError::NotYet(spelling(arg).into_owned(), advice));
        }
        let valueless = negative || matches!(shape, OptionShape::Switch | OptionShape::Counter);
        if valueless && attached.is_some() {
            return Err(UsageError::TakesNoValue(given.to_owned()));
        }
        if negative && shape != OptionShape::Switch {
            self.out
                .retain(|(earlier, _)| earlier.get_id() != arg.get_id());
            return Ok(());
        }
        let value: Option<&[u8]> = match shape {
            OptionShape::Switch => negative.then_some(b"false".as_slice()),
            OptionShape::Counter | OptionShape::NotYet => None,
            OptionShape::Attached => attached,
            OptionShape::Value => match attached {
                Some(value) => Some(value),
                None => Some(
                    self.take()
                        .ok_or_else(|| UsageError::NeedsValue(given.to_owned()))?
                        .as_bytes(),
                ),
            },
            OptionShape::Optional => match attached {
                Some(value) => Some(value),
                None if self.next_is_value() => self.take().map(|word| word.as_bytes()),
                None => None,
            },
        };
        let mut word = spelling(arg).into_owned().into_bytes();
        if let Some(value) = value {
            word.push(b'=');
            word.extend_from_slice(value);
        }
        self.out.push((arg, OsString::from_vec(word)));
        Ok(())
    }

    fn next_is_value(&self) -> bool {
        self.words
            .get(self.next)
            .is_some_and(|word: &OsString| !OsStr::as_bytes(word).starts_with(b"-"))
    }
}

/// Resolves `name`: the name of an option or its negative, a unique prefix of either, or any of these with underscores for
/// dashes.
fn resolve<'a>(command: &'a Command, name: &str) -> Result<FoundOption<'a>, UsageError> {
    if let Some(found) = options(command).find_map(|arg| exact(arg, name)) {
        return Ok(found);
    }
    let candidates: Vec<FoundOption<'_>> = options(command)
        .filter_map(|arg| abbreviated(arg, name))
        .collect();
    match candidates.as_slice() {
        [found] => Ok(*found),
        [.., second_last, last] => Err(UsageError::Ambiguous {
            given: name.to_owned(),
            pair: [display(second_last), display(last)],
            ids: candidates
                .iter()
                .map(|found| found.arg.get_id().to_string())
                .collect(),
        }),
        [] if name.contains('_') => resolve(command, &name.replace('_', "-")),
        [] => {
            let (no, bare) = match name.strip_prefix("no-") {
                Some(bare) => ("no-", bare),
                None => ("", name),
            };
            let known = options(command)
                .filter(|arg| OptionShape::of(arg) != OptionShape::NotYet)
                .filter_map(Arg::get_long);
            let nearest = nearest(bare, known).map(|long| format!("--{no}{long}"));
            Err(UsageError::UnknownOption(name.to_owned(), nearest))
        }
    }
}

/// Matches the full `name`: the option, its negative `no-NAME`, or the negative of an option that is itself `no-…`.
fn exact<'a>(arg: &'a Arg, name: &str) -> Option<FoundOption<'a>> {
    let long = arg.get_long()?;
    if long == name {
        return Some(FoundOption {
            arg,
            negative: false,
        });
    }
    let negative = name.strip_prefix("no-") == Some(long) || long.strip_prefix("no-") == Some(name);
    negative.then_some(FoundOption { arg, negative })
}

/// Matches a prefix of an option or of its negative. Unlike in perf, `n` and `no` do not match negatives.
fn abbreviated<'a>(arg: &'a Arg, name: &str) -> Option<FoundOption<'a>> {
    let long = arg.get_long()?;
    if name.is_empty() {
        return None;
    }
    if long.starts_with(name) {
        return Some(FoundOption {
            arg,
            negative: false,
        });
    }
    let adds_no = name
        .strip_prefix("no-")
        .is_some_and(|bare| long.starts_with(bare));
    let drops_no = !name.starts_with("no-")
        && long
            .strip_prefix("no-")
            .is_some_and(|bare| bare.starts_with(name));
    (adds_no || drops_no).then_some(FoundOption {
        arg,
        negative: true,
    })
}

/// Returns the option as in perf's message about an ambiguous prefix: a negative has `no-` in front, also that of an option that
/// is itself `no-…`.
fn display(found: &FoundOption<'_>) -> String {
    let long = found.arg.get_long().unwrap_or_default();
    if found.negative {
        format!("--no-{long}")
    } else {
        format!("--{long}")
    }
}

#[cfg(test)]
mod tests;
