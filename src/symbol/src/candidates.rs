//! Candidate files for an object's symbols, in perf's order.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::build_id::BuildId;
use crate::elf::ElfImage;
use crate::files::Files;
use crate::request::{ObjectKind, ObjectRequest, SearchPaths, join_below, seen_by};

/// The cache's folder for `id`: `CACHE/.build-id/xx/yyyy…`.
pub fn cache_entry(cache: &Path, id: &BuildId) -> PathBuf {
    let (first, rest) = split(id);
    cache.join(".build-id").join(first).join(rest)
}

/// Returns the candidates for a user object, the vdso or a kernel module (the kind only decides the file name in the build-id
/// cache), in this order:
/// - the file of its debug link, its files in the build-id cache, and installed debug files;
/// - with [`SearchPaths::of_running_processes`]: its path in the mount namespaces of processes that mapped it;
/// - the object itself, the file in `.debug` next to it, and, for a library in `/usr/lib`, the debug file at its path without
///   `/usr`;
/// - only for an absolute path and with an `id`, by which the caller can verify these files: the file that is now at the object's
///   path, if the object is marked as deleted; then its path in the mount namespaces of processes that mapped it.
///
/// A path can occur twice.
pub(crate) fn of_user_object(
    files: &dyn Files,
    paths: &SearchPaths,
    request: &ObjectRequest<'_>,
    id: Option<&BuildId>,
) -> Vec<PathBuf> {
    let (path, kind) = (request.path, request.kind);
    let mut candidate_paths: Vec<PathBuf> = debug_link(files, paths, path).into_iter().collect();
    if let (Some(cache), Some(id)) = (&paths.build_id_cache, id) {
        candidate_paths.extend(cached(cache, id, kind));
    }
    let roots = || paths.debug_dirs.iter().map(|root| paths.under_symfs(root));
    for root in roots() {
        // The path used by Fedora, then the old one of Debian and Ubuntu.
        let mut with_suffix = join_below(&root, path).into_os_string();
        with_suffix.push(".debug");
        candidate_paths.push(with_suffix.into());
        candidate_paths.push(join_below(&root, path));
    }
    candidate_paths.extend(id.into_iter().flat_map(|id| installed_by_id(paths, id)));
    if paths.of_running_processes {
        candidate_paths.extend(in_mount_namespaces(paths, request));
    }
    candidate_paths.push(paths.under_symfs(path));
    if let (Some(dir), Some(file)) = (path.parent(), path.file_name()) {
        candidate_paths.push(paths.under_symfs(&dir.join(".debug").join(file)));
    }
    if let Ok(below_usr) = path.strip_prefix("/usr")
        && path.starts_with("/usr/lib")
    {
        candidate_paths.extend(roots().map(|root| join_below(&root, below_usr)));
    }
    if id.is_some() && path.is_absolute() {
        candidate_paths.extend(undeleted(path).map(|path| paths.under_symfs(path)));
        candidate_paths.extend(in_mount_namespaces(paths, request));
    }
    candidate_paths
}

/// Returns `path` without the kernel's mark of deleted files; `None` if it has no mark.
pub(crate) fn undeleted(path: &Path) -> Option<&Path> {
    let path = path.as_os_str().as_bytes();
    let path = path.strip_suffix(b" (deleted)")?;
    Some(Path::new(OsStr::from_bytes(path)))
}

/// Returns the object's path, without the kernel's mark of deleted files, in the mount namespaces of the processes that mapped
/// it; none with `--symfs` or for a relative path.
pub(crate) fn in_mount_namespaces<'r>(
    paths: &SearchPaths,
    request: &'r ObjectRequest<'_>,
) -> impl Iterator<Item = PathBuf> + 'r {
    let path = request.path;
    let others = request.other_pids.iter().copied();
    let is_searched = paths.symfs.is_none() && path.is_absolute();
    let pids = request.pid.into_iter().chain(others);
    let pids = pids.filter(move |_| is_searched);
    pids.map(move |pid| seen_by(pid, undeleted(path).unwrap_or(path)))
}

/// Returns the paths of installed debug files for `id`: `.build-id/xx/yyyy….debug` below each debug root.
pub(crate) fn installed_by_id(paths: &SearchPaths, id: &BuildId) -> impl Iterator<Item = PathBuf> {
    let (first, rest) = split(id);
    let roots = paths.debug_dirs.iter().map(|root| paths.under_symfs(root));
    roots.map(move |root| {
        let folder = root.join(".build-id").join(&first);
        folder.join(format!("{rest}.debug"))
    })
}

/// Returns the paths of the cache's copies of an object and of its debug file. For a kernel, the first is that of its kallsyms.
pub(crate) fn cached(cache: &Path, id: &BuildId, kind: ObjectKind) -> [PathBuf; 2] {
    let entry = cache_entry(cache, id);
    let file = match kind {
        ObjectKind::Vdso => "vdso",
        ObjectKind::Kernel => "kallsyms",
        _ => "elf",
    };
    [entry.join(file), entry.join("debug")]
}

/// Returns the file named by `.gnu_debuglink`, if it exists: next to the object, in `.debug`, or below the debug roots.
fn debug_link(files: &dyn Files, paths: &SearchPaths, path: &Path) -> Option<PathBuf> {
    let object = paths.under_symfs(path);
    let bytes = files.read(&object).ok()?;
    let image = ElfImage::parse(&bytes).ok()?;
    let name = Path::new(OsStr::from_bytes(image.debug_link()?));
    // perf uses the first one that exists and ignores the others.
    let mut places = debug_link_places(paths, path, name);
    places.find(|place| files.read(place).is_ok())
}

/// Returns the paths of the debug file `name` of an object: next to the object, in `.debug`, and below the debug roots.
fn debug_link_places<'p>(
    paths: &'p SearchPaths,
    object: &'p Path,
    name: &'p Path,
) -> impl Iterator<Item = PathBuf> + 'p {
    object.parent().into_iter().flat_map(move |dir| {
        let roots = paths.debug_dirs.iter().map(|root| join_below(root, dir));
        let dirs = [dir.to_owned(), dir.join(".debug")]
            .into_iter()
            .chain(roots);
        dirs.map(move |dir| paths.under_symfs(&dir).join(name))
    })
}

/// Returns the first two hexadecimal digits of a build-id, and the others.
fn split(id: &BuildId) -> (String, String) {
    let mut first = id.to_string();
    let rest = first.split_off(first.len().min(2));
    (first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_by_link_are_below_symfs() {
        let places = |symfs: Option<&str>| {
            let paths = SearchPaths {
                symfs: symfs.map(PathBuf::from),
                ..SearchPaths::new(None)
            };
            let places: Vec<_> =
                debug_link_places(&paths, Path::new("/bin/app"), Path::new("app.dbg")).collect();
            places
        };
        let expected = [
            "/bin/app.dbg",
            "/bin/.debug/app.dbg",
            "/usr/lib/debug/bin/app.dbg",
        ];
        assert_eq!(places(None), expected.map(PathBuf::from));
        let below = expected.map(|place| PathBuf::from(format!("/target{place}")));
        assert_eq!(places(Some("/target")), below);
    }
}
