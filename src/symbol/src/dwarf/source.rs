//! Where the debug information of a loaded object is to be looked for.

use std::path::{Path, PathBuf};

use crate::build_id::BuildId;
use crate::elf::{Image, Segment};
use crate::files::FileBytes;
use crate::request::ObjectKind;

/// What [`load`](crate::load()) found out on the way to an object's symbols, and [`Lines`](super::Lines) needs.
#[derive(Debug, Clone)]
pub struct DebugSource {
    /// The object's name in the recording.
    pub(crate) object: PathBuf,
    pub(crate) kind: ObjectKind,
    pub(crate) build_id: Option<BuildId>,
    /// The file that the symbols came from.
    pub(crate) path: PathBuf,
    pub(crate) bytes: FileBytes,
    pub(crate) addresses: AddressMap,
}

impl DebugSource {
    /// The file that the symbols came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// From the addresses of an object's symbol table to those in its file.
#[derive(Debug, Clone)]
pub(crate) enum AddressMap {
    /// The table has offsets in the file: these segments tell the addresses.
    Segments(Vec<Segment>),
    /// The table has addresses of a kernel that was moved by so much.
    Shift(u64),
}

impl AddressMap {
    pub(crate) fn of_object(image: &Image<'_>) -> Self {
        Self::Segments(image.segments.clone())
    }

    /// The address in the file.
    pub(super) fn in_file(&self, address: u64) -> u64 {
        match self {
            Self::Shift(distance) => address.wrapping_sub(*distance),
            Self::Segments(segments) => {
                let holders = segments.iter().filter(|segment| {
                    address >= segment.offset && address - segment.offset < segment.memory_size
                });
                // The zeroed end of data reaches over what follows in the file.
                let holder = holders.max_by_key(|segment| segment.offset);
                holder.map_or(address, |segment| {
                    (address - segment.offset).wrapping_add(segment.address)
                })
            }
        }
    }
}
