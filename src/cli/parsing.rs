//! Parses the words of a command with its declared options, and answers the requests for help that every command accepts.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use clap::{ArgMatches, Command};

use super::argv::{self, ParsedCommand, UsageError};
use super::commands::CommandTitle;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use super::help;
use super::output::OutputStreams;

/// The result of [`parse`].
pub(crate) enum Parsed {
    /// The options and words of the command, which is to be run.
    Matches(ArgMatches),
    /// Help or the list of options was requested and printed.
    Answered(ExitStatus),
}

/// Parses `words`, which follow the name of the command.
///
/// # Errors
///
/// Status 129: options or words that the command does not take, such as an unknown option or an invalid value. Errors of stdout.
pub(crate) fn parse(
    context: &Context,
    title: CommandTitle<'_>,
    command: Command,
    words: &[OsString],
) -> Result<Parsed, CliError> {
    let words = match argv::normalise(&command, words) {
        Ok(ParsedCommand::Run(words)) => words,
        // `-h`, with keywords that narrow the summary: as in perf, on stderr and with the status of a usage error.
        Ok(ParsedCommand::Summary(keywords)) => {
            OutputStreams::error(&help::summary(context.program, title, &command, &keywords));
            return Ok(Parsed::Answered(ExitStatus::Usage));
        }
        // `--help`.
        Ok(ParsedCommand::Manual) => {
            help::manual(context, title, &command)?;
            return Ok(Parsed::Answered(ExitStatus::Ok));
        }
        // `--list-opts`.
        Ok(ParsedCommand::ListOptions) => {
            writeln!(context.stdout(), "{}", help::list_options(&command))?;
            return Ok(Parsed::Answered(ExitStatus::Ok));
        }
        Err(error) => return Err(usage_error(context, title, &command, error)),
    };
    let has_input_option = command.get_arguments().any(|arg| arg.get_id() == "input");
    let parser = command
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true);
    let matches = parser
        .args_override_self(true)
        .try_get_matches_from(words)
        .map_err(|error| {
            let explained = clap_error(context, title, &error);
            match unexpected_file(&error) {
                Some(file) if has_input_option => {
                    explained.hint(format!("-i {file} reads this file"))
                }
                _ => explained,
            }
        })?;
    Ok(Parsed::Matches(matches))
}

/// Explains why the options cannot be parsed. The leading blanks of the messages, one or two, are those of perf;
/// [`UsageError::NotYet`] has no counterpart in perf. For a word such as `-fre`, the message about the unknown switch suggests
/// the long option that begins with `fre`, if any. For an ambiguous prefix, the message names the last two candidates, and the
/// details list all.
fn usage_error(
    context: &Context,
    title: CommandTitle<'_>,
    command: &Command,
    error: UsageError,
) -> CliError {
    let usage = || help::usage(context.program, title, " Usage: ");
    let hint = format!("'{} {} -h' lists the options", context.program, title.name);
    let suggestion = |nearest: Option<String>, words: &str| {
        nearest
            .map(|name| format!("; {words} {name}?"))
            .unwrap_or_default()
    };
    match error {
        UsageError::UnknownOption(name, nearest) => {
            let nearest = suggestion(nearest, "did you mean");
            CliError::usage(format!("  Error: unknown option '{name}'{nearest}"))
                .details(&usage())
                .hint(hint)
        }
        UsageError::UnknownSwitch(letter, long) => {
            let long = suggestion(long, "did you mean (with two dashes)");
            CliError::usage(format!("  Error: unknown switch '{letter}'{long}"))
                .details(&usage())
                .hint(hint)
        }
        UsageError::Ambiguous {
            given,
            pair: [first, second],
            ids,
        } => {
            let candidates = help::option_lines(command, |arg| {
                ids.iter().any(|id| arg.get_id() == id.as_str())
            });
            CliError::usage(format!(
                " Error: Ambiguous option: {given} (could be {first} or {second})"
            ))
            .details(&usage())
            .details(candidates.trim_end())
        }
        UsageError::NeedsValue(given) => {
            CliError::usage(format!(" Error: {given} requires a value"))
                .details(&usage())
                .hint(hint)
        }
        UsageError::TakesNoValue(given) => {
            CliError::usage(format!(" Error: {given} takes no value"))
                .details(&usage())
                .hint(hint)
        }
        UsageError::NotYet(option, instead) => {
            let separator = if instead.is_empty() { "" } else { "; " };
            let (program, name) = (context.program, title.name);
            CliError::usage(format!(
                "{program} {name}: {option} is not supported yet{separator}{instead}"
            ))
        }
    }
}

/// The extra word that clap rejected, if it is the name of a file.
fn unexpected_file(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let word = error.get(ContextKind::InvalidArg)?.to_string();
    Path::new(&word).is_file().then_some(word)
}

/// Explains an error of clap, such as an invalid number.
fn clap_error(context: &Context, title: CommandTitle<'_>, error: &clap::Error) -> CliError {
    use clap::error::{ContextKind, ErrorKind};
    let part = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = part(ContextKind::InvalidArg);
    // clap also gives the name of the option's value, as in `--freq <n>`.
    let name = argument.split([' ', '=']).next().unwrap_or_default();
    let name = name.trim_start_matches('-');
    let message = match error.kind() {
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error)
                .map(ToString::to_string)
                .unwrap_or_default();
            format!(
                " Error: option `{name}' {cause}: '{}'",
                part(ContextKind::InvalidValue)
            )
        }
        ErrorKind::UnknownArgument => format!("  Error: unexpected word '{argument}'"),
        _ => format!(
            " Error: {}",
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
        ),
    };
    CliError::usage(message)
        .details(&help::usage(context.program, title, " Usage: "))
        .hint(format!(
            "'{} {} -h' lists the options",
            context.program, title.name
        ))
}
