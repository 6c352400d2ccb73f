//! The command line.
//!
//! The other crates leave printing, the environment and the exit of the process to this code, except when memory runs out.
//! One pass over the words of the command line finds the command ([`globals`]). [`argv`] rewrites the words after it, clap
//! parses the result, and the command's `run` does the work.

mod argv;
mod color;
mod commands;
mod config;
mod context;
mod debuginfod;
mod display;
mod error;
mod event_lookup;
mod event_tables;
mod examples;
mod external;
mod filter;
mod findings;
mod globals;
mod header;
mod help;
mod input;
mod itrace;
mod jobs;
mod kernel_copy;
mod kernel_listing;
mod live;
mod man;
mod memory;
mod missing_names;
mod name_bytes;
mod options;
mod output;
mod output_file;
mod pager;
mod parsing;
mod payloads;
mod pmus;
mod progress;
mod record_dump;
mod report_hints;
mod shared;
mod stack_folding;
mod stream;
mod switches;
mod symbol_options;
mod symbols;
mod tracefs;
mod usdt_markers;
mod vendor;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use rperf_sys::Allocator;

use self::config::Config;
use self::context::{Context, ProgramName};
use self::error::{CliError, ExitStatus};
use self::globals::RequestedTask;
use self::memory::{MemoryHint, unmapped_objects_error};
use self::output::OutputStreams;
use self::pager::Pager;
use self::parsing::Parsed;
use self::shared::probing::OwnProbes;

/// The global allocator.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Runs the command line of this process.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the arguments"
)]
pub(crate) fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let program = ProgramName::new(argv.first().map(OsString::as_os_str));
    let memory = MemoryHint::new(program);
    memory.set_message();
    let (globals, task) = match globals::parse(program, argv.get(1..).unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(error) => {
            OutputStreams::error_lines(&error.text());
            return error.exit().into();
        }
    };
    let config = Config::load();
    let handler_result = rperf_sys::handle_truncated_files();
    let context = Context {
        program,
        argv,
        globals,
        config,
        output: OutputStreams::new(),
        pager: Pager::default(),
        probes: OwnProbes::default(),
        memory,
    };
    for finding in context.config.findings() {
        context.note(finding);
    }
    if let Err(error) = handler_result {
        context.warn(format_args!(
            "cannot handle files that are truncated while being read: {error}"
        ));
    }
    let result = run(&context, task);
    // Removes the probes that this run created.
    context.probes.remove(&context);
    finish(&context, result)
}

/// Performs the requested task.
fn run(context: &Context, task: RequestedTask) -> Result<ExitStatus, CliError> {
    match task {
        RequestedTask::Command(name, words) => dispatch(context, &name, &words),
        RequestedTask::Nothing => {
            help::overview(context)?;
            Ok(ExitStatus::Failure(1))
        }
        RequestedTask::ListCommands => {
            let names: Vec<&str> = commands::COMMANDS.iter().map(|entry| entry.name).collect();
            line(context, &names.join(" "))
        }
        RequestedTask::ListOptions => line(context, &help::list_options(&globals::options())),
        RequestedTask::ExecPath if let Some(directory) = external::directory(context) => {
            line(context, &directory.to_string_lossy())
        }
        RequestedTask::ExecPath => {
            let program = std::env::current_exe()?;
            line(
                context,
                &program.parent().unwrap_or(&program).to_string_lossy(),
            )
        }
    }
}

/// Finds the command, or the subcommand that `words` name, and runs it with its parsed words.
pub(crate) fn dispatch(
    context: &Context,
    name: &OsStr,
    words: &[OsString],
) -> Result<ExitStatus, CliError> {
    let name = name.to_string_lossy();
    let mut entry = match commands::find(context, &name) {
        Ok(found) => found,
        Err(unknown) => return external::run(context, &name, words).unwrap_or(Err(unknown)),
    };
    let mut command = (entry.build)();
    let mut words = words.to_vec();
    // Options may precede and follow the subcommand, which may have subcommands, too.
    while let Some((index, subcommand)) =
        argv::first_positional_index(&command, &words).and_then(|index| {
            Some((
                index,
                commands::subcommand(entry, words.get(index)?.to_str()?)?,
            ))
        })
    {
        words.remove(index);
        (entry, command) = (subcommand, (subcommand.build)());
    }
    let has_jobs = command
        .get_arguments()
        .any(|option| option.get_id() == "jobs");
    let matches = match parsing::parse(context, entry.title(), command, &words)? {
        Parsed::Matches(matches) => matches,
        // Help or the list of options was requested and printed.
        Parsed::Answered(exit) => return Ok(exit),
    };
    if options::flag(&matches, "quiet") == Some(true) {
        context.output.set_quiet(true);
    }
    for unused in context.config.unused(entry.name) {
        context.warn(unused);
    }
    // For the hint when memory runs out. An invalid number of threads is ignored here: the command reports it.
    let is_threaded =
        has_jobs && jobs::jobs(&matches, context).is_ok_and(|jobs| jobs != NonZeroUsize::MIN);
    context.memory.set_threaded(is_threaded);
    (entry.run)(&matches, context)
}

/// Prints one line on stdout.
fn line(context: &Context, text: &str) -> Result<ExitStatus, CliError> {
    writeln!(context.stdout(), "{text}")?;
    Ok(ExitStatus::Ok)
}

/// Flushes the output, waits for the pager, prints the error, and returns the exit status, or ends this process by a signal.
fn finish(context: &Context, result: Result<ExitStatus, CliError>) -> ExitCode {
    let flushed = context.output.finish();
    context.pager.wait();
    if context.output.is_closed() {
        return end(ExitStatus::Signal(libc::SIGPIPE));
    }
    let result = match flushed {
        Err(error) if result.is_ok() => Err(CliError::failure(
            255,
            anyhow::Error::new(error).context("failed to write to the standard output"),
        )),
        _ => result,
    };
    // Object files that could not be mapped are an error if there is no other.
    let result = match unmapped_objects_error() {
        Some(error) if result.is_ok() => Err(error),
        _ => result,
    };
    let exit = result.unwrap_or_else(|error| {
        let error = context.memory.add_to(error);
        OutputStreams::error_lines(&error.text());
        error.exit()
    });
    end(if rperf_sys::found_truncated_file() {
        report_truncated_file(context, exit)
    } else {
        exit
    })
}

/// Reports that a file was truncated while being read. The output is incomplete, so the exit status is not 0.
fn report_truncated_file(context: &Context, exit: ExitStatus) -> ExitStatus {
    context.warn("a file was truncated while being read; the output above is incomplete");
    match exit {
        ExitStatus::Ok => ExitStatus::Failure(255),
        other => other,
    }
}

/// Ends this process by a signal if the exit status is that of a signal; otherwise returns the status.
fn end(exit: ExitStatus) -> ExitCode {
    if let ExitStatus::Signal(signal) = exit {
        rperf_sys::exit_by_signal(signal);
    }
    // Reached with a signal only if its default action doesn't end processes: then the status is the shell's (128 + signal).
    exit.into()
}
