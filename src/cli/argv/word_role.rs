//! The role of a partially typed word in perf's option grammar, for completion.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::{Arg, Command};

use super::{WordPass, resolve};
use crate::cli::options::{OptionShape, options};

/// The role of the last word of a command line.
#[derive(Debug)]
pub(crate) enum WordRole<'a> {
    /// An option, or a word with a leading dash that may become one.
    Option,
    /// The value of an option, or a prefix of it, starting at this byte of the word: `--sort=com`, `-ecyc`.
    Value { arg: &'a Arg, start: usize },
    /// A positional word of the command, after `before` others.
    Word { before: usize },
    /// A word of the workload. `first` is the index of the workload's first word.
    Workload { first: usize },
}

impl<'a> WordRole<'a> {
    /// Returns the role of the last of `words`, the words after the command's name. `None` if there are no words, or if the last
    /// one is `--name=value` for an option that is unknown or ambiguous, or takes no value.
    pub(crate) fn find(command: &'a Command, words: &'a [OsString]) -> Option<Self> {
        let last = words.len().checked_sub(1)?;
        let has_workload = command.get_positionals().any(Arg::is_trailing_var_arg_set);
        // Takes the words before the last one, as when the command runs.
        let mut pass = WordPass::new(command, words);
        let (mut before, mut is_past_options) = (0, false);
        while pass.next < last {
            let word = pass.take()?.as_bytes();
            let parsed = match word {
                b"--" if !is_past_options => {
                    is_past_options = true;
                    if has_workload {
                        return Some(Self::Workload { first: pass.next });
                    }
                    continue;
                }
                [b'-', b'-', long @ ..] if !is_past_options => pass.long(long),
                [b'-', short @ ..] if !is_past_options && !short.is_empty() => pass.bundle(short),
                _ if has_workload => {
                    return Some(Self::Workload {
                        first: pass.next - 1,
                    });
                }
                _ => {
                    before += 1;
                    continue;
                }
            };
            // The option, the last one of `out`, took the last word as its value. Errors in earlier words are ignored here, and
            // reported when the command runs.
            if parsed.is_ok() && pass.next > last {
                let (arg, _) = pass.out.last()?;
                return Some(Self::Value { arg, start: 0 });
            }
        }
        match words.get(last)?.as_bytes() {
            [b'-', b'-', long @ ..] if !is_past_options => option(command, long),
            [b'-', short @ ..] if !is_past_options => Some(bundle(command, short)),
            _ if has_workload => Some(Self::Workload { first: last }),
            _ => Some(Self::Word { before }),
        }
    }
}

/// Returns the role of a word that begins with two dashes, given without them. See [`WordRole::find`] for `None`.
fn option<'a>(command: &'a Command, long: &[u8]) -> Option<WordRole<'a>> {
    let Some(equals) = long.iter().position(|&byte| byte == b'=') else {
        return Some(WordRole::Option);
    };
    let name = String::from_utf8_lossy(long.get(..equals)?);
    let arg = resolve(command, &name).ok()?.arg;
    // `NotYet`: a perf option that rperf does not support yet; no value of it is completed.
    let takes_value = !matches!(
        OptionShape::of(arg),
        OptionShape::Switch | OptionShape::Counter | OptionShape::NotYet
    );
    takes_value.then_some(WordRole::Value {
        arg,
        start: equals + "--=".len(),
    })
}

/// Returns the role of a word of short options, given without its dash. The first option with a value takes the rest of the word;
/// if it is the last letter, its value would be the next word, and this word is only an option.
fn bundle<'a>(command: &'a Command, letters: &[u8]) -> WordRole<'a> {
    for (position, &letter) in letters.iter().enumerate() {
        let mut args = options(command);
        let Some(arg) = args.find(|arg| arg.get_short() == Some(char::from(letter))) else {
            break;
        };
        let is_last = position + 1 == letters.len();
        match OptionShape::of(arg) {
            OptionShape::Switch | OptionShape::Counter | OptionShape::NotYet => {}
            _ if is_last => break,
            _ => {
                return WordRole::Value {
                    arg,
                    start: "-".len() + position + 1,
                };
            }
        }
    }
    WordRole::Option
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{attached, list, optional, switch, value};

    fn record() -> Command {
        Command::new("record")
            .arg(switch("all-cpus").short('a'))
            .arg(list("event", "event").short('e'))
            .arg(value("output", "file").short('o'))
            .arg(attached("threads", "layout"))
            .arg(optional("call-graph", "mode", "graph").short('g'))
            .arg(
                Arg::new("workload")
                    .num_args(0..)
                    .trailing_var_arg(true)
                    .allow_hyphen_values(true),
            )
    }

    /// Returns the role of the last word as a short string.
    fn role(command: &Command, line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        match WordRole::find(command, &words) {
            None => "nothing".to_owned(),
            Some(WordRole::Option) => "option".to_owned(),
            Some(WordRole::Value { arg, start }) => format!("{} from {start}", arg.get_id()),
            Some(WordRole::Word { before }) => format!("word {before}"),
            Some(WordRole::Workload { first }) => format!("workload from {first}"),
        }
    }

    #[test]
    fn options_and_their_values_are_recognised() {
        let record = record();
        for (line, expected) in [
            ("-", "option"),
            ("--", "option"),
            ("-a --ev", "option"),
            ("-ae", "option"),
            ("-ae ", "event from 0"),
            ("-aecyc", "event from 3"),
            ("--ev cyc", "event from 0"),
            ("--event=cyc", "event from 8"),
            ("--output=", "output from 9"),
            ("--threads=", "threads from 10"),
            ("--threads ", "workload from 1"),
            ("-g ", "call-graph from 0"),
            ("-g -", "option"),
            ("--nosuch=x", "nothing"),
            ("--all-cpus=x", "nothing"),
            ("--nosuch -e ", "event from 0"),
            ("--no-event -", "option"),
        ] {
            assert_eq!(role(&record, line), expected, "{line:?}");
        }
    }

    #[test]
    fn the_workload_begins_with_the_first_word_or_after_two_dashes() {
        let record = record();
        for (line, expected) in [
            ("", "workload from 0"),
            ("-a ls", "workload from 1"),
            ("-a ls -", "workload from 1"),
            ("-a -- ", "workload from 2"),
            ("-a -- ls --ev", "workload from 2"),
            ("-e cycles ls -e ", "workload from 2"),
        ] {
            assert_eq!(role(&record, line), expected, "{line:?}");
        }
    }

    #[test]
    fn words_and_options_mix_where_there_is_no_workload() {
        let list_command = Command::new("list")
            .arg(value("output", "file").short('o'))
            .arg(Arg::new("words").num_args(0..));
        for (line, expected) in [
            ("", "word 0"),
            ("hw ", "word 1"),
            ("hw -", "option"),
            ("hw -o ", "output from 0"),
            ("-- -o ", "word 1"),
        ] {
            assert_eq!(role(&list_command, line), expected, "{line:?}");
        }
    }
}
