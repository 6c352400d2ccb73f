//! The client cache of debuginfod in the layout of elfutils (debuginfod_find_debuginfo(3), CACHE).
//!
//! ```text
//! ROOT/cache_clean_interval_s      seconds between cleanups; its mtime is the time of the last cleanup
//!      max_unused_age_s            seconds after their last use until files are removed
//!      cache_miss_s                seconds for which a miss is cached
//!      ID/debuginfo                empty for a cached miss: no server has the file
//!      ID/executable               the same
//! ```

use std::ffi::OsString;
use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rperf_safefs::{FileKind, Folder, temporary_name};

/// Maximum size of a settings file in bytes.
const MAX_SETTING: u64 = 4096;

/// A setting: a file with a duration in seconds.
struct DurationSetting {
    name: &'static str,
    /// The default, in seconds.
    default_seconds: u64,
}

const CLEAN_INTERVAL: DurationSetting = DurationSetting {
    name: "cache_clean_interval_s",
    default_seconds: 24 * 60 * 60,
};
const MAX_UNUSED_AGE: DurationSetting = DurationSetting {
    name: "max_unused_age_s",
    default_seconds: 7 * 24 * 60 * 60,
};
const CACHE_MISS: DurationSetting = DurationSetting {
    name: "cache_miss_s",
    default_seconds: 10 * 60,
};

/// The cache in a folder that need not exist.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// Result of a cache lookup.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// The file is in the cache.
    Found(PathBuf),
    /// A miss is cached, and has not expired.
    Miss,
    /// Not in the cache, not readable, or a miss that has expired.
    Unknown,
}

impl Cache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Looks for the file `part` (`debuginfo` or `executable`) of a build-id, and deletes a miss that has expired. A found
    /// file counts as used now.
    pub(crate) fn look_up(&self, id: &str, part: &str) -> CacheLookup {
        let Ok(folder) = self.open_folder(id) else {
            return CacheLookup::Unknown;
        };
        let Ok(entry) = folder.find(part.as_ref()) else {
            return CacheLookup::Unknown;
        };
        let metadata = entry.metadata();
        // An empty regular file is a cached miss. `for_reading` refuses other types of files.
        if metadata.len() > 0 || !metadata.is_file() {
            // Cleanup depends on the access time, which not every file system updates.
            let now = FileTimes::new().set_accessed(SystemTime::now());
            return match entry.for_reading() {
                Ok(file) => {
                    let _ = file.set_times(now);
                    CacheLookup::Found(self.path(id, part))
                }
                Err(_) => CacheLookup::Unknown,
            };
        }
        let valid_for = self.duration(&CACHE_MISS);
        match age(metadata.modified()).is_none_or(|age| age <= valid_for) {
            true => CacheLookup::Miss,
            false => {
                let _ = folder.remove_file(part.as_ref());
                CacheLookup::Unknown
            }
        }
    }

    /// Creates a temporary file for a download, with an unpredictable name.
    pub(crate) fn create_partial_file(&self, id: &str, part: &str) -> io::Result<PartialFile> {
        let folder = self.create_folder(id)?;
        let name = temporary_name(part.as_ref())?;
        let file = folder.create_file(&name, 0o600)?;
        Ok(PartialFile { folder, name, file })
    }

    /// Moves a download to its final name. `modified` is the modification time from the server.
    pub(crate) fn store(
        &self,
        received: &PartialFile,
        id: &str,
        part: &str,
        modified: Option<SystemTime>,
    ) -> io::Result<PathBuf> {
        if let Some(modified) = modified {
            let times = FileTimes::new().set_modified(modified);
            received.file.set_times(times)?;
        }
        received
            .file
            .set_permissions(Permissions::from_mode(0o400))?;
        received.folder.rename(&received.name, part.as_ref())?;
        Ok(self.path(id, part))
    }

    /// Caches a miss.
    pub(crate) fn store_miss(&self, id: &str, part: &str) -> io::Result<()> {
        let folder = self.create_folder(id)?;
        folder.create_file(part.as_ref(), 0o600).map(drop)
    }

    /// Removes the folder of a build-id if it is empty.
    pub(crate) fn remove_if_empty(&self, id: &str) {
        if let Ok(root) = Folder::open_own(&self.root) {
            let _ = root.remove_folder(id.as_ref());
        }
    }

    pub(crate) fn path(&self, id: &str, part: &str) -> PathBuf {
        self.root.join(id).join(part)
    }

    /// Opens the folder of a build-id.
    fn open_folder(&self, id: &str) -> io::Result<Folder> {
        Folder::open_own(&self.root)?.open_below(id.as_ref())
    }

    /// Opens the folder of a build-id; creates it if it does not exist.
    fn create_folder(&self, id: &str) -> io::Result<Folder> {
        Folder::open_own_or_create(&self.root, 0o700)?.create_below(id.as_ref(), 0o700)
    }

    /// Removes files that have not been used for [`MAX_UNUSED_AGE`], if the last cleanup was at least [`CLEAN_INTERVAL`] ago.
    pub(crate) fn clean(&self) -> io::Result<()> {
        let root = match Folder::open_own(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            root => root?,
        };
        let interval = self.duration(&CLEAN_INTERVAL);
        // `duration` has created this file if it was missing; its modification time is the time of the last cleanup.
        let interval_file = root.find(CLEAN_INTERVAL.name.as_ref())?;
        if age(interval_file.metadata().modified()).is_none_or(|age| age < interval) {
            return Ok(());
        }
        let max_age = self.duration(&MAX_UNUSED_AGE);
        for name in root.names()? {
            let is_id = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if name.to_str().is_some_and(is_id) && root.kind(&name)? == Some(FileKind::Folder) {
                clean_folder(&root.open_below(name.as_ref())?, max_age)?;
                // Folders that are not empty stay.
                let _ = root.remove_folder(&name);
            }
        }
        let now = FileTimes::new().set_modified(SystemTime::now());
        interval_file.for_reading()?.set_times(now)
    }

    /// The value of a setting, or its default. Creates a missing file with the default, so that users find it.
    fn duration(&self, setting: &DurationSetting) -> Duration {
        let default = Duration::from_secs(setting.default_seconds);
        let Ok(root) = Folder::open_own(&self.root) else {
            return default;
        };
        let name = setting.name.as_ref();
        match root.read(name, MAX_SETTING) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                text.trim().parse().map_or(default, Duration::from_secs)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound
                    && let Ok(mut file) = root.create_file(name, 0o666)
                {
                    let _ = file.write_all(format!("{}\n", setting.default_seconds).as_bytes());
                }
                default
            }
        }
    }
}

/// A file being downloaded.
#[derive(Debug)]
pub(crate) struct PartialFile {
    folder: Folder,
    /// Its temporary name.
    name: OsString,
    pub(crate) file: File,
}

impl PartialFile {
    /// The path of the file, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Deletes the file.
    pub(crate) fn discard(self) {
        let _ = self.folder.remove_file(&self.name);
    }
}

/// Removes the files of one build-id that have not been used for `max_age`.
fn clean_folder(folder: &Folder, max_age: Duration) -> io::Result<()> {
    // The names of files in the cache begin with one of these, also while the files are downloaded.
    const PARTS: [&str; 4] = ["debuginfo", "executable", "source", "section"];
    for name in folder.names()? {
        let is_part = |part: &&str| name.to_string_lossy().starts_with(*part);
        let entry = folder.find(&name)?;
        let metadata = entry.metadata();
        let unused = age(metadata.accessed()).is_some_and(|age| age > max_age);
        if metadata.is_file() && unused && PARTS.iter().any(is_part) {
            folder.remove_file(&name)?;
        }
    }
    Ok(())
}

/// Time since `time`; `None` if it is unknown or in the future.
fn age(time: io::Result<SystemTime>) -> Option<Duration> {
    time.ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use rperf_testkit::Scratch;

    /// Sets the access and modification times to `days` ago.
    fn set_age(path: &Path, days: u64) {
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        let times = FileTimes::new().set_accessed(then).set_modified(then);
        let file = File::open(path).expect("it can be opened");
        file.set_times(times).expect("times can be set");
    }

    #[test]
    fn cached_misses_expire() {
        let scratch = Scratch::new();
        let cache = Cache::new(scratch.path().join("cache"));
        assert_eq!(cache.look_up("ab12", "debuginfo"), CacheLookup::Unknown);
        cache.store_miss("ab12", "debuginfo").expect("it is stored");
        assert_eq!(cache.look_up("ab12", "debuginfo"), CacheLookup::Miss);
        assert_eq!(cache.look_up("ab12", "executable"), CacheLookup::Unknown);
        set_age(&cache.path("ab12", "debuginfo"), 1);
        assert_eq!(cache.look_up("ab12", "debuginfo"), CacheLookup::Unknown);
        assert!(!cache.path("ab12", "debuginfo").exists());
        let setting = scratch.path().join("cache/cache_miss_s");
        assert_eq!(fs::read_to_string(setting).ok().as_deref(), Some("600\n"));
    }

    #[test]
    fn files_appear_when_complete_and_private_to_the_owner() {
        let scratch = Scratch::new();
        let cache = Cache::new(scratch.path().join("cache"));
        let mut receiving = cache
            .create_partial_file("ab12", "debuginfo")
            .expect("it starts");
        assert_eq!(cache.look_up("ab12", "debuginfo"), CacheLookup::Unknown);
        receiving.file.write_all(b"bytes").expect("it is written");
        let temporary = receiving.path();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let placed = cache.store(&receiving, "ab12", "debuginfo", Some(then));
        let path = placed.expect("it is placed");
        assert_eq!(
            cache.look_up("ab12", "debuginfo"),
            CacheLookup::Found(path.clone())
        );
        let metadata = fs::metadata(path).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o400);
        assert_eq!(metadata.modified().ok(), Some(then));
        assert!(!temporary.exists());
    }

    #[test]
    fn cleaning_removes_unused_files() {
        let scratch = Scratch::new();
        let cache = Cache::new(scratch.path().to_owned());
        cache.clean().expect("there is nothing to clean");
        for (name, days) in [
            ("ab12/debuginfo", 8),
            ("cd34/executable", 1),
            ("ab12/mine", 8),
            ("ef56/debuginfo", 9),
            ("notes/debuginfo", 9),
        ] {
            let folder = scratch.path().join(name);
            fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
            let path = scratch.write(name, "bytes").expect("a file");
            set_age(&path, days);
        }
        cache.clean().expect("it was cleaned a moment ago");
        assert!(scratch.path().join("ef56").exists());
        set_age(&scratch.path().join(CLEAN_INTERVAL.name), 2);
        cache.clean().expect("it is cleaned");
        let is_left = |name: &str| scratch.path().join(name).exists();
        assert!(!is_left("ab12/debuginfo") && is_left("ab12/mine") && !is_left("ef56"));
        assert!(is_left("cd34/executable") && is_left("notes/debuginfo"));
    }
}
