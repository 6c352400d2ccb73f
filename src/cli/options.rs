//! Builders for perf's kinds of options, the [`OptionShape`] of a declared option, and functions that read the options given.
//!
//! An option is declared once, as a clap [`Arg`]; [`argv`](super::argv) and [`help`](super::help) derive its [`OptionShape`] from
//! that declaration. Declare options in perf's order: the message for an ambiguous prefix depends on it.

use std::any::Any;
use std::borrow::Cow;

use clap::builder::Str;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Heading of perf options that rperf does not support yet; their help says what to do instead.
const UNSUPPORTED_HEADING: &str = "Not supported yet";

/// How an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionShape {
    /// No value; three states: unset, on, off by the negative form.
    Switch,
    /// No value; each occurrence counts (`-vv`).
    Counter,
    /// A value, attached or in the next word.
    Value,
    /// An optional value, attached only (`-z3`, `--threads=cpu`).
    Attached,
    /// An optional value, attached, or in the next word unless that starts with `-` (report's `-g caller`).
    Optional,
    /// A perf option that rperf does not support yet ([`unsupported`]).
    NotYet,
}

impl OptionShape {
    /// Derives the shape from an option's declaration.
    pub(crate) fn of(arg: &Arg) -> Self {
        let is_value_optional = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        match arg.get_action() {
            _ if arg.get_help_heading() == Some(UNSUPPORTED_HEADING) => OptionShape::NotYet,
            ArgAction::Count => OptionShape::Counter,
            _ if !is_value_optional => OptionShape::Value,
            _ if arg.get_value_names().is_none() => OptionShape::Switch,
            _ if arg.is_require_equals_set() => OptionShape::Attached,
            _ => OptionShape::Optional,
        }
    }
}

/// A boolean, `--name` and `--no-name`; read with [`flag`].
pub(crate) fn switch(long: &'static str) -> Arg {
    short_switch(long).long(long)
}

/// A boolean with the id `id` and only a short form, which the caller adds.
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

/// An option with a value; the last one given wins. `name` is the value's name in the help.
pub(crate) fn value(long: &'static str, name: &'static str) -> Arg {
    Arg::new(long)
        .long(long)
        .action(ArgAction::Set)
        .value_name(name)
}

/// An option with a value whose occurrences accumulate in order.
pub(crate) fn list(long: &'static str, name: &'static str) -> Arg {
    value(long, name).action(ArgAction::Append)
}

/// An option with an optional value: attached, or in the next word unless that starts with `-`. Without a value it reads
/// as `missing`.
pub(crate) fn optional(long: &'static str, name: &'static str, missing: &'static str) -> Arg {
    value(long, name)
        .num_args(0..=1)
        .default_missing_value(missing)
}

/// An option with an optional attached value (`--user-regs=ax`); without a value it reads as empty.
pub(crate) fn attached(long: &'static str, name: &'static str) -> Arg {
    optional(long, name, "").require_equals(true)
}

/// A perf option that is declared only so that it is refused with a message of its own. `instead` continues "… is not supported
/// yet; " and may be empty.
pub(crate) fn unsupported(long: &'static str, instead: impl Into<Str>) -> Arg {
    let instead: Str = instead.into();
    Arg::new(long)
        .long(long)
        .hide(true)
        .help_heading(UNSUPPORTED_HEADING)
        .help(instead.as_str().to_owned())
}

/// Parses a number: decimal, or hexadecimal or octal as in C.
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

/// Checks that a list (`1,2,3`) is complete, and returns it as text; its numbers are checked later. Spaces in a quoted list are
/// accepted. A trailing comma is refused: the list probably continues in the next word, which would be taken for the
/// workload.
pub(crate) fn number_list(word: &str) -> Result<String, String> {
    let list = word.trim();
    if list.is_empty() {
        return Err("needs a list in one word, such as 1,2,3".to_owned());
    }
    if list.ends_with(',') {
        return Err(
            "needs a number after the last comma; write the list without spaces".to_owned(),
        );
    }
    Ok(list.to_owned())
}

/// Returns the value of an option: `None` if it was not given, is not a `T`, or the command does not have it.
///
/// Only in debug builds, clap reports that the command does not have the option, so nothing may depend on this error: ask the
/// [`clap::Command`] instead.
#[expect(
    clippy::disallowed_methods,
    reason = "only here: hides the error that only debug builds report"
)]
pub(crate) fn given_value<'m, T>(matches: &'m ArgMatches, id: &str) -> Option<&'m T>
where
    T: Any + Clone + Send + Sync + 'static,
{
    matches.try_get_one(id).ok().flatten()
}

/// Returns the state of a [`switch`]: `None` if neither the option nor its negative was given, or the command does not have it.
pub(crate) fn flag(matches: &ArgMatches, id: &str) -> Option<bool> {
    given_value(matches, id).copied()
}

/// Whether an option was given; for a [`switch`], not in its negative form. Not for a [`counter`], which always has a value.
///
/// The command must have the option: debug builds panic otherwise, release builds return false.
#[expect(
    clippy::disallowed_methods,
    reason = "the error means that the option is not a switch but has a value"
)]
pub(crate) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    match matches.try_get_one::<bool>(id) {
        Ok(given) => given == Some(&true),
        Err(_) => matches.contains_id(id),
    }
}

/// Returns how often a [`counter`] was given; 0 if the command does not have it.
pub(crate) fn count(matches: &ArgMatches, id: &str) -> u8 {
    given_value(matches, id).copied().unwrap_or_default()
}

/// Returns the options of a command in declared order, without positional arguments.
pub(crate) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional())
}

/// Returns the name of an option in messages: `--long`, or `-s` if it has only a short form; otherwise its id.
pub(crate) fn spelling(arg: &Arg) -> Cow<'_, str> {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => Cow::Owned(format!("--{long}")),
        (None, Some(short)) => Cow::Owned(format!("-{short}")),
        (None, None) => Cow::Borrowed(arg.get_id().as_str()),
    }
}

#[cfg(test)]
mod declared_tests;
