//! The disk as the symbol loader sees it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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
        for path in ["/dev/zero", "/"] {
            let error = DiskFiles.read(Path::new(path)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }
}
