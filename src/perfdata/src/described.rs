//! What is known of a recording beside its records, wherever it came from.

use std::sync::Arc;

use rperf_tracepoint::Formats;
use rperf_wire::{Endian, EventType};

use crate::{Error, EventDesc, Features, PerfData, PipeHead};

/// Events and header features: those of a file, or what a stream has told so far.
#[derive(Debug, Clone, Copy)]
pub struct Described<'d> {
    /// Byte order of the records.
    pub endian: Endian,
    /// The events, in the order of the recording.
    pub events: &'d [EventDesc],
    /// The header features.
    pub features: &'d Features<'d>,
    /// Whether it is in pipe mode: there perf decides some things before it knows the events.
    pub is_pipe: bool,
}

impl Described<'_> {
    /// Descriptions of the tracepoints among the events. Nothing is read if there is none.
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
    /// What is known of the recording beside its records.
    #[must_use]
    pub fn described(&self) -> Described<'_> {
        Described {
            endian: self.endian(),
            events: self.events(),
            features: self.features(),
            is_pipe: self.header().is_pipe(),
        }
    }
}

impl<'a> PipeHead<'a> {
    /// What is known of the recording so far.
    #[must_use]
    pub fn described(&self) -> Described<'_> {
        Described {
            endian: self.endian(),
            events: self.events(),
            features: self.features(),
            is_pipe: true,
        }
    }
}
