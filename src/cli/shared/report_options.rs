//! Options shared by `report`, `top`, `annotate` and `diff`.

use clap::ArgMatches;
use regex::Regex;

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The default pattern of the key `parent`: system calls and page faults.
pub(crate) const DEFAULT_PARENT_PATTERN: &str = "^sys_|^do_page_fault";

/// Parses `--percent-limit`.
pub(crate) fn limit_option(matches: &ArgMatches) -> Result<Option<f64>, CliError> {
    let Some(text) = matches.get_one::<String>("percent-limit") else {
        return Ok(None);
    };
    let limit = percent(text)
        .ok_or_else(|| CliError::usage(format!("--percent-limit: '{text}' is not a percentage")))?;
    Ok(Some(limit))
}

/// Parses a percentage from 0 to 100, with or without `%`.
pub(crate) fn percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// Parses an option with a regular expression.
pub(crate) fn regex(matches: &ArgMatches, option: &str) -> Result<Option<Regex>, CliError> {
    let text = matches.get_one::<String>(option);
    text.map(|text| compile(option, text)).transpose()
}

/// Compiles the regular expression given by `option`.
pub(crate) fn compile(option: &str, text: &str) -> Result<Regex, CliError> {
    let compiled = Regex::new(text);
    compiled.map_err(|error| {
        // The error has several lines with an indented expression.
        let message = error.to_string();
        let (first, rest) = message.split_once('\n').unwrap_or((&message, ""));
        CliError::usage(format!("--{option} {text}: {first}")).details(rest)
    })
}

/// Parses `--column-widths`; 0 means as wide as needed.
pub(crate) fn widths(list: &str) -> Result<Vec<usize>, CliError> {
    let words = list.split(',').map(str::trim);
    let widths = words.map(|word| match word {
        "" => Ok(0),
        word => word
            .parse()
            .map_err(|_| CliError::usage(format!("-w {list}: '{word}' is not a column width"))),
    });
    widths.collect()
}

/// Whether `--percentage`, by default the setting `hist.percentage`, is `relative`.
pub(crate) fn is_relative(matches: &ArgMatches, context: &Context) -> Result<bool, CliError> {
    let given = matches.get_one::<String>("percentage").map(String::as_str);
    match given.or_else(|| context.config.text("hist.percentage")) {
        Some("relative") => Ok(true),
        Some("absolute") | None => Ok(false),
        Some(word) => Err(CliError::usage(format!(
            "--percentage: '{word}' is neither relative nor absolute"
        ))),
    }
}

/// Parses `--field-separator`; `\t` is a tab.
pub(crate) fn separator(text: &str) -> String {
    match text {
        "\\t" => "\t".to_owned(),
        text => text.to_owned(),
    }
}
