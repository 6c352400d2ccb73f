//! Files as they are now, on this machine or as a process in another mount namespace sees them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::ArgMatches;
use rperf_probe::{Object, Sources, cached_list};
use rperf_safefs::Folder;
use rperf_symbol::{
    BuildId, Files as _, ObjectKind, ObjectRequest, SearchPaths, build_id_of_elf, has_probes, load,
};

use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::live::explain::reason;

/// Links that may lead to a file one after the other, as in the kernel.
const MAX_LINKS: usize = 40;

/// A file as it is on disk.
pub(in crate::cli::commands) struct Present {
    /// Its name in its namespace.
    pub(in crate::cli::commands) path: PathBuf,
    /// Where it can be read here.
    pub(in crate::cli::commands) file: PathBuf,
    pub(super) id: BuildId,
    /// The list of its USDT probes.
    pub(in crate::cli::commands) probes: String,
}

/// Where paths begin: here, or at `--target-ns`.
pub(in crate::cli::commands) struct Namespace {
    root: Option<PathBuf>,
}

impl Namespace {
    /// The paths of this process.
    pub(in crate::cli::commands) fn own() -> Self {
        Self { root: None }
    }

    /// Reads the option.
    ///
    /// # Errors
    ///
    /// Processes that are not there, or whose files may not be seen.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let Some(pid) = matches.get_one::<u64>("target-ns") else {
            return Ok(Self::own());
        };
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        match Folder::open(&root.join("")) {
            Ok(_) => Ok(Self { root: Some(root) }),
            Err(error) => {
                let why = reason(&error);
                Err(CliError::message(1, format!("--target-ns {pid}: {why}")))
            }
        }
    }

    /// The path of `file` without links, as its namespace has it.
    pub(super) fn path(&self, file: &Path) -> io::Result<PathBuf> {
        match &self.root {
            None => fs::canonicalize(file),
            Some(root) => resolve_below(root, file),
        }
    }

    /// Reads a file with a build-id; says why it cannot be done.
    pub(in crate::cli::commands) fn read(&self, file: &Path) -> Result<Present, String> {
        let path = self.path(file).map_err(|error| reason(&error))?;
        let file = match &self.root {
            None => path.clone(),
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
        };
        let bytes = DiskFiles.read(&file).map_err(|error| reason(&error))?;
        let id = build_id_of_elf(&bytes).ok_or("it has no build-id")?;
        let probes = match has_probes(&bytes) {
            true => probes(&path, &file, &bytes),
            false => String::new(),
        };
        Ok(Present {
            path,
            file,
            id,
            probes,
        })
    }
}

/// The list of the USDT probes of a file.
fn probes(path: &Path, file: &Path, bytes: &[u8]) -> String {
    let request = ObjectRequest::new(file, ObjectKind::User);
    let loaded = load(&DiskFiles, &SearchPaths::new(None), &request);
    let object = Object::parse(Sources {
        files: &DiskFiles,
        path,
        bytes,
        symbols: &loaded.table,
        info: None,
        is_kernel: false,
    });
    // A file with a build-id and a section of that name is an object.
    object.map_or_else(|_| String::new(), |object| cached_list(&object, path))
}

/// What `path` names where `root` is `/`: links that begin with `/` begin there, and none leads out. A relative path begins
/// there, too, since the namespace knows nothing of our current folder.
fn resolve_below(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut left: VecDeque<OsString> = names(path);
    let mut found = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            found.pop();
            continue;
        }
        let next = found.join(&name);
        let here = root.join(next.strip_prefix("/").unwrap_or(&next));
        if !fs::symlink_metadata(&here)?.is_symlink() {
            found = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = fs::read_link(&here)?;
        if target.is_absolute() {
            found = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            left.push_front(name);
        }
    }
    Ok(found)
}

/// The names that a path is made of, `..` among them.
fn names(path: &Path) -> VecDeque<OsString> {
    let parts = path.components();
    let named = parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_testkit::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_below_the_root() {
        let scratch = Scratch::new();
        let root = scratch.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        scratch.write("usr/bin/prog", "bytes").unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        symlink("/bin/prog", root.join("absolute")).unwrap();
        symlink("../../../../absolute", root.join("usr/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for path in [
            "/usr/bin/prog",
            "bin/prog",
            "/absolute",
            "/usr/up",
            "/../../bin/./prog",
        ] {
            let found = resolve_below(root, Path::new(path)).unwrap();
            assert_eq!(found, Path::new("/usr/bin/prog"), "{path}");
        }
        let error = resolve_below(root, Path::new("/loop")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        let error = resolve_below(root, Path::new("/usr/none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
