//! An object file, as far as its frames are concerned.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{BaseAddresses, RunTimeEndian, UnwindContext};
use object::elf::{FileHeader32, FileHeader64, PF_X, PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader as _};
use object::{CompressionFormat, Endianness, FileKind, Object as _, ObjectSection as _};
use rperf_symbol::FileBytes;

use crate::Arch;
use crate::frames::{DebugTable, EhTable, Format, SearchTable, SectionBytes};
use crate::machine_code::{self, Instructions};
use crate::outcome::Cause;
use crate::step::Step;

/// Why an object can't tell of its frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is no ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// Its headers can't be read.
    #[error("damaged ELF file: {reason}")]
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// Code for another architecture than those that are known.
    #[error("ELF file of an architecture whose stacks can't be unwound")]
    UnknownArch,
}

/// What an executable, a library or the vdso says of its frames. Shared by all workers.
#[derive(Debug)]
pub struct Object {
    arch: Arch,
    file: FileBytes,
    segments: Vec<Segment>,
    /// Addresses of stubs that call into other objects.
    linkage: Vec<Range<u64>>,
    eh_table: Option<EhTable>,
    debug_table: Option<DebugTable>,
}

/// A stretch of the file that is mapped for execution.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Segment {
    /// The address of the byte at `offset` in the file.
    fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = offset.checked_sub(self.offset)?;
        (inside < self.size).then(|| self.address.wrapping_add(inside))
    }
}

impl Object {
    /// Reads the headers of `file`. Where it has no `.debug_frame`, that of `debug_file`, its detached debug
    /// information, is used.
    ///
    /// # Errors
    ///
    /// Where `file` is no ELF file, is damaged, or of an unknown architecture. A `debug_file` that can't be read is passed
    /// over.
    pub fn parse(file: FileBytes, debug_file: Option<&FileBytes>) -> Result<Self, Error> {
        match FileKind::parse(&*file) {
            Ok(FileKind::Elf32) => Self::parse_class::<FileHeader32<Endianness>>(file, debug_file),
            Ok(FileKind::Elf64) => Self::parse_class::<FileHeader64<Endianness>>(file, debug_file),
            _ => Err(Error::NotElf),
        }
    }

    fn parse_class<E: FileHeader<Endian = Endianness>>(
        file: FileBytes,
        debug_file: Option<&FileBytes>,
    ) -> Result<Self, Error> {
        let bytes = file.clone();
        let elf = ElfFile::<E>::parse(&*bytes).map_err(|error| Error::Damaged {
            reason: error.to_string(),
        })?;
        let arch = Arch::of_object(elf.architecture()).ok_or(Error::UnknownArch)?;
        let format = Format {
            arch,
            endian: endian(elf.endian()),
        };
        let linkage = elf.sections().filter(|section| {
            let name = section.name_bytes().unwrap_or_default();
            name.starts_with(b".plt")
        });
        let in_debug_file = || {
            let bytes = debug_file?;
            let elf = ElfFile::<E>::parse(&**bytes).ok()?;
            debug_table(&elf, bytes, format)
        };
        Ok(Self {
            arch,
            segments: segments(&elf),
            linkage: linkage
                .map(|section| section.address()..section.address().saturating_add(section.size()))
                .collect(),
            eh_table: eh_table(&elf, &bytes, format),
            debug_table: debug_table(&elf, &bytes, format).or_else(in_debug_file),
            file,
        })
    }

    /// The architecture of its code.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The step for the code at `offset` in the file. `exact` is whether that instruction is the next to run, and not the
    /// last one before a return address.
    pub(crate) fn step(
        &self,
        offset: u64,
        exact: bool,
        context: &mut UnwindContext<usize>,
    ) -> Result<Step, Cause> {
        let mut segments = self.segments.iter();
        let address = segments.find_map(|segment| segment.address_of(offset));
        let address = address.ok_or(Cause::NoFrameInfo)?;
        // What runs next lies behind the end of a call.
        let next = if exact {
            offset
        } else {
            offset.wrapping_add(1)
        };
        let next = Instructions {
            bytes: &self.file,
            next: usize::try_from(next).unwrap_or(usize::MAX),
        };
        if let Some(step) = machine_code::signal_return(self.arch, next) {
            return Ok(step);
        }
        let told = self.told(address, context);
        let mut starts = || self.told(address.wrapping_add(1), context).is_some();
        if told.is_none() && !exact && !machine_code::follows_call(self.arch, next) && starts() {
            // Nobody called what returns to the start of a function: its address was put at the bottom of a stack, such as
            // a coroutine's.
            return Ok(Step::outermost(self.arch));
        }
        told.unwrap_or_else(|| {
            let in_linkage = self.linkage.iter().any(|range| range.contains(&address));
            let known = exact.then(|| machine_code::known(self.arch, next, in_linkage));
            known.flatten().ok_or(Cause::NoFrameInfo)
        })
    }

    /// What the tables say of `address`. Where one is damaged, the other may not be.
    fn told(
        &self,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<Result<Step, Cause>> {
        let table = self.eh_table.as_ref();
        let eh = table.and_then(|table| table.step(address, context));
        if let Some(Ok(_)) = eh {
            return eh;
        }
        let table = self.debug_table.as_ref();
        table.and_then(|table| table.step(address, context)).or(eh)
    }
}

fn endian(endian: Endianness) -> RunTimeEndian {
    match endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
}

fn segments<E: FileHeader<Endian = Endianness>>(elf: &ElfFile<'_, E>) -> Vec<Segment> {
    let endian = elf.endian();
    let headers = elf.elf_program_headers().iter();
    let executable = headers
        .filter(|header| header.p_type(endian) == PT_LOAD && header.p_flags(endian) & PF_X != 0);
    executable
        .map(|header| Segment {
            offset: header.p_offset(endian).into(),
            size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
        })
        .collect()
}

/// A section as it stands in the file, decompressed if need be; `None` where it is missing, empty or has no bytes.
fn section<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    name: &str,
) -> Option<(u64, SectionBytes)> {
    let section = elf.section_by_name(name)?;
    let range = section.compressed_file_range().ok()?;
    let bytes = match range.format {
        CompressionFormat::None => {
            let start = usize::try_from(range.offset).ok()?;
            let end = start.checked_add(usize::try_from(range.uncompressed_size).ok()?)?;
            file.get(start..end)?;
            SectionBytes::Part(file.clone(), start..end)
        }
        _ => SectionBytes::Owned(section.uncompressed_data().ok()?.into_owned()),
    };
    (!bytes.get().is_empty()).then(|| (section.address(), bytes))
}

fn debug_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    format: Format,
) -> Option<DebugTable> {
    let (_, bytes) = section(elf, file, ".debug_frame")?;
    Some(DebugTable {
        format,
        bytes,
        index: OnceLock::new(),
    })
}

fn eh_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    format: Format,
) -> Option<EhTable> {
    let header = header(elf, file);
    let named = section(elf, file, ".eh_frame");
    let (address, bytes) = named.or_else(|| {
        let (address, header) = header.as_ref()?;
        headless_frames(elf, file, header.get(), *address)
    })?;
    let start = |name| elf.section_by_name(name).map(|section| section.address());
    let mut bases = BaseAddresses::default().set_eh_frame(address);
    if let Some(text) = start(".text") {
        bases = bases.set_text(text);
    }
    if let Some(got) = start(".got.plt").or_else(|| start(".got")) {
        bases = bases.set_got(got);
    }
    let search = header.and_then(|(at, bytes)| SearchTable::parse(bytes, at, format.endian));
    Some(EhTable {
        format,
        bytes,
        bases,
        address,
        search,
        index: OnceLock::new(),
    })
}

/// `.eh_frame_hdr`, which has a program header of its own.
fn header<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
) -> Option<(u64, SectionBytes)> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let header = headers.find(|header| header.p_type(endian) == PT_GNU_EH_FRAME)?;
    let (offset, size) = header.file_range(endian);
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    file.get(start..end)?;
    Some((
        header.p_vaddr(endian).into(),
        SectionBytes::Part(file.clone(), start..end),
    ))
}

/// `.eh_frame` of a file without section headers: from where its header says, to the end of the segment. It ends itself.
fn headless_frames<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    header: &[u8],
    address: u64,
) -> Option<(u64, SectionBytes)> {
    let endian = elf.endian();
    let frames = SearchTable::frames_address(header, address, self::endian(endian))?;
    elf.elf_program_headers().iter().find_map(|segment| {
        let start: u64 = segment.p_vaddr(endian).into();
        let size: u64 = segment.p_filesz(endian).into();
        let inside = frames.checked_sub(start).filter(|inside| *inside < size)?;
        if segment.p_type(endian) != PT_LOAD {
            return None;
        }
        let offset: u64 = segment.p_offset(endian).into();
        let from = usize::try_from(offset.checked_add(inside)?).ok()?;
        let end = from.checked_add(usize::try_from(size - inside).ok()?)?;
        file.get(from..end)?;
        Some((frames, SectionBytes::Part(file.clone(), from..end)))
    })
}
