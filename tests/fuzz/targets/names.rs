//! Mangled names: any name is demangled or left unchanged, and the result has a bounded length.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_symbol::demangle::demangle;

/// A demangled name has fewer bytes than this: rustc-demangle stops after 1,000,000 bytes, the other demanglers earlier.
const MAX_NAME_BYTES: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    for line in bytes.split(|byte| *byte == b'\n') {
        let name = String::from_utf8_lossy(line);
        if let Some(demangled) = demangle(&name) {
            assert!(
                demangled.len() < MAX_NAME_BYTES,
                "{} bytes",
                demangled.len()
            );
        }
    }
});
