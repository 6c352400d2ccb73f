//! Output files derived from recordings.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use rperf_safefs::{PathOrigin, find_in_place, write_atomic};

use super::context::Context;
use super::error::CliError;
use super::output::text_file;

/// Writes a file with the content that `write` writes. Regular and new files are written atomically, others in place; `-` is the
/// standard output.
///
/// # Errors
///
/// Status 255: the file cannot be written.
pub(crate) fn write_to(
    path: &Path,
    context: &Context,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    if path == Path::new("-") {
        // Writes bytes unchanged from now on; only a terminal still gets control characters escaped.
        context.output.make_verbatim();
        let mut out = context.stdout();
        write(&mut out)?;
        out.flush()?;
        return Ok(());
    }
    let written = find_in_place(path, PathOrigin::Given).and_then(|in_place| match in_place {
        // FIFOs, devices, and what is behind links such as /dev/stdout. As with `-`, only a terminal gets control characters
        // escaped; other files get the bytes unchanged.
        Some(in_place) => {
            let mut out = BufWriter::new(text_file(in_place.for_writing()?));
            write(&mut out)?;
            out.flush()
        }
        None => write_atomic(path, |out| write(out)),
    });
    written.map_err(|error| {
        CliError::message(255, format!("failed to write {}: {error}", path.display()))
    })
}
