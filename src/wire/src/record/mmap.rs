//! Records of memory mappings.

use std::ops::Range;

use crate::{Cursor, DecodeError, Encoder, Misc, until_nul};

/// Maximum size of a build-id in a record, in bytes.
const MAX_BUILD_ID: u8 = 20;

/// `PERF_RECORD_MMAP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Process, -1 for the kernel.
    pub pid: i32,
    /// Thread that created the mapping.
    pub tid: u32,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub len: u64,
    /// Offset of the mapping in the file, in bytes.
    pub pgoff: u64,
    /// File name, without its NUL.
    pub filename: &'a [u8],
}

/// `PERF_RECORD_MMAP2`: a mapping with protection and file identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mmap2<'a> {
    /// The fields that MMAP has too.
    pub mmap: Mmap<'a>,
    /// Identity of the file.
    pub id: MmapId,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// `MAP_*` of mmap(2).
    pub flags: u32,
}

/// File identity of an MMAP2 record: a build-id if `PERF_RECORD_MISC_MMAP_BUILD_ID` is set, otherwise device and inode. The
/// kernel may set the flag in records with device and inode, too: the decoder detects these by their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MmapId {
    /// Device and inode.
    Inode {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// Build-id of the mapped file.
    BuildId {
        /// Number of valid `bytes`, at most 20.
        size: u8,
        /// The build-id, padded with zeros.
        bytes: [u8; 20],
    },
}

pub(super) fn mmap<'a>(at: &mut Cursor<'a>) -> Result<Mmap<'a>, DecodeError> {
    let fixed = mmap_fixed(at)?;
    Ok(Mmap {
        filename: until_nul(at.rest()),
        ..fixed
    })
}

/// Decodes all fields except for the name, which is left empty: in MMAP2, other fields precede the name.
fn mmap_fixed<'a>(at: &mut Cursor<'a>) -> Result<Mmap<'a>, DecodeError> {
    Ok(Mmap {
        pid: at.u32("pid")?.cast_signed(),
        tid: at.u32("tid")?,
        start: at.u64("addr")?,
        len: at.u64("len")?,
        pgoff: at.u64("pgoff")?,
        filename: &[],
    })
}

/// Size in bytes of a file's identity in an MMAP2 record.
const IDENTITY_SIZE: usize = 24;

/// Whether the identity in a record with `PERF_RECORD_MISC_MMAP_BUILD_ID` is a build-id. If only some events request build-ids,
/// the kernel may leave the flag set in the records of the other events, which have device and inode.
///
/// A build-id is preceded by its size (1 to 20) and three zeros. Device and inode begin in the same way if the major number is
/// 1 to 20 (in little endian); then the minor number is where the first four bytes of a build-id are, and the inode number where
/// the next eight are. The first byte decides what else is checked:
/// - 16 to 20: nothing. No device with files has such a major number.
/// - 5 to 15: the last three bytes of the minor number. A minor number below 256 has zeros there, a build-id almost never.
/// - 1 to 4: the bytes after a build-id of this size. After a build-id they are all 0; otherwise they include the inode number,
///   which is not 0.
fn is_build_id(identity: &[u8; IDENTITY_SIZE]) -> bool {
    let is_zero = |range: Range<usize>| {
        let mut part = identity.iter().take(range.end).skip(range.start);
        part.all(|byte| *byte == 0)
    };
    let size = identity[0];
    let has_build_id = match size {
        0 => false,
        1..=4 => is_zero(4 + usize::from(size)..IDENTITY_SIZE),
        5..=15 => !is_zero(5..8),
        _ => size <= MAX_BUILD_ID,
    };
    has_build_id && is_zero(1..4)
}

pub(super) fn mmap2<'a>(at: &mut Cursor<'a>, misc: Misc) -> Result<Mmap2<'a>, DecodeError> {
    let fixed = mmap_fixed(at)?;
    let is_marked = misc.contains(Misc::MMAP_BUILD_ID);
    let id = if is_marked && is_build_id(&at.clone().array("file identity")?) {
        let size = at.u8("build_id_size")?;
        at.take(3, "__reserved")?;
        MmapId::BuildId {
            size,
            bytes: at.array("build_id")?,
        }
    } else {
        MmapId::Inode {
            major: at.u32("maj")?,
            minor: at.u32("min")?,
            inode: at.u64("ino")?,
            generation: at.u64("ino_generation")?,
        }
    };
    let (prot, flags) = (at.u32("prot")?, at.u32("flags")?);
    Ok(Mmap2 {
        mmap: Mmap {
            filename: until_nul(at.rest()),
            ..fixed
        },
        id,
        prot,
        flags,
    })
}

/// Appends all fields except for the name.
pub(super) fn encode_mmap_fixed(mmap: &Mmap<'_>, to: &mut Encoder<'_>) {
    to.u32(mmap.pid.cast_unsigned());
    to.u32(mmap.tid);
    to.u64(mmap.start);
    to.u64(mmap.len);
    to.u64(mmap.pgoff);
}

pub(super) fn encode_mmap2(mmap2: &Mmap2<'_>, to: &mut Encoder<'_>) {
    encode_mmap_fixed(&mmap2.mmap, to);
    match mmap2.id {
        MmapId::Inode {
            major,
            minor,
            inode,
            generation,
        } => {
            to.u32(major);
            to.u32(minor);
            to.u64(inode);
            to.u64(generation);
        }
        MmapId::BuildId { size, bytes } => {
            to.bytes(&[size, 0, 0, 0]);
            to.bytes(&bytes);
        }
    }
    to.u32(mmap2.prot);
    to.u32(mmap2.flags);
    to.padded_str(mmap2.mmap.filename, 8);
}
