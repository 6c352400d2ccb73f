//! Metadata of the profile, and its objects.

use serde::Serialize;

use super::ProfileView;
use crate::pprof::hex;
use crate::profile::{CodeKind, PeriodUnit, ProfileObject};

/// The version of Firefox's processed profile format.
const PROCESSED_VERSION: u32 = 48;
/// The corresponding version of Gecko's profile format.
const GECKO_VERSION: u32 = 30;

/// Metadata of a recording.
#[derive(Debug, Clone, Default)]
pub struct MetaInputs<'a> {
    /// The title of the profile: the path of the recording.
    pub product: &'a str,
    /// The exporting program.
    pub exporter: &'a str,
    /// The architecture from uname(2).
    pub arch: Option<&'a str>,
    /// The processor.
    pub cpu: Option<&'a str>,
    /// The command line of the recorder.
    pub command_line: Option<&'a str>,
    /// Time of the first sample in nanoseconds since 1970, if known.
    pub start: Option<i64>,
}

/// The categories of code and their colours, by the index that [`category`] returns.
const CATEGORIES: [(&str, &str); 3] = [("User", "yellow"), ("Kernel", "orange"), ("JIT", "green")];

/// Index of the category `Other`, which markers have; [`Meta::new`] appends it to [`CATEGORIES`].
pub(super) const OTHER: usize = CATEGORIES.len();

/// Index of the category of this type of code.
pub(super) fn category(kind: CodeKind) -> usize {
    match kind {
        CodeKind::User => 0,
        CodeKind::Kernel => 1,
        CodeKind::Jit => 2,
    }
}

#[derive(Serialize)]
struct Category {
    name: &'static str,
    color: &'static str,
    subcategories: [&'static str; 1],
}

impl Category {
    fn new(name: &'static str, color: &'static str) -> Self {
        Self {
            name,
            color,
            subcategories: ["Other"],
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleUnits {
    time: &'static str,
    event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: &'static str,
}

/// How markers are displayed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MarkerSchema {
    name: &'static str,
    tooltip_label: &'static str,
    display: [&'static str; 2],
    data: [MarkerField; 1],
}

#[derive(Serialize)]
struct MarkerField {
    key: &'static str,
    label: &'static str,
    format: &'static str,
}

/// The type of markers, which show the samples of events other than the main one.
pub(super) const MARKER: &str = "sample";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'p> {
    interval: f64,
    paused_ranges: [(); 0],
    start_time: f64,
    profiling_start_time: f64,
    profiling_end_time: f64,
    process_type: u32,
    product: &'p str,
    imported_from: &'p str,
    stackwalk: u32,
    debug: bool,
    version: u32,
    preprocessed_profile_version: u32,
    categories: Vec<Category>,
    symbolicated: bool,
    marker_schema: [MarkerSchema; 1],
    sample_units: SampleUnits,
    platform: &'static str,
    oscpu: Option<String>,
    #[serde(rename = "CPUName")]
    cpu_name: Option<&'p str>,
    arguments: Option<&'p str>,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
}

impl<'p> Meta<'p> {
    pub(super) fn new(view: &ProfileView<'_>, about: &MetaInputs<'p>) -> Self {
        let categories = CATEGORIES.into_iter().chain([("Other", "grey")]);
        let interval = interval(view).unwrap_or(1.0);
        Self {
            interval,
            paused_ranges: [],
            start_time: about.start.unwrap_or_default() as f64 / 1e6,
            profiling_start_time: 0.0,
            // Exclusive: the profiler omits samples at this time.
            profiling_end_time: view.milliseconds(view.end) + interval,
            // The main process.
            process_type: 0,
            product: about.product,
            imported_from: about.exporter,
            // Samples have stacks.
            stackwalk: 1,
            debug: false,
            version: GECKO_VERSION,
            preprocessed_profile_version: PROCESSED_VERSION,
            categories: categories
                .map(|(name, color)| Category::new(name, color))
                .collect(),
            symbolicated: true,
            marker_schema: [MarkerSchema {
                name: MARKER,
                tooltip_label: "{marker.name}",
                display: ["marker-chart", "marker-table"],
                data: [MarkerField {
                    key: "period",
                    label: "Period",
                    format: "integer",
                }],
            }],
            sample_units: SampleUnits {
                time: "ms",
                event_delay: "ms",
                thread_cpu_delta: match view.unit() {
                    PeriodUnit::Cycles => "variable CPU cycles",
                    // For `Count`, samples have no such deltas, and the unit has no effect.
                    _ => "ns",
                },
            },
            // As Firefox reports on Linux.
            platform: "X11",
            oscpu: about.arch.map(|arch| format!("Linux {arch}")),
            cpu_name: about.cpu,
            arguments: about.command_line,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
        }
    }
}

/// Milliseconds between samples of the main event, in the thread with most of them: the first period if periods are nanoseconds,
/// otherwise the mean distance. `None` if that is unknown or 0.
fn interval(view: &ProfileView<'_>) -> Option<f64> {
    let main = view.main?;
    let tracks = view.profile.tracks.iter();
    let tracks = tracks.filter(|track| track.event == main);
    let rows = &tracks.max_by_key(|track| track.samples.len())?.samples;
    let (first, last) = (rows.first()?, rows.last()?);
    let nanos = match view.unit() {
        PeriodUnit::Nanoseconds => first.period,
        _ => (last.time - first.time).checked_div(rows.len() as u64 - 1)?,
    };
    (nanos > 0).then(|| nanos as f64 / 1e6)
}

/// A file with code.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib<'p> {
    arch: &'p str,
    name: &'p str,
    path: &'p str,
    debug_name: &'p str,
    debug_path: &'p str,
    breakpad_id: String,
    code_id: Option<String>,
}

impl<'p> Lib<'p> {
    pub(super) fn new(object: &'p ProfileObject, about: &MetaInputs<'p>) -> Self {
        Self {
            arch: about.arch.unwrap_or_default(),
            name: &object.name,
            path: &object.path,
            debug_name: &object.name,
            debug_path: &object.path,
            breakpad_id: object.build_id.as_deref().map(breakpad).unwrap_or_default(),
            code_id: object.build_id.as_deref().map(hex),
        }
    }
}

/// Breakpad's id for a build-id: its first 16 bytes, padded with zeros if it is shorter, as a GUID, whose first three numbers are
/// little-endian, and the age 0.
fn breakpad(build_id: &[u8]) -> String {
    let mut guid = [0; 16];
    for (place, byte) in guid.iter_mut().zip(build_id) {
        *place = *byte;
    }
    let [numbers @ .., _, _, _, _, _, _, _, _] = &mut guid;
    let (first, rest) = numbers.split_at_mut(4);
    let (second, third) = rest.split_at_mut(2);
    first.reverse();
    second.reverse();
    third.reverse();
    format!("{}0", hex(&guid).to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_becomes_a_guid() {
        let build_id: Vec<u8> = (1..=20).collect();
        assert_eq!(breakpad(&build_id), "0403020106050807090A0B0C0D0E0F100");
        assert_eq!(breakpad(&[0xab]), "000000AB0000000000000000000000000");
    }
}
