//! The size of the cache, and the objects to remove to make it smaller.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use rperf_buildid_cache::Cached;
use rperf_names::counted;
use rperf_safefs::Folder;

/// Bytes per block in `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

/// An object with its size.
#[derive(Debug)]
pub(super) struct SizedObject {
    pub(super) cached: Cached,
    /// Bytes on disk.
    pub(super) bytes: u64,
    /// Last access or modification of any of its files, in seconds since 1970.
    used: i64,
}

impl SizedObject {
    /// Reads the metadata of an object's files.
    pub(super) fn of(cached: Cached) -> io::Result<Self> {
        let mut object = Self {
            cached,
            bytes: 0,
            used: i64::MIN,
        };
        let folder = Folder::open(&object.cached.folder)?;
        object.add(&folder)?;
        Ok(object)
    }

    fn add(&mut self, folder: &Folder) -> io::Result<()> {
        for name in folder.names()? {
            let file = folder.find(&name)?;
            let metadata = file.metadata();
            if metadata.is_dir() {
                self.add(&folder.open_below(name.as_ref())?)?;
                continue;
            }
            self.bytes = self
                .bytes
                .saturating_add(metadata.blocks().saturating_mul(BLOCK));
            self.used = self.used.max(metadata.atime()).max(metadata.mtime());
        }
        Ok(())
    }
}

/// The limits that the objects in the cache must meet.
#[derive(Debug, Clone, Copy)]
pub(super) struct CacheLimits {
    /// Maximum number of bytes of all objects together.
    pub(super) bytes: u64,
    /// Objects whose last use was before this time, in seconds since 1970, are removed.
    pub(super) since: i64,
}

/// Returns the objects to remove, least recently used first, so that the others are within the limits.
pub(super) fn surplus(mut all: Vec<SizedObject>, limits: CacheLimits) -> Vec<SizedObject> {
    all.sort_by(|one, other| (one.used, &one.cached).cmp(&(other.used, &other.cached)));
    let mut remaining_bytes = total(&all);
    all.into_iter()
        .take_while(|object| {
            let is_surplus = remaining_bytes > limits.bytes || object.used < limits.since;
            remaining_bytes = remaining_bytes.saturating_sub(object.bytes);
            is_surplus
        })
        .collect()
}

/// Returns the size of all objects in bytes.
pub(super) fn total(all: &[SizedObject]) -> u64 {
    all.iter().map(|object| object.bytes).sum()
}

/// Returns text such as `3 objects, 1.5 MB`, rounded up to 0.1 MB.
pub(super) fn count_and_size(count: usize, bytes: u64) -> String {
    let objects = counted(count as u64, "object");
    let tenths = bytes.saturating_mul(10).div_ceil(1_000_000);
    format!("{objects}, {}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(id: &str, bytes: u64, used: i64) -> SizedObject {
        let cached = Cached {
            id: id.to_owned(),
            name: format!("/{id}").into(),
            folder: format!("/cache/{id}").into(),
        };
        SizedObject {
            cached,
            bytes,
            used,
        }
    }

    #[test]
    fn the_least_recently_used_objects_are_removed_first() {
        let removed = |bytes, since| -> Vec<String> {
            let limits = CacheLimits { bytes, since };
            let all = vec![object("a", 10, 3), object("b", 20, 1), object("c", 30, 2)];
            let surplus = surplus(all, limits).into_iter();
            surplus.map(|object| object.cached.id).collect()
        };
        assert_eq!(removed(60, 1), [""; 0]);
        assert_eq!(removed(59, 1), ["b"]);
        assert_eq!(removed(39, 1), ["b", "c"]);
        assert_eq!(removed(0, 1), ["b", "c", "a"]);
        assert_eq!(removed(60, 2), ["b"]);
        assert_eq!(removed(39, 2), ["b", "c"]);
        assert_eq!(removed(60, 4), ["b", "c", "a"]);
    }

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(count_and_size(1, 1), "1 object, 0.1 MB");
        assert_eq!(count_and_size(0, 0), "0 objects, 0.0 MB");
        assert_eq!(count_and_size(2, 1_400_000), "2 objects, 1.4 MB");
    }
}
