//! The bytes of recordings and objects on this machine, for the front ends: mapped, buffered in memory or in an unnamed
//! file, decompressed and joined.
//!
//! Nothing is printed, and no environment is read: folders are passed, and problems are returned.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod files;
mod spool;
mod unmapped;
mod unpacked;

pub use files::DiskFiles;
pub use spool::{RecordingBytes, Spool};
pub use unmapped::UnmappedObjects;
pub use unpacked::{DIRECTORY_HEADER, DirectoryFile, PartError, UnpackedRecords};
