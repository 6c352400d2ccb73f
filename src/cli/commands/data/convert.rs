//! `rperf data convert`: converts a recording to the format of another tool, or the recording of another tool to a perf.data.

mod ctf;
mod import;
mod json;
mod otlp;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
mod parquet_missing;
mod tables;
mod target;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, ArgMatches};
use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_export::{Profile, ProfileConversion, firefox, perfetto, pprof, speedscope};
use rperf_perfdata::Metadata;
use rperf_resolve::{Resolver, UserStacks};

#[cfg(not(feature = "parquet"))]
use self::parquet_missing as parquet;
use self::target::{ConversionFormat, ConversionTarget};
use super::is_set;
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{count, flag, switch, value};
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;
use crate::cli::stack_folding::{
    can_complete_callchains, stack_copy_size, stack_options, warn_of_truncated,
};
use crate::cli::symbol_options::SymbolSources;
use crate::cli::symbols::shows_inlines;

/// Options for conversion only.
pub(super) fn options() -> Vec<Arg> {
    let mut options = vec![
        value("event", "name").short('e').help(
            "with --to-folded: event (default: offcpu-time, otherwise the one with most samples)",
        ),
        switch("all").help(
            "with --to-json and --to-ctf: also records other than samples (comm, fork, exit, mmap); in JSON also the event and period of each sample",
        ),
        switch("tod").help(
            "with --to-json and --to-ctf: wall-clock times, in nanoseconds since 1970 (needs record -k)",
        ),
    ];
    options.extend(
        ConversionFormat::ALL
            .map(|format| value(format.option(), format.value_name()).help(format.help())),
    );
    options
}

/// For `data check`: refuses options that only `data convert` uses, except the options on symbols and `-j`, which are accepted
/// without effect.
pub(super) fn refuse_options(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let formats = ConversionFormat::ALL
        .map(ConversionFormat::option)
        .into_iter();
    let mut options_with_value = formats.chain(["event"]);
    let with_value = options_with_value.find(|option| matches.get_one::<String>(option).is_some());
    let switch = ["all", "tod"]
        .into_iter()
        .find(|switch| is_set(matches, switch));
    let is_verbose = count(matches, "verbose") > 0;
    match with_value.or(switch).or(is_verbose.then_some("verbose")) {
        None => Ok(()),
        Some(option) => Err(CliError::usage(format!(
            "{} data check: --{option} is an option of 'data convert'",
            context.program
        ))),
    }
}

/// Writes the recording in the requested format; with `--to-perf`, the recording of another tool as a perf.data.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let target = ConversionTarget::new(matches)?;
    if target.format == ConversionFormat::Folded {
        return folded(matches, context, &target);
    }
    if target.format == ConversionFormat::Perf {
        return import::run(matches, context, &target);
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    // As in Linux perf, JSON is written even without samples: it also has the header data.
    if analysis.replay.sample_counts().iter().sum::<u64>() == 0
        && target.format != ConversionFormat::Json
    {
        let message = format!("The {} data has no samples!", input.path.display());
        return Err(CliError::message(255, message));
    }
    let conversion = DataConversion {
        matches,
        analysis: &analysis,
    };
    let written = conversion.write(&target)?;
    analysis.conclude()?;
    target.report(context, &input.path, &written);
    Ok(ExitStatus::Ok)
}

/// Writes folded stacks: runs `flamegraph --folded` with the same options.
fn folded(
    matches: &ArgMatches,
    context: &Context,
    target: &ConversionTarget,
) -> Result<ExitStatus, CliError> {
    let mut words: Vec<OsString> = vec!["--folded".into(), "-o".into(), target.destination.into()];
    for option in [
        "input",
        "event",
        "vmlinux",
        "kallsyms",
        "symfs",
        "debuginfod",
    ] {
        if let Some(value) = matches.get_one::<String>(option) {
            words.push(format!("--{option}={value}").into());
        }
    }
    for option in [
        "force",
        "quiet",
        "inline",
        "ignore-vmlinux",
        "demangle",
        "demangle-kernel",
        "mark-truncated",
    ] {
        match flag(matches, option) {
            Some(true) => words.push(format!("--{option}").into()),
            Some(false) => words.push(format!("--no-{option}").into()),
            None => {}
        }
    }
    words.extend((0..count(matches, "verbose")).map(|_| OsString::from("-v")));
    if let Some(jobs) = matches.get_one::<u64>("jobs") {
        words.push(format!("--jobs={jobs}").into());
    }
    dispatch(context, OsStr::new("flamegraph"), &words)
}

/// A conversion of one recording.
struct DataConversion<'c> {
    matches: &'c ArgMatches,
    analysis: &'c Analysis<'c>,
}

/// The size of a conversion's output.
struct ConversionSummary {
    /// Number of samples.
    samples: u64,
    /// Size in bytes of the written files, or of the request to a collector; `None` for the standard output, or if the size of
    /// the file cannot be read.
    bytes: Option<u64>,
}

impl DataConversion<'_> {
    /// Writes the output.
    fn write(&self, target: &ConversionTarget<'_>) -> Result<ConversionSummary, CliError> {
        let (context, data) = (self.analysis.context, self.analysis.data());
        let symbols = SymbolSources::for_recording(self.matches, context)?;
        let resolver = self.analysis.resolver(&symbols);
        // The maximum number of unwound frames. It is `None` without data that completes callchains: then nothing is unwound.
        let limit = can_complete_callchains(data.events()).then_some(usize::MAX);
        let stacks = UserStacks::new(&resolver, stack_options(data.metadata(), limit));
        // Set for the outputs that are not one file (CTF, Parquet, a collector); otherwise the file's size is read below.
        let mut bytes = None;
        let samples = match target.format {
            ConversionFormat::Json => self.write_json(target, &resolver, &stacks)?,
            ConversionFormat::Ctf => {
                let (samples, size) = self.write_ctf(target, &stacks)?;
                bytes = Some(size);
                samples
            }
            _ => {
                let profile = self.profile(&resolver, &stacks)?;
                match target.format {
                    ConversionFormat::Ndjson => self.write_ndjson(target, &profile)?,
                    ConversionFormat::Otlp => self.write_otlp(target, &profile)?,
                    ConversionFormat::OtlpCollector => {
                        bytes = Some(self.send_otlp(target, &profile)?)
                    }
                    ConversionFormat::Parquet => {
                        bytes = Some(self.write_parquet(target, &profile)?)
                    }
                    _ => self.write_profile(target, &profile)?,
                }
                let samples = profile
                    .tracks
                    .iter()
                    .map(|track| track.samples.len() as u64);
                samples.sum()
            }
        };
        let verbose = context.verbosity(self.matches) > 0;
        report_symbol_problems(context, &resolver, verbose);
        warn_of_truncated(context, &stacks.summary(), stack_copy_size(data.events()));
        Ok(ConversionSummary {
            samples,
            bytes: bytes.or_else(|| target.size()),
        })
    }

    /// Name and version of the program that writes the output.
    fn exporter(&self) -> String {
        let program = &self.analysis.context.program;
        format!("{program} {}", env!("CARGO_PKG_VERSION"))
    }

    fn profile(
        &self,
        resolver: &Resolver<'_>,
        stacks: &UserStacks<'_, '_>,
    ) -> Result<Profile, CliError> {
        let inlines = flag(self.matches, "inline");
        let Analysis { replay, jobs, .. } = self.analysis;
        let gather = ProfileConversion::new(resolver, self.analysis.metadata(), |event| {
            shows_inlines(&event.attr, inlines)
        });
        let gathered = replay.fold(*jobs, || stacks.fold(gather.worker()));
        Ok(gathered.into_inner().finish())
    }

    fn write_profile(
        &self,
        target: &ConversionTarget<'_>,
        profile: &Profile,
    ) -> Result<(), CliError> {
        let Analysis { context, input, .. } = self.analysis;
        let recording = self.analysis.metadata();
        let features = recording.features;
        let start = start(recording, profile).unwrap_or_else(|| estimated_start(input, profile));
        let exporter = self.exporter();
        let name = input.path.to_string_lossy();
        write_to(Path::new(target.destination), context, |out| {
            // The output's file extension does not matter here: pprof is always compressed, Perfetto never.
            match target.format {
                ConversionFormat::Pprof => return pprof::write(profile, Some(start), out),
                ConversionFormat::Perfetto => return perfetto::write(profile, out),
                _ => {}
            }
            let (arch, cpu) = (features.arch(), features.cpudesc());
            let command_line = features.cmdline().map(|words| words.join(" "));
            let about = firefox::MetaInputs {
                product: &name,
                exporter: &exporter,
                arch: arch.as_deref(),
                cpu: cpu.as_deref(),
                command_line: command_line.as_deref(),
                start: Some(start),
            };
            compressed(target.destination, out, |out| match target.format {
                ConversionFormat::Firefox => firefox::write(profile, &about, out),
                _ => speedscope::write(profile, &name, &exporter, out),
            })
        })
    }
}

/// Compresses the output with gzip if `path` ends in `.gz`.
fn compressed(
    path: &str,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if !path.ends_with(".gz") {
        return write(out);
    }
    let mut out = GzEncoder::new(out, Compression::fast());
    write(&mut out)?;
    out.finish().map(drop)
}

/// Estimates the time of the first sample, in nanoseconds since 1970: assumes that the file was last modified when the last sample
/// was taken.
fn estimated_start(input: &Input, profile: &Profile) -> i64 {
    let (first, last) = profile.span();
    let span = i64::try_from(last.saturating_sub(first)).unwrap_or(i64::MAX);
    input
        .mtime
        .saturating_mul(1_000_000_000)
        .saturating_sub(span)
}

/// The time of the first sample, in nanoseconds since 1970, if the recording has a clock reference.
fn start(recording: Metadata<'_>, profile: &Profile) -> Option<i64> {
    let clock = recording.features.clock_data()?;
    let first = i128::from(profile.first_time());
    let since_reference = first - i128::from(clock.clockid_time);
    i64::try_from(i128::from(clock.wall_clock) + since_reference).ok()
}

/// Returns the nanoseconds to add to a time of the recording's clock for the time since 1970.
///
/// # Errors
///
/// Status 255: the recording has no clock reference.
fn wall_clock_offset(recording: Metadata<'_>) -> Result<i64, CliError> {
    let clock = recording.features.clock_data();
    let offset = clock.map(|clock| clock.wall_clock.wrapping_sub(clock.clockid_time));
    offset.map(u64::cast_signed).ok_or_else(|| {
        CliError::message(255, "--tod: the recording has no clock reference")
            .hint("record with -k CLOCK_MONOTONIC")
    })
}
