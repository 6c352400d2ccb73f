//! The text of `--header` and `--header-only`: what the recorder noted about the machine and the run.

mod calendar;
mod features;

use std::io::{self, Write};

use rperf_perfdata::{FeatureId, PerfData};

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

/// Writes the whole block, from one `# ========` to the next.
///
/// # Errors
/// What `out` says.
pub fn write_header(
    out: &mut dyn Write,
    data: &PerfData<'_>,
    options: &HeaderOptions<'_>,
) -> io::Result<()> {
    let header = data.header();
    let local = options
        .captured
        .saturating_add((options.zone)(options.captured));
    writeln!(out, "# ========")?;
    writeln!(out, "# captured on    : {}", calendar::ctime(local))?;
    writeln!(out, "# header version : 1")?;
    writeln!(out, "# data offset    : {}", header.data.offset)?;
    writeln!(out, "# data size      : {}", header.data.size)?;
    writeln!(out, "# feat offset    : {}", header.data.end())?;
    for feature in data.features().present() {
        features::write(out, data, feature, options)?;
    }
    let missing = FeatureId::NAMED
        .iter()
        .filter(|(feature, _)| *feature <= LAST_FEATURE && !header.has(*feature));
    write!(out, "# missing features: ")?;
    for (_, name) in missing {
        write!(out, "{name} ")?;
    }
    writeln!(out, "\n# ========\n#")
}
