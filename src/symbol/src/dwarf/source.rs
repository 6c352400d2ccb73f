//! Where to look for the debug information of a loaded object.

use std::path::{Path, PathBuf};

use crate::build_id::BuildId;
use crate::elf::{ElfImage, Segment};
use crate::files::FileBytes;
use crate::request::ObjectKind;

/// Information collected by [`load`](crate::load()) that [`LineIndex`](super::LineIndex) needs.
#[derive(Debug, Clone)]
pub struct DebugSource {
    /// The object's name in the recording.
    pub(crate) object: PathBuf,
    pub(crate) kind: ObjectKind,
    pub(crate) build_id: Option<BuildId>,
    /// The file with the symbols.
    pub(crate) path: PathBuf,
    pub(crate) bytes: FileBytes,
    pub(crate) addresses: AddressMap,
}

impl DebugSource {
    /// The file with the symbols.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Maps addresses of an object's symbol table to virtual addresses of its file, which DWARF uses.
#[derive(Debug, Clone)]
pub(crate) enum AddressMap {
    /// The table has file offsets; these segments map them to virtual addresses.
    Segments(Vec<Segment>),
    /// The table has run-time addresses of the kernel or a module: those in the file plus this offset.
    Shift(u64),
}

impl AddressMap {
    pub(crate) fn of_object(image: &ElfImage<'_>) -> Self {
        Self::Segments(image.segments.clone())
    }

    /// Returns the virtual address in the file. A file offset outside of all segments is returned unchanged.
    pub(super) fn in_file(&self, address: u64) -> u64 {
        match self {
            Self::Shift(distance) => address.wrapping_sub(*distance),
            Self::Segments(segments) => {
                let containing = segments.iter().filter(|segment| {
                    address >= segment.offset && address - segment.offset < segment.memory_size
                });
                // `memory_size` includes zero-filled data, so that a segment may overlap the next one in file offsets.
                let segment = containing.max_by_key(|segment| segment.offset);
                segment.map_or(address, |segment| {
                    (address - segment.offset).wrapping_add(segment.address)
                })
            }
        }
    }
}
