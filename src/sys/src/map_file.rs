//! Files mapped for reading.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

/// A file's bytes, mapped privately and read-only.
///
/// The mapping keeps the file alive after it is renamed or removed. A file that another process
/// truncates meanwhile makes reads beyond its new end fail with `SIGBUS` (mmap(2)), unless
/// [`survive_cut_files`](crate::survive_cut_files) was called.
#[derive(Debug)]
pub struct MappedFile {
    /// `None` for an empty file, which can't be mapped.
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
/// What open(2) and mmap(2) report; a directory is an error of kind
/// [`io::ErrorKind::IsADirectory`], a file that is too large for what is left of the address space one of kind
/// [`io::ErrorKind::OutOfMemory`], whose text has the size.
pub fn map_file(path: &Path) -> io::Result<MappedFile> {
    map(&File::open(path)?)
}

/// Maps the whole of an open file.
///
/// # Errors
/// As [`map_file`].
pub fn map(file: &File) -> io::Result<MappedFile> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.len() == 0 {
        return Ok(MappedFile { map: None });
    }
    // SAFETY: the mapping is private and read-only, and its bytes are only handed out as a shared
    // slice that lives as long as the mapping. That another process changes the file under it
    // can't be ruled out by any program that maps files; readers here treat every byte as untrusted.
    let map = unsafe { Mmap::map(file) };
    let map = map.map_err(|error| match error.raw_os_error() {
        Some(libc::ENOMEM) => no_room(metadata.len()),
        _ => error,
    })?;
    Ok(MappedFile { map: Some(map) })
}

fn no_room(size: u64) -> io::Error {
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
    fn an_empty_file_is_an_empty_slice_and_a_directory_an_error() {
        assert!(map_file(Path::new("/dev/null")).unwrap().is_empty());
        let error = map_file(Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
