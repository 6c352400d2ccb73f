//! The output file or directory: created under a temporary name, and renamed by [`Replacement::commit`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rperf_perfdata::Output;
use rperf_safefs::{FileKind, Folder, FoundFile, PathOrigin, find_in_place};

use crate::Error;
use crate::recording_folder::{self, HEADER, KERNEL};
use crate::unlinked::UnlinkedFiles;

/// An output file.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    /// Whether the output is written in place (see [`Replacement`]): its size is not set.
    in_place: bool,
}

impl OutputFile {
    /// Duplicates the descriptor.
    pub(crate) fn duplicate(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Output for OutputFile {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        if self.in_place {
            return Ok(());
        }
        self.file.set_len(size)
    }
}

/// An output that does not touch the old file until [`Replacement::commit`].
///
/// A regular file or directory is created under a temporary name and renamed; the old one becomes `NAME.old`. Devices,
/// FIFOs and files behind links such as `/dev/stdout` are written in place instead. All operations use one folder that is held
/// open, and don't follow links: another user of the folder cannot redirect writes or removals. If dropped before the commit,
/// it removes the temporary files.
#[derive(Debug)]
pub(crate) struct Replacement {
    path: PathBuf,
    /// The temporary output; `None` for an output that is written in place, and after the commit.
    pending: Option<PendingOutput>,
}

/// A recording under its temporary name.
#[derive(Debug)]
struct PendingOutput {
    /// The folder of the output.
    folder: Folder,
    /// The name after the commit.
    name: OsString,
    /// The name before the commit.
    temporary: OsString,
    /// The output, if it is a directory.
    directory: Option<Folder>,
}

impl Replacement {
    /// Creates a file accessible only to its owner, or opens an output that is written in place. Fails if [`find_in_place`]
    /// refuses that output for a path of this origin.
    pub(crate) fn create(path: &Path, origin: PathOrigin) -> Result<(Self, OutputFile), Error> {
        let error = output_error(path);
        if let Some(existing) = find_in_place(path, origin).map_err(error)? {
            let file = existing.for_reading_and_writing().map_err(error)?;
            let replacement = Self {
                path: path.to_owned(),
                pending: None,
            };
            return Ok((
                replacement,
                OutputFile {
                    file,
                    in_place: true,
                },
            ));
        }
        let (folder, name) = folder_and_name(path, libc::EISDIR).map_err(error)?;
        let (temporary, file) =
            create_unused(&name, |temporary| folder.create_file(temporary, 0o600))
                .map_err(error)?;
        let pending = PendingOutput {
            folder,
            name,
            temporary,
            directory: None,
        };
        let in_place = false;
        Ok((Self::new(path, pending), OutputFile { file, in_place }))
    }

    /// Creates a directory accessible only to its owner, with a file for the header and one for the records of each of
    /// `rings` rings. Also returns the header's file and those of the rings.
    pub(crate) fn create_directory(
        path: &Path,
        origin: PathOrigin,
        rings: usize,
    ) -> Result<(Self, OutputFile, Vec<File>), Error> {
        let error = output_error(path);
        if find_in_place(path, origin).map_err(error)?.is_some() {
            return Err(error(io::Error::from_raw_os_error(libc::ENOTDIR)));
        }
        let (folder, name) = folder_and_name(path, libc::EEXIST).map_err(error)?;
        let (temporary, directory) =
            create_unused(&name, |temporary| folder.create_folder(temporary, 0o700))
                .map_err(error)?;
        let create = |name: String| directory.create_file(name.as_ref(), 0o600);
        let file = create(HEADER.to_owned());
        let part = |number| create(format!("{HEADER}.{number}"));
        let parts: io::Result<Vec<File>> = (0..rings).map(part).collect();
        let pending = PendingOutput {
            folder,
            name,
            temporary,
            directory: Some(directory),
        };
        // Errors of the files are returned only now, when dropping `replacement` removes the directory.
        let replacement = Self::new(path, pending);
        let (file, in_place) = (file.map_err(error)?, false);
        Ok((
            replacement,
            OutputFile { file, in_place },
            parts.map_err(error)?,
        ))
    }

    fn new(path: &Path, pending: PendingOutput) -> Self {
        Self {
            path: path.to_owned(),
            pending: Some(pending),
        }
    }

    /// Creates the folder for kernel code in a directory output. Must be called before the commit.
    pub(crate) fn create_kernel_folder(&self) -> io::Result<Folder> {
        let pending = self.pending.as_ref();
        let directory = pending.and_then(|pending| pending.directory.as_ref());
        let directory = directory.ok_or(io::ErrorKind::NotADirectory)?;
        directory.create_folder(KERNEL.as_ref(), 0o700)
    }

    /// Renames the old output and then the new one.
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        let Some(pending) = &self.pending else {
            return Ok(());
        };
        let old = with_suffix(&pending.name, ".old");
        keep_old(&pending.folder, &pending.name, &old)
            .map_err(output_error(&self.path.with_file_name(&old)))?;
        let moved = pending.folder.rename(&pending.temporary, &pending.name);
        moved.map_err(output_error(&self.path))?;
        self.pending = None;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let Some(pending) = &self.pending else {
            return;
        };
        // Errors are ignored: only temporary files of this process may remain.
        let _ = match &pending.directory {
            None => pending.folder.remove_file(&pending.temporary),
            Some(directory) => recording_folder::remove_contents(directory)
                .and_then(|_| pending.folder.remove_folder(&pending.temporary)),
        };
    }
}

/// Returns a function for `map_err` with the path of the output.
fn output_error(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |cause| Error::Output {
        path: path.to_owned(),
        cause,
    }
}

/// Returns the folder and name of an output. A path without a file name, or of a directory that isn't a recording, is rejected
/// with errno `reason`.
fn folder_and_name(path: &Path, reason: i32) -> io::Result<(Folder, OsString)> {
    let rejected = || io::Error::from_raw_os_error(reason);
    let name = path.file_name().ok_or_else(rejected)?.to_owned();
    // The target of a link is not touched, but a link to a directory that isn't a recording is rejected, too.
    let is_directory = FoundFile::find(path).is_ok_and(|found| found.metadata().is_dir());
    let is_recording =
        || Folder::open(path).is_ok_and(|folder| recording_folder::is_recording(&folder));
    if is_directory && !is_recording() {
        return Err(rejected());
    }
    let (folder, _) = Folder::parent_of(path)?;
    Ok((folder, name))
}

/// Calls `create` with random names based on `name` until one is unused. Returns that name and the result.
fn create_unused<T>(
    name: &OsStr,
    create: impl Fn(&OsStr) -> io::Result<T>,
) -> io::Result<(OsString, T)> {
    loop {
        let temporary = rperf_safefs::temporary_name(name)?;
        match create(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((temporary, created?)),
        }
    }
}

/// Renames the existing output to `old`. A file, a link (not its target) or the directory of a recording that has the name `old`
/// is removed first. Changes nothing if there is no output.
fn keep_old(folder: &Folder, name: &OsStr, old: &OsStr) -> io::Result<()> {
    // The removed file is kept open until the end of this function, and then closed in a separate thread: freeing its blocks may
    // take long.
    let mut replaced = UnlinkedFiles::default();
    match (folder.kind(name)?, folder.kind(old)?) {
        // There is no output to rename, or nothing has the name `old`.
        (None, _) | (_, None) => {}
        // The removed files are returned open. Dropping them closes them, also in a separate thread.
        (_, Some(FileKind::Folder)) => drop(recording_folder::remove(folder, old)?),
        // A directory cannot be renamed over a file.
        (Some(FileKind::Folder), Some(_)) => {
            replaced.keep(folder, old);
            folder.remove_file(old)?;
        }
        // The rename removes the name `old`.
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
    fn the_old_file_is_renamed_at_commit() {
        let directory = directory("keep");
        let path = directory.join("perf.data");
        fs::write(&path, "old").unwrap();
        let (replacement, _file) = Replacement::create(&path, PathOrigin::Default).unwrap();
        drop(replacement);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(
            fs::read_dir(&directory).unwrap().count(),
            1,
            "nothing is left behind"
        );
        let (mut replacement, mut file) = Replacement::create(&path, PathOrigin::Default).unwrap();
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
    fn an_old_directory_is_replaced_if_it_contains_only_a_recording() {
        let directory = directory("parts");
        let path = directory.join("perf.data");
        let old = directory.join("perf.data.old");
        for _ in 0..2 {
            let (mut replacement, mut header, parts) =
                Replacement::create_directory(&path, PathOrigin::Default, 2).unwrap();
            header.write_all(b"PERFILE2").unwrap();
            replacement.commit().unwrap();
            assert_eq!((parts.len(), path.join("data.1").is_file()), (2, true));
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        assert!(old.join("data.0").is_file());
        let (mut replacement, _file) = Replacement::create(&path, PathOrigin::Default).unwrap();
        replacement.commit().unwrap();
        assert!(path.is_file() && old.join("data").is_file());
        // A directory with any other file is not removed.
        fs::write(old.join("other"), "kept").unwrap();
        let (mut replacement, _file) = Replacement::create(&path, PathOrigin::Default).unwrap();
        assert!(matches!(replacement.commit(), Err(Error::Output { .. })));
        drop(replacement);
        assert!(old.join("other").is_file() && old.join("data.1").is_file());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_old_directory_is_kept_if_there_is_no_output_to_rename() {
        let directory = directory("old");
        let path = directory.join("perf.data");
        for _ in 0..2 {
            let (mut replacement, mut header, _parts) =
                Replacement::create_directory(&path, PathOrigin::Default, 1).unwrap();
            header.write_all(b"PERFILE2").unwrap();
            replacement.commit().unwrap();
        }
        fs::remove_dir_all(&path).unwrap();
        let (mut replacement, _file) = Replacement::create(&path, PathOrigin::Default).unwrap();
        replacement.commit().unwrap();
        assert!(path.is_file() && directory.join("perf.data.old/data.0").is_file());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_device_is_written_in_place_and_a_directory_rejected() {
        let (mut replacement, mut file) =
            Replacement::create(Path::new("/dev/null"), PathOrigin::Given).unwrap();
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
            Replacement::create(Path::new("/"), PathOrigin::Given),
            Err(Error::Output { .. })
        ));
        for path in ["/", "/dev/null"] {
            let rejected = Replacement::create_directory(Path::new(path), PathOrigin::Given, 1);
            assert!(matches!(rejected, Err(Error::Output { .. })));
        }
    }
}
