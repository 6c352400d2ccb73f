//! `--to-perf`: recordings of other tools as a perf.data.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use clap::ArgMatches;
use rperf_buildid_cache::{Cache, SpecialObject};
use rperf_import::Error;
use rperf_import::trace_dat::{Imported, TraceDat, is_trace_dat};
use rperf_safefs::{FileKind, Folder, FoundFile};

use super::Written;
use super::target::Target;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::shared::sampling::command_line;

/// The first bytes of a perf.data.
const PERF_DATA: &[u8] = b"PERFILE2";

/// Converts the file of `-i`.
pub(super) fn run(
    matches: &ArgMatches,
    context: &Context,
    target: &Target<'_>,
) -> Result<ExitStatus, CliError> {
    let given = given_input(matches, target)?;
    let path = Path::new(given);
    let file = FoundFile::find(path).and_then(|found| found.for_reading());
    let bytes = file
        .and_then(|file| rperf_sys::map(&file))
        .map_err(|error| CliError::message(255, format!("failed to open {given}: {error}")))?;
    if bytes.starts_with(PERF_DATA) {
        return Err(CliError::message(
            255,
            format!("{given} is a perf.data already"),
        ));
    }
    if !is_trace_dat(&bytes) {
        let message =
            format!("incompatible file format ({given}): it is not a trace.dat of trace-cmd");
        return Err(CliError::message(255, message));
    }
    let explain = |error: Error| {
        let hint = match &error {
            Error::Clock { .. } => {
                Some("record with a clock in nanoseconds: trace-cmd record -C mono")
            }
            _ => None,
        };
        let error = CliError::from(anyhow::Error::new(error).context(given.clone()));
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    };
    let trace = TraceDat::parse(&bytes).map_err(explain)?;
    for instance in trace.instances() {
        context.warn(format_args!(
            "{given}: events of the instance '{instance}' are left out"
        ));
    }
    let imported = write(target, &trace, &command_line(context)).map_err(|error| match error {
        WriteFailure::Import(error) => explain(error),
        WriteFailure::Output(error) => {
            CliError::message(255, format!("failed to write {}: {error}", target.path))
        }
    })?;
    if imported.has_stacks {
        keep_symbols(&trace, context);
    }
    let written = Written {
        samples: imported.samples,
        bytes: Some(imported.bytes),
    };
    target.report(context, path, &written);
    Ok(ExitStatus::Ok)
}

/// Returns the file of `-i`.
fn given_input<'m>(matches: &'m ArgMatches, target: &Target<'_>) -> Result<&'m String, CliError> {
    if target.path == "-" {
        let message = "--to-perf -: a recording is written to a file, not to the standard output";
        return Err(CliError::usage(message));
    }
    matches.get_one::<String>("input").ok_or_else(|| {
        CliError::usage("--to-perf: no input given").hint("give a trace.dat with -i")
    })
}

enum WriteFailure {
    Import(Error),
    Output(io::Error),
}

/// Writes the file atomically. Only its owner can read it, as with 'record'.
fn write(
    target: &Target<'_>,
    trace: &TraceDat<'_>,
    command: &[String],
) -> Result<Imported, WriteFailure> {
    let (folder, name) = Folder::of(Path::new(target.path)).map_err(WriteFailure::Output)?;
    let kind = folder.kind(name).map_err(WriteFailure::Output)?;
    if kind.is_some_and(|kind| kind != FileKind::File) {
        let error = io::Error::other("it exists and is not a file");
        return Err(WriteFailure::Output(error));
    }
    let mut failure = None;
    let written = folder.write_atomic(name, 0o600, |out: &mut BufWriter<File>| {
        trace.write(out, command).map_err(|error| {
            failure = Some(error);
            io::Error::other("the conversion failed")
        })
    });
    written.map_err(|error| match failure {
        Some(failure) => WriteFailure::Import(failure),
        None => WriteFailure::Output(error),
    })
}

/// Stores the traced kernel's symbols in the build-id cache, where 'report' finds them.
fn keep_symbols(trace: &TraceDat<'_>, context: &Context) {
    let Some(kernel) = trace.kernel_symbols() else {
        context.warn(format_args!(
            "the trace has stacks, but no addresses of kernel functions: use 'report --kallsyms' with a copy of the traced machine's /proc/kallsyms"
        ));
        return;
    };
    let Some(root) = context.buildid_dir() else {
        return;
    };
    let special = SpecialObject::kernel(&kernel.build_id);
    let kept = Cache::new(root).add_special(&special, || Ok(kernel.text.to_vec()));
    if let Err(error) = kept {
        context.warn(format_args!(
            "the kernel's symbols cannot be stored in the build-id cache: {error}"
        ));
    }
}
