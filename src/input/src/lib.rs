//! The input of the front ends from this machine: the bytes of recordings and objects, mapped, or buffered in memory or in an
//! unnamed file; the records of compressed recordings and of recordings in several files, decompressed and joined; and the
//! machine's PMUs, event tables and tracepoints.
//!
//! Nothing is printed, and no environment variable is read: folders that the user can choose are passed, and problems are
//! returned or collected ([`UnmappedObjects`]).

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod event_tables;
mod files;
mod local_events;
mod spool;
mod unmapped;
mod unpacked;

pub use event_tables::{EVENT_TABLES_FOLDER, MachineTables};
pub use files::DiskFiles;
pub use local_events::{MachinePmus, MachineTracepoints};
pub use spool::{RecordingBytes, Spool};
pub use unmapped::UnmappedObjects;
pub use unpacked::{DirectoryFile, HEADER_FILE_NAME, PartError, UnpackedRecords};
