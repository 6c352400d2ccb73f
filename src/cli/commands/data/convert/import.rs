//! `--to-perf`: recordings of other tools as a perf.data.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use clap::ArgMatches;
use rperf_buildid_cache::{Cache, KERNEL_OBJECT, SpecialObject, hexadecimal};
use rperf_import::Error;
use rperf_import::script_text::{ScriptText, SymbolFile, SymbolFileKind};
use rperf_import::trace_dat::{TraceDat, is_trace_dat};
use rperf_names::counted;
use rperf_perfdata::is_perf_data;
use rperf_safefs::{FileKind, Folder, FoundFile};

use super::ConversionSummary;
use super::target::{ConversionTarget, STDOUT};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::shared::namespace::NO_CACHE;
use crate::cli::shared::sampling::command_line;

/// Number of bytes at the start of a file that decide whether it is text.
const TEXT_START: usize = 4096;

/// Converts the file of `-i`.
pub(super) fn run(
    matches: &ArgMatches,
    context: &Context,
    target: &ConversionTarget<'_>,
) -> Result<ExitStatus, CliError> {
    let given = given_input(matches, target)?;
    let path = Path::new(given);
    let file = FoundFile::find(path).and_then(|found| found.for_reading());
    let bytes = file
        .and_then(|file| rperf_sys::map_open_file(&file))
        .map_err(|error| CliError::message(255, format!("failed to open {given}: {error}")))?;
    if is_perf_data(&bytes) {
        return Err(CliError::message(
            255,
            format!("{given} is a perf.data already"),
        ));
    }
    let summary = match (is_trace_dat(&bytes), is_text(&bytes)) {
        (true, _) => trace_dat(&bytes, given, context, target)?,
        (false, true) => script_text(&bytes, given, context, target)?,
        (false, false) => {
            let message = format!(
                "incompatible file format ({given}): it is neither a trace.dat of trace-cmd nor text of 'script'"
            );
            return Err(CliError::message(255, message));
        }
    };
    target.report(context, path, &summary);
    Ok(ExitStatus::Ok)
}

/// Whether a file can be text of `script`: it is not empty, and its first [`TEXT_START`] bytes have no NUL.
fn is_text(bytes: &[u8]) -> bool {
    let start = bytes.get(..TEXT_START).unwrap_or(bytes);
    !start.is_empty() && !start.contains(&0)
}

/// The error of a conversion, with the path of the file as the user gave it (`given`) and, for some errors, a hint.
fn explain(error: Error, given: &str) -> CliError {
    let hint = match &error {
        Error::Clock { .. } => Some("record with a clock in nanoseconds: trace-cmd record -C mono"),
        Error::Line { .. } => {
            Some("only the default layout of 'script' is read: without -F, -G and --show-* options")
        }
        _ => None,
    };
    let error = CliError::from(anyhow::Error::new(error).context(given.to_owned()));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Converts a trace.dat.
fn trace_dat(
    bytes: &[u8],
    given: &str,
    context: &Context,
    target: &ConversionTarget<'_>,
) -> Result<ConversionSummary, CliError> {
    let trace = TraceDat::parse(bytes).map_err(|error| explain(error, given))?;
    for instance in trace.instances() {
        context.warn(format_args!(
            "{given}: events of the instance '{instance}' are left out"
        ));
    }
    let command = command_line(context);
    let imported = write(target, |out| trace.write(out, &command))
        .map_err(|failure| failure.error(given, target))?;
    if imported.has_stacks {
        match trace.kernel_symbols() {
            None => context.warn(format_args!(
                "the trace has stacks, but no addresses of kernel functions: give 'report' the /proc/kallsyms of the traced machine with --kallsyms"
            )),
            Some(kernel) => keep_symbols(
                &[SymbolFile {
                    kind: SymbolFileKind::Kernel,
                    name: KERNEL_OBJECT.to_owned(),
                    build_id: kernel.build_id,
                    // Text of /proc/kallsyms, not code.
                    bytes: kernel.text.to_vec(),
                }],
                context,
            ),
        }
    }
    Ok(ConversionSummary {
        samples: imported.samples,
        bytes: Some(imported.bytes),
    })
}

/// Converts text of `script`.
fn script_text(
    bytes: &[u8],
    given: &str,
    context: &Context,
    target: &ConversionTarget<'_>,
) -> Result<ConversionSummary, CliError> {
    let text = ScriptText::new(bytes);
    let command = command_line(context);
    let imported = write(target, |out| text.write(out, &command))
        .map_err(|failure| failure.error(given, target))?;
    if imported.skipped_lines > 0 {
        context.warn(format_args!(
            "{given}: records other than samples are left out ({})",
            counted(imported.skipped_lines, "line")
        ));
    }
    keep_symbols(&imported.symbol_files, context);
    Ok(ConversionSummary {
        samples: imported.samples,
        bytes: Some(imported.bytes),
    })
}

/// Returns the path of `-i`.
///
/// # Errors
///
/// Status 129: no `-i`, or the standard output as `target`.
fn given_input<'m>(
    matches: &'m ArgMatches,
    target: &ConversionTarget<'_>,
) -> Result<&'m String, CliError> {
    if target.destination == STDOUT {
        let message = "--to-perf -: a recording is written to a file, not to the standard output";
        return Err(CliError::usage(message));
    }
    matches.get_one::<String>("input").ok_or_else(|| {
        CliError::usage("--to-perf: no input given")
            .hint("give a trace.dat, or text of 'script', with -i")
    })
}

/// Why a perf.data was not written.
enum WriteFailure {
    /// The input cannot be converted.
    Import(Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl WriteFailure {
    fn error(self, given: &str, target: &ConversionTarget<'_>) -> CliError {
        match self {
            Self::Import(error) => explain(error, given),
            Self::Output(error) => CliError::message(
                255,
                format!("failed to write {}: {error}", target.destination),
            ),
        }
    }
}

/// Writes the target's file with `convert`, atomically. Only its owner can read it, as with 'record'.
fn write<T>(
    target: &ConversionTarget<'_>,
    convert: impl FnOnce(&mut BufWriter<File>) -> Result<T, Error>,
) -> Result<T, WriteFailure> {
    let (folder, name) =
        Folder::parent_of(Path::new(target.destination)).map_err(WriteFailure::Output)?;
    let kind = folder.kind(name).map_err(WriteFailure::Output)?;
    if kind.is_some_and(|kind| kind != FileKind::File) {
        let error = io::Error::other("it exists and is not a regular file");
        return Err(WriteFailure::Output(error));
    }
    let mut failure = None;
    let written = folder.write_atomic(name, 0o600, |out: &mut BufWriter<File>| {
        convert(out).map_err(|error| {
            failure = Some(error);
            // Only makes `write_atomic` fail; `failure` is reported instead.
            io::Error::other("the conversion failed")
        })
    });
    written.map_err(|error| match failure {
        Some(failure) => WriteFailure::Import(failure),
        None => WriteFailure::Output(error),
    })
}

/// Adds files with symbols to the build-id cache, where 'report' finds them.
fn keep_symbols(files: &[SymbolFile], context: &Context) {
    // Without files there is nothing to keep; with `NO_CACHE` (/dev/null) as its directory, the cache is off.
    let root = context.buildid_dir().filter(|_| !files.is_empty());
    let Some(root) = root.filter(|root| root != Path::new(NO_CACHE)) else {
        return;
    };
    let cache = Cache::new(root);
    for file in files {
        let content = || Ok(file.bytes.clone());
        let kept = match file.kind {
            SymbolFileKind::Kernel => {
                cache.add_special(&SpecialObject::kernel(&file.build_id), content)
            }
            SymbolFileKind::Vdso => {
                cache.add_special(&SpecialObject::vdso(&file.build_id), content)
            }
            SymbolFileKind::Object => {
                let id = hexadecimal(&file.build_id);
                cache.add_image(Path::new(&file.name), &id, &file.bytes)
            }
        };
        if let Err(error) = kept {
            context.warn(format_args!(
                "the functions of {} cannot be kept in the build-id cache: {error}",
                file.name
            ));
        }
    }
}
