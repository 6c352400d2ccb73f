//! What the cache holds: listing it, adding files, taking them out.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use rperf_sys::make_whole;

use super::{Entry, store};

/// The kernel's name.
pub const KERNEL_OBJECT: &str = "[kernel.kallsyms]";
/// Folder of the links by build-id.
const LINKS: &str = ".build-id";
/// Names of the files that an object's folder may hold with its content: of a file, of the kernel, of the vdso.
const CONTENTS: [&str; 3] = ["elf", "kallsyms", "vdso"];
/// The list of an object's probe events.
const PROBES: &str = "probes";

/// Where files with nothing but debugging information are installed, by build-id.
pub const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

/// A build-id cache on disk, shared with Linux perf.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// One object of the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cached {
    /// The build-id in hexadecimal.
    pub id: String,
    /// Path of the file it was made of, or `[kernel.kallsyms]`, `[vdso]`.
    pub name: PathBuf,
    /// Its folder in the cache.
    pub folder: PathBuf,
}

impl Cached {
    /// The list of its probe events, as perf writes it; empty where there is none.
    ///
    /// # Errors
    /// What reading reports; `InvalidData` for what is no text.
    pub fn probes(&self) -> io::Result<String> {
        match fs::read_to_string(self.folder.join(PROBES)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }

    /// Puts what `change` makes of that list in its place, whole or not at all, and returns what it says beside. Others who
    /// change it wait meanwhile.
    ///
    /// # Errors
    /// What locking the folder (flock(2)), reading and writing report.
    pub fn change_probes<T>(&self, change: impl FnOnce(&str) -> (String, T)) -> io::Result<T> {
        let folder = fs::File::open(&self.folder)?;
        folder.lock()?;
        let (list, said) = change(&self.probes()?);
        let path = self.folder.join(PROBES);
        make_whole(&path, |temporary| fs::write(temporary, list))?;
        Ok(said)
    }
}

/// A file to be added.
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'a> {
    /// Its full path, which is also its name.
    pub path: &'a Path,
    /// Where its bytes are: at that path, unless another mount namespace is meant.
    pub file: &'a Path,
    /// Its build-id in hexadecimal.
    pub id: &'a str,
    /// The file with its debugging information, if that is separate and installed.
    pub debug: Option<&'a Path>,
    /// The list of its USDT probes, as perf writes it; `None` leaves that to a later call.
    pub probes: Option<&'a str>,
}

impl Cache {
    /// The cache below `root`, which need not exist.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All objects whose content is there, by build-id.
    ///
    /// # Errors
    /// What reading the folders reports; a cache that does not exist is empty.
    pub fn objects(&self) -> io::Result<Vec<Cached>> {
        let mut found = Vec::new();
        for first in entries(&self.root.join(LINKS))? {
            // Links of other shapes belong to somebody else.
            if first.file_name().len() != 2 || !first.file_type()?.is_dir() {
                continue;
            }
            for rest in entries(&first.path())? {
                let mut id = first.file_name();
                id.push(rest.file_name());
                if let Some(cached) = id.to_str().and_then(|id| self.object(id)) {
                    found.push(cached);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The object of this build-id (in hexadecimal), if its content is there.
    #[must_use]
    pub fn object(&self, id: &str) -> Option<Cached> {
        let name = self.name_of(&fs::read_link(self.link(id)?).ok()?, id)?;
        let folder = self.folder(&name, id)?;
        let mut contents = CONTENTS.iter();
        let is_there = contents.any(|content| folder.join(content).is_file());
        is_there.then(|| Cached {
            id: id.to_owned(),
            name,
            folder,
        })
    }

    /// Adds a file: as a hard link, or as a copy where the cache lies on another file system. What is there
    /// already under its id is kept.
    ///
    /// # Errors
    /// What linking, copying and making folders report; then nothing half made is left.
    pub fn add(&self, object: &NewObject<'_>) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let folder = self.folder(object.path, object.id).ok_or_else(invalid)?;
        let link = self.link(object.id).ok_or_else(invalid)?;
        fs::create_dir_all(&folder)?;
        place(object.file, &folder.join("elf"))?;
        if let Some(debug) = object.debug {
            place(debug, &folder.join("debug"))?;
        }
        let probes = folder.join(PROBES);
        if let Some(list) = object.probes
            && !probes.exists()
        {
            make_whole(&probes, |temporary| fs::write(temporary, list))?;
        }
        // In place of a link that leads nowhere, or to another file of the same build.
        if self.object(object.id).is_none() {
            fs::create_dir_all(link.parent().unwrap_or(&self.root))?;
            let below = folder.strip_prefix(&self.root).unwrap_or(&folder);
            let target = Path::new("../..").join(below);
            make_whole(&link, |temporary| symlink(&target, temporary))?;
        }
        Ok(())
    }

    /// Adds the running kernel: its symbols as `/proc/kallsyms` has them, unless its id is there.
    ///
    /// # Errors
    /// What reading the symbols and writing them report.
    pub fn add_kernel(
        &self,
        build_id: &[u8],
        symbols: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let entry = Entry {
            object: KERNEL_OBJECT,
            file: "kallsyms",
            build_id,
        };
        store(&self.root, &entry, symbols)
    }

    /// Takes an object out, with its link and the folders that become empty.
    ///
    /// # Errors
    /// What removing reports.
    pub fn remove(&self, cached: &Cached) -> io::Result<()> {
        if let Some(link) = self.link(&cached.id) {
            remove_if_there(&link)?;
            self.remove_empty(link.parent());
        }
        match fs::remove_dir_all(&cached.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.remove_empty(cached.folder.parent()),
        }
        Ok(())
    }

    /// The link of a build-id. `None` for what is none.
    fn link(&self, id: &str) -> Option<PathBuf> {
        let hexadecimal = |byte: u8| byte.is_ascii_hexdigit();
        let (first, rest) = id.split_at_checked(2)?;
        let is_id = !rest.is_empty() && id.bytes().all(hexadecimal);
        is_id.then(|| self.root.join(LINKS).join(first).join(rest))
    }

    /// The folder of an object. `None` for names that lead out of the cache.
    fn folder(&self, name: &Path, id: &str) -> Option<PathBuf> {
        let below = name.strip_prefix("/").unwrap_or(name);
        let mut parts = below.components();
        let stays = parts.all(|part| matches!(part, Component::Normal(_)));
        let named = !below.as_os_str().is_empty();
        (stays && named).then(|| self.root.join(below).join(id))
    }

    /// The name that a link's target stands for: `../../usr/bin/ls/ID`.
    fn name_of(&self, target: &Path, id: &str) -> Option<PathBuf> {
        let below = target.strip_prefix("../..").ok()?;
        let name = below.parent().filter(|_| below.ends_with(id))?;
        // Names in brackets are no paths.
        match name.as_os_str().as_bytes().first()? {
            b'[' => Some(name.to_owned()),
            _ => Some(Path::new("/").join(name)),
        }
    }

    /// Removes folders that are empty, from this one up to the cache's own.
    fn remove_empty(&self, mut folder: Option<&Path>) {
        while let Some(at) = folder.filter(|at| *at != self.root && at.starts_with(&self.root)) {
            if fs::remove_dir(at).is_err() {
                return;
            }
            folder = at.parent();
        }
    }
}

/// The file with the debugging information of the build `id` (in hexadecimal) below `folder`, if it is installed.
#[must_use]
pub fn debug_file(folder: &Path, id: &str) -> Option<PathBuf> {
    let (first, rest) = id.split_at_checked(2)?;
    let file = folder.join(first).join(format!("{rest}.debug"));
    file.is_file().then_some(file)
}

/// Entries of a folder; none where it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}

/// Makes `to` a second name of `from`, or a copy. It appears whole or not at all.
fn place(from: &Path, to: &Path) -> io::Result<()> {
    if to.exists() {
        return Ok(());
    }
    make_whole(to, |temporary| {
        fs::hard_link(from, temporary).or_else(|_| fs::copy(from, temporary).map(drop))
    })
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache and a file beside it, in a folder of their own.
    fn scratch(name: &str) -> (PathBuf, Cache, PathBuf) {
        let root = std::env::temp_dir().join(format!("rperf-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let file = root.join("prog");
        fs::write(&file, "bytes").unwrap();
        let cache = Cache::new(root.join("cache"));
        (root, cache, file)
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
    fn what_is_added_is_listed_and_leaves_nothing_when_removed() {
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
        let names: Vec<_> = entries(&all[0].folder)
            .unwrap()
            .iter()
            .map(fs::DirEntry::file_name)
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for cached in &all {
            cache.remove(cached).unwrap();
        }
        assert_eq!(entries(cache.root()).unwrap().len(), 0);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn debug_files_go_with_their_objects() {
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
        let kept = cache.object("ab12").unwrap().folder.join("debug");
        assert_eq!(fs::read(kept).unwrap(), b"lines");
        for id in ["ab34", "a", ""] {
            assert_eq!(debug_file(&root.join("debug"), id), None);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn lists_of_events_are_replaced_whole() {
        let (root, cache, file) = scratch("lists");
        cache.add(&object(&file, "ab12")).unwrap();
        cache
            .add_kernel(&[0xcd, 0x34], || Ok(b"0 T f\n".to_vec()))
            .unwrap();
        for (id, name) in [("ab12", file.as_path()), ("cd34", Path::new(KERNEL_OBJECT))] {
            let cached = cache.object(id).unwrap();
            assert_eq!(cached.name, name);
            assert_eq!(cached.probes().unwrap(), "");
            for list in ["#f\np:g/f f+0\n", "#g\n"] {
                cached.change_probes(|_| (list.to_owned(), ())).unwrap();
                assert_eq!(cached.probes().unwrap(), list);
            }
            assert_eq!(entries(&cached.folder).unwrap().len(), 2);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn nothing_leads_out_of_the_cache() {
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
        // Links of others that point elsewhere are not followed, nor what they point to removed.
        let links = cache.root().join(".build-id/ab");
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(root.join("victim/12/elf")).unwrap();
        for (link, target) in [
            ("12", "../../../victim/12"),
            ("34", "/etc"),
            ("56", "../../gone/ab56"),
        ] {
            symlink(target, links.join(link)).unwrap();
        }
        assert_eq!(cache.objects().unwrap(), []);
        // A dangling one is in nobody's way.
        cache.add(&object(&file, "ab56")).unwrap();
        assert_eq!(cache.objects().unwrap().len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    /// Each adds a line to what it finds: none is lost.
    #[test]
    fn lists_are_changed_by_one_at_a_time() {
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
                    let add = |list: &str| (format!("{list}{number}\n"), list.len());
                    cached.change_probes(add).unwrap()
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
