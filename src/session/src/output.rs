//! The file that is written: under another name until the recording stands, then in its place.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rperf_perfdata::Output;

use crate::Error;
use crate::unlinked::Unlinked;

/// Where records are written.
#[derive(Debug)]
pub(crate) struct Destination {
    file: File,
    /// A device such as `/dev/null`, which has no size.
    device: bool,
}

impl Destination {
    /// The file once more, for who writes beside.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Destination {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Output for Destination {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        if self.device {
            return Ok(());
        }
        self.file.set_len(size)
    }
}

/// An output that does not touch the old file until [`Replacement::commit`].
///
/// A regular file, or a directory, is written beside its place and moved there; the old one becomes `NAME.old`.
/// Devices are opened as they are. Dropped before the commit, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// Where it is written meanwhile.
    temporary: Option<PathBuf>,
}

impl Replacement {
    /// Creates the output, readable and writable for its owner alone.
    pub(crate) fn create(path: &Path) -> Result<(Self, Destination), Error> {
        let error = at(path);
        if let Ok(there) = fs::metadata(path)
            && !there.is_file()
            && !is_directory_of_recording(path)
        {
            let opened = match there.is_dir() {
                true => Err(io::Error::from_raw_os_error(libc::EISDIR)),
                false => OpenOptions::new().read(true).write(true).open(path),
            };
            let place = Self {
                path: path.to_owned(),
                temporary: None,
            };
            let file = opened.map_err(error)?;
            return Ok((place, Destination { file, device: true }));
        }
        let temporary = temporary(path).map_err(error)?;
        let file = create(&temporary).map_err(error)?;
        let place = Self {
            path: path.to_owned(),
            temporary: Some(temporary),
        };
        let device = false;
        Ok((place, Destination { file, device }))
    }

    /// Creates a directory for its owner alone: a file with the header, and as many for the records of rings.
    pub(crate) fn directory(
        path: &Path,
        parts: usize,
    ) -> Result<(Self, Destination, Vec<File>), Error> {
        let error = at(path);
        if let Ok(there) = fs::metadata(path)
            && !there.is_file()
            && !is_directory_of_recording(path)
        {
            let reason = match there.is_dir() {
                true => libc::EEXIST,
                false => libc::ENOTDIR,
            };
            return Err(error(io::Error::from_raw_os_error(reason)));
        }
        let temporary = temporary(path).map_err(error)?;
        let made = fs::DirBuilder::new().mode(0o700).create(&temporary);
        made.map_err(error)?;
        let place = Self {
            path: path.to_owned(),
            temporary: Some(temporary.clone()),
        };
        let file = create(&temporary.join(HEADER)).map_err(error)?;
        let part = |number| create(&temporary.join(format!("{HEADER}.{number}")));
        let parts: io::Result<Vec<File>> = (0..parts).map(part).collect();
        let device = false;
        Ok((place, Destination { file, device }, parts.map_err(error)?))
    }

    /// Where a directory has the kernel's code; until the commit.
    pub(crate) fn kernel_folder(&self) -> PathBuf {
        let folder = self.temporary.as_ref().unwrap_or(&self.path);
        folder.join(KERNEL)
    }

    /// Moves the old file out of the way and the new one in its place. Records come meanwhile.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        let old = beside(&self.path, ".old");
        keep_old(&self.path, &old).map_err(at(&old))?;
        fs::rename(temporary, &self.path).map_err(at(&self.path))?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It was never shown to anyone; nothing more can be done about it.
            let _ = forget(temporary);
        }
    }
}

/// For `map_err`: names the output.
fn at(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |cause| Error::Output {
        path: path.to_owned(),
        cause,
    }
}

/// The file with the header in a directory, whose name the parts begin with, too.
const HEADER: &str = "data";
/// What a directory may hold besides: the kernel's code (`--kcore`), as Linux perf keeps it.
const KERNEL: &str = "kcore_dir";
/// What the file with the header begins with.
const MAGIC: [u8; 8] = *b"PERFILE2";

/// Whether it was made by a recording: no other directory is ever moved or removed.
fn is_directory_of_recording(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let read = File::open(path.join(HEADER)).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// Whether recordings have such an entry in their directory.
fn is_of_recording(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let number = name
        .strip_prefix(HEADER)
        .and_then(|rest| rest.strip_prefix('.'));
    name == HEADER || name == KERNEL || number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// A name beside the output, which nothing has.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let temporary = beside(path, &format!(".{}.tmp", std::process::id()));
    // One may be left by a killed recorder that had the same process id.
    forget(&temporary).map(|_| temporary)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

/// Moves what is there out of the way; what was moved so before goes.
fn keep_old(path: &Path, old: &Path) -> io::Result<()> {
    let mut replaced = Unlinked::default();
    if path.is_dir() || old.is_dir() {
        drop(forget(old)?);
    } else {
        replaced.keep(old);
    }
    match fs::rename(path, old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a recording, if it is there. A directory goes only if nothing is in it but what recordings have.
fn forget(path: &Path) -> io::Result<Unlinked> {
    let mut unlinked = Unlinked::default();
    if !path.is_dir() {
        unlinked.keep(path);
        return match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(unlinked),
            other => other.map(|()| unlinked),
        };
    }
    let entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
    if !entries
        .iter()
        .all(|entry| is_of_recording(&entry.file_name()))
    {
        return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
    }
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            unlinked.keep(&path);
            fs::remove_file(path)?;
        }
    }
    fs::remove_dir(path).map(|()| unlinked)
}

/// The path with something added to its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rperf-output-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn the_old_file_stays_until_the_commit_and_is_kept_then() {
        let directory = directory("keep");
        let path = directory.join("perf.data");
        fs::write(&path, "old").unwrap();
        let (replacement, _file) = Replacement::create(&path).unwrap();
        drop(replacement);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            1,
            "nothing is left behind"
        );
        let (mut replacement, mut file) = Replacement::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        replacement.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read(directory.join("perf.data.old")).unwrap(), b"old");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn directories_take_the_place_of_files_and_back() {
        let directory = directory("parts");
        let path = directory.join("perf.data");
        let old = directory.join("perf.data.old");
        for _ in 0..2 {
            let (mut place, mut header, parts) = Replacement::directory(&path, 2).unwrap();
            header.write_all(&MAGIC).unwrap();
            place.commit().unwrap();
            assert_eq!((parts.len(), path.join("data.1").is_file()), (2, true));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(old.join("data.0").is_file());
        let (mut place, _file) = Replacement::create(&path).unwrap();
        place.commit().unwrap();
        assert!(path.is_file() && old.join("data").is_file());
        fs::write(old.join("precious"), "kept").unwrap();
        let (mut place, _file) = Replacement::create(&path).unwrap();
        assert!(matches!(place.commit(), Err(Error::Output { .. })));
        drop(place);
        assert!(old.join("precious").is_file() && old.join("data.1").is_file());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_device_is_written_in_place_and_a_directory_refused() {
        let (mut replacement, mut file) = Replacement::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"gone").unwrap();
        file.set_size(4).unwrap();
        replacement.commit().unwrap();
        assert!(
            fs::metadata("/dev/null")
                .unwrap()
                .file_type()
                .is_char_device()
        );
        assert!(matches!(
            Replacement::create(Path::new("/")),
            Err(Error::Output { .. })
        ));
        for path in ["/", "/dev/null"] {
            let refused = Replacement::directory(Path::new(path), 1);
            assert!(matches!(refused, Err(Error::Output { .. })));
        }
    }
}
