//! The text before and after the samples. The numbers passed to `push_key` and `push_line` are depths: how many tabs indent
//! the line.

use std::io::{self, Write};

use rperf_perfdata::{FileHeader, Metadata};

use super::{push_key, push_line, push_string};

/// Properties of the recording's file.
#[derive(Debug, Clone, Copy)]
pub struct CaptureInfo<'a> {
    /// Modification time, such as `2026-11-21T15:50:16Z`.
    pub time: &'a str,
    /// The file's header, with the locations of the file's sections.
    pub header: &'a FileHeader,
}

/// Writes the text before the first sample.
///
/// # Errors
///
/// Errors of `out`.
pub fn write_start(
    out: &mut dyn Write,
    captured: &CaptureInfo<'_>,
    recording: Metadata<'_>,
) -> io::Result<()> {
    let mut text = b"{".to_vec();
    push_key(&mut text, 1, "linux-perf-json-version");
    text.extend_from_slice(b"1,");
    push_key(&mut text, 1, "headers");
    text.push(b'{');
    let mut fields = HeaderFields {
        out: &mut text,
        count: 0,
    };
    fields.captured(captured);
    fields.recording(recording);
    push_line(&mut text, 1);
    text.extend_from_slice(b"},");
    push_key(&mut text, 1, "samples");
    text.push(b'[');
    out.write_all(&text)
}

/// Writes the end of the samples and of the document. With `--all`, `records` is the JSON text of the other records, with a comma
/// before each; the first comma is not written.
///
/// # Errors
/// Those of `out`.
pub fn write_end(out: &mut dyn Write, records: Option<&[u8]>) -> io::Result<()> {
    if let Some(records) = records {
        out.write_all(b"\n\t],\n\t\"records\": [")?;
        out.write_all(records.get(1..).unwrap_or_default())?;
    }
    out.write_all(b"\n\t]\n}\n")
}

/// Writes the members of `headers`.
struct HeaderFields<'o> {
    out: &'o mut Vec<u8>,
    /// Number of members written.
    count: usize,
}

impl HeaderFields<'_> {
    fn key(&mut self, key: &'static str) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.count += 1;
        push_key(self.out, 2, key);
    }

    fn number(&mut self, key: &'static str, number: impl Into<u64>) {
        self.key(key);
        self.out.extend(number.into().to_string().into_bytes());
    }

    fn text(&mut self, key: &'static str, text: Option<String>) {
        if let Some(text) = text {
            self.key(key);
            push_string(self.out, &text);
        }
    }

    fn captured(&mut self, captured: &CaptureInfo<'_>) {
        self.number("header-version", 1_u64);
        self.text("captured-on", Some(captured.time.to_owned()));
        self.number("data-offset", captured.header.data.offset);
        self.number("data-size", captured.header.data.size);
        // The feature sections follow the data.
        self.number("feat-offset", captured.header.data.end());
    }

    fn recording(&mut self, recording: Metadata<'_>) {
        let features = recording.features;
        self.text("hostname", features.hostname());
        self.text("os-release", features.os_release());
        self.text("arch", features.arch());
        self.text("cpu-desc", features.cpudesc());
        self.text("cpuid", features.cpuid());
        if let Some(cpus) = features.nr_cpus() {
            self.number("nrcpus-online", cpus.online);
            self.number("nrcpus-avail", cpus.available);
        }
        if let Some(clock) = features.clock_data() {
            self.number("clockid", clock.clockid);
            self.number("clock-time", clock.clockid_time);
            self.number("real-time", clock.wall_clock);
        }
        self.text("perf-version", features.version());
        if let Some(words) = features.cmdline() {
            self.key("cmdline");
            self.out.push(b'[');
            for (index, word) in words.iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                push_line(self.out, 3);
                push_string(self.out, word);
            }
            push_line(self.out, 2);
            self.out.push(b']');
        }
    }
}
