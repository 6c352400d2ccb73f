//! What is written, and where.

use std::fs;
use std::path::Path;

use clap::ArgMatches;

use super::super::is_set;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// A format of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Folded,
    Firefox,
    Perfetto,
    Pprof,
    Speedscope,
}

impl Format {
    pub(super) const ALL: [Self; 6] = [
        Self::Json,
        Self::Folded,
        Self::Firefox,
        Self::Perfetto,
        Self::Pprof,
        Self::Speedscope,
    ];

    /// The option that asks for it.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Json => "to-json",
            Self::Folded => "to-folded",
            Self::Firefox => "to-firefox",
            Self::Perfetto => "to-perfetto",
            Self::Pprof => "to-pprof",
            Self::Speedscope => "to-speedscope",
        }
    }

    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Json => "an object for each sample, as Linux perf writes it",
            Self::Folded => "a stack in each line, with its samples at the end",
            Self::Firefox => "for profiler.firefox.com; compressed where the name ends in .gz",
            Self::Perfetto => "for ui.perfetto.dev",
            Self::Pprof => "for 'go tool pprof'; always compressed",
            Self::Speedscope => "for speedscope.app; compressed where the name ends in .gz",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Folded => "folded",
            Self::Firefox => "Firefox",
            Self::Perfetto => "Perfetto",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
        }
    }
}

/// Where the recording goes.
pub(super) struct Target<'m> {
    pub(super) format: Format,
    pub(super) path: &'m str,
}

impl<'m> Target<'m> {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// None or several formats, what none of them has, a file that is there already.
    pub(super) fn new(matches: &'m ArgMatches) -> Result<Self, CliError> {
        let path = |option| matches.get_one::<String>(option).map(String::as_str);
        let given = |format: Format| Some((format, path(format.option())?));
        let mut given = Format::ALL.into_iter().filter_map(given);
        let Some((format, path)) = given.next() else {
            let options = Format::ALL.map(|format| format!("--{}", format.option()));
            return Err(
                CliError::message(255, "You must specify one of --to-ctf or --to-json.")
                    .hint(format!("there are {}", options.join(", "))),
            );
        };
        if let Some((other, _)) = given.next() {
            return Err(CliError::message(
                255,
                format!(
                    "You cannot specify both --{} and --{}.",
                    format.option(),
                    other.option()
                ),
            ));
        }
        for option in ["all", "tod"] {
            if is_set(matches, option) {
                let message = format!(
                    "--{option} is currently unsupported for {} output.",
                    format.name()
                );
                return Err(CliError::message(255, message));
            }
        }
        let replaced = Path::new(path).metadata().is_ok_and(|old| old.is_file());
        if replaced && !is_set(matches, "force") {
            let message = "Output file exists. Use --force to overwrite it.";
            return Err(CliError::message(255, message));
        }
        Ok(Self { format, path })
    }

    /// Tells what was written.
    pub(super) fn tell(&self, context: &Context, from: &Path, samples: u64) {
        let Self { format, path } = self;
        let program = context.program;
        let Ok(metadata) = fs::metadata(path) else {
            // To the standard output.
            return;
        };
        context.note(format_args!(
            "[ {program} data convert: Converted '{}' into {} data '{path}' ]",
            from.display(),
            format.name(),
        ));
        context.note(format_args!(
            "[ {program} data convert: Converted and wrote {:.3} MB ({samples} samples) ]",
            metadata.len() as f64 / f64::from(1 << 20),
        ));
    }
}
