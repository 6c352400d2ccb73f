//! perf.data files: header, event descriptions, records and feature sections, read from bytes and
//! written to a seekable file or to a pipe.
//!
//! ```text
//! offset 0     header: magic "PERFILE2", sizes, where attrs and data are, bitmap of features (104 bytes)
//!        …     event ids, then one perf_event_attr + section of ids for each event
//! data.offset  records, one after the other, for data.size bytes (0: the recorder was killed)
//!        end   one (offset, size) for each feature in the bitmap, then the features themselves
//! ```
//!
//! In pipe mode ([`PipeHead`]) there is a header of 16 bytes, and records tell the rest. Records may be
//! compressed, or lie in several files of a directory: [`PerfData::unpack`] puts them into one run.
//!
//! The reader borrows everything from the bytes it is given and never panics on any of them.
//! Source of the layout: the kernel's `tools/perf/Documentation/perf.data-file-format.txt`.

mod branch_trace;
mod described;
mod error;
mod event;
mod event_update;
mod expand;
pub mod feature;
mod header;
mod naming;
mod part_writer;
mod pipe;
mod pipe_reader;
mod pipe_writer;
mod reader;
mod records;
mod rewrite;
mod simpleperf;
mod unpack;
mod writer;
mod zstd;

pub use described::Described;
pub use error::{Error, Finding};
pub use event::EventDesc;
pub use event_update::{EventUpdate, Update};
pub use expand::Expander;
pub use feature::{FeatureId, FeatureSet, Features};
pub use header::{FileHeader, Section};
pub use part_writer::PartWriter;
pub use pipe::PipeHead;
pub use pipe_reader::{PipeReader, Source};
pub use pipe_writer::PipeWriter;
pub use reader::PerfData;
pub use records::{RecordAt, Records};
pub use writer::{Finished, Output, WriteError, Writer};
pub use zstd::ZstdError;
