//! `--size`: lists the contents that an archive would have, with their sizes.

use std::io::Write as _;
use std::path::Path;

use rperf_buildid_cache::Cache;
use rperf_safefs::FoundFile;

use super::{ArchiveContents, PackedObject, missing_name};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Width of the column of sizes.
const WIDTH: usize = 12;

/// Prints sizes in bytes: that of `recording`, if given (`--all`); that of each object, or `missing`; and the total.
pub(super) fn print(
    recording: Option<&Path>,
    contents: ArchiveContents<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let cache = context.buildid_dir().map(Cache::new);
    let mut out = context.stdout();
    let mut total: u64 = 0;
    if let Some(recording) = recording {
        total = size(recording)?;
        writeln!(out, "{total:>WIDTH$} {}", recording.display())?;
    }
    for object in contents.objects {
        let Some(packed) = PackedObject::of(object, cache.as_ref())? else {
            writeln!(out, "{:>WIDTH$} {}", "missing", missing_name(object))?;
            continue;
        };
        let mut bytes: u64 = 0;
        for file in &packed.files {
            bytes = bytes.saturating_add(size(file.path())?);
        }
        total = total.saturating_add(bytes);
        writeln!(
            out,
            "{bytes:>WIDTH$} {} {}",
            packed.id,
            packed.name.display()
        )?;
    }
    writeln!(out, "{total:>WIDTH$} bytes before compression")?;
    out.flush()?;
    Ok(())
}

fn size(file: &Path) -> std::io::Result<u64> {
    Ok(FoundFile::find(file)?.metadata().len())
}
