//! Help in perf's layout: the list of commands, the option summary of `-h`, the manual text of `--help`.
//!
//! All of it is made from the command table and the clap declarations, so that it can say nothing else than the parser.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Arg, Command};

use super::commands::{COMMANDS, Entry};
use super::context::{Context, Program};
use super::error::CliError;
use super::globals::SYNOPSIS;
use super::options::{Shape, options};

/// Where the explanations begin in the option summary.
const SUMMARY_COLUMN: usize = 26;
/// Width of the manual text.
const MANUAL_WIDTH: usize = 80;

/// The usage line and one line per command.
pub(crate) fn overview(context: &Context) -> Result<(), CliError> {
    let program = context.program;
    let mut text = format!(
        "\n usage: {program} {SYNOPSIS}\n\n The most commonly used {program} commands are:\n"
    );
    for entry in COMMANDS {
        line(
            &mut text,
            format_args!("   {:<16}{}", entry.name, entry.summary),
        );
    }
    line(
        &mut text,
        format_args!(
            "\n See '{program} help COMMAND' for more information on a specific command.\n"
        ),
    );
    context.stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// What `-h` prints: usage, then short options sorted, then long ones; with keywords only what matches one of them.
pub(crate) fn summary(
    program: Program,
    entry: &Entry,
    command: &Command,
    keywords: &[String],
) -> String {
    let wanted = |arg: &Arg| {
        keywords.is_empty() || keywords.iter().any(|keyword| matches_keyword(arg, keyword))
    };
    let mut text = format!("\n{}\n\n", usage(program, entry, " Usage: "));
    text.push_str(&lines_of(command, wanted));
    text.push('\n');
    text
}

/// The usage lines of a command, the first one led by `lead`, the others by `or: ` in the same column.
pub(crate) fn usage(program: Program, entry: &Entry, lead: &str) -> String {
    let or = format!("{:>width$}", "or: ", width = lead.len());
    let lines = entry.usage.iter().enumerate().map(|(index, form)| {
        let lead = if index == 0 { lead } else { or.as_str() };
        format!("{lead}{program} {} {form}", entry.name)
            .trim_end()
            .to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The summary lines of the wanted options.
pub(crate) fn lines_of(command: &Command, wanted: impl Fn(&Arg) -> bool) -> String {
    let mut shown: Vec<&Arg> = options(command)
        .filter(|arg| Shape::of(arg) != Shape::NotYet && wanted(arg))
        .collect();
    shown.sort_by_key(|arg| match arg.get_short() {
        Some(short) => (false, short.to_ascii_lowercase().to_string()),
        None => (true, arg.get_long().unwrap_or_default().to_owned()),
    });
    let mut text = String::new();
    for arg in shown {
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
        let head = format!("    {short}{comma}{long}{}", value_text(arg));
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        if head.len() < SUMMARY_COLUMN {
            line(&mut text, format_args!("{head:<SUMMARY_COLUMN$}{help}"));
        } else {
            line(
                &mut text,
                format_args!("{head}\n{:SUMMARY_COLUMN$}{help}", ""),
            );
        }
    }
    text
}

/// Every long option the command takes, on one line.
pub(crate) fn list_options(command: &Command) -> String {
    let shown = options(command).filter(|arg| Shape::of(arg) != Shape::NotYet);
    shown
        .filter_map(Arg::get_long)
        .map(|long| format!("--{long}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The manual text of a command.
pub(crate) fn manual(context: &Context, entry: &Entry, command: &Command) -> Result<(), CliError> {
    let program = context.program;
    let name = wrap(&format!("{program}-{} - {}", entry.name, entry.summary), 7);
    let mut text = format!("NAME\n{name}\nSYNOPSIS\n");
    text.push_str(&usage(program, entry, "       ").replace("   or: ", "       "));
    text.push('\n');
    if let Some(about) = command.get_long_about() {
        text.push_str("\nDESCRIPTION\n");
        text.push_str(&wrap(&about.to_string(), 7));
    }
    let shown: Vec<&Arg> = options(command)
        .filter(|arg| Shape::of(arg) != Shape::NotYet)
        .collect();
    if !shown.is_empty() {
        text.push_str("\nOPTIONS\n");
    }
    for (index, arg) in shown.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let short = arg.get_short().map(|short| format!("-{short}"));
        let long = arg.get_long().map(|long| format!("--{long}"));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        line(
            &mut text,
            format_args!("       {}{}", names.join(", "), value_text(arg)),
        );
        if let Some(help) = arg.get_long_help().or_else(|| arg.get_help()) {
            text.push_str(&wrap(&help.to_string(), 11));
        }
    }
    let refused: Vec<String> = options(command)
        .filter(|arg| Shape::of(arg) == Shape::NotYet)
        .map(|arg| super::options::spelling(arg).into_owned())
        .collect();
    if !refused.is_empty() {
        text.push_str("\nNOT SUPPORTED YET\n");
        text.push_str(&wrap(
            &format!(
                "These options of Linux perf are refused by name: {}.",
                refused.join(" ")
            ),
            7,
        ));
    }
    if let Some(after) = command.get_after_long_help() {
        text.push_str("\nNOTES\n");
        text.push_str(&wrap(&after.to_string(), 7));
    }
    page(context, "help", &text)
}

/// Prints text through the pager.
pub(crate) fn page(context: &Context, command: &str, text: &str) -> Result<(), CliError> {
    context.paginate(command)?;
    context.stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// How the value of an option is written after its name.
fn value_text(arg: &Arg) -> String {
    let name = arg
        .get_value_names()
        .and_then(<[_]>::first)
        .map(ToString::to_string)
        .unwrap_or_default();
    match Shape::of(arg) {
        Shape::Value => format!(" <{name}>"),
        Shape::Attached => format!("[=<{name}>]"),
        Shape::Optional => format!(" [<{name}>]"),
        Shape::Switch | Shape::Counter | Shape::NotYet => String::new(),
    }
}

fn matches_keyword(arg: &Arg, keyword: &str) -> bool {
    let keyword = keyword.trim_start_matches('-').to_lowercase();
    let contains = |text: &str| text.to_lowercase().contains(&keyword);
    let short = arg
        .get_short()
        .is_some_and(|short| short.to_string() == keyword);
    short
        || arg.get_long().is_some_and(contains)
        || arg
            .get_help()
            .is_some_and(|help| contains(&help.to_string()))
}

/// Fills paragraphs to the manual's width; one that begins with blanks keeps them as its own indentation.
fn wrap(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for paragraph in text.lines() {
        let words = paragraph.trim_start_matches(' ');
        let margin = " ".repeat(indent + paragraph.len() - words.len());
        let mut column = 0;
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if column > 0 && column + 1 + length <= MANUAL_WIDTH {
                out.push(' ');
                column += 1;
            } else {
                if column > 0 {
                    out.push('\n');
                }
                out.push_str(&margin);
                column = margin.len();
            }
            out.push_str(word);
            column += length;
        }
        out.push('\n');
    }
    out
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A String takes every write.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_filled_and_keep_their_indentation() {
        let text = format!(
            "{}\n  {}\n\nend",
            "word ".repeat(20).trim_end(),
            "item ".repeat(17).trim_end()
        );
        let filled = wrap(&text, 4);
        let lines: Vec<&str> = filled.lines().collect();
        assert!(
            lines.iter().all(|line| line.len() <= MANUAL_WIDTH),
            "{filled}"
        );
        assert_eq!(lines[0], format!("    {}", "word ".repeat(15).trim_end()));
        assert_eq!(lines[1], format!("    {}", "word ".repeat(5).trim_end()));
        assert_eq!(lines[2], format!("      {}", "item ".repeat(15).trim_end()));
        assert_eq!(lines[3], format!("      {}", "item ".repeat(2).trim_end()));
        assert_eq!(lines[4..], ["", "    end"]);
    }
}
