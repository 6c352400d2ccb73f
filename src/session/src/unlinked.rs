//! Files whose names go while records come.
//!
//! The kernel frees a file's blocks when the last name and the last descriptor of it are gone: half a second for a gigabyte, in
//! which a ring fills many times over. The names go at once, the descriptors on a thread of their own.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;

/// Files that are kept until this is dropped, which does not wait for their blocks.
#[derive(Debug, Default)]
pub(crate) struct Unlinked(Vec<File>);

impl Unlinked {
    /// Keeps what has this name, if there is such a file and one more may be open.
    pub(crate) fn keep(&mut self, path: &Path) {
        let mut options = OpenOptions::new();
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        if let Ok(file) = options.read(true).custom_flags(flags).open(path) {
            self.0.push(file);
        }
    }
}

impl Drop for Unlinked {
    fn drop(&mut self) {
        let files = std::mem::take(&mut self.0);
        if !files.is_empty() {
            // Without a thread they are closed here: what could not be spawned is dropped.
            let thread = thread::Builder::new().name("unlink".to_owned());
            let _ = thread.spawn(move || drop(files));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::time::Duration;

    #[test]
    fn blocks_are_kept_until_it_is_dropped_and_then_freed() {
        let path = std::env::temp_dir().join(format!("rperf-unlinked-{}", std::process::id()));
        fs::write(&path, "old").unwrap();
        let mut unlinked = Unlinked::default();
        unlinked.keep(&path);
        unlinked.keep(Path::new("/nowhere/at/all"));
        let [file] = &unlinked.0[..] else {
            panic!("{unlinked:?}");
        };
        let inode = fs::metadata(&path).unwrap().ino();
        fs::remove_file(&path).unwrap();
        let kept = file.metadata().unwrap();
        assert_eq!((kept.ino(), kept.nlink()), (inode, 0));
        let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        let is_kept = || fs::metadata(&descriptor).is_ok_and(|now| now.ino() == inode);
        assert!(is_kept());
        drop(unlinked);
        while is_kept() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
