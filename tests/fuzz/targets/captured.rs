//! Records that BPF programs write (memory that arguments of system calls point to, waits for futexes, locks of the kernel):
//! any bytes are decoded or rejected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_analysis::lock::{CapturedLock, CapturedWaits};
use rperf_syscalls::CapturedRecord;

fuzz_target!(|bytes: &[u8]| {
    if let Some(record) = CapturedRecord::decode(bytes) {
        let size: usize = record.memory().map(|part| part.bytes.len()).sum();
        assert!(size <= bytes.len(), "{size} of {} bytes", bytes.len());
    }
    if let Some(captured) = CapturedWaits::decode(bytes) {
        assert!(!captured.waits.is_empty());
        // Each wait takes more than 100 bytes of the record.
        assert!(captured.waits.len() < bytes.len() / 100 + 1);
    }
    if let Some(lock) = CapturedLock::decode(bytes) {
        // The fields before the name have 16 bytes. Each byte of the name that is not valid UTF-8 becomes a character of three
        // bytes.
        let size = lock.name.map_or(0, |name| name.len());
        assert!(
            bytes.len() >= 16 && size <= 3 * bytes.len(),
            "{size} of {} bytes",
            bytes.len()
        );
    }
});
