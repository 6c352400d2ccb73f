//! Removal of files while recording.
//!
//! The kernel frees a file's blocks when its last name and descriptor are gone. For a large file this takes so long that
//! a ring may overflow. Therefore names are removed at once, but descriptors are closed in a separate thread.

use std::ffi::OsStr;
use std::thread;

use rperf_safefs::{Folder, FoundFile};

/// Open files whose names are removed. Dropping this closes them, in a separate thread if one can be started.
#[derive(Debug, Default)]
pub(crate) struct UnlinkedFiles(Vec<FoundFile>);

impl UnlinkedFiles {
    /// Opens the file of this name, if it exists and the descriptor limit allows. The caller then removes the name.
    pub(crate) fn keep(&mut self, folder: &Folder, name: &OsStr) {
        self.0.extend(folder.find(name));
    }
}

impl Drop for UnlinkedFiles {
    fn drop(&mut self) {
        let files = std::mem::take(&mut self.0);
        if !files.is_empty() {
            // If no thread can be started, the files are closed here, when the closure is dropped.
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
    fn files_are_closed_on_drop() {
        let path = std::env::temp_dir().join(format!("rperf-unlinked-{}", std::process::id()));
        fs::write(&path, "old").unwrap();
        let mut unlinked = UnlinkedFiles::default();
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
        let open = fs::metadata(&descriptor).unwrap();
        assert_eq!((open.ino(), open.nlink()), (inode, 0));
        let is_kept = || fs::metadata(&descriptor).is_ok_and(|now| now.ino() == inode);
        assert!(is_kept());
        drop(unlinked);
        while is_kept() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
