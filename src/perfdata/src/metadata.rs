//! Metadata of a recording, from a file or a stream.

use std::sync::Arc;

use rperf_tracepoint::Formats;
use rperf_wire::{Endian, EventType};

use crate::{Error, EventDesc, Features, PerfData, PipeHead};

/// Events and header features of a file, or those of a stream so far.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'d> {
    /// Byte order of the records.
    pub endian: Endian,
    /// The events, in the order of the recording.
    pub events: &'d [EventDesc],
    /// The header features.
    pub features: &'d Features<'d>,
    /// Whether the recording is in pipe mode: a stream, or a file into which a stream was written. perf report chooses its
    /// defaults for a pipe before it knows the events, so these defaults differ from those for a file.
    pub is_pipe: bool,
}

impl Metadata<'_> {
    /// The formats of the recorded tracepoints. If no event is a tracepoint, they are empty, and the TRACING_DATA
    /// section, which has them, is not parsed.
    ///
    /// # Errors
    /// As [`Features::formats`].
    pub fn formats(&self) -> Result<Arc<Formats>, Error> {
        let mut kinds = self.events.iter().map(|event| event.attr.kind);
        match kinds.any(|kind| kind == EventType::TRACEPOINT) {
            true => self.features.formats(),
            false => Ok(Arc::default()),
        }
    }
}

impl<'a> PerfData<'a> {
    /// The metadata of the recording.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        Metadata {
            endian: self.endian(),
            events: self.events(),
            features: self.features(),
            is_pipe: self.header().is_pipe(),
        }
    }
}

impl<'a> PipeHead<'a> {
    /// The metadata of the recording so far.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        Metadata {
            endian: self.endian(),
            events: self.events(),
            features: self.features(),
            is_pipe: true,
        }
    }
}
