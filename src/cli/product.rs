//! Files that commands make of recordings.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rperf_safefs::{Naming, find_in_place, write_whole};

use super::context::Context;
use super::error::CliError;
use super::output::text_file;

/// Writes a file that appears whole or not at all; `-` is the standard output.
pub(crate) fn write_to(
    path: &Path,
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if path == Path::new("-") {
        context.output.make_verbatim();
        let mut out = context.stdout();
        write(&mut out)?;
        out.flush()?;
        return Ok(());
    }
    let written = find_in_place(path, Naming::Given).and_then(|found| match found {
        // What is no file, such as /dev/stdout, can't be replaced.
        Some(found) => {
            let mut out = BufWriter::new(text_file(found.for_writing()?));
            write(&mut out)?;
            out.flush()
        }
        None => write_whole(path, |out| write(out)),
    });
    written.map_err(|error| {
        CliError::message(255, format!("failed to write {}: {error}", path.display()))
    })
}
