//! Updates the data size in the header of a file while it is being written.
//!
//! Writing the header may wait for the disk, so it is done in a separate thread, not in the one
//! that drains rings.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rperf_perfdata::FileHeader;

/// Update interval: limits the data that Linux perf can't read if the recorder is killed.
const EVERY: Duration = Duration::from_millis(100);

/// Updates the size until dropped.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    shared: Arc<CheckpointState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct CheckpointState {
    /// Bytes of complete records in the file.
    size: AtomicU64,
    ended: AtomicBool,
}

impl Checkpoint {
    /// Starts updating a file whose header has been written; `None` if no thread can be started,
    /// which only affects recordings that are killed.
    pub(crate) fn begin(file: File) -> Option<Self> {
        let shared = Arc::new(CheckpointState::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("checkpoint".to_owned());
        let thread = thread.spawn(move || theirs.update(&file)).ok()?;
        Some(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Sets the data size that the thread writes to the header, in bytes.
    pub(crate) fn set_size(&self, size: u64) {
        self.shared.size.store(size, Ordering::Relaxed);
    }
}

impl CheckpointState {
    fn update(&self, file: &File) {
        let mut written = 0;
        while !self.ended.load(Ordering::Acquire) {
            let size = self.size.load(Ordering::Relaxed);
            // Errors are ignored here: completing the file writes the header again and reports its own errors.
            if size != written
                && file
                    .write_all_at(&size.to_ne_bytes(), FileHeader::DATA_SIZE_OFFSET)
                    .is_ok()
            {
                written = size;
            }
            thread::park_timeout(EVERY);
        }
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // An error would mean that the thread panicked, which it doesn't; it could not be reported here.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_perfdata::{EventDesc, PerfData, Writer};
    use rperf_wire::{Attr, Endian};
    use std::time::Instant;

    #[test]
    fn the_header_has_the_data_size_while_recording() {
        let path = std::env::temp_dir().join(format!("rperf-checkpoint-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        let event = EventDesc {
            attr: Attr::default(),
            ids: vec![1],
            name: "cycles".to_owned(),
        };
        let mut writer = Writer::new(file.try_clone().unwrap(), &[event]).unwrap();
        let checkpoint = Checkpoint::begin(file).unwrap();
        // A record of 16 bytes with the type FINISHED_ROUND (68).
        let mut record = vec![0; 16];
        record[0] = 68;
        record[6] = 16;
        writer.write_data(&record).unwrap();
        checkpoint.set_size(writer.data_bytes());
        let began = Instant::now();
        // At `FileHeader::DATA_SIZE_OFFSET`.
        let size = |bytes: &[u8]| Endian::NATIVE.u64_at(bytes, 48);
        while size(&std::fs::read(&path).unwrap()) != Some(16) {
            // Far longer than `EVERY`, as the thread may be slow on a busy machine.
            assert!(began.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(5));
        }
        drop(checkpoint);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(PerfData::parse(&bytes).unwrap().header().data.size, 16);
        std::fs::remove_file(path).unwrap();
    }
}
