//! The cache of debuginfod's clients, as elfutils lays it out (debuginfod_find_debuginfo(3), CACHE).
//!
//! ```text
//! ROOT/cache_clean_interval_s      seconds between two cleanings; the file's time is that of the last one
//!      max_unused_age_s            seconds after its last use that a file is removed
//!      cache_miss_s                seconds that "no server has it" is believed
//!      ID/debuginfo                an empty file means that no server has it
//!      ID/executable
//! ```

use std::ffi::OsString;
use std::fs::{File, FileTimes, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rperf_safefs::{Folder, Kind, temporary_name};

/// The largest file with a setting, in bytes.
const MAX_SETTING: u64 = 4096;

/// A file that says how many seconds something takes.
struct Setting {
    name: &'static str,
    usual: u64,
}

const CLEAN_INTERVAL: Setting = Setting {
    name: "cache_clean_interval_s",
    usual: 24 * 60 * 60,
};
const MAX_UNUSED_AGE: Setting = Setting {
    name: "max_unused_age_s",
    usual: 7 * 24 * 60 * 60,
};
const CACHE_MISS: Setting = Setting {
    name: "cache_miss_s",
    usual: 10 * 60,
};

/// The cache below a folder, which need not exist.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// What the cache knows of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Here it is.
    Here(PathBuf),
    /// No server had it a moment ago.
    Nowhere,
    /// Nothing.
    Nothing,
}

impl Cache {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn look(&self, id: &str, part: &str) -> Known {
        let Ok(folder) = self.existing(id) else {
            return Known::Nothing;
        };
        let Ok(found) = folder.find(part.as_ref()) else {
            return Known::Nothing;
        };
        let metadata = found.metadata();
        if metadata.len() > 0 || !metadata.is_file() {
            // Cleaning goes by the last use, which not every file system keeps.
            let now = FileTimes::new().set_accessed(SystemTime::now());
            return match found.for_reading() {
                Ok(file) => {
                    let _ = file.set_times(now);
                    Known::Here(self.path(id, part))
                }
                Err(_) => Known::Nothing,
            };
        }
        let believed = self.seconds(&CACHE_MISS);
        match age(metadata.modified()).is_none_or(|age| age <= believed) {
            true => Known::Nowhere,
            false => {
                let _ = folder.remove_file(part.as_ref());
                Known::Nothing
            }
        }
    }

    /// A new file for what is about to be received, under a name that can't be guessed.
    pub(crate) fn start(&self, id: &str, part: &str) -> io::Result<Receiving> {
        let folder = self.folder(id)?;
        let name = temporary_name(part.as_ref())?;
        let file = folder.create_file(&name, 0o600)?;
        Ok(Receiving { folder, name, file })
    }

    /// Gives what was received its place. `changed` is when the server says that it was.
    pub(crate) fn place(
        &self,
        received: &Receiving,
        (id, part): (&str, &str),
        changed: Option<SystemTime>,
    ) -> io::Result<PathBuf> {
        if let Some(changed) = changed {
            let times = FileTimes::new().set_modified(changed);
            received.file.set_times(times)?;
        }
        received
            .file
            .set_permissions(Permissions::from_mode(0o400))?;
        received.folder.rename(&received.name, part.as_ref())?;
        Ok(self.path(id, part))
    }

    /// Notes that no server has it.
    pub(crate) fn note_absence(&self, id: &str, part: &str) -> io::Result<()> {
        self.folder(id)?.create_file(part.as_ref(), 0o600).map(drop)
    }

    /// Removes the folder of a build-id if there is nothing in it.
    pub(crate) fn forget_empty(&self, id: &str) {
        if let Ok(root) = Folder::open_own(&self.root) {
            let _ = root.remove_folder(id.as_ref());
        }
    }

    pub(crate) fn path(&self, id: &str, part: &str) -> PathBuf {
        self.root.join(id).join(part)
    }

    fn existing(&self, id: &str) -> io::Result<Folder> {
        Folder::open_own(&self.root)?.below(id.as_ref())
    }

    fn folder(&self, id: &str) -> io::Result<Folder> {
        Folder::open_own_or_create(&self.root, 0o700)?.create_below(id.as_ref(), 0o700)
    }

    /// Removes what has not been used for long, if that has not been done for long.
    pub(crate) fn clean(&self) -> io::Result<()> {
        let root = match Folder::open_own(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            root => root?,
        };
        let interval = self.seconds(&CLEAN_INTERVAL);
        let mark = root.find(CLEAN_INTERVAL.name.as_ref())?;
        if age(mark.metadata().modified()).is_none_or(|age| age < interval) {
            return Ok(());
        }
        let max_age = self.seconds(&MAX_UNUSED_AGE);
        for name in root.names()? {
            let is_id = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if name.to_str().is_some_and(is_id) && root.kind(&name)? == Some(Kind::Folder) {
                clean_folder(&root.below(name.as_ref())?, max_age)?;
                // What is not empty stays.
                let _ = root.remove_folder(&name);
            }
        }
        let now = FileTimes::new().set_modified(SystemTime::now());
        mark.for_reading()?.set_times(now)
    }

    /// What a setting says. It is written where there is none, so that users find what they may change.
    fn seconds(&self, setting: &Setting) -> Duration {
        let usual = Duration::from_secs(setting.usual);
        let Ok(root) = Folder::open_own(&self.root) else {
            return usual;
        };
        let name = setting.name.as_ref();
        match root.read(name, MAX_SETTING) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                text.trim().parse().map_or(usual, Duration::from_secs)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound
                    && let Ok(mut file) = root.create_file(name, 0o666)
                {
                    let _ = file.write_all(format!("{}\n", setting.usual).as_bytes());
                }
                usual
            }
        }
    }
}

/// A file that is being received.
#[derive(Debug)]
pub(crate) struct Receiving {
    folder: Folder,
    /// Its name meanwhile.
    name: OsString,
    pub(crate) file: File,
}

impl Receiving {
    /// Where it is, for messages.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Removes it.
    pub(crate) fn discard(self) {
        let _ = self.folder.remove_file(&self.name);
    }
}

/// Removes the files of one build-id that were not used for so long.
fn clean_folder(folder: &Folder, max_age: Duration) -> io::Result<()> {
    const PARTS: [&str; 4] = ["debuginfo", "executable", "source", "section"];
    for name in folder.names()? {
        let is_part = |part: &&str| name.to_string_lossy().starts_with(*part);
        let found = folder.find(&name)?;
        let metadata = found.metadata();
        let unused = age(metadata.accessed()).is_some_and(|age| age > max_age);
        if metadata.is_file() && unused && PARTS.iter().any(is_part) {
            folder.remove_file(&name)?;
        }
    }
    Ok(())
}

/// How long ago; `None` for the future.
fn age(time: io::Result<SystemTime>) -> Option<Duration> {
    time.ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use rperf_testkit::Scratch;

    fn make_older(path: &Path, days: u64) {
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        let times = FileTimes::new().set_accessed(then).set_modified(then);
        let file = File::open(path).expect("it can be opened");
        file.set_times(times).expect("times can be set");
    }

    #[test]
    fn what_is_absent_is_asked_for_again_after_a_while() {
        let scratch = Scratch::new();
        let cache = Cache::new(scratch.path().join("cache"));
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Nothing);
        cache
            .note_absence("ab12", "debuginfo")
            .expect("it is noted");
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Nowhere);
        assert_eq!(cache.look("ab12", "executable"), Known::Nothing);
        make_older(&cache.path("ab12", "debuginfo"), 1);
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Nothing);
        assert!(!cache.path("ab12", "debuginfo").exists());
        let setting = scratch.path().join("cache/cache_miss_s");
        assert_eq!(fs::read_to_string(setting).ok().as_deref(), Some("600\n"));
    }

    #[test]
    fn files_appear_whole_and_for_their_owner_alone() {
        let scratch = Scratch::new();
        let cache = Cache::new(scratch.path().join("cache"));
        let mut receiving = cache.start("ab12", "debuginfo").expect("it starts");
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Nothing);
        receiving.file.write_all(b"bytes").expect("it is written");
        let temporary = receiving.path();
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let placed = cache.place(&receiving, ("ab12", "debuginfo"), Some(then));
        let path = placed.expect("it is placed");
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Here(path.clone()));
        let metadata = fs::metadata(path).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o400);
        assert_eq!(metadata.modified().ok(), Some(then));
        assert!(!temporary.exists());
    }

    #[test]
    fn cleaning_removes_what_nobody_used() {
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
            make_older(&path, days);
        }
        cache.clean().expect("it was cleaned a moment ago");
        assert!(scratch.path().join("ef56").exists());
        make_older(&scratch.path().join(CLEAN_INTERVAL.name), 2);
        cache.clean().expect("it is cleaned");
        let left = |name: &str| scratch.path().join(name).exists();
        assert!(!left("ab12/debuginfo") && left("ab12/mine") && !left("ef56"));
        assert!(left("cd34/executable") && left("notes/debuginfo"));
    }
}
