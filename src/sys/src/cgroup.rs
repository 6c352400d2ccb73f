//! Control groups: their mount point, and all groups below it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::mounts::Mount;

/// The root folder of the cgroups that perf events can use: for version 1 the hierarchy of the
/// controller `perf_event`, otherwise the hierarchy of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupFolder(PathBuf);

impl CgroupFolder {
    /// Finds the folder in the content of `/proc/self/mounts`; `None` if neither hierarchy is mounted.
    #[must_use]
    pub fn find(mounts: &str) -> Option<Self> {
        let mut version_2 = None;
        for mount in Mount::all(mounts) {
            let mut options = mount.options.split(',');
            if mount.kind == "cgroup" && options.any(|option| option == "perf_event") {
                return Some(Self(mount.place));
            }
            if mount.kind == "cgroup2" {
                version_2 = version_2.or(Some(Self(mount.place)));
            }
        }
        version_2
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the id (the inode number) and the number of ancestors of a cgroup; `None` unless the folder is the root of the
    /// hierarchy of version 2.
    ///
    /// # Errors
    /// What reading the folders reports; [`io::ErrorKind::Other`] if `name` leads out of the hierarchy.
    pub fn id_and_level(&self, name: &str) -> io::Result<Option<(u64, u32)>> {
        /// The inode number of the root of the hierarchy of version 2. The root of a cgroup namespace has another number.
        const ROOT: u64 = 1;
        let root = fs::canonicalize(&self.0)?;
        if !root.join("cgroup.controllers").exists() || fs::metadata(&root)?.ino() != ROOT {
            return Ok(None);
        }
        let folder = fs::canonicalize(root.join(name.trim_start_matches('/')))?;
        let below = folder.strip_prefix(&root).map_err(io::Error::other)?;
        let level = u32::try_from(below.components().count()).map_err(io::Error::other)?;
        Ok(Some((fs::metadata(&folder)?.ino(), level)))
    }

    /// Opens a cgroup by its path below the folder, with or without a leading slash.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn open(&self, name: &str) -> io::Result<OpenCgroup> {
        let relative = name.trim_start_matches('/');
        File::open(self.0.join(relative)).map(OpenCgroup)
    }
}

/// An open cgroup.
#[derive(Debug)]
pub struct OpenCgroup(File);

impl AsFd for OpenCgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lists the root cgroup and all cgroups below it, each with its id (the inode number) and its path
/// below `folder`, with a leading slash. Cgroups below one whose folder cannot be read are skipped.
#[must_use]
pub fn cgroups(folder: &CgroupFolder) -> Vec<(u64, PathBuf)> {
    let mut groups = Vec::new();
    let mut unvisited = vec![folder.0.clone()];
    while let Some(path) = unvisited.pop() {
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        let below = path.strip_prefix(&folder.0).unwrap_or(Path::new(""));
        groups.push((metadata.ino(), Path::new("/").join(below)));
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        unvisited.extend(folders.map(|entry| entry.path()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_perf_event_hierarchy_takes_precedence_over_version_2() {
        // The last line is not a mount.
        let both = "cgroup2 /c2 cgroup2 rw 0 0\ncgroup /c1/perf cgroup rw,perf_event 0 0\nx\n";
        let find = |text| CgroupFolder::find(text).map(|folder| folder.0);
        assert_eq!(find(both), Some("/c1/perf".into()));
        assert_eq!(
            find("a /c1 cgroup rw,cpu 0 0\nb /c2 cgroup2 rw 0 0"),
            Some("/c2".into())
        );
        assert_eq!(find("tmpfs /tmp tmpfs rw 0 0"), None);
    }

    #[test]
    fn all_folders_are_listed_from_the_top_and_can_be_opened() {
        let root = std::env::temp_dir().join(format!("rperf-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/cgroup.procs"), "").unwrap();
        let folder = CgroupFolder(root.clone());
        let paths: Vec<_> = cgroups(&folder).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["/", "/a", "/a/b"].map(PathBuf::from));
        assert!(folder.open("/a/b").is_ok() && folder.open("nosuch").is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
