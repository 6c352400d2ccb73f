//! The output of `-h`: usage, options by group, examples.

use clap::{Arg, Command};

use super::{WIDTH, groups};
use crate::cli::commands::CommandTitle;
use crate::cli::context::ProgramName;
use crate::cli::examples;
use crate::cli::options::{OptionShape, options};
use crate::cli::shared::wrap::wrap;

/// The column of the descriptions.
const COLUMN: usize = 26;

/// Returns the output of `-h`: usage, the options of each group, and examples. If keywords are given, only options that match one
/// of them are listed, and no examples.
pub(crate) fn summary(
    program: ProgramName,
    title: CommandTitle<'_>,
    command: &Command,
    keywords: &[String],
) -> String {
    let is_requested = |arg: &Arg| {
        keywords.is_empty() || keywords.iter().any(|keyword| matches_keyword(arg, keyword))
    };
    let mut text = format!("\n{}\n", usage(program, title, " Usage: "));
    // `grouped` leaves out the options that are not supported yet.
    for (heading, args) in groups::grouped(title.name, command, is_requested) {
        text.push_str(&format!("\n {heading}:\n{}", lines(args)));
    }
    let examples = examples::of(title.name);
    if keywords.is_empty() && !examples.is_empty() {
        text.push_str("\n Examples:\n");
        for example in examples {
            let line = format!("    {program} {}", example.line);
            text.push_str(&with_description(&line, example.purpose));
        }
    }
    text.push('\n');
    text
}

/// Returns the usage lines of a command, the first prefixed with `lead`, the others with `or: `, right-aligned to the same width.
pub(crate) fn usage(program: ProgramName, title: CommandTitle<'_>, lead: &str) -> String {
    let or = format!("{:>width$}", "or: ", width = lead.len());
    let lines = title.usage.iter().enumerate().map(|(index, arguments)| {
        let lead = if index == 0 { lead } else { or.as_str() };
        format!("{lead}{program} {} {arguments}", title.name)
            .trim_end()
            .to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the lines of the options that `is_requested` accepts, without those that are not supported yet.
pub(crate) fn option_lines(command: &Command, is_requested: impl Fn(&Arg) -> bool) -> String {
    let supported = options(command)
        .filter(|arg| OptionShape::of(arg) != OptionShape::NotYet && is_requested(arg));
    lines(supported.collect())
}

/// Returns the lines of all these options: those with a letter first, ordered by letter, then the others by name.
fn lines(mut args: Vec<&Arg>) -> String {
    // `false` sorts before `true`.
    args.sort_by_key(|arg| match arg.get_short() {
        Some(short) => (false, short.to_ascii_lowercase().to_string()),
        None => (true, arg.get_long().unwrap_or_default().to_owned()),
    });
    let line = |arg: &Arg| {
        let short = arg
            .get_short()
            .map_or("    ".to_owned(), |short| format!("-{short}"));
        let comma = if arg.get_short().is_some() && arg.get_long().is_some() {
            ", "
        } else {
            ""
        };
        let long = arg
            .get_long()
            .map(|long| format!("--{long}"))
            .unwrap_or_default();
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        with_description(
            &format!("    {short}{comma}{long}{}", value_text(arg)),
            &help,
        )
    };
    args.into_iter().map(line).collect()
}

/// Returns `head` and its description, which is wrapped in a separate column. The description begins on the line of `head` if
/// `head` is short enough, otherwise on the next line.
fn with_description(head: &str, text: &str) -> String {
    // Each line is indented to the column and ends with a newline.
    let text = wrap(text, COLUMN, WIDTH);
    if head.len() + 2 <= COLUMN {
        format!("{head:<COLUMN$}{}", text.trim_start_matches(' '))
    } else {
        format!("{head}\n{text}")
    }
}

/// Returns the supported long options of the command, on one line.
pub(crate) fn list_options(command: &Command) -> String {
    let supported = options(command).filter(|arg| OptionShape::of(arg) != OptionShape::NotYet);
    supported
        .filter_map(Arg::get_long)
        .map(|long| format!("--{long}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Formats the name of an option's value as shown after the option; empty if the option takes no value, or is not supported yet.
pub(super) fn value_text(arg: &Arg) -> String {
    let name = arg
        .get_value_names()
        .and_then(<[_]>::first)
        .map(ToString::to_string)
        .unwrap_or_default();
    match OptionShape::of(arg) {
        OptionShape::Value => format!(" <{name}>"),
        OptionShape::Attached => format!("[=<{name}>]"),
        OptionShape::Optional => format!(" [<{name}>]"),
        OptionShape::Switch | OptionShape::Counter | OptionShape::NotYet => String::new(),
    }
}

/// Whether the long name or the help of an option contains `keyword`, ignoring case. As in perf, a single letter only matches the
/// short name, in the same case.
fn matches_keyword(arg: &Arg, keyword: &str) -> bool {
    let keyword = keyword.trim_start_matches('-');
    let mut letters = keyword.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return arg.get_short() == Some(letter);
    }
    let keyword = keyword.to_lowercase();
    let contains = |text: &str| text.to_lowercase().contains(&keyword);
    arg.get_long().is_some_and(contains)
        || arg
            .get_help()
            .is_some_and(|help| contains(&help.to_string()))
}
