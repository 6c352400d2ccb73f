//! The cache of debuginfod's clients, as elfutils lays it out (debuginfod_find_debuginfo(3), CACHE).
//!
//! ```text
//! ROOT/cache_clean_interval_s      seconds between two cleanings; the file's time is that of the last one
//!      max_unused_age_s            seconds after its last use that a file is removed
//!      cache_miss_s                seconds that "no server has it" is believed
//!      ID/debuginfo                an empty file means that no server has it
//!      ID/executable
//! ```

use std::fs::{self, DirBuilder, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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
        let path = self.path(id, part);
        let Ok(metadata) = fs::metadata(&path) else {
            return Known::Nothing;
        };
        if metadata.len() > 0 {
            // Cleaning goes by the last use, which not every file system keeps.
            let now = FileTimes::new().set_accessed(SystemTime::now());
            let _ = File::open(&path).and_then(|file| file.set_times(now));
            return Known::Here(path);
        }
        let believed = self.seconds(&CACHE_MISS);
        match age(metadata.modified()).is_none_or(|age| age <= believed) {
            true => Known::Nowhere,
            false => {
                let _ = fs::remove_file(path);
                Known::Nothing
            }
        }
    }

    /// A new file for what is about to be received.
    pub(crate) fn start(&self, id: &str, part: &str) -> io::Result<(PathBuf, File)> {
        self.folder(id)?;
        let path = self.path(id, &format!("{part}.{}.tmp", std::process::id()));
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)?;
        Ok((path, file))
    }

    /// Gives what was received its place. `changed` is when the server says that it was.
    pub(crate) fn place(
        &self,
        (temporary, file): (&Path, &File),
        (id, part): (&str, &str),
        changed: Option<SystemTime>,
    ) -> io::Result<PathBuf> {
        if let Some(changed) = changed {
            file.set_times(FileTimes::new().set_modified(changed))?;
        }
        file.set_permissions(Permissions::from_mode(0o400))?;
        let path = self.path(id, part);
        fs::rename(temporary, &path)?;
        Ok(path)
    }

    /// Notes that no server has it.
    pub(crate) fn note_absence(&self, id: &str, part: &str) -> io::Result<()> {
        self.folder(id)?;
        File::create_new(self.path(id, part)).map(drop)
    }

    /// Removes the folder of a build-id if there is nothing in it.
    pub(crate) fn forget_empty(&self, id: &str) {
        let _ = fs::remove_dir(self.root.join(id));
    }

    pub(crate) fn path(&self, id: &str, part: &str) -> PathBuf {
        self.root.join(id).join(part)
    }

    fn folder(&self, id: &str) -> io::Result<()> {
        let mut folder = DirBuilder::new();
        folder
            .recursive(true)
            .mode(0o700)
            .create(self.root.join(id))
    }

    /// Removes what has not been used for long, if that has not been done for long.
    pub(crate) fn clean(&self) -> io::Result<()> {
        if !self.root.is_dir() {
            return Ok(());
        }
        let interval = self.seconds(&CLEAN_INTERVAL);
        let mark = self.root.join(CLEAN_INTERVAL.name);
        if age(fs::metadata(&mark)?.modified()).is_none_or(|age| age < interval) {
            return Ok(());
        }
        let max_age = self.seconds(&MAX_UNUSED_AGE);
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?.path();
            let is_id = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
            let named = folder.file_name().and_then(|name| name.to_str());
            if named.is_some_and(is_id) && folder.is_dir() {
                clean_folder(&folder, max_age)?;
            }
        }
        let now = FileTimes::new().set_modified(SystemTime::now());
        File::options().write(true).open(mark)?.set_times(now)
    }

    /// What a setting says. It is written where there is none, so that users find what they may change.
    fn seconds(&self, setting: &Setting) -> Duration {
        let path = self.root.join(setting.name);
        let text = fs::read_to_string(&path);
        if text.is_err() {
            let _ = fs::write(&path, format!("{}\n", setting.usual));
        }
        let written = text.ok().and_then(|text| text.trim().parse().ok());
        Duration::from_secs(written.unwrap_or(setting.usual))
    }
}

/// Removes the files of one build-id that were not used for so long, and the folder if nothing is left.
fn clean_folder(folder: &Path, max_age: Duration) -> io::Result<()> {
    const PARTS: [&str; 4] = ["debuginfo", "executable", "source", "section"];
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_part = |part: &&str| name.to_string_lossy().starts_with(*part);
        let metadata = entry.metadata()?;
        let unused = age(metadata.accessed()).is_some_and(|age| age > max_age);
        if metadata.is_file() && unused && PARTS.iter().any(is_part) {
            fs::remove_file(entry.path())?;
        }
    }
    // What is not empty stays.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// How long ago; `None` for the future.
fn age(time: io::Result<SystemTime>) -> Option<Duration> {
    time.ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
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
        let (temporary, file) = cache.start("ab12", "debuginfo").expect("it starts");
        assert_eq!(cache.look("ab12", "debuginfo"), Known::Nothing);
        fs::write(&temporary, "bytes").expect("it is written");
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let placed = cache.place((&temporary, &file), ("ab12", "debuginfo"), Some(then));
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
