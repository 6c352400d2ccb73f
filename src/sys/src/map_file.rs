//! Files mapped for reading.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// The content of a file, mapped read-only. Later writes to the file are seen in it.
///
/// The mapping stays valid after the file is renamed or removed. If another process truncates the
/// file, reads beyond its new end raise `SIGBUS` (mmap(2)), unless
/// [`handle_truncated_files`](crate::handle_truncated_files) was called.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for a file of size 0, which can't be mapped.
    map: Option<Mmap>,
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

/// Maps the whole file at `path`.
///
/// # Errors
/// What open(2), fstat(2) and mmap(2) report; [`io::ErrorKind::IsADirectory`] for a directory.
/// `ENOMEM` becomes [`io::ErrorKind::OutOfMemory`] with the file's size in the error's text.
pub fn map_file(path: &Path) -> io::Result<MappedFile> {
    map_open_file(&File::open(path)?)
}

/// Maps the whole of an open file.
///
/// # Errors
/// As [`map_file`].
pub fn map_open_file(file: &File) -> io::Result<MappedFile> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.len() == 0 {
        return Ok(MappedFile { map: None });
    }
    // SAFETY: the mapping is read-only, and its bytes are only accessible as a shared slice that lives
    // as long as the mapping. Another process may modify the file, which a program that maps files
    // cannot prevent; the readers treat every byte as untrusted.
    let map = unsafe { Mmap::map(file) };
    let map = map.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOMEM) => out_of_memory(metadata.len()),
        _ => error,
    })?;
    Ok(MappedFile { map: Some(map) })
}

fn out_of_memory(size: u64) -> io::Error {
    let text = format!("out of memory: {size} bytes of address space could not be mapped");
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_this_executable() {
        let map = map_file(Path::new("/proc/self/exe")).unwrap();
        assert_eq!(map.first_chunk(), Some(b"\x7fELF"));
    }

    #[test]
    fn a_file_of_size_0_is_an_empty_slice_and_a_directory_an_error() {
        assert!(map_file(Path::new("/dev/null")).unwrap().is_empty());
        let error = map_file(Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
