//! Mapped files whose names were removed, such as programs and libraries that were replaced while they ran.
//!
//! Such a file may be lost when its processes exit, so it is opened as soon as a record of its mapping is read.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rperf_safefs::FoundFile;
use rperf_wire::Mmap;

use crate::record_stats::MappedName;

/// The suffix that the kernel appends to the name of a deleted file.
const DELETED: &[u8] = b" (deleted)";
/// The maximum number of deleted files per output file (with `--threads`, each ring has its own output file), including those
/// that could not be opened.
const MAX_FILES: usize = 256;

/// Deleted files that are kept until the recording is complete.
#[derive(Debug, Default)]
pub(crate) struct DeletedFiles {
    /// The mount point of procfs; `None` to keep nothing.
    proc: Option<PathBuf>,
    /// `None` for files that could not be opened.
    files: HashMap<MappedName, Option<FoundFile>>,
}

impl DeletedFiles {
    /// Creates an empty collection for processes in the procfs at `proc`.
    pub(crate) fn new(proc: &Path) -> Self {
        Self {
            proc: Some(proc.to_owned()),
            files: HashMap::new(),
        }
    }

    /// Opens and keeps the file of a mapping if it is deleted, unless [`MAX_FILES`] is reached.
    pub(crate) fn keep(&mut self, mmap: &Mmap<'_>, name: &MappedName) {
        let Some(proc) = &self.proc else { return };
        let is_deleted = name.filename.starts_with(b"/") && name.filename.ends_with(DELETED);
        if !is_deleted || self.files.len() >= MAX_FILES || self.files.contains_key(name) {
            return;
        }
        let process = proc.join(mmap.pid.to_string());
        let end = mmap.start.saturating_add(mmap.len);
        // Unprivileged users may not follow links in map_files, but they may follow `exe`, the program.
        let paths = [
            process.join(format!("map_files/{:x}-{end:x}", mmap.start)),
            process.join("exe"),
        ];
        let opened = paths.iter().find_map(|path| {
            let file = FoundFile::find(path).ok()?;
            let metadata = file.metadata();
            // The inode is 0 if a build-id is recorded in its place. Then only the link in map_files identifies the file, by the
            // addresses in its name.
            let is_mapped = match name.inode {
                0 => !path.ends_with("exe"),
                inode => metadata.ino() == inode,
            };
            (is_mapped && metadata.is_file()).then_some(file)
        });
        self.files.insert(name.clone(), opened);
    }

    /// Adds the files of another part of the recording.
    pub(crate) fn add(&mut self, other: Self) {
        for (name, file) in other.files {
            let known = self.files.entry(name).or_default();
            *known = known.take().or(file);
        }
    }

    /// Returns a path from which the file can be read as long as `self` exists; `None` if it is not kept.
    pub(crate) fn path_of(&self, name: &MappedName) -> Option<PathBuf> {
        let file = self.files.get(name)?.as_ref()?;
        Some(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_deleted_file_can_be_read_after_its_process_exited() {
        let root = std::env::temp_dir().join(format!("rperf-deleted-{}", std::process::id()));
        fs::create_dir_all(root.join("7")).unwrap();
        let file = root.join("program");
        fs::write(&file, "content").unwrap();
        symlink(&file, root.join("7/exe")).unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        let mut deleted = DeletedFiles::new(&root);
        let mut keep = |filename: &'static [u8], inode| {
            let mmap = Mmap {
                pid: 7,
                tid: 7,
                start: 0x1000,
                len: 0x1000,
                pgoff: 0,
                filename,
            };
            let name = MappedName {
                filename: filename.into(),
                inode,
            };
            deleted.keep(&mmap, &name);
            name
        };
        let same_inode = keep(b"/program (deleted)", inode);
        let others = [
            keep(b"/program", inode),
            keep(b"/program (deleted)", inode + 1),
            // Recorded with a build-id, and there is no map_files here.
            keep(b"/program (deleted)", 0),
        ];
        fs::remove_dir_all(root).unwrap();
        let path = deleted.path_of(&same_inode).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"content");
        assert!(others.iter().all(|other| deleted.path_of(other).is_none()));
    }
}
