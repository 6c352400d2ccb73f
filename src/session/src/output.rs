//! The file that is written: under a temporary name until recording begins, then in its place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rperf_perfdata::Output;
use rperf_safefs::{Folder, Kind, Naming, Opened, find_in_place};

use crate::Error;
use crate::recording_folder::{self, HEADER, KERNEL};
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
/// A regular file, or a directory, is written beside its place and moved there; the old one becomes `NAME.old`. Devices and
/// FIFOs are opened as they are. All names are those of one folder that is held open, and no link is followed: another user
/// of the folder can neither redirect a write nor a removal. Dropped before the commit, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// What is written meanwhile; `None` for a device, and after the commit.
    pending: Option<Pending>,
}

/// A recording under its temporary name.
#[derive(Debug)]
struct Pending {
    /// Where the output is.
    folder: Folder,
    name: OsString,
    temporary: OsString,
    /// The output itself, if that is a directory.
    directory: Option<Folder>,
}

impl Replacement {
    /// Creates the output, readable and writable for its owner alone.
    pub(crate) fn create(path: &Path, naming: Naming) -> Result<(Self, Destination), Error> {
        let error = at(path);
        if let Some(device) = find_in_place(path, naming).map_err(error)? {
            let file = device.for_both().map_err(error)?;
            let place = Self {
                path: path.to_owned(),
                pending: None,
            };
            return Ok((place, Destination { file, device: true }));
        }
        let (folder, name) = place_of(path, libc::EISDIR).map_err(error)?;
        let (temporary, file) =
            unused(&name, |temporary| folder.create_file(temporary, 0o600)).map_err(error)?;
        let pending = Pending {
            folder,
            name,
            temporary,
            directory: None,
        };
        let device = false;
        Ok((Self::new(path, pending), Destination { file, device }))
    }

    /// Creates a directory for its owner alone: a file with the header, and as many for the records of rings.
    pub(crate) fn directory(
        path: &Path,
        naming: Naming,
        parts: usize,
    ) -> Result<(Self, Destination, Vec<File>), Error> {
        let error = at(path);
        if find_in_place(path, naming).map_err(error)?.is_some() {
            return Err(error(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        let (folder, name) = place_of(path, libc::EEXIST).map_err(error)?;
        let (temporary, directory) =
            unused(&name, |temporary| folder.create_folder(temporary, 0o700)).map_err(error)?;
        let create = |name: String| directory.create_file(name.as_ref(), 0o600);
        let file = create(HEADER.to_owned());
        let part = |number| create(format!("{HEADER}.{number}"));
        let parts: io::Result<Vec<File>> = (0..parts).map(part).collect();
        let pending = Pending {
            folder,
            name,
            temporary,
            directory: Some(directory),
        };
        // From here on it is removed if something fails.
        let place = Self::new(path, pending);
        let (file, device) = (file.map_err(error)?, false);
        Ok((place, Destination { file, device }, parts.map_err(error)?))
    }

    fn new(path: &Path, pending: Pending) -> Self {
        Self {
            path: path.to_owned(),
            pending: Some(pending),
        }
    }

    /// Creates the folder for the kernel's code in an output that is a directory, until the commit.
    pub(crate) fn kernel_folder(&self) -> io::Result<Folder> {
        let pending = self.pending.as_ref();
        let directory = pending.and_then(|pending| pending.directory.as_ref());
        let directory = directory.ok_or(io::ErrorKind::NotADirectory)?;
        directory.create_folder(KERNEL.as_ref(), 0o700)
    }

    /// Moves the old file out of the way and the new one in its place. Records come meanwhile.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        let Some(pending) = &self.pending else {
            return Ok(());
        };
        let old = with_suffix(&pending.name, ".old");
        keep_old(&pending.folder, &pending.name, &old)
            .map_err(at(&self.path.with_file_name(&old)))?;
        let moved = pending.folder.rename(&pending.temporary, &pending.name);
        moved.map_err(at(&self.path))?;
        self.pending = None;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let Some(pending) = &self.pending else {
            return;
        };
        // It was never shown to anyone; nothing more can be done about it.
        let _ = match &pending.directory {
            None => pending.folder.remove_file(&pending.temporary),
            Some(directory) => recording_folder::empty(directory)
                .and_then(|_| pending.folder.remove_folder(&pending.temporary)),
        };
    }
}

/// For `map_err`: names the output.
fn at(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |cause| Error::Output {
        path: path.to_owned(),
        cause,
    }
}

/// The folder of an output and its name there. A directory of no recording is refused with `reason`.
fn place_of(path: &Path, reason: i32) -> io::Result<(Folder, OsString)> {
    let refused = || io::Error::from_raw_os_error(reason);
    let name = path.file_name().ok_or_else(refused)?.to_owned();
    // Through a link: what it leads to is not touched, but a user who gives one to a directory means that directory.
    let is_directory = Opened::find(path).is_ok_and(|found| found.metadata().is_dir());
    let is_recording = || Folder::open(path).is_ok_and(|folder| recording_folder::is_one(&folder));
    if is_directory && !is_recording() {
        return Err(refused());
    }
    let (folder, _) = Folder::of(path)?;
    Ok((folder, name))
}

/// Has `create` create something under a random name, until one is free.
fn unused<T>(name: &OsStr, create: impl Fn(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    loop {
        let temporary = rperf_safefs::temporary_name(name)?;
        match create(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((temporary, created?)),
        }
    }
}

/// Moves what is there out of the way. What was moved so before is removed: a file, a link (not what it leads to), or the
/// directory of a recording.
fn keep_old(folder: &Folder, name: &OsStr, old: &OsStr) -> io::Result<()> {
    let mut replaced = Unlinked::default();
    match (folder.kind(name)?, folder.kind(old)?) {
        (_, None) => {}
        (_, Some(Kind::Folder)) => drop(recording_folder::remove(folder, old)?),
        (Some(Kind::Folder), Some(_)) => {
            replaced.keep(folder, old);
            folder.remove_file(old)?;
        }
        // Replaced by the new name.
        _ => replaced.keep(folder, old),
    }
    match folder.rename(name, old) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn with_suffix(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        let (replacement, _file) = Replacement::create(&path, Naming::Default).unwrap();
        drop(replacement);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            1,
            "nothing is left behind"
        );
        let (mut replacement, mut file) = Replacement::create(&path, Naming::Default).unwrap();
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
            let (mut place, mut header, parts) =
                Replacement::directory(&path, Naming::Default, 2).unwrap();
            header.write_all(b"PERFILE2").unwrap();
            place.commit().unwrap();
            assert_eq!((parts.len(), path.join("data.1").is_file()), (2, true));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(old.join("data.0").is_file());
        let (mut place, _file) = Replacement::create(&path, Naming::Default).unwrap();
        place.commit().unwrap();
        assert!(path.is_file() && old.join("data").is_file());
        fs::write(old.join("precious"), "kept").unwrap();
        let (mut place, _file) = Replacement::create(&path, Naming::Default).unwrap();
        assert!(matches!(place.commit(), Err(Error::Output { .. })));
        drop(place);
        assert!(old.join("precious").is_file() && old.join("data.1").is_file());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_device_is_written_in_place_and_a_directory_refused() {
        let (mut replacement, mut file) =
            Replacement::create(Path::new("/dev/null"), Naming::Given).unwrap();
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
            Replacement::create(Path::new("/"), Naming::Given),
            Err(Error::Output { .. })
        ));
        for path in ["/", "/dev/null"] {
            let refused = Replacement::directory(Path::new(path), Naming::Given, 1);
            assert!(matches!(refused, Err(Error::Output { .. })));
        }
    }
}
