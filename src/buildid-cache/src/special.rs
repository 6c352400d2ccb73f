//! Objects that are not ELF files on disk: the kernel's symbols, and the vdso.

use std::io::{self, Write as _};
use std::path::Path;

use rperf_safefs::Folder;

use crate::objects::link;
use crate::{Cache, FILE_MODE, FOLDER_MODE, hexadecimal};

/// Name of the kernel's object.
pub const KERNEL_OBJECT: &str = "[kernel.kallsyms]";

/// An object that is not an ELF file on disk.
#[derive(Debug, Clone, Copy)]
pub struct SpecialObject<'a> {
    /// `[kernel.kallsyms]` or `[vdso]`.
    name: &'static str,
    /// Name of the content file in the object's folder in the cache: `kallsyms` or `vdso`.
    file: &'static str,
    build_id: &'a [u8],
}

impl<'a> SpecialObject<'a> {
    /// The kernel with this build-id, whose content is the text of `/proc/kallsyms`.
    #[must_use]
    pub fn kernel(build_id: &'a [u8]) -> Self {
        Self {
            name: KERNEL_OBJECT,
            file: "kallsyms",
            build_id,
        }
    }

    /// The name of the object: `[kernel.kallsyms]` or `[vdso]`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The vdso with this build-id, whose content is its image.
    #[must_use]
    pub fn vdso(build_id: &'a [u8]) -> Self {
        Self {
            name: "[vdso]",
            file: "vdso",
            build_id,
        }
    }
}

impl Cache {
    /// Adds a special object with the result of `content`, which is not called if the content file already exists. The file is
    /// created atomically. An existing link of this build-id is kept if it leads to an object with content.
    ///
    /// # Errors
    /// Errors of `content`, creating folders and links, and writing.
    pub fn add_special(
        &self,
        special: &SpecialObject<'_>,
        content: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let id = hexadecimal(special.build_id);
        let below = Path::new(special.name).join(&id);
        let root = Folder::open_own_or_create(self.root(), FOLDER_MODE)?;
        let folder = root.create_below(&below, FOLDER_MODE)?;
        let file = special.file.as_ref();
        if folder.kind(file)?.is_none() {
            // Called before a file is created, so that a failure leaves none.
            let content = content()?;
            folder.write_atomic(file, FILE_MODE, |out| out.write_all(&content))?;
        }
        // A build-id of less than two bytes has no link. A link to an object with content is kept.
        let Some((parent, link_name)) = link(&id).filter(|_| self.object(&id).is_none()) else {
            return Ok(());
        };
        let links = root.create_below(&parent, FOLDER_MODE)?;
        let target = Path::new("../..").join(below);
        links.replace(link_name, |links, temporary| {
            links.symlink(&target, temporary)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_special_object_is_stored_once_and_found_by_its_id() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-{}", std::process::id()));
        let kernel = SpecialObject::kernel(&[0xab, 0xcd, 0xef]);
        let objects = Cache::new(&cache);
        objects
            .add_special(&kernel, || Ok(b"first".to_vec()))
            .unwrap();
        objects
            .add_special(&kernel, || panic!("the file exists"))
            .unwrap();
        let linked = cache.join(".build-id/ab/cdef/kallsyms");
        assert_eq!(fs::read(&linked).unwrap(), b"first");
        // A dangling link is replaced.
        fs::remove_file(cache.join(".build-id/ab/cdef")).unwrap();
        std::os::unix::fs::symlink("../../gone/abcdef", cache.join(".build-id/ab/cdef")).unwrap();
        objects
            .add_special(&kernel, || panic!("the file exists"))
            .unwrap();
        assert_eq!(fs::read(&linked).unwrap(), b"first");
        let directory = cache.join("[kernel.kallsyms]/abcdef");
        assert_eq!(fs::read_dir(directory).unwrap().count(), 1);
        fs::remove_dir_all(cache).unwrap();
    }

    #[test]
    fn a_failed_read_creates_no_files() {
        let cache = std::env::temp_dir().join(format!("rperf-cache-none-{}", std::process::id()));
        let failed = || Err(io::ErrorKind::PermissionDenied.into());
        let vdso = SpecialObject::vdso(&[1, 2]);
        assert!(Cache::new(&cache).add_special(&vdso, failed).is_err());
        assert_eq!(fs::read_dir(cache.join("[vdso]/0102")).unwrap().count(), 0);
        fs::remove_dir_all(cache).unwrap();
    }
}
