//! Recordings as tables, and `--to-ndjson`.

use std::path::Path;

use rperf_dataset::{Dataset, RecordRows, RecordingInfo, ndjson};
use rperf_export::Profile;

use super::target::ConversionTarget;
use super::{DataConversion, compressed, estimated_start, start};
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;

impl DataConversion<'_> {
    /// The recording as tables.
    pub(super) fn dataset<'p>(&self, profile: &'p Profile) -> Dataset<'p> {
        let recording = self.analysis.metadata();
        let features = recording.features;
        let host = features.hostname().unwrap_or_default();
        // When the first sample was taken, in nanoseconds since 1970: known only if the recording has a clock reference.
        let clock_start = start(recording, profile);
        let command = features.cmdline().map(|words| words.join(" "));
        let data = self.analysis.data();
        Dataset {
            recording: RecordingInfo {
                id: RecordingInfo::id_of(&host, profile.first_time(), data.header().data.size),
                host,
                os_release: features.os_release().unwrap_or_default(),
                arch: features.arch().unwrap_or_default(),
                cpu: features.cpudesc().unwrap_or_default(),
                command_line: command.unwrap_or_default(),
                recorder: features.version().unwrap_or_default(),
                start: clock_start.unwrap_or_else(|| estimated_start(self.analysis.input, profile)),
                has_clock: clock_start.is_some(),
            },
            profile,
            records: RecordRows::of(&self.analysis.replay, data.endian()),
        }
    }

    /// Writes all tables into one file, which is compressed if its name ends in `.gz`.
    pub(super) fn write_ndjson(
        &self,
        target: &ConversionTarget<'_>,
        profile: &Profile,
    ) -> Result<(), CliError> {
        let dataset = self.dataset(profile);
        write_to(
            Path::new(target.destination),
            self.analysis.context,
            |out| compressed(target.destination, out, |out| ndjson::write(&dataset, out)),
        )
    }
}
