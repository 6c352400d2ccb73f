//! `diff --stream`: hot streams (the heaviest branches of call graphs), in the layout of perf 6.1.

use std::io::{self, Write};

use rperf_hist::{HotStreams, Stream, StreamFrame};
use serde_json::{Value, json};

use super::escaped;
use super::json::DIFF_JSON_VERSION;
use crate::padding::RightAligned;

/// Width of each file's column.
const WIDTH: usize = 35;

/// The rule above the frames of a matched stream in the first file's column: as in perf, one character longer than [`RULE`].
const PAIR_RULE: &str = "---------------------------";
/// The rule above the frames of all other streams.
const RULE: &str = "--------------------------";

/// One event's streams in both recordings.
#[derive(Debug, Clone, Copy)]
pub struct StreamsEvent<'a> {
    /// The event's name.
    pub name: &'a str,
    /// Streams of the first recording.
    pub before: &'a HotStreams,
    /// Streams of the second recording.
    pub after: &'a HotStreams,
}

/// Writes the streams of one event: those that both recordings have, then those that only one has. With `escapes`, control
/// characters in frames are escaped.
///
/// # Errors
/// Those of `out`.
pub fn write_streams(
    out: &mut dyn Write,
    event: &StreamsEvent<'_>,
    escapes: bool,
) -> io::Result<()> {
    let pairs = event.before.pairs(event.after);
    writeln!(out, "[ Matched hot streams ]")?;
    for (number, (before_index, after_index)) in (1..).zip(&pairs.matched) {
        let before = event.before.streams.get(*before_index);
        let after = event.after.streams.get(*after_index);
        if let Some((before, after)) = before.zip(after) {
            writeln!(out, "\nhot chain pair {number}:")?;
            let left = lines(event.before, before, PAIR_RULE, escapes);
            let right = lines(event.after, after, RULE, escapes);
            // Matched streams have the same number of frames, so that no line is omitted.
            for (left, right) in left.iter().zip(&right) {
                writeln!(
                    out,
                    "{}\t{}",
                    RightAligned(left, WIDTH),
                    RightAligned(right, WIDTH)
                )?;
            }
        }
    }
    writeln!(out, "\n[ Hot streams in old perf data only ]")?;
    let no_prefix = "";
    write_single(out, event.before, &pairs.only_first, no_prefix, escapes)?;
    writeln!(out, "\n[ Hot streams in new perf data only ]")?;
    let empty_column = format!("{:WIDTH$}\t", "");
    write_single(out, event.after, &pairs.only_second, &empty_column, escapes)
}

/// Writes the streams that only one recording has; `prefix` precedes each line of a stream.
fn write_single(
    out: &mut dyn Write,
    hot: &HotStreams,
    indices: &[usize],
    prefix: &str,
    escapes: bool,
) -> io::Result<()> {
    let streams = indices.iter().filter_map(|index| hot.streams.get(*index));
    for (number, stream) in (1..).zip(streams) {
        writeln!(out, "\nhot chain {number}:")?;
        for line in lines(hot, stream, RULE, escapes) {
            writeln!(out, "{prefix}{}", RightAligned(&line, WIDTH))?;
        }
    }
    Ok(())
}

/// The lines of a stream: numbers, rule, frames.
fn lines(hot: &HotStreams, stream: &Stream, rule: &str, escapes: bool) -> Vec<String> {
    let numbers = format!(
        "cycles: {}, hits: {:.2}%",
        stream.cycles,
        hot.percent(stream)
    );
    let frames = stream.frames.iter();
    let frames = frames.map(|frame| escaped(&frame.text, escapes).into_owned());
    [numbers, rule.to_owned()]
        .into_iter()
        .chain(frames)
        .collect()
}

/// Writes the streams of all events as one JSON document and a newline.
///
/// # Errors
/// Those of `out`.
pub fn write_streams_json(
    out: &mut dyn Write,
    files: [&str; 2],
    events: &[StreamsEvent<'_>],
) -> io::Result<()> {
    let document = json!({
        "version": DIFF_JSON_VERSION,
        "files": files,
        "streams": events.iter().map(event_value).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// Returns the JSON object of an event with its streams. Each stream is an array of two values: the stream in the first and in
/// the second file, or null for a file that does not have it.
fn event_value(event: &StreamsEvent<'_>) -> Value {
    let pairs = event.before.pairs(event.after);
    let before = |index: &usize| stream_value(event.before, *index);
    let after = |index: &usize| stream_value(event.after, *index);
    let matched = pairs.matched.iter();
    let matched = matched.map(|(first, second)| json!([before(first), after(second)]));
    let only_first = pairs.only_first.iter();
    let only_first = only_first.map(|index| json!([before(index), null]));
    let only_second = pairs.only_second.iter();
    let only_second = only_second.map(|index| json!([null, after(index)]));
    json!({
        "event": event.name,
        "periods": [event.before.total, event.after.total],
        "streams": matched.chain(only_first).chain(only_second).collect::<Vec<_>>(),
    })
}

fn stream_value(hot: &HotStreams, index: usize) -> Value {
    let Some(stream) = hot.streams.get(index) else {
        return Value::Null;
    };
    let frames = stream.frames.iter();
    let frames: Vec<&str> = frames.map(|frame: &StreamFrame| &*frame.text).collect();
    json!({
        "period": stream.period,
        "percent": hot.percent(stream),
        "cycles": stream.cycles,
        "frames": frames,
    })
}
