//! An object file, as far as its frames are concerned.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{BaseAddresses, RunTimeEndian, UnwindContext};
use object::elf::{FileHeader32, FileHeader64, PT_ARM_EXIDX, PT_GNU_EH_FRAME};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader as _};
use object::{CompressionFormat, Endianness, FileKind, Object as _, ObjectSection as _};
use rperf_symbol::{FileBytes, unpack_section};

use crate::Arch;
use crate::arm_table::ArmTable;
use crate::frames::{Format, Kind, SearchTable, SectionBytes, Table};
use crate::image::Image;
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
    image: Image,
    /// Addresses of stubs that call into other objects.
    linkage: Vec<Range<u64>>,
    eh_table: Option<Table>,
    debug_table: Option<Table>,
    arm_table: Option<ArmTable>,
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
        let elf = ElfFile::<E>::parse(&*file).map_err(|error| Error::Damaged {
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
        let image = Image::new(&elf, file.clone());
        Ok(Self {
            arch,
            linkage: linkage
                .map(|section| section.address()..section.address().saturating_add(section.size()))
                .collect(),
            eh_table: eh_table(&elf, &image, format),
            debug_table: debug_table(&elf, &file, format).or_else(in_debug_file),
            arm_table: arm_table(&elf, arch, format.endian),
            image,
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
        let address = self.image.code_address(offset).ok_or(Cause::NoFrameInfo)?;
        // What runs next lies behind the end of a call.
        let next = if exact {
            offset
        } else {
            offset.wrapping_add(1)
        };
        let next = Instructions {
            bytes: &self.image.file,
            next: usize::try_from(next).unwrap_or(usize::MAX),
        };
        if let Some(step) = machine_code::signal_return(self.arch, next) {
            return Ok(step);
        }
        let told = self.told(address, exact, context);
        if !exact
            && !machine_code::follows_call(self.arch, next)
            && self.starts_at(address.wrapping_add(1))
        {
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

    /// Whether a function begins at `address`.
    fn starts_at(&self, address: u64) -> bool {
        let mut tables = [&self.eh_table, &self.debug_table].into_iter().flatten();
        tables.any(|table| table.starts_at(address))
    }

    /// What the tables say of `address`. Where one is damaged, the next may not be.
    fn told(
        &self,
        address: u64,
        exact: bool,
        context: &mut UnwindContext<usize>,
    ) -> Option<Result<Step, Cause>> {
        let mut told = None;
        for table in [&self.eh_table, &self.debug_table].into_iter().flatten() {
            match table.step(address, context) {
                Some(Ok(step)) => return Some(Ok(step)),
                step => told = told.or(step),
            }
        }
        let table = self.arm_table.as_ref();
        match table.and_then(|table| table.step(&self.image, address, exact)) {
            Some(Ok(step)) => Some(Ok(step)),
            step => told.or(step),
        }
    }
}

fn endian(endian: Endianness) -> RunTimeEndian {
    match endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
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
        _ => SectionBytes::Owned(unpack_section(section.compressed_data().ok()?)?),
    };
    (!bytes.get().is_empty()).then(|| (section.address(), bytes))
}

fn debug_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    file: &FileBytes,
    format: Format,
) -> Option<Table> {
    let (_, bytes) = section(elf, file, ".debug_frame")?;
    Some(Table {
        format,
        kind: Kind::DebugFrame,
        bytes,
        bases: BaseAddresses::default(),
        index: OnceLock::new(),
    })
}

fn eh_table<E: FileHeader<Endian = Endianness>>(
    elf: &ElfFile<'_, E>,
    image: &Image,
    format: Format,
) -> Option<Table> {
    let part = |range| SectionBytes::Part(image.file.clone(), range);
    let header = part_of(elf, PT_GNU_EH_FRAME);
    let header = header.filter(|(_, range)| image.file.get(range.clone()).is_some());
    let header = header.map(|(address, range)| (address, part(range)));
    let named = section(elf, &image.file, ".eh_frame");
    let (address, bytes) = named.or_else(|| {
        // Without section headers: from where its header says, to the end of the segment. It ends itself.
        let (address, header) = header.as_ref()?;
        let address = SearchTable::frames_address(header.get(), *address, format.endian)?;
        Some((address, part(image.range_from(address)?)))
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
    Some(Table {
        format,
        kind: Kind::EhFrame { address, search },
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
    // Other processors have other parts of this number.
    let (address, range) = part_of(elf, PT_ARM_EXIDX).filter(|_| arch == Arch::Arm)?;
    Some(ArmTable {
        endian,
        address,
        range,
    })
}

/// The part of the file that has a program header of its own: its address, and where it says that it stands.
fn part_of<E: FileHeader<Endian = Endianness>>(
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
