//! A copy of `/proc/kallsyms` for later commands, since the kernel takes long to print it.
//!
//! The copy is a file in the build-id cache that only its owner can read:
//!
//! ```text
//! rperf kallsyms 1 BOOT MODULES PROGRAMS LENGTH CHECKSUM
//! the text of /proc/kallsyms
//! ```
//!
//! BOOT is the boot id, LENGTH the size of the text in bytes. MODULES, PROGRAMS and CHECKSUM are checksums (CRC-32): of the
//! loaded modules, the ids of loaded BPF programs, and the text. LENGTH and the checksums are hexadecimal. The copy is valid as
//! long as the boot, the modules and the programs are the same. No copy is written if any of the three cannot be read, if all
//! addresses are hidden, or if the text exceeds [`MAX_LISTING`]; reading the ids of BPF programs needs CAP_SYS_ADMIN. Code pages
//! that ftrace and kprobes allocate later are missing in the copy, but KSYMBOL records of recordings describe them.

use std::ffi::OsStr;
use std::io::{self, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};

use flate2::Crc;
use rperf_safefs::{Folder, read_all};
use rperf_symbol::{FileBytes, Files};
use rperf_sys::{Proc, bpf_program_ids};

use rperf_input::DiskFiles;

/// The listing of the running kernel.
const LISTING: &str = "/proc/kallsyms";
/// The name of the copy in the build-id cache.
const NAME: &str = ".rperf-kallsyms";
/// Format name and version at the beginning of a copy.
const MAGIC: &str = "rperf kallsyms 1";
/// The maximum size of a listing that is copied, in bytes: current ones have some ten million.
const MAX_LISTING: usize = 64 << 20;
/// The maximum size of the first line of a copy, in bytes; it has about a hundred.
const MAX_HEADER: usize = 256;

/// The files of this machine; [`Files::open`] opens the copy for `/proc/kallsyms` if the copy is valid.
#[derive(Debug, Clone)]
pub(crate) struct SystemFiles {
    /// The build-id cache, in which the copy is; `None`: no copy is read or written.
    cache: Option<PathBuf>,
}

impl SystemFiles {
    /// Returns the files. The copy is in the build-id cache `cache`, which is not created if it does not exist.
    pub(crate) fn new(cache: Option<PathBuf>) -> Self {
        Self { cache }
    }

    /// Opens the listing: the copy if it is valid, otherwise the kernel's. The latter is copied when it has been read to its end,
    /// if there is a cache and the key of the copy can be read.
    fn open_listing(&self) -> io::Result<Box<dyn Read>> {
        let folder = self.cache.as_deref();
        let folder = folder.and_then(|path| Folder::open_own(path).ok());
        let Some((folder, key)) = folder.zip(ListingKey::of(&Proc::new("/proc"))) else {
            return DiskFiles.open(Path::new(LISTING));
        };
        if let Some(copy) = read_copy(&folder, &key) {
            return Ok(Box::new(copy));
        }
        Ok(Box::new(CopyingReader {
            source: DiskFiles.open(Path::new(LISTING))?,
            text: Vec::new(),
            destination: Some((folder, key)),
        }))
    }
}

impl Files for SystemFiles {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        DiskFiles.read(path)
    }

    fn read_trusted(&self, path: &Path) -> io::Result<Option<FileBytes>> {
        DiskFiles.read_trusted(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        match path == Path::new(LISTING) {
            true => self.open_listing(),
            false => DiskFiles.open(path),
        }
    }

    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        DiskFiles.read_at(path, offset, into)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        DiskFiles.list(path)
    }

    fn vdso32(&self) -> Option<FileBytes> {
        DiskFiles.vdso32()
    }
}

/// The state of the kernel that a copy depends on.
#[derive(Debug, PartialEq, Eq)]
struct ListingKey(String);

impl ListingKey {
    /// Reads the key of the running kernel; `None` if a part of it cannot be read.
    fn of(proc: &Proc) -> Option<Self> {
        let (boot, modules) = (proc.boot_id().ok()?, proc.modules_text().ok()?);
        Some(Self::new(&boot, &modules, &bpf_program_ids().ok()?))
    }

    /// Creates a key from the boot id, the text of /proc/modules (proc(5)) and the ids of the BPF programs. Of a module, only
    /// name, size and address are used: the other columns change often.
    fn new(boot: &str, modules: &str, programs: &[u32]) -> Self {
        let mut modules_sum = Crc::new();
        for line in modules.lines() {
            let columns = line.split(' ').enumerate();
            for (_, column) in columns.filter(|(number, _)| [0, 1, 5].contains(number)) {
                modules_sum.update(column.as_bytes());
                modules_sum.update(b" ");
            }
        }
        let mut programs_sum = Crc::new();
        for program in programs {
            programs_sum.update(&program.to_ne_bytes());
        }
        let (modules_sum, programs_sum) = (modules_sum.sum(), programs_sum.sum());
        Self(format!("{boot} {modules_sum:08x} {programs_sum:08x}"))
    }

    /// Returns the first line of a copy of `text`.
    fn header(&self, text: &[u8]) -> String {
        let mut sum = Crc::new();
        sum.update(text);
        let (len, sum) = (text.len(), sum.sum());
        format!("{MAGIC} {} {len:x} {sum:08x}\n", self.0)
    }
}

/// Returns the copy, positioned after its first line; `None` if it is missing or not valid.
fn read_copy(folder: &Folder, key: &ListingKey) -> Option<Cursor<Vec<u8>>> {
    let file = folder.find(OsStr::new(NAME)).ok()?;
    // A copy that belongs to neither this user nor root is not trusted.
    if !file.has_trusted_owner() {
        return None;
    }
    let copy = read_all(file.for_reading().ok()?, (MAX_LISTING + MAX_HEADER) as u64).ok()?;
    let start = memchr::memchr(b'\n', &copy)? + 1;
    let (header, text) = copy.split_at_checked(start)?;
    if header != key.header(text).as_bytes() {
        return None;
    }
    let mut text = Cursor::new(copy);
    text.set_position(start as u64);
    Some(text)
}

/// Reads the kernel's listing, and writes the copy when the listing has been read to its end.
struct CopyingReader {
    source: Box<dyn Read>,
    /// The text read so far; empty if no copy is to be written.
    text: Vec<u8>,
    /// `None` if no copy is to be written, or after it was written.
    destination: Option<(Folder, ListingKey)>,
}

impl CopyingReader {
    /// Writes the copy. Errors are ignored: without a copy, the next command only takes longer.
    fn finish(&mut self) {
        let text = std::mem::take(&mut self.text);
        let Some((folder, key)) = self.destination.take() else {
            return;
        };
        if !are_hidden(&text) {
            let _ = folder.write_atomic(OsStr::new(NAME), 0o600, |out| {
                out.write_all(key.header(&text).as_bytes())?;
                out.write_all(&text)
            });
        }
    }
}

impl Read for CopyingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        if count == 0 && !into.is_empty() {
            self.finish();
        }
        if self.destination.is_some() {
            let read = into.get(..count).unwrap_or_default();
            self.text.extend_from_slice(read);
            if self.text.len() > MAX_LISTING {
                self.destination = None;
                self.text = Vec::new();
            }
        }
        Ok(count)
    }
}

/// Whether all addresses are zero, because this user may not see them (`kernel.kptr_restrict`).
fn are_hidden(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    // Up to the space: an address has 16 digits, or 8 in 32-bit kernels.
    lines.all(|line| {
        line.iter()
            .take_while(|byte| **byte != b' ')
            .all(|digit| *digit == b'0')
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TEXT: &[u8] =
        b"0000000000000000 A first\nffffffff81000000 T _text\nffffffff81000010 t f\t[m]\n";

    fn key(boot: &str) -> ListingKey {
        ListingKey::new(boot, "m 4096 1 - Live 0xffffffffc0000000\n", &[1, 2])
    }

    /// Reads `text` as the kernel's listing, so that it is copied; returns what was read.
    fn read_and_copy(folder: &Path, text: &[u8], key: ListingKey) -> Vec<u8> {
        let mut reader = CopyingReader {
            source: Box::new(Cursor::new(text.to_vec())),
            text: Vec::new(),
            destination: Some((Folder::open_own(folder).unwrap(), key)),
        };
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        read
    }

    fn copy(folder: &Path, key: &ListingKey) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut copy = read_copy(&Folder::open_own(folder).unwrap(), key)?;
        copy.read_to_end(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn a_copy_is_valid_while_the_key_is_the_same() {
        let scratch = rperf_testkit::Scratch::new();
        assert_eq!(copy(scratch.path(), &key("a")), None);
        assert_eq!(read_and_copy(scratch.path(), TEXT, key("a")), TEXT);
        assert_eq!(copy(scratch.path(), &key("a")).unwrap(), TEXT);
        assert_eq!(copy(scratch.path(), &key("b")), None);
        let file = fs::metadata(scratch.path().join(NAME)).unwrap();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777,
            0o600
        );
    }

    #[test]
    fn modules_and_programs_change_the_key_but_references_do_not() {
        let key = |modules, programs: &[u32]| ListingKey::new("boot", modules, programs);
        let first = key("m 4096 1 - Live 0xffffffffc0000000\n", &[1]);
        assert_eq!(first, key("m 4096 7 n, Live 0xffffffffc0000000\n", &[1]));
        for (modules, programs) in [
            ("m 4096 1 - Live 0xffffffffc0001000\n", &[1][..]),
            ("m 8192 1 - Live 0xffffffffc0000000\n", &[1]),
            ("", &[1]),
            ("m 4096 1 - Live 0xffffffffc0000000\n", &[2]),
            ("m 4096 1 - Live 0xffffffffc0000000\n", &[]),
        ] {
            assert_ne!(first, key(modules, programs), "{modules} {programs:?}");
        }
    }

    #[test]
    fn no_damaged_copy_is_read() {
        let scratch = rperf_testkit::Scratch::new();
        read_and_copy(scratch.path(), TEXT, key("a"));
        let path = scratch.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 4;
            fs::write(&path, &damaged).unwrap();
            assert_eq!(copy(scratch.path(), &key("a")), None, "byte {position}");
            fs::write(&path, &whole[..position]).unwrap();
            assert_eq!(
                copy(scratch.path(), &key("a")),
                None,
                "truncated to {position}"
            );
        }
        fs::write(&path, &whole).unwrap();
        assert!(copy(scratch.path(), &key("a")).is_some());
    }

    #[test]
    fn hidden_addresses_are_not_copied() {
        let scratch = rperf_testkit::Scratch::new();
        let hidden = b"0000000000000000 A first\n0000000000000000 T _text\n";
        let hidden_32_bit = b"00000000 A first\n00000000 T _text\n";
        for hidden in [&hidden[..], hidden_32_bit] {
            assert_eq!(read_and_copy(scratch.path(), hidden, key("a")), hidden);
            assert_eq!(copy(scratch.path(), &key("a")), None);
        }
    }
}
