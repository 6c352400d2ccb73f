//! Files that appear whole or not at all.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Has `make` make a file beside `path`, which then gets that name. What had it before is replaced, and a
/// link is not followed.
///
/// # Errors
/// What `make` and moving report; then `path` is as it was. Nothing is left beside it.
pub fn make_whole<T>(path: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(name);
    // What a process of the same number may have left.
    let _ = fs::remove_file(&temporary);
    let made = make(&temporary).and_then(|made| {
        fs::rename(&temporary, path)?;
        Ok(made)
    });
    // The error that is told is the first one. After success it is still there where both are names of one file, which
    // rename(2) leaves as they are.
    let _ = fs::remove_file(&temporary);
    made
}

/// [`make_whole`] for a file that `write` writes. It has no name until it is whole, where the file system can do that
/// (`O_TMPFILE`, open(2)): whatever ends the process then leaves nothing beside `path`.
///
/// # Errors
/// What `write`, making the file and moving it report.
pub fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let finish = |file: File| -> io::Result<(T, File)> {
        let mut out = BufWriter::new(file);
        let written = write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((written, file))
    };
    if let Some(file) = nameless(path) {
        let (written, file) = finish(file)?;
        make_whole(path, |temporary| name(&file, temporary))?;
        return Ok(written);
    }
    make_whole(path, |temporary| {
        let (written, _) = finish(File::create(temporary)?)?;
        Ok(written)
    })
}

/// Where a process finds its open files as links.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A file without a name on the file system of `path`, if there can be one and it can get a name later.
fn nameless(path: &Path) -> Option<File> {
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        folder => folder?,
    };
    if !Path::new(DESCRIPTORS).is_dir() {
        return None;
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).mode(0o666);
    options.custom_flags(libc::O_TMPFILE).open(folder).ok()
}

/// Gives a nameless file a name.
fn name(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(format!("{DESCRIPTORS}/{}", file.as_raw_fd()))?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: both paths end with a zero and live for the length of the call, which only reads them.
    let result = unsafe {
        libc::linkat(
            here,
            from.as_ptr(),
            here,
            to.as_ptr(),
            libc::AT_SYMLINK_FOLLOW,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("rperf-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        for text in ["first", "second"] {
            write_whole(&path, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = write_whole(&path, |out| {
            out.write_all(b"part")?;
            Err::<(), _>(io::ErrorKind::UnexpectedEof.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        make_whole(&path, |temporary| fs::hard_link(&path, temporary)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_is_to_be_seen_of_a_file_that_is_written() {
        let folder = std::env::temp_dir().join(format!("rperf-nameless-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        // Where files must have names, one is there.
        let names = usize::from(nameless(&path).is_none());
        let seen = write_whole(&path, |out| {
            out.write_all(&[7; 100_000])?;
            Ok(fs::read_dir(&folder)?.count())
        });
        assert_eq!(seen.unwrap(), names);
        assert_eq!(fs::read(&path).unwrap(), [7; 100_000]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
