//! `--control`: commands for a running session.

use std::fs::File;
use std::io;
use std::path::Path;

use clap::{Arg, ArgMatches};
use rperf_safefs::{PathOrigin, find_in_place};
use rperf_session::Control;
use rperf_sys::duplicate_descriptor;

use super::explain::reason;
use crate::cli::error::CliError;
use crate::cli::options::value;

const LONG_HELP: &str = "\
Reads control commands from a fifo or an open file descriptor, one per line: enable and disable (all events, or the \
named one), evlist [-v|-g|-F], ping, stop, and for 'record' snapshot. Each executed command is acknowledged with the \
line 'ack' on the second fifo or descriptor, if given. -D -1 starts with all events disabled.";

/// The `--control` option.
pub(crate) fn option() -> Arg {
    value("control", "fd:n[,n]|fifo:path[,path]")
        .help("read control commands (enable, disable, stop, ...) from a fifo or file descriptor, write ack to the second")
        .long_help(LONG_HELP)
}

/// Opens the FIFOs or descriptors that the option names; `None` without the option.
pub(crate) fn control(matches: &ArgMatches) -> Result<Option<Control>, CliError> {
    let Some(word) = matches.get_one::<String>("control") else {
        return Ok(None);
    };
    let (kind, names) = word.split_once(':').unwrap_or((word, ""));
    let (commands, answers) = match names.split_once(',') {
        Some((commands, answers)) => (commands, Some(answers)),
        None => (names, None),
    };
    let open: fn(&str) -> io::Result<File> = match kind {
        "fd" => descriptor,
        "fifo" => fifo,
        _ => return Err(invalid_word(word)),
    };
    let opened = |name: &str| match name {
        "" => Err(invalid_word(word)),
        name => open(name).map_err(|error| {
            CliError::usage(format!(
                "--control: Failed to open '{name}': {}",
                reason(&error)
            ))
        }),
    };
    let answers = answers.map(opened).transpose()?;
    Ok(Some(Control::new(opened(commands)?, answers)))
}

fn invalid_word(word: &str) -> CliError {
    CliError::usage(format!(
        "--control: '{word}' is neither a fifo nor a file descriptor"
    ))
    .hint("give fifo:COMMANDS[,ACK] with paths, or fd:COMMANDS[,ACK] with numbers of open descriptors")
}

/// Opens a FIFO read-write, so that opening does not block, and reading does not end when the last writer exits.
fn fifo(path: &str) -> io::Result<File> {
    let path = Path::new(path);
    // `None` for a missing path, and for a regular file or a folder.
    match find_in_place(path, PathOrigin::Given)? {
        Some(found) => found.for_reading_and_writing_nonblocking(),
        None if path.exists() => Err(io::Error::other("not a fifo")),
        None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    }
}

fn descriptor(word: &str) -> io::Result<File> {
    let number = word.parse();
    duplicate_descriptor(number.map_err(|_| io::Error::other("not a number"))?)
}
