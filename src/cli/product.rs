//! Files that commands make of recordings.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rperf_sys::write_whole;

use super::context::Context;
use super::error::CliError;

/// Writes a file that appears whole or not at all; `-` is the standard output.
pub(crate) fn write_to(
    path: &Path,
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if path == Path::new("-") {
        let mut out = context.stdout();
        write(&mut out)?;
        out.flush()?;
        return Ok(());
    }
    // What is no file, such as /dev/stdout, can't be replaced.
    let written = match path.metadata().is_ok_and(|old| !old.is_file()) {
        true => File::create(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        }),
        false => write_whole(path, |out| write(out)),
    };
    written.map_err(|error| {
        CliError::message(255, format!("failed to write {}: {error}", path.display()))
    })
}
