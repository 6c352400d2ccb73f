//! `rperf config`: shows and changes settings.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_safefs::{FoundFile, Refusal, is_trusted_owner, read_all, write_atomic};

use crate::cli::config::{Config, MAX_SIZE, edit};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, switch};

const ABOUT: &str = "\
Shows all settings or the named ones, or changes settings: 'config report.children=false'. Changes are written to \
~/.perfconfig or the file that PERF_CONFIG names, with --system to /etc/perfconfig; other lines of the file are kept.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("config")
        .long_about(ABOUT)
        .arg(
            switch("list")
                .short('l')
                .help("list all settings (the default)"),
        )
        .arg(switch("system").help("use only /etc/perfconfig"))
        .arg(switch("user").help("use only ~/.perfconfig, or the file that PERF_CONFIG names"))
        .arg(Arg::new("settings").num_args(0..).value_name("setting"))
}

/// Shows or changes settings.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let is_set = |name| flag(matches, name) == Some(true);
    let arguments = matches.get_many::<String>("settings").unwrap_or_default();
    let arguments: Vec<&str> = arguments.map(String::as_str).collect();
    if is_set("system") && is_set("user") {
        return Err(CliError::usage("  Error: only one config file at a time"));
    }
    if is_set("list") && !arguments.is_empty() {
        return Err(CliError::usage("  Error: -l takes no arguments")
            .hint("NAME shows a setting, NAME=VALUE changes it"));
    }
    let only_file = match (is_set("system"), is_set("user")) {
        (true, _) => Some(Config::system_file()),
        (_, true) => Some(user_file()?),
        _ => None,
    };
    let file_config = only_file.as_deref().map(Config::of);
    for finding in file_config.iter().flat_map(Config::findings) {
        context.note(finding);
    }
    let config = file_config.as_ref().unwrap_or(&context.config);
    let mut out = context.stdout();
    if arguments.is_empty() {
        for (name, value) in config.settings() {
            writeln!(out, "{name}={value}")?;
        }
    }
    let settings: Vec<SettingArgument<'_>> = arguments
        .iter()
        .map(|argument| parse_argument(argument))
        .collect::<Result<_, _>>()?;
    for setting in settings.iter().filter(|setting| setting.value.is_none()) {
        let name = setting.name;
        // The user may write the section and the key in capitals.
        let value = config.text_in_any_case(name);
        match (value, Config::describe_unknown(name)) {
            (Some(value), _) => writeln!(out, "{name}={value}")?,
            (None, Some(unknown)) => context.warn(unknown),
            (None, None) => {}
        }
    }
    out.flush()?;
    if settings.iter().any(|setting| setting.value.is_some()) {
        let file = only_file.map_or_else(user_file, Ok)?;
        change(&file, &settings)?;
        for setting in settings.iter().filter(|setting| setting.value.is_some()) {
            if let Some(why) = Config::why_unused(setting.name) {
                context.warn(format_args!("{} has no effect: {why}", setting.name));
            }
            if let Some(unknown) = Config::describe_unknown(setting.name) {
                context.warn(unknown);
            }
        }
    }
    Ok(ExitStatus::Ok)
}

/// One argument: NAME, or NAME=VALUE.
struct SettingArgument<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

fn parse_argument(word: &str) -> Result<SettingArgument<'_>, CliError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let refuse = |problem: &str| {
        Err(CliError::message(
            255,
            format!("The config variable {problem}: {word}"),
        ))
    };
    let has_valid_characters = |name: &str| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    match name.split_once('.') {
        None | Some(("", _)) => return refuse("does not contain a section name"),
        Some((_, "")) => return refuse("does not contain a variable name"),
        Some(_) if !has_valid_characters(name) => {
            return refuse("has a character other than letters, digits, '-', '_' and '.'");
        }
        Some(_) if value == Some("") => return refuse("does not contain a value"),
        Some(_) => {}
    }
    if let Some(value) = value
        && let Err(expected) = Config::check(name, value)
    {
        return Err(CliError::message(
            255,
            format!("{name} = {value}: {expected}"),
        ));
    }
    Ok(SettingArgument { name, value })
}

fn user_file() -> Result<PathBuf, CliError> {
    Config::user_file().ok_or_else(|| {
        CliError::message(255, "no home directory for the settings")
            .hint("set HOME, or PERF_CONFIG to a file name")
    })
}

/// Changes `file` atomically, or its target if it is a symlink: sets the settings for which a value was given. Others, which are
/// only shown, are ignored.
fn change(file: &Path, settings: &[SettingArgument<'_>]) -> Result<(), CliError> {
    let name = file.display();
    let failed = |error: io::Error| anyhow::Error::new(error).context(name.to_string());
    let destination = destination(file).map_err(failed)?;
    let existing = match FoundFile::find(&destination) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        existing => Some(existing.map_err(failed)?),
    };
    let mut text = match &existing {
        None => String::new(),
        Some(existing) => text_of(existing).map_err(failed)?,
    };
    for setting in settings {
        if let Some(value) = setting.value {
            text = edit::set(&text, setting.name, value).map_err(|(line, cause)| {
                CliError::message(
                    255,
                    format!("bad config file line {line} in {name}: {cause}"),
                )
                .hint("nothing was written; correct this line first")
            })?;
        }
    }
    let written = write_atomic(&destination, |out| {
        if let Some(existing) = &existing {
            out.get_ref()
                .set_permissions(existing.metadata().permissions())?;
        }
        out.write_all(text.as_bytes())
    });
    Ok(written.map_err(failed)?)
}

/// Returns the file to write for `file`. Follows a symlink that root or the user owns; refuses other symlinks.
fn destination(file: &Path) -> io::Result<PathBuf> {
    let is_link = |metadata: &fs::Metadata| metadata.is_symlink();
    match fs::symlink_metadata(file).ok().filter(is_link) {
        Some(link) if is_trusted_owner(link.uid()) => fs::canonicalize(file),
        Some(_) => Err(Refusal::ForeignLink.into()),
        None => Ok(file.to_owned()),
    }
}

fn text_of(found: &FoundFile) -> io::Result<String> {
    let bytes = read_all(found.for_reading()?, MAX_SIZE)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}
