//! The JSON format of Linux perf (`perf data convert --to-json`), version 1: header data, then an
//! object for each sample. Also [`JsonObject`], which writes an object in one line.

mod header;
mod object;
mod records;
mod text;

pub use self::header::{CaptureInfo, write_end, write_start};
pub use self::object::JsonObject;
pub use self::text::{JsonBlock, JsonCache, JsonText};

/// Appends `text` in quotes.
fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory doesn't fail, and neither does serializing a string.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a newline and `depth` tabs.
fn push_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + depth, b'\t');
}

/// Appends a key and separator on a new line. Keys need no escaping.
fn push_key(out: &mut Vec<u8>, depth: usize, key: &'static str) {
    push_line(out, depth);
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\": ");
}
