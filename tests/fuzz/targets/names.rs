//! Mangled names: any is demangled or left as it is, and begins as is told without demangling.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_symbol::demangle::demangle;

/// No name gets longer than this.
const LONGEST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        let name = String::from_utf8_lossy(line);
        if let Some(shown) = demangle(&name) {
            assert!(shown.len() < LONGEST, "{} bytes", shown.len());
        }
    }
});
