//! Objects that are no files: the kernel's symbols, and the vdso.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;

use rperf_safefs::Folder;

use crate::objects::LINKS;
use crate::{Cache, FILES, FOLDERS, hexadecimal};

/// The kernel's name.
pub const KERNEL_OBJECT: &str = "[kernel.kallsyms]";

/// An object that exists nowhere on disk.
#[derive(Debug, Clone, Copy)]
pub struct SpecialObject<'a> {
    /// `[kernel.kallsyms]` or `[vdso]`.
    object: &'static str,
    /// Name of the file in its folder: `kallsyms` or `vdso`.
    file: &'static str,
    build_id: &'a [u8],
}

impl<'a> SpecialObject<'a> {
    /// The kernel of this build, whose content is the text of `/proc/kallsyms`.
    #[must_use]
    pub fn kernel(build_id: &'a [u8]) -> Self {
        Self {
            object: KERNEL_OBJECT,
            file: "kallsyms",
            build_id,
        }
    }

    /// Its name: `[kernel.kallsyms]` or `[vdso]`.
    #[must_use]
    pub fn object(&self) -> &'static str {
        self.object
    }

    /// The vdso of this build, whose content is its image.
    #[must_use]
    pub fn vdso(build_id: &'a [u8]) -> Self {
        Self {
            object: "[vdso]",
            file: "vdso",
            build_id,
        }
    }
}

impl Cache {
    /// Adds what `content` yields, unless the object is there already. The file appears whole or not at all.
    ///
    /// # Errors
    /// What `content`, making folders and writing report.
    pub fn add_special(
        &self,
        special: &SpecialObject<'_>,
        content: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let id = hexadecimal(special.build_id);
        let below = Path::new(special.object).join(&id);
        let root = Folder::open_own_or_create(self.root(), FOLDERS)?;
        let folder = root.create_below(&below, FOLDERS)?;
        let file = special.file.as_ref();
        if folder.kind(file)?.is_none() {
            // Before a file is there to be written.
            let content = content()?;
            folder.write_whole(file, FILES, |out| out.write_all(&content))?;
        }
        let Some((first, rest)) = id.split_at_checked(2) else {
            return Ok(());
        };
        let links = root.create_below(&Path::new(LINKS).join(first), FOLDERS)?;
        match links.symlink(&Path::new("../..").join(below), OsStr::new(rest)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn is_stored_once_and_found_by_its_id() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-{}", std::process::id()));
        let kernel = SpecialObject::kernel(&[0xab, 0xcd, 0xef]);
        let kept = Cache::new(&cache);
        kept.add_special(&kernel, || Ok(b"first".to_vec())).unwrap();
        kept.add_special(&kernel, || panic!("it is there")).unwrap();
        let linked = cache.join(".build-id/ab/cdef/kallsyms");
        assert_eq!(fs::read(linked).unwrap(), b"first");
        let directory = cache.join("[kernel.kallsyms]/abcdef");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_failed_read_leaves_nothing() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-none-{}", std::process::id()));
        let failed = || Err(io::ErrorKind::PermissionDenied.into());
        let vdso = SpecialObject::vdso(&[1, 2]);
        assert!(Cache::new(&cache).add_special(&vdso, failed).is_err());
        assert_eq!(fs::read_dir(cache.join("[vdso]/0102")).unwrap().count(), 0);
        fs::remove_dir_all(cache).unwrap();
    }
}
