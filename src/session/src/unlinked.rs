//! Files whose names go while records come.
//!
//! The kernel frees a file's blocks when the last name and the last descriptor of it are gone: half a second for a gigabyte, in
//! which a ring fills many times over. The names go at once, the descriptors on a thread of their own.

use std::ffi::OsStr;
use std::thread;

use rperf_safefs::{Folder, Opened};

/// Files that are kept until this is dropped, which does not wait for their blocks.
#[derive(Debug, Default)]
pub(crate) struct Unlinked(Vec<Opened>);

impl Unlinked {
    /// Keeps what has this name, if there is such a file and one more may be open.
    pub(crate) fn keep(&mut self, folder: &Folder, name: &OsStr) {
        self.0.extend(folder.find(name));
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
        let folder = Folder::open(&std::env::temp_dir()).unwrap();
        unlinked.keep(&folder, path.file_name().unwrap());
        unlinked.keep(&folder, OsStr::new("nowhere"));
        let [file] = &unlinked.0[..] else {
            panic!("{unlinked:?}");
        };
        let inode = fs::metadata(&path).unwrap().ino();
        fs::remove_file(&path).unwrap();
        use std::os::fd::{AsFd as _, AsRawFd as _};
        let number = file.as_fd().as_raw_fd();
        let descriptor = format!("/proc/self/fd/{number}");
        let kept = fs::metadata(&descriptor).unwrap();
        assert_eq!((kept.ino(), kept.nlink()), (inode, 0));
        let is_kept = || fs::metadata(&descriptor).is_ok_and(|now| now.ino() == inode);
        assert!(is_kept());
        drop(unlinked);
        while is_kept() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
