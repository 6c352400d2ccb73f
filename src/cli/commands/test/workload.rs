//! `-w`: runs a workload. With `--record-ctl`, events of a recording are enabled before and disabled after it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use clap::ArgMatches;
use rperf_safefs::{PathOrigin, find_in_place};
use rperf_workloads::{WORKLOADS, Workload, WorkloadError, find};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// The answer of `record --control` to each command.
const ACKNOWLEDGEMENT: &[u8] = b"ack\n";

/// Prints the names of the workloads; with `-v` also their arguments and summaries.
pub(super) fn list(verbosity: u8, context: &Context) -> Result<ExitStatus, CliError> {
    let mut out = context.stdout();
    for workload in WORKLOADS {
        let Workload { name, .. } = workload;
        match verbosity {
            0 => writeln!(out, "{name}")?,
            _ => writeln!(
                out,
                "{:<48} {}",
                format!("{name} {}", workload.arguments),
                workload.summary
            )?,
        }
    }
    out.flush()?;
    Ok(ExitStatus::Ok)
}

/// Runs the workload `name`.
pub(super) fn run(
    name: &str,
    arguments: &[String],
    matches: &ArgMatches,
) -> Result<ExitStatus, CliError> {
    let workload = find(name).ok_or_else(|| unknown(name))?;
    let control = matches.get_one::<String>("record-ctl");
    let mut control = control.map(|word| RecordControl::open(word)).transpose()?;
    if let Some(control) = &mut control {
        control.send("enable\n")?;
    }
    workload
        .run(arguments)
        .map_err(|error| invalid(error, workload))?;
    if let Some(control) = &mut control {
        control.send("disable\n")?;
    }
    Ok(ExitStatus::Ok)
}

fn unknown(name: &str) -> CliError {
    let names: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
    let names = names.join(", ");
    CliError::message(255, format!("No workload found: {name}")).hint(format!("workloads: {names}"))
}

fn invalid(error: WorkloadError, workload: &Workload) -> CliError {
    let Workload {
        name, arguments, ..
    } = workload;
    match error {
        WorkloadError::Argument { .. } | WorkloadError::TooMany { .. } => {
            let usage = format!("usage: -w {name} {arguments}");
            CliError::usage(error.to_string()).hint(usage.trim_end())
        }
        error => CliError::from(anyhow::Error::new(error).context(*name)),
    }
}

/// The FIFOs of a recording with `--control`.
struct RecordControl {
    commands: File,
    answers: Option<File>,
}

impl RecordControl {
    /// Opens the FIFOs of `fifo:COMMANDS[,ACK]`; waits until the recording has opened them.
    fn open(word: &str) -> Result<Self, CliError> {
        let invalid = || {
            let message = format!("--record-ctl: '{word}' is not the name of a fifo");
            CliError::usage(message)
                .hint("give fifo:COMMANDS[,ACK], the fifos of 'record --control'")
        };
        let names = word.strip_prefix("fifo:").ok_or_else(invalid)?;
        let (commands, answers) = match names.split_once(',') {
            Some((commands, answers)) => (commands, Some(answers)),
            None => (names, None),
        };
        if commands.is_empty() || answers.is_some_and(str::is_empty) {
            return Err(invalid());
        }
        let commands = fifo(commands, |found| found.for_writing())?;
        // "Any type": also a FIFO; `for_reading` opens only regular files.
        let answers = answers.map(|name| fifo(name, |found| found.for_reading_any_type()));
        Ok(Self {
            commands,
            answers: answers.transpose()?,
        })
    }

    /// Sends a command, and waits for its answer if a FIFO for answers was given.
    fn send(&mut self, command: &str) -> Result<(), CliError> {
        let failed = |error: io::Error| {
            let context = format!("--record-ctl: {}", command.trim_end());
            CliError::from(anyhow::Error::new(error).context(context))
        };
        self.commands
            .write_all(command.as_bytes())
            .map_err(failed)?;
        let Some(answers) = &mut self.answers else {
            return Ok(());
        };
        // The answer is written in one piece, so one read gets all of it. As in perf, it ends with a zero byte.
        let mut answer = [0; 16];
        let length = answers.read(&mut answer).map_err(failed)?;
        match answer[..length].starts_with(ACKNOWLEDGEMENT) {
            true => Ok(()),
            false => Err(failed(io::Error::other("the answer is not 'ack'"))),
        }
    }
}

/// Opens a FIFO in one direction.
fn fifo(
    path: &str,
    open: impl FnOnce(&rperf_safefs::FoundFile) -> io::Result<File>,
) -> Result<File, CliError> {
    let opened = match find_in_place(Path::new(path), PathOrigin::Given) {
        Ok(Some(found)) if found.is_fifo() => open(&found),
        // `find_in_place` finds only FIFOs and devices: it also returns `None` for regular files and folders.
        Ok(None) if !Path::new(path).exists() => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        Ok(_) => Err(io::Error::other("not a fifo")),
        Err(error) => Err(error),
    };
    opened.map_err(|error| {
        let context = format!("--record-ctl: failed to open '{path}'");
        CliError::from(anyhow::Error::new(error).context(context))
    })
}
