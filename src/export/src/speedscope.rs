//! The format of speedscope (<https://www.speedscope.app/file-format-schema.json>): a profile for each thread and event.
//!
//! [`Profile`] is the whole recording; speedscope's profile is one of its tracks (the samples of one event in one thread).

use std::cmp::Reverse;
use std::io::{self, Write};

use serde::Serialize;

use crate::lazy_seq::LazySeq;
use crate::profile::{PeriodUnit, Profile, ProfileFunction, Track};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes `profile`. `name` is the title of the file; `exporter` names the program that writes it.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(profile: &Profile, name: &str, exporter: &str, mut out: impl Write) -> io::Result<()> {
    let has_several_events = profile.sampled_events().count() > 1;
    let weights = profile.tracks.iter().map(weight).enumerate();
    // Of tracks with the same weight, the first one.
    let heaviest = weights.max_by_key(|(index, weight)| (*weight, Reverse(*index)));
    let file = File {
        schema: SCHEMA,
        name,
        exporter,
        active_profile_index: heaviest.map(|(index, _)| index),
        shared: SharedFrames {
            frames: LazySeq(|| {
                profile
                    .functions
                    .iter()
                    .map(|function| shared_frame(profile, function))
            }),
        },
        profiles: LazySeq(|| {
            profile
                .tracks
                .iter()
                .map(|track| sampled_profile(profile, track, has_several_events))
        }),
    };
    serde_json::to_writer(&mut out, &file)?;
    out.flush()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'p, F, P> {
    #[serde(rename = "$schema")]
    schema: &'p str,
    name: &'p str,
    exporter: &'p str,
    active_profile_index: Option<usize>,
    shared: SharedFrames<F>,
    profiles: P,
}

#[derive(Serialize)]
struct SharedFrames<F> {
    frames: F,
}

#[derive(Serialize)]
struct SharedFrame<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'p str>,
}

/// Returns the frame of a function. Speedscope's frames have no addresses, so each function has one frame, at the function's
/// index.
fn shared_frame<'p>(profile: &'p Profile, function: &'p ProfileFunction) -> SharedFrame<'p> {
    let object = function.object;
    let object = object.and_then(|object| profile.objects.get(object as usize));
    SharedFrame {
        name: &function.name,
        file: object.map(|object| object.path.as_str()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<S, W> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: S,
    weights: W,
}

/// Returns the profile of one thread and event. Its name contains the event if several events have samples.
fn sampled_profile(profile: &Profile, track: &Track, has_several_events: bool) -> impl Serialize {
    let event = profile.events.get(track.event as usize);
    let thread = profile.threads.get(track.thread as usize);
    let mut name = thread.map_or_else(String::new, |thread| {
        let (pid, tid) = (thread.pid.cast_signed(), thread.tid.cast_signed());
        format!("{} {pid}/{tid}", thread.name)
    });
    if let Some(event) = event.filter(|_| has_several_events) {
        name.push_str(&format!(" ({})", event.name));
    }
    SampledProfile {
        kind: "sampled",
        name,
        unit: match event.map(|event| event.unit) {
            Some(PeriodUnit::Nanoseconds) => "nanoseconds",
            _ => "none",
        },
        start_value: 0,
        end_value: weight(track),
        samples: LazySeq(move || {
            let mut path = Vec::new();
            track.samples.iter().map(move |row| {
                profile.frames_outermost_first(row.stack, &mut path);
                functions(profile, &path)
            })
        }),
        weights: LazySeq(move || track.samples.iter().map(|row| row.period)),
    }
}

/// Returns the index of the function of each frame.
fn functions(profile: &Profile, frames: &[u32]) -> Vec<u32> {
    let frames = frames.iter();
    let frames = frames.filter_map(|frame| profile.frames.get(*frame as usize));
    frames.map(|frame| frame.function).collect()
}

/// Returns the weight of a track: the sum of its periods, which are speedscope's weights of the samples.
fn weight(track: &Track) -> u64 {
    let periods = track.samples.iter().map(|row| row.period);
    periods.fold(0, u64::saturating_add)
}
