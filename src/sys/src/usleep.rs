//! usleep(3) of the C library, as a function that can be probed.

use std::io;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use crate::{Proc, map_entries};

/// Time limit for reading this process's mappings.
const LIMIT: Duration = Duration::from_secs(5);

/// A place in an executable file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    /// The file.
    pub path: PathBuf,
    /// Bytes from its beginning.
    pub offset: u64,
}

/// Sleeps this many microseconds, or until a signal (usleep(3)).
pub fn usleep(micros: u32) {
    // SAFETY: the function takes a number. A signal may end it early, which is no error.
    unsafe { libc::usleep(micros) };
}

/// Returns the place of usleep(3) in the C library, or in this program if it is linked statically.
///
/// # Errors
/// What reading this process's `/proc/PID/maps` reports; [`io::ErrorKind::NotFound`] if no file is mapped at the function's
/// address, or the time limit ended the reading before that mapping.
pub fn usleep_place() -> io::Result<CodePlace> {
    let function: unsafe extern "C" fn(u32) -> i32 = libc::usleep;
    let address = function as usize as u64;
    let (text, _is_complete) = Proc::new("/proc").maps(process::id(), LIMIT)?;
    let mut entries = map_entries(&text);
    let entry = entries.find(|entry| (entry.start..entry.end).contains(&address));
    let entry = entry.filter(|entry| entry.inode != 0);
    let entry = entry.ok_or(io::ErrorKind::NotFound)?;
    Ok(CodePlace {
        path: entry.path().to_owned(),
        offset: address - entry.start + entry.offset,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usleep_is_found_in_its_file_and_returns() {
        let place = usleep_place().unwrap();
        let size = std::fs::metadata(&place.path).unwrap().len();
        assert!(place.offset > 0 && place.offset < size, "{place:?}");
        usleep(1);
    }
}
