//! The mounted file systems: `/proc/self/mounts`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// A mounted file system.
pub(crate) struct Mount<'m> {
    /// The mount point.
    pub(crate) place: PathBuf,
    /// The type of the file system, such as `tracefs`.
    pub(crate) kind: &'m str,
    /// The options, separated by commas.
    pub(crate) options: &'m str,
}

impl<'m> Mount<'m> {
    /// Parses the text of `/proc/self/mounts` (fstab(5)); lines without a type are skipped.
    pub(crate) fn all(text: &'m str) -> impl Iterator<Item = Self> {
        text.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some(Self {
                place: unescaped(words.next()?),
                kind: words.next()?,
                options: words.next().unwrap_or_default(),
            })
        })
    }
}

/// Replaces the octal escapes that the kernel writes for spaces, tabs, newlines and backslashes in a path (`\040`).
fn unescaped(word: &str) -> PathBuf {
    let mut path = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.first_chunk().filter(|_| *first == b'\\');
        let escaped = digits.and_then(octal);
        path.push(escaped.unwrap_or(*first));
        let skipped = if escaped.is_some() { 3 } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    OsString::from_vec(path).into()
}

/// Returns the byte with this octal number.
fn octal(digits: &[u8; 3]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(digits, 8).ok()
}
