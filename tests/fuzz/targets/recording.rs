//! A whole recording, as a file and as a stream: header, features, records, compression, the World (the processes and mappings
//! at a time), samples.

#![no_main]

#[path = "../../../src/replay/tests/replay/exercise.rs"]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _outcome = exercise::exercise(bytes);
});
