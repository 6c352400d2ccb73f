//! The JSON of Linux perf (`perf data convert --to-json`), version 1: what the header tells, then an object for each sample.
//! Beside it objects that stand on a line each.

mod header;
mod object;
mod text;

pub use self::header::{Captured, write_end, write_start};
pub use self::object::Object;
pub use self::text::{Block, Scratch, Text};

/// Appends `text` in quotes.
fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing to memory doesn't fail, and neither does the serialization of a text.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a line break and so many tabs.
fn push_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + depth, b'\t');
}

/// Appends what stands before the value of `key`, on a line of its own. Keys have nothing to escape.
fn push_key(out: &mut Vec<u8>, depth: usize, key: &'static str) {
    push_line(out, depth);
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\": ");
}
