//! The file that is written: under another name until the recording stands, then in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rperf_perfdata::Output;

use crate::Error;

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
/// A regular file is written beside its place and moved there; the old one becomes `NAME.old`.
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
        let error = |cause| Error::Output {
            path: path.to_owned(),
            cause,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if let Ok(there) = fs::metadata(path)
            && !there.is_file()
        {
            let is_directory = || io::Error::from_raw_os_error(libc::EISDIR);
            let opened = if there.is_dir() {
                Err(is_directory())
            } else {
                options.open(path)
            };
            let file = opened.map_err(error)?;
            let place = Self {
                path: path.to_owned(),
                temporary: None,
            };
            return Ok((place, Destination { file, device: true }));
        }
        let temporary = beside(path, &format!(".{}.tmp", std::process::id()));
        options.create_new(true).mode(0o600);
        let opened = match options.open(&temporary) {
            // Left by a killed recorder that had the same process id.
            Err(there) if there.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&temporary).and_then(|()| options.open(&temporary))
            }
            opened => opened,
        };
        let file = opened.map_err(error)?;
        let place = Self {
            path: path.to_owned(),
            temporary: Some(temporary),
        };
        Ok((
            place,
            Destination {
                file,
                device: false,
            },
        ))
    }

    /// Moves the old file out of the way and the new one in its place.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        let moved = match fs::rename(&self.path, beside(&self.path, ".old")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        moved
            .and_then(|()| fs::rename(temporary, &self.path))
            .map_err(|cause| Error::Output {
                path: self.path.clone(),
                cause,
            })?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It was never shown to anyone; nothing more can be done about it.
            let _ = fs::remove_file(temporary);
        }
    }
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
    }
}
