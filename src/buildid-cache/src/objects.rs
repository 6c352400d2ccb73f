//! Contents of the cache: listing, adding and removing files.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rperf_safefs::{Folder, FoundFile, Refusal, read_all};

use crate::{FILE_MODE, FOLDER_MODE};

/// Folder of links by build-id.
const LINKS: &str = ".build-id";
/// Names of the content file in an object's folder: of an ELF file, of the kernel's symbols, and of the vdso.
const CONTENTS: [&str; 3] = ["elf", "kallsyms", "vdso"];
/// Name of the file with an object's probe events.
const PROBES: &str = "probes";
/// Maximum size of that file in bytes.
const MAX_PROBES: u64 = 64 << 20;

/// Folder of installed debug files by build-id.
pub const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// A build-id cache on disk, shared with Linux perf.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// An object in the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cached {
    /// The build-id in hexadecimal.
    pub id: String,
    /// Path of the original file, or `[kernel.kallsyms]`, `[vdso]`.
    pub name: PathBuf,
    /// Its folder in the cache.
    pub folder: PathBuf,
}

impl Cached {
    /// The list of its probe events in perf's format; empty if there is none.
    ///
    /// # Errors
    /// Errors of reading; `InvalidData` if the list isn't UTF-8; [`Refusal::ForeignOwner`] if it belongs neither to root nor to
    /// this user.
    pub fn probes(&self) -> io::Result<String> {
        read_probes(&Folder::open(&self.folder)?)
    }

    /// Atomically replaces the list of probe events by the text that `change` makes of it, and returns the other result of
    /// `change`. A lock serialises concurrent changes.
    ///
    /// # Errors
    /// Those of [`Self::probes`], and errors of locking the folder (flock(2)) and writing.
    pub fn change_probes<T>(&self, change: impl FnOnce(&str) -> (String, T)) -> io::Result<T> {
        let folder = Folder::open(&self.folder)?;
        let _lock = folder.lock()?;
        let (list, result) = change(&read_probes(&folder)?);
        write_probes(&folder, &list)?;
        Ok(result)
    }
}

fn read_probes(folder: &Folder) -> io::Result<String> {
    let file = match folder.find(PROBES.as_ref()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?,
    };
    // The list determines where the kernel places probes.
    if !file.has_trusted_owner() {
        return Err(Refusal::ForeignOwner.into());
    }
    let bytes = read_all(file.for_reading()?, MAX_PROBES)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The first character of the line of a USDT marker in a list of probe events.
const MARKER: char = '%';

/// Adds `markers`, the lines of USDT markers, at the start of an object's list of probe events, unless the list already contains
/// markers. If the object has no list, creates it even if `markers` is empty, as perf does.
fn add_markers(folder: &Folder, markers: &str) -> io::Result<()> {
    let _lock = folder.lock()?;
    if folder.kind(PROBES.as_ref())?.is_none() {
        return write_probes(folder, markers);
    }
    if markers.is_empty() {
        return Ok(());
    }
    let list = read_probes(folder)?;
    match list.lines().any(|line| line.starts_with(MARKER)) {
        true => Ok(()),
        false => write_probes(folder, &format!("{markers}{list}")),
    }
}

fn write_probes(folder: &Folder, list: &str) -> io::Result<()> {
    folder.write_atomic(PROBES.as_ref(), FILE_MODE, |out| {
        out.write_all(list.as_bytes())
    })
}

/// A file to add.
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'a> {
    /// Its full path, used as its name.
    pub path: &'a Path,
    /// The file to link or copy: `path`, or for a file of another mount namespace the path by which this process reaches it.
    pub file: &'a Path,
    /// Its build-id in hexadecimal.
    pub id: &'a str,
    /// The debug file, if separate and installed.
    pub debug: Option<&'a Path>,
    /// The lines of its USDT markers in perf's format, may be empty; `None` to add no list of probe events.
    pub probes: Option<&'a str>,
}

impl Cache {
    /// The cache at `root`, which need not exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder of the cache.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All objects with content, sorted by build-id.
    ///
    /// # Errors
    /// Errors of opening the folder of links and of listing folders; a missing cache is empty.
    pub fn objects(&self) -> io::Result<Vec<Cached>> {
        let mut objects = Vec::new();
        let Some(links) = existing(self.open().and_then(|root| root.open_below(LINKS.as_ref())))?
        else {
            return Ok(objects);
        };
        for first in links.names()? {
            // Other names are not the first two digits of a build-id.
            if first.len() != 2 {
                continue;
            }
            let Ok(folder) = links.open_below(first.as_ref()) else {
                continue;
            };
            for rest in folder.names()? {
                let mut id = first.clone();
                id.push(rest);
                if let Some(cached) = id.to_str().and_then(|id| self.object(id)) {
                    objects.push(cached);
                }
            }
        }
        objects.sort();
        Ok(objects)
    }

    /// The object with this build-id (in hexadecimal); `None` if there is none, or if it has no content or cannot be accessed.
    #[must_use]
    pub fn object(&self, id: &str) -> Option<Cached> {
        let (parent, link_name) = link(id)?;
        let root = self.open().ok()?;
        let links = root.open_below(&parent).ok()?;
        let name = name_of(&links.read_link(link_name).ok()?, id)?;
        let folder = root.open_below(&folder_path(&name, id)?).ok()?;
        let mut contents = CONTENTS.iter();
        let has_content = contents.any(|content| folder.has_file(content.as_ref()));
        has_content.then(|| Cached {
            id: id.to_owned(),
            name,
            folder: folder.path().to_owned(),
        })
    }

    /// Opens the cache's folder, which may itself be a link of root or this user. Paths below it are opened relative to it, and
    /// none of their components may be a link.
    fn open(&self) -> io::Result<Folder> {
        Folder::open_own(&self.root)
    }

    /// Adds a file as a hard link, or as a copy if linking fails. An existing file of this name and
    /// build-id is kept.
    ///
    /// # Errors
    /// Errors of copying and creating folders, those of [`Cached::probes`], and `InvalidInput` for an invalid path or
    /// build-id. No file is left incomplete.
    pub fn add(&self, object: &NewObject<'_>) -> io::Result<()> {
        self.add_with(object.path, object.id, |folder| {
            place(object.file, folder, "elf")?;
            if let Some(debug) = object.debug {
                place(debug, folder, "debug")?;
            }
            match object.probes {
                Some(markers) => add_markers(folder, markers),
                None => Ok(()),
            }
        })
    }

    /// Adds an object that is not on disk: an ELF file with this content. An existing file of this name and build-id is kept.
    ///
    /// # Errors
    /// Errors of creating folders and writing, and `InvalidInput` for an invalid path or build-id. No file is left incomplete.
    pub fn add_image(&self, path: &Path, id: &str, image: &[u8]) -> io::Result<()> {
        self.add_with(path, id, |folder| match folder.kind("elf".as_ref())? {
            Some(_) => Ok(()),
            None => folder.write_atomic("elf".as_ref(), FILE_MODE, |out| out.write_all(image)),
        })
    }

    /// Adds the object of this name and build-id, whose files `add` places in its folder.
    fn add_with(
        &self,
        path: &Path,
        id: &str,
        add: impl FnOnce(&Folder) -> io::Result<()>,
    ) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let below = folder_path(path, id).ok_or_else(invalid)?;
        let (parent, link_name) = link(id).ok_or_else(invalid)?;
        let root = Folder::open_own_or_create(&self.root, FOLDER_MODE)?;
        add(&root.create_below(&below, FOLDER_MODE)?)?;
        // A link to an object with content is kept, even if that object has another name.
        if self.object(id).is_none() {
            let links = root.create_below(&parent, FOLDER_MODE)?;
            let target = Path::new("../..").join(below);
            links.replace(link_name, |links, temporary| {
                links.symlink(&target, temporary)
            })?;
        }
        Ok(())
    }

    /// Removes an object with its link and the folders that are empty afterwards.
    ///
    /// # Errors
    /// Errors of removing.
    pub fn remove(&self, cached: &Cached) -> io::Result<()> {
        let root = self.open()?;
        if let Some((parent, link_name)) = link(&cached.id) {
            remove_below(&root, &parent, link_name)?;
        }
        if let Some(below) = folder_path(&cached.name, &cached.id)
            && let (Some(parent), Some(id)) = (below.parent(), below.file_name())
        {
            remove_below(&root, parent, id)?;
        }
        Ok(())
    }
}

/// The folder of a build-id's link relative to the cache, and the link's name. `None` unless `id` consists of at least three
/// hexadecimal digits: the first two are the folder's name, the rest is the link's.
pub(crate) fn link(id: &str) -> Option<(PathBuf, &OsStr)> {
    let hexadecimal = |byte: u8| byte.is_ascii_hexdigit();
    let (first, rest) = id.split_at_checked(2)?;
    let is_id = !rest.is_empty() && id.bytes().all(hexadecimal);
    is_id.then(|| (Path::new(LINKS).join(first), OsStr::new(rest)))
}

/// The path of an object's folder relative to the cache. `None` for empty names and names that contain `..` or begin with `./`.
fn folder_path(name: &Path, id: &str) -> Option<PathBuf> {
    let below = name.strip_prefix("/").unwrap_or(name);
    let mut parts = below.components();
    let is_below = parts.all(|part| matches!(part, Component::Normal(_)));
    let is_empty = below.as_os_str().is_empty();
    (is_below && !is_empty).then(|| below.join(id))
}

/// The name of an object from the target of its link: `../../usr/bin/ls/ID`.
fn name_of(target: &Path, id: &str) -> Option<PathBuf> {
    let below = target.strip_prefix("../..").ok()?;
    let name = below.parent().filter(|_| below.ends_with(id))?;
    // Names in brackets are not paths.
    match name.as_os_str().as_bytes().first()? {
        b'[' => Some(name.to_owned()),
        _ => Some(Path::new("/").join(name)),
    }
}

/// Removes `name` from the folder `parent`, a path relative to the cache, and then the folders of this path that have become
/// empty. A missing name is no error.
fn remove_below(root: &Folder, parent: &Path, name: &OsStr) -> io::Result<()> {
    if let Some(folder) = existing(root.open_below(parent))? {
        existing(folder.remove_tree(name))?;
    }
    for folder in parent.ancestors() {
        let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Ok(());
        };
        let removed = root
            .open_below(above)
            .and_then(|above| above.remove_folder(name));
        // The folder is not empty, or is missing.
        if removed.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Converts `NotFound` to `None`.
fn existing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// The debug file for the build-id `id` (in hexadecimal) below `folder`, such as [`DEBUG_FILES`]; `None` if it is not installed.
#[must_use]
pub fn debug_file(folder: &Path, id: &str) -> Option<PathBuf> {
    let (first, rest) = id.split_at_checked(2)?;
    let file = folder.join(first).join(format!("{rest}.debug"));
    let found = FoundFile::find(&file).ok()?;
    found.metadata().is_file().then_some(file)
}

/// Creates `name` in `folder` atomically, as a hard link to the regular file `from` or as a copy. An existing file is kept.
fn place(from: &Path, folder: &Folder, name: &str) -> io::Result<()> {
    if folder.kind(name.as_ref())?.is_some() {
        return Ok(());
    }
    let found = FoundFile::find(from)?;
    let mut file = found.for_reading()?;
    let linked = folder.replace(name.as_ref(), |folder, temporary| {
        folder.link_file(&file, temporary)
    });
    linked.or_else(|_| {
        let mode = found.metadata().permissions().mode() & 0o777;
        folder.write_atomic(name.as_ref(), mode, |out| {
            io::copy(&mut file, out).map(drop)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KERNEL_OBJECT, SpecialObject};
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Returns a new folder, and a cache and a separate file in it.
    fn scratch(name: &str) -> (PathBuf, Cache, PathBuf) {
        let root = std::env::temp_dir().join(format!("rperf-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let file = root.join("prog");
        fs::write(&file, "bytes").unwrap();
        let cache = Cache::new(root.join("cache"));
        (root, cache, file)
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        Folder::open(folder).unwrap().names().unwrap()
    }

    fn object<'a>(path: &'a Path, id: &'a str) -> NewObject<'a> {
        NewObject {
            path,
            file: path,
            id,
            debug: None,
            probes: Some(""),
        }
    }

    #[test]
    fn added_objects_are_listed_and_removed_completely() {
        let (root, cache, file) = scratch("objects");
        assert_eq!(cache.objects().unwrap(), []);
        cache.add(&object(&file, "ab12")).unwrap();
        cache.add(&object(&file, "ab12")).unwrap();
        cache.add(&object(&file, "cd34")).unwrap();
        let all = cache.objects().unwrap();
        let ids: Vec<&str> = all.iter().map(|cached| cached.id.as_str()).collect();
        assert_eq!(ids, ["ab12", "cd34"]);
        assert!(all.iter().all(|cached| cached.name == file));
        let target = fs::read_link(cache.root().join(".build-id/ab/12")).unwrap();
        let below = file.strip_prefix("/").unwrap();
        assert_eq!(target, Path::new("../..").join(below).join("ab12"));
        let listed = names(&all[0].folder);
        assert_eq!(listed, ["elf", "probes"]);
        for cached in &all {
            cache.remove(cached).unwrap();
        }
        assert_eq!(names(cache.root()), [""; 0]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn debug_files_are_added_and_removed_with_their_objects() {
        let (root, cache, file) = scratch("debug-files");
        let installed = root.join("debug/ab");
        fs::create_dir_all(&installed).unwrap();
        fs::write(installed.join("12.debug"), "lines").unwrap();
        let found = debug_file(&root.join("debug"), "ab12").unwrap();
        let with_lines = NewObject {
            debug: Some(&found),
            ..object(&file, "ab12")
        };
        cache.add(&with_lines).unwrap();
        let cached = cache.object("ab12").unwrap().folder.join("debug");
        assert_eq!(fs::read(cached).unwrap(), b"lines");
        cache.remove(&cache.object("ab12").unwrap()).unwrap();
        assert_eq!(names(cache.root()), [""; 0]);
        for id in ["ab34", "a", ""] {
            assert_eq!(debug_file(&root.join("debug"), id), None);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn probe_lists_are_replaced_completely() {
        let (root, cache, file) = scratch("lists");
        cache.add(&object(&file, "ab12")).unwrap();
        cache
            .add_special(&SpecialObject::kernel(&[0xcd, 0x34]), || {
                Ok(b"0 T f\n".to_vec())
            })
            .unwrap();
        for (id, name) in [("ab12", file.as_path()), ("cd34", Path::new(KERNEL_OBJECT))] {
            let cached = cache.object(id).unwrap();
            assert_eq!(cached.name, name);
            assert_eq!(cached.probes().unwrap(), "");
            for list in ["#f\np:g/f f+0\n", "#g\n"] {
                cached.change_probes(|_| (list.to_owned(), ())).unwrap();
                assert_eq!(cached.probes().unwrap(), list);
            }
            // The content file and the list: no temporary file is left.
            assert_eq!(names(&cached.folder).len(), 2);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn markers_are_added_only_to_lists_without_markers() {
        let (root, cache, file) = scratch("markers");
        let with = |probes| NewObject {
            probes: Some(probes),
            ..object(&file, "ab12")
        };
        let list = || cache.object("ab12").unwrap().probes().unwrap();
        cache.add(&with("")).unwrap();
        let cached = cache.object("ab12").unwrap();
        let events = "#f\np:g/f f+0\n";
        cached.change_probes(|_| (events.to_owned(), ())).unwrap();
        cache.add(&with("%a:b=b\n")).unwrap();
        assert_eq!(list(), format!("%a:b=b\n{events}"));
        cache.add(&with("%c:d=d\n")).unwrap();
        cache.add(&with("")).unwrap();
        assert_eq!(
            list(),
            format!("%a:b=b\n{events}"),
            "the markers are unchanged"
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn paths_outside_the_cache_are_refused() {
        let (root, cache, file) = scratch("outside");
        for name in ["/tmp/../etc", "..", "/", ""] {
            assert!(
                cache.add(&object(Path::new(name), "ab12")).is_err(),
                "{name}"
            );
        }
        for id in ["", "a", "ab", "../x", "ab/../.."] {
            assert!(cache.add(&object(&file, id)).is_err(), "{id}");
            assert_eq!(cache.object(id), None, "{id}");
        }
        // Links that point elsewhere are not followed.
        let links = cache.root().join(".build-id/ab");
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(root.join("victim/ab12/elf")).unwrap();
        for (link, target) in [
            ("12", "../../../victim/ab12"),
            ("34", "/etc"),
            ("56", "../../gone/ab56"),
        ] {
            symlink(target, links.join(link)).unwrap();
        }
        assert_eq!(cache.objects().unwrap(), []);
        // A dangling link is replaced.
        cache.add(&object(&file, "ab56")).unwrap();
        assert_eq!(cache.objects().unwrap().len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn concurrent_changes_of_a_list_lose_no_line() {
        let root = std::env::temp_dir().join(format!("rperf-probes-{}", std::process::id()));
        let folder = root.join("object/ab12");
        fs::create_dir_all(&folder).unwrap();
        let cached = Cached {
            id: "ab12".to_owned(),
            name: "/object".into(),
            folder,
        };
        std::thread::scope(|scope| {
            for number in 0..8 {
                let cached = &cached;
                scope.spawn(move || {
                    let add = |list: &str| (format!("{list}{number}\n"), ());
                    cached.change_probes(add).unwrap();
                });
            }
        });
        let list = cached.probes().unwrap();
        let mut numbers: Vec<&str> = list.lines().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7"]);
        fs::remove_dir_all(root).unwrap();
    }
}
