//! The text of `--header` and `--header-only`: what the recorder noted about the machine and the run.

mod bpf;
pub(crate) mod calendar;
pub(crate) mod features;

pub use self::calendar::{clock, iso, stamp};
use std::io::{self, Write};

use rperf_perfdata::{Described, FeatureId, PerfData};

/// The last feature that perf 6.1 knows; later numbers are not in its list of missing ones.
const LAST_FEATURE: FeatureId = FeatureId::PMU_CAPS;

/// What the text depends on beside the file.
#[derive(Clone, Copy)]
pub struct HeaderOptions<'a> {
    /// When the file was last changed, in seconds since 1970.
    pub captured: i64,
    /// Seconds that local time is ahead of UTC at a moment (seconds since 1970).
    pub zone: &'a dyn Fn(i64) -> i64,
    /// Long sections (topology, caches) too (`-I`), not only a line that they are there.
    pub full: bool,
}

/// Writes the whole block, from one `# ========` to the next. In pipe mode perf closes the block before
/// the features, as they come later, and has no list of missing ones.
///
/// # Errors
/// What `out` says.
pub fn write_header(
    out: &mut dyn Write,
    data: &PerfData<'_>,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let header = data.header();
    if header.is_pipe() {
        write_stream_start(out, options)?;
        return write_features(out, data.described(), options);
    }
    captured(out, options)?;
    writeln!(out, "# header version : 1")?;
    writeln!(out, "# data offset    : {}", header.data.offset)?;
    writeln!(out, "# data size      : {}", header.data.size)?;
    writeln!(out, "# feat offset    : {}", header.data.end())?;
    write_features(out, data.described(), options)?;
    let missing = FeatureId::NAMED
        .iter()
        .filter(|(feature, _)| *feature <= LAST_FEATURE && !header.has(*feature));
    write!(out, "# missing features: ")?;
    for (_, name) in missing {
        write!(out, "{name} ")?;
    }
    writeln!(out, "\n# ========\n#")
}

/// Writes what is known of a stream before its first record.
///
/// # Errors
/// What `out` says.
pub fn write_stream_start(out: &mut dyn Write, options: &HeaderOptions<'_>) -> io::Result<()> {
    captured(out, options)?;
    writeln!(out, "# header version : 1")?;
    writeln!(out, "# data offset    : 0")?;
    writeln!(out, "# data size      : 0")?;
    writeln!(out, "# feat offset    : 0")?;
    writeln!(out, "# ========\n#")
}

/// Writes the lines of all features, in their order.
///
/// # Errors
/// What `out` says.
pub fn write_features(
    out: &mut dyn Write,
    recording: Described<'_>,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let mut present = recording.features.present();
    present.try_for_each(|feature| features::write(out, recording, feature, options))
}

fn captured(out: &mut dyn Write, options: &HeaderOptions<'_>) -> io::Result<()> {
    let zone = (options.zone)(options.captured);
    let local = calendar::ctime(options.captured.saturating_add(zone));
    writeln!(out, "# ========\n# captured on    : {local}")
}

#[cfg(test)]
mod tests;
