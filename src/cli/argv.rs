//! perf's option grammar, rewritten into words that clap reads one way only.
//!
//! perf's users type unique prefixes, bundles, attached values, negatives of everything, and a workload whose options are
//! not ours. This pass resolves all of it against the command's own declaration and hands on `--name`, `--name=false`,
//! `--name=value` in the order given, then `--` and the remaining words. Nothing downstream guesses any more.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::{Arg, Command};

use super::options::{Shape, options, spelling};
use rperf_events::nearest;

mod cursor;

pub(crate) use self::cursor::Cursor;

/// What the words after the command's name ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Run the command with these words, which clap parses.
    Run(Vec<OsString>),
    /// `-h [keyword…]`: the option summary, narrowed to the keywords.
    Summary(Vec<String>),
    /// `--help`: the manual text.
    Manual,
    /// `--list-opts`: every long option on one line.
    ListOptions,
}

/// Why the words are not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// No such long option; the nearest one there is.
    UnknownOption(String, Option<String>),
    /// No such short option; the long option that lost a dash, if the whole word is the beginning of one.
    UnknownSwitch(String, Option<String>),
    /// A prefix of several options: as given, the last two candidates as spelled, and the ids of all.
    Ambiguous {
        given: String,
        pair: [String; 2],
        ids: Vec<String>,
    },
    /// The option as spelled by the user needs a value.
    NeedsValue(String),
    /// The option as spelled by the user takes none.
    TakesNoValue(String),
    /// perf has it, rperf does not yet: the option, and what to do instead (may be empty).
    NotYet(String, String),
}

/// Where the workload begins: the first word that is neither an option nor the value of one, unless `--` stands before it.
pub(crate) fn first_word(command: &Command, words: &[OsString]) -> Option<usize> {
    let mut pass = Pass::new(command, words);
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

/// Rewrites `words`, which follow the command's name.
pub(crate) fn normalise(command: &Command, words: &[OsString]) -> Result<Request, Misuse> {
    let workload = command.get_positionals().any(Arg::is_trailing_var_arg_set);
    let mut pass = Pass::new(command, words);
    let mut rest: Vec<OsString> = Vec::new();
    while let Some(word) = pass.take() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            rest.extend_from_slice(pass.remaining());
            break;
        }
        let request = if let Some(long) = bytes.strip_prefix(b"--") {
            pass.long(long)?
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            pass.bundle(&bytes[1..])?
        } else if workload {
            rest.push(word.clone());
            rest.extend_from_slice(pass.remaining());
            break;
        } else {
            rest.push(word.clone());
            None
        };
        if let Some(request) = request {
            return Ok(request);
        }
    }
    let mut out: Vec<OsString> = pass.out.into_iter().map(|(_, word)| word).collect();
    if !rest.is_empty() {
        out.push("--".into());
        out.append(&mut rest);
    }
    Ok(Request::Run(out))
}

/// One run over the words.
struct Pass<'a> {
    command: &'a Command,
    words: &'a [OsString],
    next: usize,
    /// Each rewritten word with the option it belongs to: a negative takes back what was given before.
    out: Vec<(&'a Arg, OsString)>,
}

/// An option found by name, and whether its negative was meant.
#[derive(Clone, Copy)]
struct Found<'a> {
    arg: &'a Arg,
    negative: bool,
}

impl<'a> Pass<'a> {
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

    /// `--name`, `--name=value`, the dashes already cut off.
    fn long(&mut self, word: &'a [u8]) -> Result<Option<Request>, Misuse> {
        let (name, attached) = match word.iter().position(|&byte| byte == b'=') {
            Some(equals) => (&word[..equals], Some(&word[equals + 1..])),
            None => (word, None),
        };
        let name = String::from_utf8_lossy(name);
        match name.as_ref() {
            "help" => return Ok(Some(Request::Manual)),
            "list-opts" => return Ok(Some(Request::ListOptions)),
            _ => {}
        }
        let found = resolve(self.command, &name)?;
        let given = format!("option `{name}'");
        self.apply(found, attached, &given)?;
        Ok(None)
    }

    /// `-x`, `-xyz`, `-xVALUE`, the dash already cut off.
    fn bundle(&mut self, word: &'a [u8]) -> Result<Option<Request>, Misuse> {
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
                    return Ok(Some(Request::Summary(keywords)));
                }
                return Err(self.unknown_switch(word, position));
            };
            let found = Found {
                arg,
                negative: false,
            };
            let given = format!("switch `{letter}'");
            let rest = &word[position + 1..];
            match Shape::of(arg) {
                Shape::Switch | Shape::Counter | Shape::NotYet => {
                    self.apply(found, None, &given)?
                }
                _ => {
                    let attached = Some(rest).filter(|rest| !rest.is_empty());
                    self.apply(found, attached, &given)?;
                    break;
                }
            }
        }
        Ok(None)
    }

    fn unknown_switch(&self, word: &[u8], position: usize) -> Misuse {
        let letter = String::from_utf8_lossy(&word[position..])
            .chars()
            .take(1)
            .collect();
        let whole = String::from_utf8_lossy(word);
        let long = (word.len() > 2)
            .then(|| {
                options(self.command)
                    .filter_map(Arg::get_long)
                    .find(|long| long.starts_with(whole.as_ref()))
            })
            .flatten();
        Misuse::UnknownSwitch(letter, long.map(|long| format!("--{long}")))
    }

    /// Writes out one option. `given` is how messages name it.
    fn apply(
        &mut self,
        found: Found<'a>,
        attached: Option<&[u8]>,
        given: &str,
    ) -> Result<(), Misuse> {
        let Found { arg, negative } = found;
        let shape = Shape::of(arg);
        if shape == Shape::NotYet {
            let instead = arg.get_help().map(ToString::to_string).unwrap_or_default();
            return Err(Misuse::NotYet(spelling(arg).into_owned(), instead));
        }
        let valueless = negative || matches!(shape, Shape::Switch | Shape::Counter);
        if valueless && attached.is_some() {
            return Err(Misuse::TakesNoValue(given.to_owned()));
        }
        if negative && shape != Shape::Switch {
            self.out
                .retain(|(earlier, _)| earlier.get_id() != arg.get_id());
            return Ok(());
        }
        let value: Option<&[u8]> = match shape {
            Shape::Switch => negative.then_some(b"false".as_slice()),
            Shape::Counter | Shape::NotYet => None,
            Shape::Attached => attached,
            Shape::Value => match attached {
                Some(value) => Some(value),
                None => Some(
                    self.take()
                        .ok_or_else(|| Misuse::NeedsValue(given.to_owned()))?
                        .as_bytes(),
                ),
            },
            Shape::Optional => match attached {
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

/// Finds the option that `name` means: exact, negative, unique prefix, or an older spelling with underscores.
fn resolve<'a>(command: &'a Command, name: &str) -> Result<Found<'a>, Misuse> {
    if let Some(found) = options(command).find_map(|arg| exact(arg, name)) {
        return Ok(found);
    }
    let candidates: Vec<Found<'_>> = options(command)
        .filter_map(|arg| abbreviated(arg, name))
        .collect();
    match candidates.as_slice() {
        [found] => Ok(*found),
        [.., first, second] => Err(Misuse::Ambiguous {
            given: name.to_owned(),
            pair: [display(first), display(second)],
            ids: candidates
                .iter()
                .map(|found| found.arg.get_id().to_string())
                .collect(),
        }),
        [] if name.contains('_') => resolve(command, &name.replace('_', "-")),
        [] => {
            let bare = name.strip_prefix("no-").unwrap_or(name);
            let known = options(command)
                .filter(|arg| Shape::of(arg) != Shape::NotYet)
                .filter_map(Arg::get_long);
            let nearest = nearest(bare, known).map(|long| format!("--{long}"));
            Err(Misuse::UnknownOption(name.to_owned(), nearest))
        }
    }
}

/// `name` written in full: the option, its negative `no-NAME`, or the negative of an option that is itself `no-…`.
fn exact<'a>(arg: &'a Arg, name: &str) -> Option<Found<'a>> {
    let long = arg.get_long()?;
    if long == name {
        return Some(Found {
            arg,
            negative: false,
        });
    }
    let negative = name.strip_prefix("no-") == Some(long) || long.strip_prefix("no-") == Some(name);
    negative.then_some(Found { arg, negative })
}

/// `name` cut short. Unlike perf, `n` and `no` are not taken for the beginning of every negative.
fn abbreviated<'a>(arg: &'a Arg, name: &str) -> Option<Found<'a>> {
    let long = arg.get_long()?;
    if name.is_empty() {
        return None;
    }
    if long.starts_with(name) {
        return Some(Found {
            arg,
            negative: false,
        });
    }
    let of_positive = name
        .strip_prefix("no-")
        .is_some_and(|rest| long.starts_with(rest));
    let of_negative = !name.starts_with("no-")
        && long
            .strip_prefix("no-")
            .is_some_and(|rest| rest.starts_with(name));
    (of_positive || of_negative).then_some(Found {
        arg,
        negative: true,
    })
}

fn display(found: &Found<'_>) -> String {
    let long = found.arg.get_long().unwrap_or_default();
    if found.negative {
        format!("--no-{long}")
    } else {
        format!("--{long}")
    }
}

#[cfg(test)]
mod tests;
