//! Files as they currently exist, on this machine or in another process's mount namespace.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::ArgMatches;
use rperf_probe::{ObjectInputs, ProbeObject, marker_cache_text};
use rperf_safefs::Folder;
use rperf_symbol::{
    BuildId, Files as _, ObjectKind, ObjectRequest, SearchPaths, build_id_of_elf, has_usdt_probes,
    load,
};

use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use rperf_input::DiskFiles;

/// The name of a cache directory that disables the build-id cache.
pub(crate) const NO_CACHE: &str = "/dev/null";
/// The maximum number of symbolic links followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// A file on disk.
pub(crate) struct ExistingFile {
    /// The path in the namespace that contains the file.
    pub(crate) path: PathBuf,
    /// The path at which this process can read it.
    pub(crate) readable_path: PathBuf,
    pub(crate) id: BuildId,
    /// The file's USDT markers, in the format of the file `probes` in the build-id cache; empty if there are none.
    pub(crate) markers: String,
}

/// The root of paths: this process's, or that of `--target-ns`.
pub(crate) struct MountNamespace {
    /// `/proc/PID/root`; `None` for this process's namespace.
    root: Option<PathBuf>,
}

impl MountNamespace {
    /// Returns this process's namespace.
    pub(crate) fn current() -> Self {
        Self { root: None }
    }

    /// Parses `--target-ns`; without it, returns this process's namespace.
    ///
    /// # Errors
    ///
    /// The process does not exist, or its files cannot be accessed.
    pub(crate) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let Some(pid) = matches.get_one::<u64>("target-ns") else {
            return Ok(Self::current());
        };
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        // `root` is a link. `join("")` adds a slash, with which the kernel follows it whatever the flags of open(2).
        match Folder::open(&root.join("")) {
            Ok(_) => Ok(Self { root: Some(root) }),
            Err(error) => {
                let why = reason(&error);
                Err(CliError::message(1, format!("--target-ns {pid}: {why}")))
            }
        }
    }

    /// Returns the path of `file` in this namespace, with links resolved.
    pub(crate) fn path(&self, file: &Path) -> io::Result<PathBuf> {
        match &self.root {
            None => fs::canonicalize(file),
            Some(root) => resolve_below(root, file),
        }
    }

    /// Reads the file at the path `file` in this namespace. The error says why it failed; a file without a build-id is an error.
    pub(crate) fn read(&self, file: &Path) -> Result<ExistingFile, String> {
        let path = self.path(file).map_err(|error| reason(&error))?;
        let readable = match &self.root {
            None => path.clone(),
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(&path)),
        };
        let bytes = DiskFiles.read(&readable).map_err(|error| reason(&error))?;
        let id = build_id_of_elf(&bytes).ok_or("it has no build-id")?;
        let markers = match has_usdt_probes(&bytes) {
            true => markers(&path, &readable, &bytes),
            false => String::new(),
        };
        Ok(ExistingFile {
            path,
            readable_path: readable,
            id,
            markers,
        })
    }
}

/// Returns [`ExistingFile::markers`]; empty also if the file cannot be parsed. `path` and `readable` are its two paths, as in
/// [`ExistingFile`].
fn markers(path: &Path, readable: &Path, bytes: &[u8]) -> String {
    let request = ObjectRequest::new(readable, ObjectKind::User);
    let build_id_cache = None;
    let loaded = load(&DiskFiles, &SearchPaths::new(build_id_cache), &request);
    let object = ProbeObject::parse(ObjectInputs {
        files: &DiskFiles,
        path,
        bytes,
        symbols: &loaded.table,
        // USDT markers need no debug information.
        info: None,
        is_kernel: false,
    });
    object.map_or_else(|_| String::new(), |object| marker_cache_text(&object, path))
}

/// Resolves `path` with `root` as `/`: absolute links start at `root`, and no link can leave it. A relative path also starts at
/// `root`, as this process's working directory need not exist in the namespace.
fn resolve_below(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut remaining: VecDeque<OsString> = names(path);
    let mut resolved = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = remaining.pop_front() {
        if name == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&name);
        let here = root.join(next.strip_prefix("/").unwrap_or(&next));
        if !fs::symlink_metadata(&here)?.is_symlink() {
            resolved = next;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = fs::read_link(&here)?;
        if target.is_absolute() {
            resolved = PathBuf::from("/");
        }
        for name in names(&target).into_iter().rev() {
            remaining.push_front(name);
        }
    }
    Ok(resolved)
}

/// Returns the names in a path, including `..`, without the root and `.`.
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
