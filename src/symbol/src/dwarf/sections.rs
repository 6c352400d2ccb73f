//! The debug sections of a file, located and decompressed once, and passed to gimli as slices.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, SectionId};
use object::elf::{
    CompressionHeader32, CompressionHeader64, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, ET_REL,
    SHF_COMPRESSED,
};
use object::read::elf::CompressionHeader;
use object::{CompressedData, CompressionFormat, Endianness};

use super::relocate::Relocatable;
use crate::elf::{ElfImage, Section};
use crate::files::FileBytes;
use crate::unpack::{check_memory, unpack_section};

/// gimli's reader: bytes of a section in the file's byte order.
pub type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The sections needed for names, lines and inlined functions, and the indexes of a package.
const SECTIONS: [SectionId; 12] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTuIndex,
];

/// Further sections that the index of a package may refer to. Callers that read values of variables need some of them.
const PACKAGED: [SectionId; 5] = [
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugTypes,
];

/// Locations of variables, and type units: only for callers that read values of variables.
const VALUES: [SectionId; 3] = [
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugTypes,
];

/// Whether a file has ordinary sections or `.dwo` sections, and which of them to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionSet {
    /// Ordinary sections with names, lines and inlined functions.
    Main,
    /// Ordinary sections, including locations and types of variables.
    MainWithValues,
    /// The `.dwo` sections of a `.dwo` file or a package (`.dwp`).
    Split,
}

/// Location of a section's bytes.
#[derive(Debug)]
enum SectionBytes {
    InFile(Range<usize>),
    /// Decompressed or relocated bytes.
    Unpacked(Vec<u8>),
}

impl SectionBytes {
    /// The section's bytes after applying the relocations of `file`, which is not linked yet. `bytes` are those of the whole
    /// file.
    fn relocated(self, file: &Relocatable<'_>, name: &str, bytes: &[u8]) -> Self {
        let mut content = match self {
            Self::Unpacked(content) => content,
            Self::InFile(range) => bytes.get(range).unwrap_or_default().to_vec(),
        };
        file.relocate(name, &mut content);
        Self::Unpacked(content)
    }
}

/// A file with debug information.
#[derive(Debug)]
pub(super) struct DebugFile {
    pub(super) path: PathBuf,
    bytes: FileBytes,
    endian: RunTimeEndian,
    /// Whether it is not linked, such as a kernel module.
    pub(super) is_relocatable: bool,
    sections: Vec<(SectionId, SectionBytes)>,
    /// `.gnu_debugaltlink`: path and build-id of the file with shared debug information.
    pub(super) alternate: Option<(PathBuf, Vec<u8>)>,
}

impl DebugFile {
    /// Locates the debug sections of the ELF file `bytes`. An error describes the damage, or a lack of memory.
    pub(super) fn parse(
        path: &Path,
        bytes: FileBytes,
        section_set: SectionSet,
    ) -> Result<Self, String> {
        let image = ElfImage::parse(&bytes)?;
        let mut sections = Vec::new();
        let relocatable = relocatable(&image, &bytes);
        let further: &[SectionId] = match section_set {
            SectionSet::Main => &[],
            SectionSet::MainWithValues => &VALUES,
            SectionSet::Split => &PACKAGED,
        };
        for &id in SECTIONS.iter().chain(further) {
            let name = match section_set {
                SectionSet::Main | SectionSet::MainWithValues => Some(id.name()),
                SectionSet::Split => id.dwo_name(),
            };
            let Some(name) = name else { continue };
            if let Some(section) = find(&image, name)? {
                let section = match &relocatable {
                    Some(file) => section.relocated(file, name, &bytes),
                    None => section,
                };
                sections.push((id, section));
            }
        }
        let alternate = alternate_link(&image);
        let endian = match image.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        Ok(Self {
            path: path.to_owned(),
            endian,
            is_relocatable: image.kind == ET_REL,
            sections,
            alternate,
            bytes: bytes.clone(),
        })
    }

    /// Whether there are any units.
    pub(super) fn has_units(&self) -> bool {
        !self.section(SectionId::DebugInfo).is_empty()
    }

    /// Memory used by decompressed or relocated sections, in bytes.
    pub(super) fn unpacked_len(&self) -> usize {
        let unpacked = self.sections.iter().map(|(_, section)| match section {
            SectionBytes::InFile(_) => 0,
            SectionBytes::Unpacked(bytes) => bytes.len(),
        });
        unpacked.sum()
    }

    fn section(&self, wanted: SectionId) -> Slice<'_> {
        let section = self.sections.iter().find(|(id, _)| *id == wanted);
        let bytes = match section {
            Some((_, SectionBytes::InFile(range))) => {
                self.bytes.get(range.clone()).unwrap_or_default()
            }
            Some((_, SectionBytes::Unpacked(bytes))) => bytes,
            None => &[],
        };
        EndianSlice::new(bytes, self.endian)
    }

    /// The sections for gimli, with those of the `.gnu_debugaltlink` file `alternate`. Reads nothing, so it is cheap.
    pub(super) fn dwarf<'a>(&'a self, alternate: Option<&'a Self>) -> Dwarf<Slice<'a>> {
        let load = |file: &'a Self| {
            let sections = gimli::DwarfSections::load(|id| Ok::<_, ()>(file.section(id)));
            sections.unwrap_or_default().borrow(|&section| section)
        };
        let mut dwarf = load(self);
        dwarf.sup = alternate.map(|file| Arc::new(load(file)));
        dwarf
    }

    /// The sections of a `.dwp` file.
    pub(super) fn package(&self) -> gimli::Result<DwarfPackage<Slice<'_>>> {
        let empty = EndianSlice::new(&[], self.endian);
        DwarfPackage::load(|id| Ok(self.section(id)), empty)
    }
}

/// Returns the content of the debug section `name` of an ELF file, decompressed and, if the file is not linked, relocated as for
/// [`DebugInfo`](super::DebugInfo). `None` if the section is missing or damaged.
#[must_use]
pub fn section_content<'a>(file: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    let image = ElfImage::parse(file).ok()?;
    let section = find(&image, name).ok()??;
    let section = match relocatable(&image, file) {
        Some(relocatable) => section.relocated(&relocatable, name, file),
        None => section,
    };
    Some(match section {
        SectionBytes::InFile(range) => Cow::Borrowed(file.get(range)?),
        SectionBytes::Unpacked(content) => Cow::Owned(content),
    })
}

/// Returns the file for relocation; `None` if it is linked, or can't be parsed.
fn relocatable<'a>(image: &ElfImage<'_>, file: &'a [u8]) -> Option<Relocatable<'a>> {
    (image.kind == ET_REL).then(|| Relocatable::parse(file))?
}

/// The section `name`, or its old compressed form `.zdebug_…`. `None` if there is neither, or if the bytes of the section
/// `name` are not in the file. An error describes a compressed section that can't be decompressed.
fn find(image: &ElfImage<'_>, name: &str) -> Result<Option<SectionBytes>, String> {
    if let Some((_, section)) = image.section_by_name(name.as_bytes()) {
        let Some(data) = image.section_data(section) else {
            return Ok(None);
        };
        if section.flags & u64::from(SHF_COMPRESSED) == 0 {
            let start = usize::try_from(section.offset).unwrap_or(usize::MAX);
            return Ok(Some(SectionBytes::InFile(
                start..start.saturating_add(data.len()),
            )));
        }
        return unpack(compressed(image, data), section).map(Some);
    }
    let old = name.replacen(".debug_", ".zdebug_", 1);
    let Some((_, section)) = image.section_by_name(old.as_bytes()) else {
        return Ok(None);
    };
    let packed = image.section_data(section).and_then(old_compressed);
    unpack(packed, section).map(Some)
}

/// Decompresses a section. An error names the section and the cause.
fn unpack(
    packed: Option<CompressedData<'_>>,
    section: &Section<'_>,
) -> Result<SectionBytes, String> {
    let name = String::from_utf8_lossy(section.name);
    let damaged = || format!("the compressed section {name} is damaged");
    let packed = packed.ok_or_else(damaged)?;
    check_memory(packed).map_err(|error| format!("the compressed section {name}: {error}"))?;
    unpack_section(packed)
        .map(SectionBytes::Unpacked)
        .ok_or_else(damaged)
}

/// The content of an `SHF_COMPRESSED` section: a header, and the compressed bytes.
fn compressed<'a>(image: &ElfImage<'_>, data: &'a [u8]) -> Option<CompressedData<'a>> {
    fn parts<'a, C>(data: &'a [u8], endian: Endianness) -> Option<CompressedData<'a>>
    where
        C: CompressionHeader<Endian = Endianness>,
    {
        let (header, packed) = object::pod::from_bytes::<C>(data).ok()?;
        Some(CompressedData {
            format: match header.ch_type(endian) {
                ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
                ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
                _ => return None,
            },
            data: packed,
            uncompressed_size: header.ch_size(endian).into(),
        })
    }
    if image.is_64 {
        parts::<CompressionHeader64<Endianness>>(data, image.endian)
    } else {
        parts::<CompressionHeader32<Endianness>>(data, image.endian)
    }
}

/// The content of a `.zdebug_…` section: `ZLIB`, the big-endian size, and the compressed bytes.
fn old_compressed(data: &[u8]) -> Option<CompressedData<'_>> {
    let (size, packed) = data.strip_prefix(b"ZLIB")?.split_first_chunk::<8>()?;
    Some(CompressedData {
        format: CompressionFormat::Zlib,
        data: packed,
        uncompressed_size: u64::from_be_bytes(*size),
    })
}

/// The content of `.gnu_debugaltlink`: a NUL-terminated path, and a build-id.
fn alternate_link(image: &ElfImage<'_>) -> Option<(PathBuf, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;

    let (_, section) = image.section_by_name(b".gnu_debugaltlink")?;
    let data = image.section_data(section)?;
    let end = data.iter().position(|&byte| byte == 0)?;
    let (path, id) = data.split_at_checked(end)?;
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
    Some((path, id.get(1..)?.to_vec()))
}
