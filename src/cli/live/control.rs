//! `--control`: where orders come from while a run goes on.

use std::fs::File;
use std::io;
use std::path::Path;

use clap::{Arg, ArgMatches};
use rperf_safefs::{Naming, find_in_place};
use rperf_session::Control;
use rperf_sys::duplicate;

use super::explain::reason;
use crate::cli::error::CliError;
use crate::cli::options::value;

const LONG_HELP: &str = "\
Takes orders while it runs, from a fifo or an open file descriptor, a line each: enable, disable (all events, or the one \
that is named behind it), evlist [-v|-g|-F], ping, stop, and for 'record' snapshot. Each that was carried out is answered by \
the line 'ack' in the second fifo or descriptor, if there is one. -D -1 begins with all events stopped.";

/// The option.
pub(crate) fn option() -> Arg {
    value("control", "fd:n[,n]|fifo:path[,path]")
        .help("take orders (enable, disable, stop, …) from a fifo or descriptor, and answer in the second")
        .long_help(LONG_HELP)
}

/// What the option names, open; none without it.
pub(crate) fn control(matches: &ArgMatches) -> Result<Option<Control>, CliError> {
    let Some(word) = matches.get_one::<String>("control") else {
        return Ok(None);
    };
    let (kind, names) = word.split_once(':').unwrap_or((word, ""));
    let (orders, answers) = match names.split_once(',') {
        Some((orders, answers)) => (orders, Some(answers)),
        None => (names, None),
    };
    let open: fn(&str) -> io::Result<File> = match kind {
        "fd" => descriptor,
        "fifo" => fifo,
        _ => return Err(wrong(word)),
    };
    let opened = |name: &str| match name {
        "" => Err(wrong(word)),
        name => open(name).map_err(|error| {
            CliError::usage(format!(
                "--control: Failed to open '{name}': {}",
                reason(&error)
            ))
        }),
    };
    let answers = answers.map(opened).transpose()?;
    Ok(Some(Control::new(opened(orders)?, answers)))
}

fn wrong(word: &str) -> CliError {
    CliError::usage(format!(
        "--control: '{word}' names no place that orders come from"
    ))
    .hint("give fifo:ORDERS[,ANSWERS] with paths, or fd:ORDERS[,ANSWERS] with numbers of open descriptors")
}

/// Opens a FIFO for both directions, so that neither end waits for the other nor sees it close.
fn fifo(path: &str) -> io::Result<File> {
    let path = Path::new(path);
    match find_in_place(path, Naming::Given)? {
        Some(found) => found.for_both_nonblocking(),
        None if path.exists() => Err(io::Error::other("it is no fifo")),
        None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
    }
}

fn descriptor(word: &str) -> io::Result<File> {
    let number = word.parse();
    duplicate(number.map_err(|_| io::Error::other("it is no number"))?)
}
