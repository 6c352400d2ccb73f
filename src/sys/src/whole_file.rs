//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Has `make` make a file beside `path`, which then gets that name. What had it before is replaced, and a
/// link is not followed.
///
/// # Errors
/// What `make` and moving report; then `path` is as it was, and nothing is left beside it.
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
    if made.is_err() {
        // The error that is told is the first one.
        let _ = fs::remove_file(&temporary);
    }
    made
}

/// [`make_whole`] for a file that `write` writes.
///
/// # Errors
/// What `write`, making the file and moving it report.
pub fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    make_whole(path, |temporary| {
        let mut out = BufWriter::new(File::create(temporary)?);
        let written = write(&mut out)?;
        out.flush()?;
        Ok(written)
    })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
