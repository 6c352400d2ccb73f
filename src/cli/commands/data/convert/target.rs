//! The format and the destination of a conversion.

use std::fs;
use std::path::Path;

use clap::ArgMatches;

use super::super::is_set;
use super::ConversionSummary;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::given_value;

/// The path that means the standard output.
pub(super) const STDOUT: &str = "-";

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConversionFormat {
    Json,
    Ctf,
    Ndjson,
    Parquet,
    Otlp,
    OtlpCollector,
    Folded,
    Firefox,
    Perfetto,
    Pprof,
    Speedscope,
    /// perf.data, from a recording of another tool.
    Perf,
}

impl ConversionFormat {
    pub(super) const ALL: [Self; 12] = [
        Self::Json,
        Self::Ctf,
        Self::Ndjson,
        Self::Parquet,
        Self::Otlp,
        Self::OtlpCollector,
        Self::Folded,
        Self::Firefox,
        Self::Perfetto,
        Self::Pprof,
        Self::Speedscope,
        Self::Perf,
    ];

    /// The option that selects the format.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Json => "to-json",
            Self::Ctf => "to-ctf",
            Self::Ndjson => "to-ndjson",
            Self::Parquet => "to-parquet",
            Self::Otlp => "to-otlp",
            Self::OtlpCollector => "otlp",
            Self::Folded => "to-folded",
            Self::Firefox => "to-firefox",
            Self::Perfetto => "to-perfetto",
            Self::Pprof => "to-pprof",
            Self::Speedscope => "to-speedscope",
            Self::Perf => "to-perf",
        }
    }

    /// Whether the output is a directory.
    fn writes_directory(self) -> bool {
        matches!(self, Self::Ctf | Self::Parquet)
    }

    /// The name of the option's value.
    pub(super) fn value_name(self) -> &'static str {
        match self {
            _ if self.writes_directory() => "directory",
            Self::OtlpCollector => "url",
            _ => "file",
        }
    }

    /// Whether the format supports `option`: `all` or `tod`.
    fn supports(self, option: &str) -> bool {
        matches!(option, "all" | "tod") && matches!(self, Self::Json | Self::Ctf)
    }

    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Json => "write one JSON object per sample, as Linux perf does",
            Self::Ctf => "write a CTF 1.8 trace into a folder, for babeltrace and Trace Compass",
            Self::Ndjson => {
                "write the tables of docs/dataset.md, one JSON object per row (compressed if the name ends in .gz)"
            }
            Self::Parquet => "add the tables of docs/dataset.md to a folder of Parquet files",
            Self::Otlp => {
                "write OpenTelemetry profiles, version v1development (compressed if the name ends in .gz)"
            }
            Self::OtlpCollector => "send OpenTelemetry profiles to a collector (http://HOST:4318)",
            Self::Folded => "write folded stacks: one stack per line with its count",
            Self::Firefox => {
                "write a profile for profiler.firefox.com (compressed if the name ends in .gz)"
            }
            Self::Perfetto => "write a trace for ui.perfetto.dev",
            Self::Pprof => "write a profile for 'go tool pprof' (always compressed)",
            Self::Perf => {
                "convert the file given with -i to perf.data: a trace.dat of trace-cmd, or text of 'script'"
            }
            Self::Speedscope => {
                "write a profile for speedscope.app (compressed if the name ends in .gz)"
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Ctf => "CTF",
            Self::Ndjson => "NDJSON",
            Self::Parquet => "Parquet",
            Self::Otlp | Self::OtlpCollector => "OTLP",
            Self::Folded => "folded",
            Self::Firefox => "Firefox",
            Self::Perfetto => "Perfetto",
            Self::Pprof => "pprof",
            Self::Speedscope => "speedscope",
            Self::Perf => "perf",
        }
    }
}

/// Format and destination.
pub(super) struct ConversionTarget<'m> {
    pub(super) format: ConversionFormat,
    /// A file, `-` for the standard output, a folder, or the address of a collector: the value of the option.
    pub(super) destination: &'m str,
}

impl<'m> ConversionTarget<'m> {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// No format or several, a format that this build lacks, a collector's address that is not an HTTP URL, an option that the
    /// format does not support, or an existing output file that may not be replaced.
    pub(super) fn new(matches: &'m ArgMatches) -> Result<Self, CliError> {
        let value = |option| matches.get_one::<String>(option).map(String::as_str);
        let with_value = |format: ConversionFormat| Some((format, value(format.option())?));
        let mut given = ConversionFormat::ALL.into_iter().filter_map(with_value);
        let Some((format, destination)) = given.next() else {
            let options = ConversionFormat::ALL.map(|format| format!("--{}", format.option()));
            return Err(
                CliError::message(255, "You must specify one of the output formats.")
                    .hint(format!("available: {}", options.join(", "))),
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
        if format == ConversionFormat::OtlpCollector {
            // Reports a wrong address before the recording is read.
            super::otlp::service_url(destination)?;
        }
        if format == ConversionFormat::Parquet {
            super::parquet::check_support()?;
        }
        let unsupported = |option: &&str| is_set(matches, option) && !format.supports(option);
        if let Some(option) = ["all", "tod"].into_iter().find(unsupported) {
            let message = format!(
                "--{option} is currently unsupported for {} output.",
                format.name()
            );
            let error = CliError::message(255, message);
            return Err(match option {
                "tod" => error.hint("--to-json and --to-ctf have wall-clock times"),
                _ => error.hint("only --to-json and --to-ctf write records other than samples"),
            });
        }
        if given_value::<String>(matches, "event").is_some() && format != ConversionFormat::Folded {
            let message = format!(
                "--event is for --to-folded; {} has all events",
                format.name()
            );
            return Err(CliError::usage(message));
        }
        check_existing(format, destination, is_set(matches, "force"))?;
        Ok(Self {
            format,
            destination,
        })
    }

    /// Size in bytes of the written output file, if the format writes one file; `None` for the standard output, or if the size
    /// cannot be read. Not called for directories and collectors: their conversions count the bytes.
    pub(super) fn size(&self) -> Option<u64> {
        let metadata = fs::metadata(self.destination).ok();
        metadata
            .filter(|_| self.destination != STDOUT)
            .map(|file| file.len())
    }

    /// Reports the written output; nothing if its size is unknown, as for the standard output. `from` is the recording.
    pub(super) fn report(&self, context: &Context, from: &Path, written: &ConversionSummary) {
        let Self {
            format,
            destination,
        } = self;
        let program = context.program;
        let Some(bytes) = written.bytes else {
            return;
        };
        context.note(format_args!(
            "[ {program} data convert: Converted '{}' into {} data '{destination}' ]",
            from.display(),
            format.name(),
        ));
        context.note(format_args!(
            "[ {program} data convert: Converted and wrote {:.3} MB ({} samples) ]",
            bytes as f64 / f64::from(1 << 20),
            written.samples,
        ));
    }
}

/// Refuses to replace an existing file by a directory, even with `--force`, and by another file without `--force`.
fn check_existing(format: ConversionFormat, path: &str, is_forced: bool) -> Result<(), CliError> {
    let is_file = |path: &str| Path::new(path).metadata().is_ok_and(|old| old.is_file());
    if path == STDOUT || !is_file(path) {
        return Ok(());
    }
    let refused = |message: &str| CliError::message(255, message);
    if format.writes_directory() {
        let message = format!("{path} is a file; --{} writes a directory", format.option());
        return Err(refused(&message).hint("give another path, or remove the file"));
    }
    match is_forced {
        true => Ok(()),
        false => Err(refused("Output file exists. Use --force to overwrite it.")),
    }
}
