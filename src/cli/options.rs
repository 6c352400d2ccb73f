//! Builders for the kinds of option perf has, and their reading back from clap's own metadata.
//!
//! An option is declared once, as a clap [`Arg`]; [`argv`](super::argv) and [`help`](super::help) ask that declaration
//! what the option is ([`Shape`]). Declare options in perf's order: its text for an ambiguous prefix depends on it.

use std::borrow::Cow;

use clap::builder::Str;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Heading of options that perf has and rperf does not build yet; their help says what to do instead.
const NOT_YET: &str = "Not supported yet";

/// What an option does with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// No value; three states: unset, on, off by its negative form.
    Switch,
    /// No value; each occurrence counts (`-vv`).
    Counter,
    /// A value, attached or the next word.
    Value,
    /// A value or none; only an attached word is one (`-z3`, `--threads=cpu`).
    Attached,
    /// A value or none; the next word is one unless it begins with `-` (report's `-g caller`).
    Optional,
    /// Known to perf and refused by name.
    NotYet,
}

impl Shape {
    /// Reads the shape off an option's declaration.
    pub(crate) fn of(arg: &Arg) -> Self {
        let takes_none = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        match arg.get_action() {
            _ if arg.get_help_heading() == Some(NOT_YET) => Shape::NotYet,
            ArgAction::Count => Shape::Counter,
            _ if !takes_none => Shape::Value,
            _ if arg.get_value_names().is_none() => Shape::Switch,
            _ if arg.is_require_equals_set() => Shape::Attached,
            _ => Shape::Optional,
        }
    }
}

/// A boolean, `--name` and `--no-name`; read it with [`flag`].
pub(crate) fn switch(long: &'static str) -> Arg {
    let mut arg = short_switch(long);
    arg = arg.long(long);
    arg
}

/// A boolean that has only a short form, known to the program as `id`.
pub(crate) fn short_switch(id: &'static str) -> Arg {
    Arg::new(id)
        .action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .value_parser(clap::value_parser!(bool))
}

/// An option that counts its occurrences.
pub(crate) fn counter(long: &'static str) -> Arg {
    Arg::new(long).long(long).action(ArgAction::Count)
}

/// An option with a value; the last one given wins. `name` is how the help calls the value.
pub(crate) fn value(long: &'static str, name: &'static str) -> Arg {
    Arg::new(long)
        .long(long)
        .action(ArgAction::Set)
        .value_name(name)
}

/// An option with a value whose occurrences add up in order.
pub(crate) fn list(long: &'static str, name: &'static str) -> Arg {
    value(long, name).action(ArgAction::Append)
}

/// An option whose value may be missing and otherwise is the next word, unless that begins with `-`.
pub(crate) fn optional(long: &'static str, name: &'static str, missing: &'static str) -> Arg {
    value(long, name)
        .num_args(0..=1)
        .default_missing_value(missing)
}

/// An option whose value may be missing and otherwise is attached (`--user-regs=ax`); no value reads as an empty one.
pub(crate) fn attached(long: &'static str, name: &'static str) -> Arg {
    optional(long, name, "").require_equals(true)
}

/// An option of perf that is refused by name. `instead` continues "… is not supported yet; " and may be empty.
pub(crate) fn not_yet(long: &'static str, instead: impl Into<Str>) -> Arg {
    let instead: Str = instead.into();
    Arg::new(long)
        .long(long)
        .hide(true)
        .help_heading(NOT_YET)
        .help(instead.as_str().to_owned())
}

/// The word after an option that is parsed as a number: decimal, or hexadecimal or octal as in C.
pub(crate) fn number(word: &str) -> Result<u64, String> {
    let parsed = if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16)
    } else if word.len() > 1 && word.starts_with('0') {
        u64::from_str_radix(word, 8)
    } else {
        word.parse()
    };
    parsed.map_err(|_| "expects a numerical value".to_owned())
}

/// A list of numbers, `1,2,3`, still as text. Blanks within one quoted word are fine; a comma at the end means that the
/// list went on in the next word, which would be taken for the workload.
pub(crate) fn number_list(word: &str) -> Result<String, String> {
    let list = word.trim();
    if list.is_empty() || list.ends_with(',') {
        return Err(
            "needs a list in one word, such as 1,2,3: it may not contain blanks".to_owned(),
        );
    }
    Ok(list.to_owned())
}

/// The state of a [`switch`]: `None` where neither the option nor its negative was given, or the command has none.
pub(crate) fn flag(matches: &ArgMatches, id: &str) -> Option<bool> {
    matches.try_get_one::<bool>(id).ok().flatten().copied()
}

/// Whether an option of the command was given, for a [`switch`] rather than its negative.
pub(crate) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    match matches.try_get_one::<bool>(id) {
        Ok(given) => given == Some(&true),
        Err(_) => matches.contains_id(id),
    }
}

/// How often a [`counter`] was given; 0 where the command has none.
pub(crate) fn count(matches: &ArgMatches, id: &str) -> u8 {
    matches
        .try_get_one::<u8>(id)
        .ok()
        .flatten()
        .copied()
        .unwrap_or_default()
}

/// The options of a command that a user can give, in declared order; positional words are left out.
pub(crate) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional())
}

/// How an option is called in messages: `--long`, or `-s` where that is all it has.
pub(crate) fn spelling(arg: &Arg) -> Cow<'_, str> {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => Cow::Owned(format!("--{long}")),
        (None, Some(short)) => Cow::Owned(format!("-{short}")),
        (None, None) => Cow::Borrowed(arg.get_id().as_str()),
    }
}

#[cfg(test)]
mod declared_tests;
