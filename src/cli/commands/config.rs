//! `rperf config`: settings, shown and changed.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_safefs::{Opened, Refusal, is_users, read_all, write_whole};

use crate::cli::config::{Config, MAX_SIZE, edit};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::{flag, switch};

const ABOUT: &str = "\
Shows the settings that are in effect, those that are named, or changes them: 'config report.children=false'. Changes go to \
~/.perfconfig, or where PERF_CONFIG says; the rest of the file stays as it is.";

/// The options.
pub(super) fn command() -> Command {
    Command::new("config")
        .long_about(ABOUT)
        .arg(
            switch("list")
                .short('l')
                .help("show all settings; the same as nothing at all"),
        )
        .arg(switch("system").help("the settings of /etc/perfconfig alone"))
        .arg(switch("user").help("the settings of ~/.perfconfig alone"))
        .arg(Arg::new("settings").num_args(0..).value_name("setting"))
}

/// Shows or changes settings.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let on = |name| flag(matches, name) == Some(true);
    let words = matches.get_many::<String>("settings").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    if on("system") && on("user") {
        return Err(CliError::usage("  Error: only one config file at a time"));
    }
    if on("list") && !words.is_empty() {
        return Err(CliError::usage("  Error: -l takes no arguments")
            .hint("a name alone shows its value, NAME=VALUE changes it"));
    }
    let chosen = match (on("system"), on("user")) {
        (true, _) => Some(Config::system_file()),
        (_, true) => Some(user_file()?),
        _ => None,
    };
    let alone = chosen.as_deref().map(Config::of);
    for finding in alone.iter().flat_map(Config::findings) {
        context.note(finding);
    }
    let config = alone.as_ref().unwrap_or(&context.config);
    let mut out = context.stdout();
    if words.is_empty() {
        for (name, value) in config.settings() {
            writeln!(out, "{name}={value}")?;
        }
    }
    let settings: Vec<Setting<'_>> = words
        .iter()
        .map(|word| setting(word))
        .collect::<Result<_, _>>()?;
    for setting in settings.iter().filter(|setting| setting.value.is_none()) {
        let (name, value) = (
            setting.name,
            config.text(&setting.name.to_ascii_lowercase()),
        );
        if let Some(value) = value {
            writeln!(out, "{name}={value}")?;
        }
    }
    out.flush()?;
    if settings.iter().any(|setting| setting.value.is_some()) {
        let file = chosen.map_or_else(user_file, Ok)?;
        change(&file, &settings)?;
    }
    Ok(Exit::Ok)
}

/// One word of the command line.
struct Setting<'a> {
    name: &'a str,
    value: Option<&'a str>,
}

fn setting(word: &str) -> Result<Setting<'_>, CliError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let refuse = |what: &str| {
        Err(CliError::message(
            255,
            format!("The config variable does not contain {what}: {word}"),
        ))
    };
    let letters = |name: &str| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    match name.split_once('.') {
        None | Some(("", _)) => return refuse("a section name"),
        Some((_, "")) => return refuse("a variable name"),
        Some(_) if !letters(name) => return refuse("a name of letters, digits, '-' and '_'"),
        Some(_) if value == Some("") => return refuse("a value"),
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
    Ok(Setting { name, value })
}

fn user_file() -> Result<PathBuf, CliError> {
    Config::user_file().ok_or_else(|| {
        CliError::message(255, "there is no home directory to keep settings in")
            .hint("set HOME, or PERF_CONFIG to the name of a file")
    })
}

/// Sets all of them in one go: the file changes whole or not at all.
fn change(file: &Path, settings: &[Setting<'_>]) -> Result<(), CliError> {
    let shown = file.display();
    let failed = |error: io::Error| anyhow::Error::new(error).context(shown.to_string());
    let file = target(file).map_err(failed)?;
    let found = match Opened::find(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Some(found.map_err(failed)?),
    };
    let mut text = match &found {
        None => String::new(),
        Some(found) => text_of(found).map_err(failed)?,
    };
    for setting in settings {
        if let Some(value) = setting.value {
            text = edit::set(&text, setting.name, value).map_err(|(line, cause)| {
                CliError::message(
                    255,
                    format!("bad config file line {line} in {shown}: {cause}"),
                )
                .hint("nothing was changed")
            })?;
        }
    }
    let written = write_whole(&file, |out| {
        if let Some(found) = &found {
            out.get_ref()
                .set_permissions(found.metadata().permissions())?;
        }
        out.write_all(text.as_bytes())
    });
    Ok(written.map_err(failed)?)
}

/// The file to be changed: a link that is root's or the user's own stays one, and what it leads to is changed.
fn target(file: &Path) -> io::Result<PathBuf> {
    let is_link = |found: &fs::Metadata| found.is_symlink();
    match fs::symlink_metadata(file).ok().filter(is_link) {
        Some(link) if is_users(link.uid()) => fs::canonicalize(file),
        Some(_) => Err(Refusal::ForeignLink.into()),
        None => Ok(file.to_owned()),
    }
}

fn text_of(found: &Opened) -> io::Result<String> {
    let bytes = read_all(found.for_reading()?, MAX_SIZE)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}
