//! The text of `--header` and `--header-only`: metadata of the machine and the run.

mod bpf;
pub(crate) mod calendar;
pub(crate) mod features;

pub use self::calendar::{iso, stamp, time_of_day};
use std::io::{self, Write};

use rperf_perfdata::{FeatureId, Metadata, PerfData};

/// The last feature known to perf 6.1; later ones are not in its list of missing features.
const LAST_FEATURE: FeatureId = FeatureId::PMU_CAPS;

/// Settings of the text.
#[derive(Clone, Copy)]
pub struct HeaderOptions<'a> {
    /// Modification time of the file, in seconds since 1970.
    pub captured: i64,
    /// Offset of local time from UTC in seconds, at a time in seconds since 1970.
    pub zone: &'a dyn Fn(i64) -> i64,
    /// Whether to print long sections, such as topology and caches, instead of a hint at the option that shows them (`-I`).
    pub full: bool,
}

/// Writes the header: a block between `# ========` lines, with the features and a list of missing ones. In pipe mode, as in perf,
/// the block ends before the features, which are records of the stream, and there is no such list.
///
/// # Errors
/// Errors of `out`.
pub fn write_header(
    out: &mut dyn Write,
    data: &PerfData<'_>,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let header = data.header();
    if header.is_pipe() {
        write_stream_start(out, options)?;
        return write_features(out, data.metadata(), options);
    }
    begin_block(out, options)?;
    writeln!(out, "# header version : 1")?;
    writeln!(out, "# data offset    : {}", header.data.offset)?;
    writeln!(out, "# data size      : {}", header.data.size)?;
    writeln!(out, "# feat offset    : {}", header.data.end())?;
    write_features(out, data.metadata(), options)?;
    let missing = FeatureId::NAMED
        .iter()
        .filter(|(feature, _)| *feature <= LAST_FEATURE && !header.has(*feature));
    write!(out, "# missing features: ")?;
    for (_, name) in missing {
        write!(out, "{name} ")?;
    }
    writeln!(out, "\n# ========\n#")
}

/// Writes the block for a recording in pipe mode. Before the first record of such a stream, nothing is known but the time in
/// `options`.
///
/// # Errors
/// Errors of `out`.
pub fn write_stream_start(out: &mut dyn Write, options: &HeaderOptions<'_>) -> io::Result<()> {
    begin_block(out, options)?;
    writeln!(out, "# header version : 1")?;
    writeln!(out, "# data offset    : 0")?;
    writeln!(out, "# data size      : 0")?;
    writeln!(out, "# feat offset    : 0")?;
    writeln!(out, "# ========\n#")
}

/// Writes the features of the recording in order.
///
/// # Errors
/// Errors of `out`.
pub fn write_features(
    out: &mut dyn Write,
    recording: Metadata<'_>,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let mut present = recording.features.present();
    present.try_for_each(|feature| features::write(out, recording, feature, options))
}

/// Writes the first line of the block, and the time of the file.
fn begin_block(out: &mut dyn Write, options: &HeaderOptions<'_>) -> io::Result<()> {
    let zone = (options.zone)(options.captured);
    let local = calendar::ctime(options.captured.saturating_add(zone));
    writeln!(out, "# ========\n# captured on    : {local}")
}

#[cfg(test)]
mod tests;
