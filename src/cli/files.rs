//! The disk as the symbol loader sees it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rperf_symbol::{FileBytes, Files};
use rperf_sys::effective_user;

/// Reads files of this machine: maps them, except where they have no length of their own, as in /proc and /sys.
pub(crate) struct DiskFiles;

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        let (file, metadata) = regular(path)?;
        // What /proc and /sys make up has no length, or says a page where there are a few bytes.
        if metadata.len() == 0 || path.starts_with("/sys") {
            return fs::read(path).map(FileBytes::from);
        }
        Ok(FileBytes::new(Mapped(rperf_sys::map(&file)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>> {
        let (file, _) = regular(path)?;
        Ok(Box::new(file))
    }

    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let (file, _) = regular(path)?;
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if filled == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(filled)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn vdso32(&self) -> Option<FileBytes> {
        Some(rperf_sys::vdso32_image().ok()?.into())
    }

    fn is_trusted(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| {
            let owner = metadata.uid();
            owner == 0 || owner == effective_user()
        })
    }
}

fn regular(path: &Path) -> io::Result<(File, Metadata)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        return Ok((file, metadata));
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

/// A mapping that gives its bytes the way [`FileBytes`] asks for them.
struct Mapped(rperf_sys::MappedFile);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_mapped_and_made_up_files_and_no_devices() {
        let own = DiskFiles.read(Path::new("/proc/self/exe")).unwrap();
        assert!(own.starts_with(b"\x7fELF"));
        let status = DiskFiles.read(Path::new("/proc/self/status")).unwrap();
        assert!(status.starts_with(b"Name:"));
        let mut magic = [0; 4];
        let exe = Path::new("/proc/self/exe");
        assert_eq!(DiskFiles.read_at(exe, 0, &mut magic).unwrap(), 4);
        assert_eq!(&magic, b"\x7fELF");
        let behind = own.len() as u64 - 1;
        assert_eq!(DiskFiles.read_at(exe, behind, &mut magic).unwrap(), 1);
        let listed = DiskFiles.list(Path::new("/proc/self")).unwrap();
        assert!(listed.contains(&exe.to_path_buf()));
        for path in ["/dev/zero", "/"] {
            let error = DiskFiles.read(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }
}
