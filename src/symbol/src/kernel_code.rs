//! Kernel code, from the kernel's memory (`/proc/kcore` and copies of it) or from vmlinux.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::dwarf::{AddressMap, DebugSource};
use crate::elf::{ElfImage, Segment};
use crate::files::{FileBytes, Files};
use crate::listing;
use crate::request::{ObjectRequest, SearchPaths};

/// Maximum number of bytes read of a kcore for its program headers.
const HEADERS: usize = 64 << 10;
/// Maximum size of the kernel code that is read, in bytes.
const MAX_CODE: u64 = 256 << 20;

/// Kernel code at run-time addresses.
#[derive(Debug, Clone)]
pub struct KernelCode {
    /// An ELF file, or the start of one, that identifies the machine of the code.
    pub header: FileBytes,
    /// Run-time address of the code.
    start: u64,
    bytes: FileBytes,
    /// The range of the code in `bytes`.
    code: Range<usize>,
}

impl KernelCode {
    /// The code from `address` on, empty at its end; `None` if `address` is before its start or after its end.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&[u8]> {
        let code = self.bytes.get(self.code.clone())?;
        code.get(usize::try_from(address.checked_sub(self.start)?).ok()?..)
    }

    /// The segment of a vmlinux that contains the run-time address `address`, without its zero-filled data; `None` if there is
    /// none, if the file has no code, or if it is not of a kernel.
    #[must_use]
    pub fn of_image(image: &DebugSource, address: u64) -> Option<Self> {
        // The kernel and modules have a shift; a module's file has no segments.
        let AddressMap::Shift(distance) = image.addresses else {
            return None;
        };
        let parsed = ElfImage::parse(&image.bytes).ok()?;
        let segment = segment_at(&parsed.segments, address.wrapping_sub(distance))?;
        // Debug files have the headers of code sections without their contents.
        if !parsed.has_code_contents() {
            return None;
        }
        let offset = usize::try_from(segment.offset).ok()?;
        let end = offset.checked_add(usize::try_from(segment.file_size).ok()?)?;
        Some(Self {
            header: image.bytes.clone(),
            start: segment.address.wrapping_add(distance),
            bytes: image.bytes.clone(),
            code: offset..end.min(image.bytes.len()),
        })
    }
}

/// Reads the code in `range` from the memory of the kernel that `kernel` describes: only the start of `range` if not all of it is
/// available, and at most 256 MiB. `None` if the memory can't be read or is of another boot, or if the start is not available.
#[must_use]
pub fn kernel_code(
    files: &dyn Files,
    paths: &SearchPaths,
    kernel: &ObjectRequest<'_>,
    range: Range<u64>,
) -> Option<KernelCode> {
    // The kcore is next to the listing (kallsyms), whose addresses tell whether both are of the recorded boot.
    let listing = listing::find(files, paths, kernel)?;
    let kcore = listing::memory_of(files, &listing, kernel)?;
    let memory = KernelMemory::open(files, &kcore).ok()?;
    let end = range.end.min(range.start.saturating_add(MAX_CODE));
    let range = memory.available_part(range.start..end)?;
    let mut code = vec![0; usize::try_from(range.end - range.start).ok()?];
    let count = memory.read(range.start, &mut code).ok()?;
    code.truncate(count);
    Some(KernelCode {
        header: memory.header.into(),
        start: range.start,
        code: 0..code.len(),
        bytes: code.into(),
    })
}

/// The memory of a kernel: `/proc/kcore`, or a copy of it.
pub struct KernelMemory<'a> {
    files: &'a dyn Files,
    path: PathBuf,
    header: Vec<u8>,
    segments: Vec<Segment>,
}

impl<'a> KernelMemory<'a> {
    /// Opens a file and reads its headers.
    ///
    /// # Errors
    ///
    /// Those of [`Files::read_at`], and `InvalidData` if it isn't an ELF file.
    pub fn open(files: &'a dyn Files, path: &Path) -> io::Result<Self> {
        let mut header = vec![0; HEADERS];
        let count = files.read_at(path, 0, &mut header)?;
        header.truncate(count);
        let invalid = |reason| io::Error::new(io::ErrorKind::InvalidData, reason);
        let segments = ElfImage::parse(&header).map_err(invalid)?.segments;
        Ok(Self {
            files,
            path: path.to_owned(),
            header,
            segments,
        })
    }

    /// The first bytes of the file.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The available part of `range`, from its start; `None` if its start is not available or `range` is empty.
    #[must_use]
    pub fn available_part(&self, range: Range<u64>) -> Option<Range<u64>> {
        let segment = segment_at(&self.segments, range.start)?;
        let end = segment.address.saturating_add(segment.memory_size);
        (range.start < range.end).then(|| range.start..range.end.min(end))
    }

    /// Reads into `into` from `address` on, and returns the number of bytes read. Bytes past the end
    /// of [`KernelMemory::available_part`] are whatever follows in the file, not memory at these addresses.
    ///
    /// # Errors
    ///
    /// Those of [`Files::read_at`], and `NotFound` if `address` is not available.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let segment = segment_at(&self.segments, address).ok_or(io::ErrorKind::NotFound)?;
        let offset = segment.offset.saturating_add(address - segment.address);
        self.files.read_at(&self.path, offset, into)
    }
}

fn segment_at(segments: &[Segment], address: u64) -> Option<Segment> {
    let mut segments = segments.iter();
    let holds = |segment: &&Segment| {
        let offset = address.checked_sub(segment.address);
        offset.is_some_and(|offset| offset < segment.memory_size)
    };
    segments.find(holds).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryFiles, ObjectKind};

    const START: u64 = 0xffff_ffff_8100_0000;
    /// A kallsyms file. The relocation symbol `_text` is the function (`T`); the data symbol (`D`) of this name is ignored.
    const LISTING: &str = "ffffffff81000000 D _text\nffffffff81000000 T _text\n";

    /// An ELF file with one segment: 16 bytes of code at `START`.
    fn kcore() -> Vec<u8> {
        elf_file(16)
    }

    /// The same with a segment of `memory_size` bytes.
    fn elf_file(memory_size: u64) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        let halves = |file: &mut Vec<u8>, numbers: &[u16]| {
            file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        };
        // Type, machine, version.
        halves(&mut file, &[4, 62, 1, 0]);
        let longs = |file: &mut Vec<u8>, numbers: &[u64]| {
            file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        };
        // Entry point, offsets of the program and section headers; flags, sizes and numbers of headers.
        longs(&mut file, &[0, 64, 0]);
        halves(&mut file, &[0, 0, 64, 56, 1, 0, 0, 0]);
        // The program header: type, flags; file offset, virtual and physical address, size in the file and in memory, alignment.
        halves(&mut file, &[1, 0, 5, 0]);
        longs(&mut file, &[120, START, 0, 16, memory_size, 1]);
        file.extend(0..16);
        file
    }

    /// Returns the code in `range` of a kernel that was at `START + moved` when it was recorded. `listings` are folders with a
    /// kcore, each with the text of its kallsyms.
    fn code(listings: &[(&str, &str)], moved: u64, range: Range<u64>) -> Option<Vec<u8>> {
        let mut files = MemoryFiles::new();
        for (folder, listing) in listings {
            let folder = Path::new(folder);
            files.insert(folder.join("kallsyms"), listing.as_bytes().to_vec());
            files.insert(folder.join("kcore"), kcore());
        }
        let id = crate::BuildId::from_bytes(&[0xab; 20])?;
        let paths = SearchPaths::new(Some("/cache".into()));
        let mut kernel = ObjectRequest::new(Path::new("[kernel.kallsyms]"), ObjectKind::Kernel);
        kernel.build_id = Some(&id);
        kernel.relocation = Some(("_text", START + moved));
        let loaded = kernel_code(&files, &paths, &kernel, range.clone())?;
        assert!(loaded.header.starts_with(b"\x7fELF"));
        assert!(loaded.at(range.start - 1).is_none());
        Some(loaded.at(range.start)?.to_vec())
    }

    /// A vmlinux of a kernel that runs `moved` bytes after its addresses in the file.
    fn vmlinux(bytes: Vec<u8>, moved: u64) -> DebugSource {
        DebugSource {
            object: "[kernel.kallsyms]".into(),
            kind: ObjectKind::Kernel,
            build_id: None,
            path: "/boot/vmlinux".into(),
            bytes: bytes.into(),
            addresses: AddressMap::Shift(moved),
        }
    }

    #[test]
    fn zero_filled_data_is_no_code() {
        let mut file = elf_file(32);
        // Other contents follow the segment.
        file.extend([0xff; 32]);
        let code = KernelCode::of_image(&vmlinux(file, 0), START).unwrap();
        assert_eq!(code.at(START + 14), Some(&[14, 15][..]));
        assert_eq!(code.at(START + 20), None);
    }

    #[test]
    fn a_vmlinux_has_the_code_of_a_kernel_that_was_moved() {
        let moved = 0x20_0000;
        let image = vmlinux(kcore(), moved);
        let start = START + moved;
        let code = KernelCode::of_image(&image, start + 2).unwrap();
        assert_eq!(code.at(start + 14), Some(&[14, 15][..]));
        assert_eq!(code.at(start - 1), None);
        assert!(KernelCode::of_image(&image, START).is_none());
    }

    #[test]
    fn code_comes_from_the_memory_of_the_recorded_boot() {
        let not_moved = 0;
        let copies = format!("/cache/[kernel.kcore]/{}", "ab".repeat(20));
        // The second copy is later, but skipped: its listing is empty, so it is not known to be of the recorded boot.
        let copies = [format!("{copies}/1"), format!("{copies}/2")];
        let at = |range| code(&[(&copies[0], LISTING), (&copies[1], "")], not_moved, range);
        assert_eq!(at(START..START + 4), Some(vec![0, 1, 2, 3]));
        assert_eq!(at(START + 14..u64::MAX), Some(vec![14, 15]));
        assert_eq!(at(START + 16..START + 20), None);
        let (start, end_before_start) = (START + 4, START);
        assert_eq!(at(start..end_before_start), None);
        let listed = [(copies[0].as_str(), LISTING)];
        assert_eq!(
            code(&listed, 0x20_0000, START..START + 4),
            None,
            "the kernel was at another address"
        );
        // The build-id of the running kernel is unknown, so another kernel may have been recorded.
        assert_eq!(
            code(&[("/proc", LISTING)], not_moved, START..START + 4),
            None
        );
    }
}
