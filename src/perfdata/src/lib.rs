//! perf.data files: header, event descriptions, records and feature sections, read from bytes and
//! written to a seekable file or to a pipe.
//!
//! ```text
//! offset 0     header: magic "PERFILE2", sizes, sections of attrs and data, bitmap of features (104 bytes)
//!        …     event ids, then for each event one perf_event_attr + (offset, size) of its ids
//! data.offset  records, data.size bytes (0: the recorder was killed)
//!        end   one (offset, size) for each feature in the bitmap, then the features themselves
//! ```
//!
//! In pipe mode ([`PipeHead`]) the header has 16 bytes, and metadata are records. Records may be
//! compressed, or spread over several files of a directory: [`PerfData::unpack`] decompresses and merges them.
//!
//! The reader borrows from the input bytes and never panics on any input.
//! Source of the layout: the kernel's `tools/perf/Documentation/perf.data-file-format.txt`.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod branch_trace;
mod decode_ahead;
mod decompress;
mod error;
mod event;
mod event_update;
pub mod feature;
mod frames;
mod header;
mod merged_files;
mod metadata;
mod naming;
mod part_writer;
mod pipe;
mod pipe_reader;
mod pipe_writer;
mod reader;
mod records;
mod rewrite;
mod rewriter;
mod simpleperf;
mod unpack;
mod writer;
mod zstd;

pub use decompress::Decompressor;
pub use error::{Error, FileFinding};
pub use event::EventDesc;
pub use event_update::{EventProperty, EventUpdate};
pub use feature::{FeatureId, FeatureSet, Features};
pub use header::{FileHeader, MAGIC_SIZE, Section, is_perf_data};
pub use metadata::Metadata;
pub use part_writer::PartWriter;
pub use pipe::PipeHead;
pub use pipe_reader::{PipeReader, StreamInput};
pub use pipe_writer::{PipeWriter, encode_attr_record, encode_tracing_data};
pub use reader::PerfData;
pub use records::{RecordAt, Records};
pub use rewriter::{BuildRewriter, Rewriter};
pub use unpack::UnpackSummary;
pub use writer::{FinishedFile, Output, WriteError, Writer};
pub use zstd::ZstdError;
