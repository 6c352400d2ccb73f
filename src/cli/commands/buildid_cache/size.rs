//! How large the cache is, and what is taken out to make it smaller.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use rperf_buildid_cache::Cached;
use rperf_safefs::Folder;

/// Bytes of a block as stat(2) counts them.
const BLOCK: u64 = 512;

/// An object with what it costs.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) cached: Cached,
    /// On disk.
    pub(super) bytes: u64,
    /// When one of its files was read or changed last, in seconds since 1970.
    used: i64,
}

impl Kept {
    /// Looks at the files of an object.
    pub(super) fn of(cached: Cached) -> io::Result<Self> {
        let mut kept = Self {
            cached,
            bytes: 0,
            used: i64::MIN,
        };
        let folder = Folder::open(&kept.cached.folder)?;
        kept.add(&folder)?;
        Ok(kept)
    }

    fn add(&mut self, folder: &Folder) -> io::Result<()> {
        for name in folder.names()? {
            let found = folder.find(&name)?;
            let known = found.metadata();
            if known.is_dir() {
                self.add(&folder.below(name.as_ref())?)?;
                continue;
            }
            self.bytes = self
                .bytes
                .saturating_add(known.blocks().saturating_mul(BLOCK));
            self.used = self.used.max(known.atime()).max(known.mtime());
        }
        Ok(())
    }
}

/// Those that go so that the others need no more than `limit` bytes: what was used least recently first.
pub(super) fn surplus(mut all: Vec<Kept>, limit: u64) -> Vec<Kept> {
    all.sort_by(|one, other| (one.used, &one.cached).cmp(&(other.used, &other.cached)));
    let mut rest = total(&all);
    all.into_iter()
        .take_while(|kept| {
            let is_too_much = rest > limit;
            rest = rest.saturating_sub(kept.bytes);
            is_too_much
        })
        .collect()
}

/// The bytes of all of them.
pub(super) fn total(all: &[Kept]) -> u64 {
    all.iter().map(|kept| kept.bytes).sum()
}

/// `3 objects, 1.5 MB`.
pub(super) fn told(count: usize, bytes: u64) -> String {
    let several = if count == 1 { "" } else { "s" };
    let tenths = bytes.saturating_mul(10).div_ceil(1_000_000);
    format!(
        "{count} object{several}, {}.{} MB",
        tenths / 10,
        tenths % 10
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(id: &str, bytes: u64, used: i64) -> Kept {
        let cached = Cached {
            id: id.to_owned(),
            name: format!("/{id}").into(),
            folder: format!("/cache/{id}").into(),
        };
        Kept {
            cached,
            bytes,
            used,
        }
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let gone = |limit| -> Vec<String> {
            let all = vec![kept("a", 10, 3), kept("b", 20, 1), kept("c", 30, 2)];
            let surplus = surplus(all, limit).into_iter();
            surplus.map(|kept| kept.cached.id).collect()
        };
        assert_eq!(gone(60), [""; 0]);
        assert_eq!(gone(59), ["b"]);
        assert_eq!(gone(39), ["b", "c"]);
        assert_eq!(gone(0), ["b", "c", "a"]);
    }

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(told(1, 1), "1 object, 0.1 MB");
        assert_eq!(told(0, 0), "0 objects, 0.0 MB");
        assert_eq!(told(2, 1_400_000), "2 objects, 1.4 MB");
    }
}
