//! Frame information of an object file.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{BaseAddresses, RunTimeEndian, UnwindContext};
use object::elf::{FileHeader32, FileHeader64, PT_ARM_EXIDX, PT_GNU_EH_FRAME};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader as _};
use object::{CompressionFormat, Endianness, FileKind, Object as _, ObjectSection as _};
use rperf_symbol::{FileBytes, unpack_section};

use crate::Arch;
use crate::arm_table::ArmTable;
use crate::frames::{FrameFormat, FrameTable, SearchTable, SectionBytes, SectionKind};
use crate::image::Image;
use crate::machine_code::{self, Instructions};
use crate::outcome::TruncationCause;
use crate::step::Step;

/// Why an object's frame information can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not an ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// The headers are damaged.
    #[error("damaged ELF file: {reason}")]
    Damaged {
        /// Description.
        reason: String,
    },
    /// Code of an unsupported architecture.
    #[error("ELF file of an architecture that is not supported for unwinding")]
    UnknownArch,
}

/// The unwind tables of an object file: an executable, a library, the vdso, or JIT-compiled code. Shared by all workers.
#[derive(Debug)]
pub struct FrameInfo {
    arch: Arch,
    image: Image,
    /// Address ranges of the PLT sections.
    plt: Vec<Range<u64>>,
    eh_table: Option<FrameTable>,
    debug_table: Option<FrameTable>,
    arm_table: Option<ArmTable>,
}

impl FrameInfo {
    /// Reads the headers of `file`. If it has no `.debug_frame`, that of its separate debug file `debug_file` is used.
    ///
    /// # Errors
    ///
    /// If `file` is not an ELF file, is damaged, or is of an unsupported architecture. An unreadable
    /// `debug_file` is ignored.
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
        let elf = ElfFile::<E>::parse(&*file).map_err(|error| Error::Damaged {
            reason: error.to_string(),
        })?;
        let arch = Arch::of_object(elf.architecture()).ok_or(Error::UnknownArch)?;
        let format = FrameFormat {
            arch,
            endian: endian(elf.endian()),
        };
        let plt = elf.sections().filter(|section| {
            let name = section.name_bytes().unwrap_or_default();
            name.starts_with(b".plt")
        });
        let in_debug_file = || {
            let bytes = debug_file?;
            let elf = ElfFile::<E>::parse(&**bytes).ok()?;
            debug_table(&elf, bytes, format)
        };
        let image = Image::new(&elf, file.clone());
        Ok(Self {
            arch,
            plt: plt
                .map(|section| section.address()..section.address().saturating_add(section.size()))
                .collect(),
            eh_table: eh_table(&elf, &image, format),
            debug_table: debug_table(&elf, &file, format).or_else(in_debug_file),
            arm_table: arm_table(&elf, arch, format.endian),
            image,
        })
    }

    /// The architecture of the code.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The step for the code at file offset `offset`. `exact` means that the instruction at `offset` is executed next; otherwise
    /// `offset` is that of the last byte of a call.
    ///
    /// # Errors
    ///
    /// [`TruncationCause::NoFrameInfo`] or [`TruncationCause::BadFrameInfo`].
    pub(crate) fn step(
        &self,
        offset: u64,
        exact: bool,
        context: &mut UnwindContext<usize>,
    ) -> Result<Step, TruncationCause> {
        let address = self
            .image
            .code_address(offset)
            .ok_or(TruncationCause::NoFrameInfo)?;
        // The next instruction is after the end of the call.
        let next = if exact {
            offset
        } else {
            offset.wrapping_add(1)
        };
        let code = Instructions {
            bytes: &self.image.file,
            next: usize::try_from(next).unwrap_or(usize::MAX),
        };
        if let Some(step) = machine_code::signal_return(self.arch, code) {
            return Ok(step);
        }
        if !exact
            && !machine_code::follows_call(self.arch, code)
            && self.starts_at(address.wrapping_add(1))
        {
            // A return address at the start of a function, after an instruction other than a call, wasn't pushed by a call: it
            // was stored at the bottom of a stack, such as a coroutine's.
            return Ok(Step::outermost(self.arch));
        }
        if let Some(step) = self.table_step(address, exact, context) {
            return step;
        }
        let in_plt = self.plt.iter().any(|range| range.contains(&address));
        // Known instructions, such as those of PLT entries, need no frame information. None of them is a call, so only an exact
        // offset can be at one.
        let known = exact.then(|| machine_code::well_known_step(self.arch, code, in_plt));
        known.flatten().ok_or(TruncationCause::NoFrameInfo)
    }

    /// Whether a function starts at `address`, according to `.eh_frame` or `.debug_frame`.
    fn starts_at(&self, address: u64) -> bool {
        let mut tables = [&self.eh_table, &self.debug_table].into_iter().flatten();
        tables.any(|table| table.starts_at(address))
    }

    /// The step of the tables for `address`; `None` if no table has an entry with unwind information. If an entry is damaged,
    /// the next table is tried; if no table has a valid entry, the first error is returned.
    fn table_step(
        &self,
        address: u64,
        exact: bool,
        context: &mut UnwindContext<usize>,
    ) -> Option<Result<Step, TruncationCause>> {
        // The error of the first damaged entry, if any.
        let mut first_error = None;
        for table in [&self.eh_table, &self.debug_table].into_iter().flatten() {
            match table.step(address, context) {
                Some(Ok(step)) => return Some(Ok(step)),
                none_or_error => first_error = first_error.or(none_or_error),
            }
        }
        let table = self.arm_table.as_ref();
        match table.and_then(|table| table.step(&self.image, address, exact)) {
            Some(Ok(step)) => Some(Ok(step)),
            none_or_error => first_error.or(none_or_error),
        }
    }
}

fn endian(endian: Endianness) -> RunTimeEndian {
    match endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
}

/// A section's address and content, decompressed if necessary; `None` if it is missing, empty or damaged.
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
        _ => SectionBytes::Owned(unpack_section(section.compressed_data().ok()?)?),
    };
    (!bytes.get().is_empty()).then(|| (section.address(), bytes))
}

fn debug_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    format: FrameFormat,
) -> Option<FrameTable> {
    let (_, bytes) = section(elf, file, ".debug_frame")?;
    Some(FrameTable {
        format,
        kind: SectionKind::DebugFrame,
        bytes,
        bases: BaseAddresses::default(),
        index: OnceLock::new(),
    })
}

fn eh_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    image: &Image,
    format: FrameFormat,
) -> Option<FrameTable> {
    let part = |range| SectionBytes::Part(image.file.clone(), range);
    let eh_frame_hdr = segment(elf, PT_GNU_EH_FRAME)
        .filter(|(_, range)| image.file.get(range.clone()).is_some())
        .map(|(address, range)| (address, part(range)));
    let by_name = section(elf, &image.file, ".eh_frame");
    let (address, bytes) = by_name.or_else(|| {
        // Without section headers, the size is unknown: take all bytes from the address in `.eh_frame_hdr` to the end of the
        // segment. An end marker follows the last entry of `.eh_frame`.
        let (hdr_address, hdr) = eh_frame_hdr.as_ref()?;
        let address = SearchTable::eh_frame_address(hdr.get(), *hdr_address, format.endian)?;
        Some((address, part(image.range_from(address)?)))
    })?;
    let address_of = |name| elf.section_by_name(name).map(|section| section.address());
    let mut bases = BaseAddresses::default().set_eh_frame(address);
    if let Some(text) = address_of(".text") {
        bases = bases.set_text(text);
    }
    if let Some(got) = address_of(".got.plt").or_else(|| address_of(".got")) {
        bases = bases.set_got(got);
    }
    let search =
        eh_frame_hdr.and_then(|(address, bytes)| SearchTable::parse(bytes, address, format.endian));
    Some(FrameTable {
        format,
        kind: SectionKind::EhFrame { address, search },
        bytes,
        bases,
        index: OnceLock::new(),
    })
}

fn arm_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    arch: Arch,
    endian: RunTimeEndian,
) -> Option<ArmTable> {
    // On other architectures, this type number means other segments.
    let (address, range) = segment(elf, PT_ARM_EXIDX).filter(|_| arch == Arch::Arm)?;
    Some(ArmTable {
        endian,
        address,
        range,
    })
}

/// The address and the file range of the first segment of type `kind`.
fn segment<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    kind: u32,
) -> Option<(u64, Range<usize>)> {
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let header = headers.find(|header| header.p_type(endian) == kind)?;
    let (offset, size) = header.file_range(endian);
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    Some((header.p_vaddr(endian).into(), start..end))
}
