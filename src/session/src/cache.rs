//! The build-id cache (`~/.debug`): kallsyms and the vdso exist nowhere on disk, and without a copy the
//! names of kernel samples are lost with the next boot.
//!
//! ```text
//! DIR/[kernel.kallsyms]/ID/kallsyms      copy of /proc/kallsyms
//! DIR/[vdso]/ID/vdso                     copy of the vdso's pages
//! DIR/usr/bin/ls/ID/elf                  the file itself
//!                  /debug                its debugging information, if that is a file of its own
//!                  /probes               its USDT probes
//! DIR/.build-id/xx/yyyy…                 link to ../../[kernel.kallsyms]/ID
//! ```

mod objects;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;

use rperf_safefs::Folder;

pub use self::objects::{Cache, Cached, DEBUG_FILES, KERNEL_OBJECT, NewObject, debug_file};

/// One thing to keep.
pub(crate) struct Entry<'a> {
    /// `[kernel.kallsyms]` or `[vdso]`.
    pub(crate) object: &'a str,
    /// Name of the file inside: `kallsyms` or `vdso`.
    pub(crate) file: &'a str,
    pub(crate) build_id: &'a [u8],
}

/// Stores what `content` yields unless it is there already. The file appears whole or not at all.
pub(crate) fn store(
    cache: &Path,
    entry: &Entry<'_>,
    content: impl FnOnce() -> io::Result<Vec<u8>>,
) -> io::Result<()> {
    let id = hexadecimal(entry.build_id);
    let below = Path::new(entry.object).join(&id);
    let root = Folder::open_own_or_create(cache, FOLDERS)?;
    let folder = root.create_below(&below, FOLDERS)?;
    if folder.kind(entry.file.as_ref())?.is_none() {
        // Before a file is there to be written.
        let content = content()?;
        folder.write_whole(entry.file.as_ref(), FILES, |out| out.write_all(&content))?;
    }
    let Some((first, rest)) = id.split_at_checked(2) else {
        return Ok(());
    };
    let links = root.create_below(&Path::new(objects::LINKS).join(first), FOLDERS)?;
    match links.symlink(&Path::new("../..").join(below), OsStr::new(rest)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// What new folders and files may be used for by others, as far as the umask allows.
const FOLDERS: u32 = 0o777;
const FILES: u32 = 0o666;

/// A build-id as names of files have it.
pub(crate) fn hexadecimal(build_id: &[u8]) -> String {
    build_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn is_stored_once_and_found_by_its_id() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-{}", std::process::id()));
        let entry = Entry {
            object: "[kernel.kallsyms]",
            file: "kallsyms",
            build_id: &[0xab, 0xcd, 0xef],
        };
        store(&cache, &entry, || Ok(b"first".to_vec())).unwrap();
        store(&cache, &entry, || panic!("it is there")).unwrap();
        let linked = cache.join(".build-id/ab/cdef/kallsyms");
        assert_eq!(fs::read(linked).unwrap(), b"first");
        let directory = cache.join("[kernel.kallsyms]/abcdef");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_failed_read_leaves_nothing() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-none-{}", std::process::id()));
        let entry = Entry {
            object: "[vdso]",
            file: "vdso",
            build_id: &[1, 2],
        };
        assert!(
            store(&cache, &entry, || Err(
                io::ErrorKind::PermissionDenied.into()
            ))
            .is_err()
        );
        assert_eq!(fs::read_dir(cache.join("[vdso]/0102")).unwrap().count(), 0);
        fs::remove_dir_all(cache).unwrap();
    }
}
