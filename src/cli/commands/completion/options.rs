//! The options of a command as candidates.

use clap::{Arg, Command};

use super::candidates::Candidate;
use crate::cli::options::{OptionShape, options};

/// Options of every command.
const GLOBAL_OPTIONS: [(&str, &str); 3] = [
    ("-h", "list all options"),
    ("--help", "show the full help text"),
    ("--list-opts", "print all long options on one line"),
];

/// Returns the options that can be given, short and long, whatever was typed: the shell drops those that do not match. If the
/// command `has_negatives`, also the forms that turn switches off:
/// - `--no-NAME` for the switch `--NAME`, if the typed word begins with `--no`;
/// - `--NAME` for the switch `--no-NAME`, if the typed word is longer than `--`.
///
/// A typed word that may bundle short options is returned as a candidate itself.
pub(super) fn candidates(command: &Command, typed: &str, has_negatives: bool) -> Vec<Candidate> {
    let mut listed = Vec::new();
    let lists_with_no = typed.starts_with("--no");
    let lists_without_no = typed.starts_with("--") && typed.len() > "--".len();
    // `NotYet`: options of perf that are not supported.
    let is_usable = |arg: &&Arg| OptionShape::of(arg) != OptionShape::NotYet && !arg.is_hide_set();
    for arg in options(command).filter(is_usable) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(short) = arg.get_short() {
            listed.push(Candidate::new(format!("-{short}"), help.as_str()));
        }
        let Some(long) = arg.get_long() else {
            continue;
        };
        listed.push(Candidate::new(format!("--{long}"), help.as_str()));
        if OptionShape::of(arg) != OptionShape::Switch || !has_negatives {
            continue;
        }
        let negative = match long.strip_prefix("no-") {
            Some(positive) => lists_without_no.then(|| format!("--{positive}")),
            None => lists_with_no.then(|| format!("--no-{long}")),
        };
        let meaning = format!("turn off --{long}");
        listed.extend(negative.map(|word| Candidate::new(word, meaning)));
    }
    for (word, meaning) in GLOBAL_OPTIONS {
        if !listed.iter().any(|candidate| candidate.word == word) {
            listed.push(Candidate::new(word, meaning));
        }
    }
    // Bundled letters, or a letter with its value, are a complete word: the shell appends a space.
    if !listed.iter().any(|candidate| candidate.word == typed) && is_bundle(typed) {
        listed.push(Candidate::new(typed, ""));
    }
    listed
}

/// Whether a word may be several short options, or one with its value.
fn is_bundle(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.len() > 1 && !letters.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::{switch, unsupported, value};

    fn words(typed: &str) -> Vec<String> {
        let command = Command::new("record")
            .arg(switch("all-cpus").short('a'))
            .arg(switch("no-inherit").short('i'))
            .arg(switch("old").hide(true))
            .arg(unsupported("clang-path", ""))
            .arg(value("output", "file").short('o'));
        let has_negatives = true;
        let listed = candidates(&command, typed, has_negatives).into_iter();
        let own_options = listed.filter(|candidate| {
            !GLOBAL_OPTIONS
                .iter()
                .any(|(word, _)| candidate.word == *word)
        });
        own_options.map(|candidate| candidate.word).collect()
    }

    /// Also: hidden and unsupported options are left out, and bundled letters are a candidate.
    #[test]
    fn negated_options_are_completed_when_typed() {
        let all = ["-a", "--all-cpus", "-i", "--no-inherit", "-o", "--output"];
        assert_eq!(words("-"), all);
        assert_eq!(words("--"), all);
        assert!(words("--i").contains(&"--inherit".to_owned()));
        assert!(words("--no").contains(&"--no-all-cpus".to_owned()));
        assert!(!words("--no").contains(&"--no-output".to_owned()));
        assert!(words("-ai").contains(&"-ai".to_owned()));
    }
}
