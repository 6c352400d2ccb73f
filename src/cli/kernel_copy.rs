//! Copies of kernel memory: the code of the kernel and its modules, with the matching kallsyms and modules files.
//!
//! ```text
//! FOLDER/kcore       an ELF file with the code at its run-time addresses
//!       /kallsyms    copies of the files next to the kernel's kcore
//!       /modules
//! ```

use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rperf_safefs::Folder;
use rperf_session::KernelCodeReader;
use rperf_symbol::Files as _;
use rperf_symbol::{KernelMemory, build_id_of_notes, kallsyms, native_endian};
use rperf_sys::page_size;

use super::live::explain::reason;
use rperf_input::DiskFiles;

/// Size of `Elf64_Ehdr` of elf(5), in bytes.
const FILE_HEADER: u16 = 64;
/// Size of `Elf64_Phdr`, in bytes.
const PROGRAM_HEADER: u16 = 56;
/// The maximum size in bytes of a kallsyms or modules file of an existing copy; current kallsyms files have some ten million
/// bytes.
const MAX_LISTING: u64 = 256 << 20;
/// Maximum number of bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// The kernel's files from which a copy is made.
#[derive(Debug)]
pub(crate) struct KernelFiles {
    /// The path of the kcore file.
    kcore: PathBuf,
    /// The text of kallsyms.
    listing: Vec<u8>,
    /// The text of the modules file.
    modules: Vec<u8>,
    /// The build-id of the kernel in hexadecimal.
    pub(crate) build_id: String,
}

impl KernelFiles {
    /// Reads kallsyms and modules next to `kcore`, which is `/proc/kcore` or a kcore file in a directory with the same files.
    /// The build-id is read from `sys/kernel/notes` next to that directory (for `/proc/kcore`, `/sys/kernel/notes`).
    ///
    /// # Errors
    ///
    /// A description of the file that cannot be read, or of what it lacks.
    pub(crate) fn read(kcore: &Path) -> Result<Self, String> {
        if kcore.file_name().is_none_or(|name| name != "kcore") {
            return Err("its file name is not kcore".to_owned());
        }
        let kcore = std::path::absolute(kcore).map_err(|error| reason(&error))?;
        let sibling = |name: &str| {
            let path = kcore.with_file_name(name);
            let bytes = DiskFiles.read(&path).map(|bytes| bytes.to_vec());
            bytes.map_err(|error| format!("{}: {}", path.display(), reason(&error)))
        };
        let (listing, modules) = (sibling("kallsyms")?, sibling("modules")?);
        let root = kcore.ancestors().nth(2).unwrap_or(Path::new("/"));
        let notes = root.join("sys/kernel/notes");
        let note_bytes = DiskFiles.read(&notes).ok();
        let id = note_bytes.and_then(|bytes| build_id_of_notes(&bytes, native_endian()));
        let id = id.ok_or_else(|| format!("{}: no build-id", notes.display()))?;
        Ok(Self {
            listing,
            modules,
            build_id: id.to_string(),
            kcore,
        })
    }

    /// Returns the folder in `copies` of a copy with the same addresses of kernel and modules; `None` if there is none.
    pub(crate) fn existing_copy(&self, copies: &Folder) -> Option<PathBuf> {
        let names = copies.names().ok()?;
        let mut folders = names
            .iter()
            .filter_map(|name| copies.open_below(name.as_ref()).ok());
        let known = folders.find(|folder| {
            let copied = |name: &str| folder.read(name.as_ref(), MAX_LISTING).unwrap_or_default();
            module_ranges(&copied("modules")) == module_ranges(&self.modules)
                && address_of(&copied("kallsyms"), b"_stext")
                    == address_of(&self.listing, b"_stext")
        });
        Some(known?.path().to_owned())
    }

    /// Returns the address range of the code of the kernel, and one range of all its modules, in whole pages. The latter is
    /// omitted if no module is loaded, or if the addresses of modules are hidden.
    ///
    /// # Errors
    ///
    /// The addresses of the kernel are missing or hidden (kptr_restrict).
    pub(crate) fn code_ranges(&self) -> Result<Vec<Range<u64>>, String> {
        let page = page_size() as u64;
        let address = |name: &str| {
            let listed = address_of(&self.listing, name.as_bytes());
            let listed = listed.filter(|address| *address != 0);
            listed.ok_or_else(|| format!("kallsyms has no address of {name}"))
        };
        let in_pages = |start: u64, end: u64| {
            let end = end.checked_next_multiple_of(page).unwrap_or(end);
            start - start % page..end
        };
        let mut ranges = vec![in_pages(address("_stext")?, address("_etext")?)];
        let modules = module_ranges(&self.modules);
        let first = modules.iter().map(|(start, _, _)| *start).min();
        let ends = modules
            .iter()
            .map(|(start, size, _)| start.saturating_add(*size));
        if let (Some(first), Some(end)) = (first.filter(|first| *first != 0), ends.max()) {
            ranges.push(in_pages(first, end));
        }
        Ok(ranges)
    }

    /// Writes kallsyms, modules and a kcore file to an empty folder. If the original kcore lacks some bytes of a range, the range
    /// ends before the first missing byte.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing; also a kcore file that is not 64-bit ELF.
    pub(crate) fn copy(&self, ranges: &[Range<u64>], folder: &Folder) -> io::Result<()> {
        write(folder, "kallsyms", |out| out.write_all(&self.listing))?;
        write(folder, "modules", |out| out.write_all(&self.modules))?;
        let memory = KernelMemory::open(&DiskFiles, &self.kcore)?;
        let readable = ranges
            .iter()
            .filter_map(|range| memory.available_part(range.clone()));
        let readable: Vec<Range<u64>> = readable.collect();
        let headers = headers(memory.header(), &readable)
            .ok_or_else(|| io::Error::other("not a 64-bit ELF file"))?;
        write(folder, "kcore", |out| {
            out.write_all(&headers)?;
            let mut chunk = vec![0; CHUNK];
            for range in &readable {
                let mut at = range.start;
                while at < range.end {
                    let left = usize::try_from(range.end - at).unwrap_or(CHUNK);
                    let len = CHUNK.min(left);
                    let chunk = chunk.get_mut(..len).unwrap_or_default();
                    let count = memory.read(at, chunk)?;
                    if count == 0 {
                        return Err(io::Error::other(format!(
                            "{}: no data at {at:#x}",
                            self.kcore.display()
                        )));
                    }
                    out.write_all(chunk.get(..count).unwrap_or_default())?;
                    at += count as u64;
                }
            }
            Ok(())
        })
    }
}

impl KernelCodeReader for KernelFiles {
    fn copy_to(&self, folder: &Folder) -> io::Result<()> {
        let ranges = self.code_ranges().map_err(io::Error::other)?;
        self.copy(&ranges, folder)
    }
}

/// Writes a file with mode 0400.
fn write(
    folder: &Folder,
    name: &str,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    content(&mut folder.create_file(name.as_ref(), 0o400)?)
}

fn address_of(listing: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = kallsyms::lines(listing);
    Some(lines.find(|line| line.text == name)?.address)
}

/// Returns address, size and name of each module, by ascending address. The lines of the file have the form
/// `NAME SIZE COUNT USERS STATE ADDRESS` (proc(5)).
fn module_ranges(modules: &[u8]) -> Vec<(u64, u64, String)> {
    let text = String::from_utf8_lossy(modules);
    let mut ranges: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            let size = words.next()?.parse().ok()?;
            let address = words.nth(3)?.trim_start_matches("0x");
            Some((u64::from_str_radix(address, 16).ok()?, size, name))
        })
        .collect();
    ranges.sort();
    ranges
}

/// Returns the headers of an ELF core file with these address ranges, padded to the offset of the first range's bytes. The
/// machine and byte order are those of the file that begins with `original`; `None` if that file is not 64-bit ELF.
fn headers(original: &[u8], ranges: &[Range<u64>]) -> Option<Vec<u8>> {
    const ALL_PERMISSIONS: u32 = libc::PF_R | libc::PF_W | libc::PF_X;
    let ident = original.get(..16)?;
    let machine = original.get(18..20)?;
    let is_big = ident.get(libc::EI_DATA) == Some(&libc::ELFDATA2MSB);
    if ident.get(libc::EI_CLASS) != Some(&libc::ELFCLASS64) {
        return None;
    }
    let u16_bytes = |number: u16| match is_big {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let u32_bytes = |number: u32| match is_big {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let u64_bytes = |number: u64| match is_big {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let page = page_size();
    let count = u16::try_from(ranges.len()).ok()?;
    let len = usize::from(FILE_HEADER) + usize::from(PROGRAM_HEADER) * ranges.len();
    let begin = len.next_multiple_of(page);
    // `Elf64_Ehdr` of elf(5): a core file without sections.
    let mut out = ident.to_vec();
    out.extend(u16_bytes(libc::ET_CORE));
    out.extend(machine);
    out.extend(u32_bytes(libc::EV_CURRENT));
    // `e_entry`, `e_phoff`, `e_shoff`.
    out.extend(
        [0, u64::from(FILE_HEADER), 0]
            .into_iter()
            .flat_map(u64_bytes),
    );
    // `e_flags`.
    out.extend(u32_bytes(0));
    // `e_ehsize`, `e_phentsize`, `e_phnum`, and those of sections.
    let sizes = [FILE_HEADER, PROGRAM_HEADER, count, 0, 0, 0];
    out.extend(sizes.into_iter().flat_map(u16_bytes));
    let mut offset = begin as u64;
    for range in ranges {
        let size = range.end - range.start;
        // `Elf64_Phdr`: `p_type`, `p_flags`; `p_offset`, `p_vaddr`, `p_paddr`, `p_filesz`, `p_memsz`, `p_align`.
        out.extend(
            [libc::PT_LOAD, ALL_PERMISSIONS]
                .into_iter()
                .flat_map(u32_bytes),
        );
        let numbers = [offset, range.start, 0, size, size, page as u64];
        out.extend(numbers.into_iter().flat_map(u64_bytes));
        offset += size;
    }
    out.resize(begin, 0);
    Some(out)
}
