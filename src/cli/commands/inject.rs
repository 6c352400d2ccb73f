//! `rperf inject`: copies a recording, and adds or removes information.

mod build_ids;
mod callchains;
mod jit;
mod output;
mod plan;

use clap::{Arg, ArgMatches, Command};
use rperf_rewrite::{CopyError, StreamCopy, copy_to_file, copy_to_stream};

use self::output::{InjectOutput, InjectSummary};
use self::plan::InjectPlan;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, Input, OpenedInput, invalid_recording};
use crate::cli::itrace;
use crate::cli::options::{counter, list, switch, unsupported, value};
use crate::cli::stream::RecordingStream;
use crate::cli::symbol_options::args::{ignore_vmlinux, vmlinux};

const ABOUT: &str = "\
Copies a recording, from a file or a pipe, to a file (-o) or to stdout, and changes it on the way: adds build-ids of \
programs and libraries (-b and others) and functions of run-time compilers (--jit), replaces stack copies by callchains \
(--convert-callchain), or removes addresses and names (--redact). Without options the records are copied unchanged. A file is \
written under a temporary name and appears when it is complete.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("inject")
        .long_about(ABOUT)
        .arg(
            switch("build-ids")
                .short('b')
                .help("add the build-ids of objects that samples hit"),
        )
        .arg(switch("buildid-all").help("add the build-ids of all mapped objects"))
        .arg(switch("mmap2-buildids").short('B').help(
            "put build-ids into the mappings of objects that samples hit, and drop other mappings",
        ))
        .arg(switch("mmap2-buildid-all").help("put build-ids into all mappings"))
        .args(changes())
        .arg(list("known-build-ids", "build-id path[,...]").help(
            "use these build-ids instead of reading the files; file://FILE reads lines from a file",
        ))
        .arg(input::option())
        .arg(
            value("output", "file")
                .short('o')
                .help("output file (default: -, stdout)"),
        )
        .arg(itrace::option())
        .arg(switch("strip").help("drop the trace, and all samples except those of --itrace"))
        .arg(vmlinux())
        .arg(ignore_vmlinux())
        .arg(input::force())
        .arg(counter("verbose").short('v').help("print what is added"))
        .arg(unsupported(
            "kallsyms",
            "the kernel's build-id is read from -k FILE or from the running kernel",
        ))
        .arg(unsupported("guest-data", "use Linux perf"))
        .arg(unsupported("guestmount", "use Linux perf"))
        .arg(unsupported(
            "vm-time-correlation",
            "record host and guest with one clock (-k CLOCK_MONOTONIC_RAW)",
        ))
}

/// The options for changes, except those for build-ids and for hardware traces (`--itrace`, `--strip`).
fn changes() -> [Arg; 5] {
    [
        switch("jit").short('j').help(
            "add the functions in jit-PID.dump files, as mappings of an object file next to each dump",
        ),
        switch("sched-stat")
            .short('s')
            .help("merge sched_stat_* with sched_switch samples: where and how long tasks slept"),
        switch("convert-callchain")
            .help("unwind stack copies into callchains, and drop copies and user registers"),
        switch("aslr").help(
            "move mappings and samples to other addresses; drop registers, physical addresses and hardware traces",
        ),
        switch("redact")
            .help("like --aslr, and replace names, paths, texts and machine details, for sharing"),
    ]
}

/// Copies the recording.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let plan = InjectPlan::new(matches, context)?;
    let target = InjectOutput::new(matches, context)?;
    let opened = OpenedInput::open(matches, context)?;
    let opened = match opened {
        OpenedInput::Stream(_) if plan.needs_whole_input() => {
            OpenedInput::Whole(opened.complete(context)?)
        }
        opened => opened,
    };
    let written = match opened {
        OpenedInput::Stream(stream) => copy_stream(&plan, stream, &target)?,
        OpenedInput::Whole(input) => {
            target.check_input(&input.path)?;
            // Without --itrace, the trace is copied, not decoded.
            let decodes_by_default = false;
            let decoded = itrace::decoded(&input, matches, decodes_by_default, context)?;
            // Fails for --strip if no samples were decoded.
            plan.check_decoded(&input, decoded.is_some())?;
            copy_whole(&plan, decoded.as_ref().unwrap_or(&input), &target)?
        }
    };
    plan.report(&written, context);
    Ok(ExitStatus::Ok)
}

/// Copies a recording while it is read from a pipe.
fn copy_stream(
    plan: &InjectPlan<'_>,
    stream: RecordingStream,
    target: &InjectOutput<'_>,
) -> Result<InjectSummary, CliError> {
    let path = stream.path.clone();
    let name = path.display().to_string();
    let copy = StreamCopy::begin(stream.reader()?).map_err(|error| match error {
        CopyError::Read(cause) => invalid_recording(&path, &cause),
        other => CliError::failure(255, anyhow::Error::new(other).context(name.clone())),
    })?;
    let head = copy.head().clone();
    let mut events = head.events().to_vec();
    // Changes that need the complete recording use `copy_whole`, see `needs_whole_input`.
    let complete_recording = None;
    let pipeline = plan.pipeline(head.metadata(), complete_recording, &mut events)?;
    target.write_stream(&name, |out| copy.copy(&events, pipeline, out))
}

/// Copies a recording that is complete: a file, or a pipe that was read to its end.
fn copy_whole(
    plan: &InjectPlan<'_>,
    input: &Input,
    target: &InjectOutput<'_>,
) -> Result<InjectSummary, CliError> {
    let data = input.parse(plan.context)?;
    let name = input.path.display().to_string();
    let mut events = data.events().to_vec();
    let pipeline = plan.pipeline(data.metadata(), Some(&data), &mut events)?;
    // A recording in pipe mode remains in pipe mode, even if it is written to a regular file. `is_stream` is about the output.
    if data.header().is_pipe() || target.is_stream() {
        return target.write_stream(&name, |out| copy_to_stream(&data, &events, pipeline, out));
    }
    target.write_file(&name, |out| copy_to_file(&data, &events, pipeline, out))
}
