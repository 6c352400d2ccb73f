//! The command line: words in, a command run, an exit status out.
//!
//! The only code of the project that prints, reads the environment or ends the process. One pass over the words finds
//! the command ([`globals`]), [`argv`] rewrites what follows it, clap parses that, and the command's `run` does the work.

mod argv;
mod color;
mod commands;
mod config;
mod context;
mod debuginfod;
mod diagnosis;
mod display;
mod dump;
mod error;
mod examples;
mod files;
mod filter;
mod findings;
mod globals;
mod groups;
mod header;
mod help;
mod input;
mod itrace;
mod jobs;
mod kernel_copy;
mod live;
mod man;
mod marks;
mod memory;
mod name_bytes;
mod options;
mod output;
mod pager;
mod payloads;
mod pmus;
mod product;
mod progress;
mod sampled;
mod spool;
mod stacks;
mod stream;
mod switches;
mod symbol_options;
mod symbols;
mod tracefs;
mod unpacked;
mod vendor;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::process::ExitCode;

use clap::Command;
use rperf_sys::Allocator;

use self::argv::{Misuse, Request};
use self::commands::Entry;
use self::commands::probe::OwnProbes;
use self::config::Config;
use self::context::{Context, Program};
use self::error::{CliError, Exit};
use self::globals::Task;
use self::memory::{MemoryHint, Unmapped};
use self::output::Output;
use self::pager::Pager;

/// All memory of the process.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Runs the command line of this process.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the arguments"
)]
pub(crate) fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    let program = Program::new(argv.first().map(OsString::as_os_str));
    let memory = MemoryHint::new(program);
    memory.explain();
    let (globals, task) = match globals::parse(program, argv.get(1..).unwrap_or_default()) {
        Ok(parsed) => parsed,
        Err(error) => {
            Output::error(&error.text());
            return error.exit().into();
        }
    };
    let config = Config::load();
    let guarded = rperf_sys::survive_cut_files();
    let context = Context {
        program,
        argv,
        globals,
        config,
        output: Output::new(),
        pager: Pager::default(),
        probes: OwnProbes::default(),
        memory,
    };
    for finding in context.config.findings() {
        context.note(finding);
    }
    if let Err(error) = guarded {
        context.warn(format_args!(
            "a file that is cut short while it is read will end this run: {error}"
        ));
    }
    let result = run(&context, task);
    context.probes.remove(&context);
    finish(&context, result)
}

/// Does what the command line asks for.
fn run(context: &Context, task: Task) -> Result<Exit, CliError> {
    match task {
        Task::Command(name, words) => dispatch(context, &name, &words),
        Task::Nothing => {
            help::overview(context)?;
            Ok(Exit::Failure(1))
        }
        Task::ListCommands => {
            let names: Vec<&str> = commands::COMMANDS.iter().map(|entry| entry.name).collect();
            line(context, &names.join(" "))
        }
        Task::ListOptions => line(context, &help::list_options(&globals::options())),
        Task::ExecPath => {
            let program = std::env::current_exe()?;
            line(
                context,
                &program.parent().unwrap_or(&program).to_string_lossy(),
            )
        }
    }
}

/// Finds the command and gives it its parsed words.
pub(crate) fn dispatch(
    context: &Context,
    name: &OsStr,
    words: &[OsString],
) -> Result<Exit, CliError> {
    let name = name.to_string_lossy();
    let whole = commands::find(context, &name)?;
    let command = (whole.build)();
    let part = argv::first_word(&command, words)
        .and_then(|index| Some((index, commands::part(whole, words.get(index)?.to_str()?)?)));
    let (entry, command, words) = match part {
        // Options may stand before and behind the word.
        Some((index, part)) => {
            let (before, behind) = words.split_at(index);
            let behind = behind.get(1..).unwrap_or_default();
            (part, (part.build)(), [before, behind].concat())
        }
        None => (whole, command, words.to_vec()),
    };
    let words = match argv::normalise(&command, &words) {
        Ok(Request::Run(words)) => words,
        Ok(Request::Summary(keywords)) => {
            Output::error(&help::summary(context.program, entry, &command, &keywords));
            return Ok(Exit::Usage);
        }
        Ok(Request::Manual) => {
            help::manual(context, entry, &command)?;
            return Ok(Exit::Ok);
        }
        Ok(Request::ListOptions) => return line(context, &help::list_options(&command)),
        Err(misuse) => return Err(explain(context, entry, &command, misuse)),
    };
    let parser = command
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true);
    let matches = parser
        .args_override_self(true)
        .try_get_matches_from(words)
        .map_err(|error| refused(context, entry, &error))?;
    if options::flag(&matches, "quiet") == Some(true) {
        context.output.set_quiet(true);
    }
    context.memory.set_command(&matches);
    (entry.run)(&matches, context)
}

/// Puts into words why the options are not understood.
fn explain(context: &Context, entry: &Entry, command: &Command, misuse: Misuse) -> CliError {
    let usage = || help::usage(context.program, entry, " Usage: ");
    let hint = format!("'{} {} -h' lists the options", context.program, entry.name);
    let near = |nearest: Option<String>, words: &str| {
        nearest
            .map(|name| format!("; {words} {name}?"))
            .unwrap_or_default()
    };
    match misuse {
        Misuse::UnknownOption(name, nearest) => {
            let nearest = near(nearest, "did you mean");
            CliError::usage(format!("  Error: unknown option '{name}'{nearest}"))
                .details(&usage())
                .hint(hint)
        }
        Misuse::UnknownSwitch(letter, long) => {
            let long = near(long, "did you mean, with two dashes,");
            CliError::usage(format!("  Error: unknown switch '{letter}'{long}"))
                .details(&usage())
                .hint(hint)
        }
        Misuse::Ambiguous {
            given,
            pair: [first, second],
            ids,
        } => {
            let candidates = help::lines_of(command, |arg| {
                ids.iter().any(|id| arg.get_id() == id.as_str())
            });
            CliError::usage(format!(
                " Error: Ambiguous option: {given} (could be {first} or {second})"
            ))
            .details(&usage())
            .details(candidates.trim_end())
        }
        Misuse::NeedsValue(given) => CliError::usage(format!(" Error: {given} requires a value"))
            .details(&usage())
            .hint(hint),
        Misuse::TakesNoValue(given) => CliError::usage(format!(" Error: {given} takes no value"))
            .details(&usage())
            .hint(hint),
        Misuse::NotYet(option, instead) => {
            let separator = if instead.is_empty() { "" } else { "; " };
            let command = format!("{} {}", context.program, entry.name);
            CliError::usage(format!(
                "{command}: {option} is not supported yet{separator}{instead}"
            ))
        }
    }
}

/// Puts into words what clap refused: a value that is no number, a word too many.
fn refused(context: &Context, entry: &Entry, error: &clap::Error) -> CliError {
    use clap::error::{ContextKind, ErrorKind};
    let part = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let argument = part(ContextKind::InvalidArg);
    let argument = argument
        .split([' ', '='])
        .next()
        .unwrap_or_default()
        .trim_start_matches('-')
        .to_owned();
    let message = match error.kind() {
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error)
                .map(ToString::to_string)
                .unwrap_or_default();
            format!(
                " Error: option `{argument}' {cause}: '{}'",
                part(ContextKind::InvalidValue)
            )
        }
        ErrorKind::UnknownArgument => format!(
            "  Error: unexpected word '{}'",
            part(ContextKind::InvalidArg)
        ),
        _ => format!(
            " Error: {}",
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ")
        ),
    };
    CliError::usage(message)
        .details(&help::usage(context.program, entry, " Usage: "))
        .hint(format!(
            "'{} {} -h' lists the options",
            context.program, entry.name
        ))
}

/// One line on stdout.
fn line(context: &Context, text: &str) -> Result<Exit, CliError> {
    writeln!(context.stdout(), "{text}")?;
    Ok(Exit::Ok)
}

/// Flushes, lets the user leave the pager, tells what went wrong, and settles the exit status.
fn finish(context: &Context, result: Result<Exit, CliError>) -> ExitCode {
    let flushed = context.output.finish();
    context.pager.wait();
    if context.output.is_closed() {
        return end(Exit::Signal(libc::SIGPIPE));
    }
    let result = match flushed {
        Err(error) if result.is_ok() => Err(CliError::failure(
            255,
            anyhow::Error::new(error).context("failed to write to the standard output"),
        )),
        _ => result,
    };
    let result = match Unmapped::error() {
        Some(error) if result.is_ok() => Err(error),
        _ => result,
    };
    let exit = result.unwrap_or_else(|error| {
        let error = context.memory.add_to(error);
        Output::error(&error.text());
        error.exit()
    });
    end(if rperf_sys::found_cut_file() {
        tell_of_cut_file(context, exit)
    } else {
        exit
    })
}

/// A file that was cut short while it was read: what is shown is not all, so that it is no success.
fn tell_of_cut_file(context: &Context, exit: Exit) -> Exit {
    context.warn(
        "a file was cut short while it was read; what was behind its new end is missing above",
    );
    match exit {
        Exit::Ok => Exit::Failure(255),
        other => other,
    }
}

/// Ends by a signal where the exit says so; returns the status otherwise.
fn end(exit: Exit) -> ExitCode {
    if let Exit::Signal(signal) = exit {
        rperf_sys::die_by(signal);
    }
    // A signal that cannot end this process leaves its number in the status.
    exit.into()
}
