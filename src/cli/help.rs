//! Help in perf's layout: the list of commands, the option summary of `-h`, the manual text of `--help`.
//!
//! Options are described by the clap declarations that the parser uses; synopses are those of the command table.

mod groups;
mod summary;

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Arg, Command};

pub(crate) use self::summary::{list_options, option_lines, summary, usage};
use super::commands::{COMMANDS, CommandTitle};
use super::context::Context;
use super::error::CliError;
use super::examples;
use super::globals::SYNOPSIS;
use super::options::{OptionShape, options};
use super::shared::wrap::wrap;

/// The width of help, in columns.
const WIDTH: usize = 80;

/// The indentation of the text of a manual's section, in columns.
const SECTION_INDENT: usize = 7;

/// The indentation of the text below an option or an example, in columns.
const EXPLANATION_INDENT: usize = 11;

/// Prints the usage line and one line per command.
pub(crate) fn overview(context: &Context) -> Result<(), CliError> {
    let program = context.program;
    let mut text = format!(
        "\n usage: {program} {SYNOPSIS}\n\n The most commonly used {program} commands are:\n"
    );
    for entry in COMMANDS {
        push_line(
            &mut text,
            format_args!("   {:<16}{}", entry.name, entry.summary),
        );
    }
    push_line(
        &mut text,
        format_args!(
            "\n See '{program} help COMMAND' for more information on a specific command.\n"
        ),
    );
    context.stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Prints the manual text of a command. Its synopsis is the usage lines without `or: `.
pub(crate) fn manual(
    context: &Context,
    title: CommandTitle<'_>,
    command: &Command,
) -> Result<(), CliError> {
    let program = context.program;
    let name = wrap(
        &format!("{program}-{} - {}", title.name, title.summary),
        SECTION_INDENT,
        WIDTH,
    );
    let mut text = format!("NAME\n{name}\nSYNOPSIS\n");
    text.push_str(&usage(program, title, "       ").replace("   or: ", "       "));
    text.push('\n');
    if let Some(about) = command.get_long_about() {
        text.push_str("\nDESCRIPTION\n");
        text.push_str(&wrap(&about.to_string(), SECTION_INDENT, WIDTH));
    }
    let groups = groups::grouped(title.name, command, |_any_option| true);
    if !groups.is_empty() {
        text.push_str("\nOPTIONS\n");
    }
    for (index, (heading, args)) in groups.iter().enumerate() {
        if groups.len() > 1 {
            let lead = if index == 0 { "" } else { "\n" };
            push_line(&mut text, format_args!("{lead}   {heading}"));
        }
        let args: Vec<String> = args.iter().map(|arg| option_text(arg)).collect();
        text.push_str(&args.join("\n"));
    }
    let refused: Vec<String> = options(command)
        .filter(|arg| OptionShape::of(arg) == OptionShape::NotYet)
        .map(|arg| super::options::spelling(arg).into_owned())
        .collect();
    if !refused.is_empty() {
        text.push_str("\nNOT SUPPORTED YET\n");
        text.push_str(&wrap(
            &format!(
                "These options of Linux perf are refused by name: {}.",
                refused.join(" ")
            ),
            SECTION_INDENT,
            WIDTH,
        ));
    }
    let examples = examples::of(title.name);
    if !examples.is_empty() {
        text.push_str("\nEXAMPLES\n");
    }
    for example in examples {
        push_line(&mut text, format_args!("       {program} {}", example.line));
        text.push_str(&wrap(example.purpose, EXPLANATION_INDENT, WIDTH));
    }
    if let Some(after) = command.get_after_long_help() {
        text.push_str("\nNOTES\n");
        text.push_str(&wrap(&after.to_string(), SECTION_INDENT, WIDTH));
    }
    print_paged(context, "help", &text)
}

/// Returns a line with the names of an option and its value, and below it the help.
fn option_text(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = summary::value_text(arg);
    let mut text = format!("       {}{value}\n", names.join(", "));
    if let Some(help) = arg.get_long_help().or_else(|| arg.get_help()) {
        text.push_str(&wrap(&help.to_string(), EXPLANATION_INDENT, WIDTH));
    }
    text
}

/// Prints text on the standard output, or in the pager if it is enabled for `command`.
pub(crate) fn print_paged(context: &Context, command: &str, text: &str) -> Result<(), CliError> {
    context.paginate(command)?;
    context.stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}
