//! The input of both formats, NDJSON and Parquet.

use rperf_export::Profile;

use crate::RecordRows;

/// A recording to be written as tables.
#[derive(Debug)]
pub struct Dataset<'a> {
    /// The recording as a whole.
    pub recording: RecordingInfo,
    /// Its samples, stacks and frames.
    pub profile: &'a Profile,
    /// Its mappings, tasks and losses.
    pub records: RecordRows,
}

/// Properties of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingInfo {
    /// The id from [`RecordingInfo::id_of`]: the first column of every table.
    pub id: String,
    /// The recorded machine's name; empty if not recorded.
    pub host: String,
    /// Its kernel release; empty if not recorded.
    pub os_release: String,
    /// Its architecture, as uname(2) names it; empty if not recorded.
    pub arch: String,
    /// Model of its processor; empty if not recorded.
    pub cpu: String,
    /// The recording command; empty if not recorded.
    pub command_line: String,
    /// Version of the recording program; empty if not recorded.
    pub recorder: String,
    /// Time of the first sample in nanoseconds since 1970.
    pub start: i64,
    /// Whether the recording has a clock reference (CLOCK_DATA: one moment on its clock and as time of day). Otherwise `start` is
    /// estimated from the file's modification time.
    pub has_clock: bool,
}

impl RecordingInfo {
    /// The id of a recording: its host, the time of its first sample on the recording's clock, and the size of its data section.
    /// None of these changes when the file is copied.
    #[must_use]
    pub fn id_of(host: &str, first_time: u64, data_bytes: u64) -> String {
        let host = if host.is_empty() { "unknown" } else { host };
        format!("{host}-{first_time}-{data_bytes}")
    }
}

impl Dataset<'_> {
    /// Returns a function that converts times of the recording's clock to nanoseconds since 1970.
    pub(crate) fn wall_clock(&self) -> impl Fn(u64) -> i64 {
        let offset = i128::from(self.recording.start) - i128::from(self.profile.first_time());
        move |time| {
            let wall = i128::from(time) + offset;
            i64::try_from(wall).unwrap_or(if wall < 0 { i64::MIN } else { i64::MAX })
        }
    }
}
