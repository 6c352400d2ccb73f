//! The layouts of a recording's typed events: of tracepoints whose samples are decoded as a [`TypedEvent`], such as
//! `sched:sched_switch`.
//!
//! [`TypedEvent`]: rperf_tracepoint::typed::TypedEvent

use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::EventIndex;
use rperf_tracepoint::typed::EventLayout;
use rperf_tracepoint::{Error, Formats};
use rperf_wire::Endian;

/// The layout of each event of a recording that is a tracepoint with a [`TypedEvent`](rperf_tracepoint::typed::TypedEvent),
/// looked up once.
#[derive(Debug)]
pub struct EventLayouts {
    /// The recording's byte order.
    endian: Endian,
    /// By event index; `None` for an event without a layout.
    layouts: Vec<Option<EventLayout>>,
    /// Names of the tracepoints with a layout.
    tracepoints: Vec<String>,
    unreadable: Vec<UnreadableTracepoint>,
}

/// A tracepoint whose samples should be typed events, but cannot be decoded.
#[derive(Debug, Clone)]
pub struct UnreadableTracepoint {
    /// The event.
    pub event: EventIndex,
    /// The reason: its format is damaged, or lacks a field.
    pub error: Error,
}

impl EventLayouts {
    /// Returns the layouts of a recording.
    ///
    /// # Errors
    /// Those of [`Metadata::formats`]: tracepoint formats that cannot be read.
    pub fn of_recording(recording: Metadata<'_>) -> Result<Self, rperf_perfdata::Error> {
        Ok(Self::new(
            recording.endian,
            recording.events,
            &*recording.formats()?,
        ))
    }

    /// Returns the layouts of `events`, described by `formats`. `endian` is the byte order of the records.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc], formats: &Formats) -> Self {
        let mut result = Self::empty(endian);
        for (index, event) in (0..).zip(events) {
            let layout = match layout(event, formats) {
                Ok(layout) => layout,
                Err(error) => {
                    let event = EventIndex(index);
                    result
                        .unreadable
                        .push(UnreadableTracepoint { event, error });
                    None
                }
            };
            if layout.is_some() {
                let name = formats.name(event.attr.config);
                result.tracepoints.extend(name);
            }
            result.layouts.push(layout);
        }
        result
    }

    /// Returns a value without layouts: no sample is a typed event, and raw data is not decoded.
    #[must_use]
    pub fn empty(endian: Endian) -> Self {
        Self {
            endian,
            layouts: Vec::new(),
            tracepoints: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// Returns the byte order of the records.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Returns the layout of an event; `None` if its samples are not typed events, or cannot be decoded.
    #[inline]
    #[must_use]
    pub fn of(&self, event: EventIndex) -> Option<&EventLayout> {
        self.layouts.get(event.0 as usize)?.as_ref()
    }

    /// Whether the recording has the tracepoint `system:name`, with a layout.
    #[must_use]
    pub fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.iter().any(|name| name == tracepoint)
    }

    /// Returns the tracepoints that have a typed event, but cannot be decoded.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableTracepoint] {
        &self.unreadable
    }
}

/// Returns the layout of one event; `None` if it is not a tracepoint, has no format, or has no typed event. An error is returned
/// only for a tracepoint with a typed event: its format is damaged, or lacks a field.
fn layout(event: &EventDesc, formats: &Formats) -> Result<Option<EventLayout>, Error> {
    match formats.of_event(&event.attr) {
        Ok(tracepoint) => EventLayout::resolve(tracepoint),
        Err(Error::NotATracepoint | Error::Undescribed) => Ok(None),
        Err(error) => {
            let name = formats.name(event.attr.config);
            let is_typed = EventLayout::tracepoints().any(|known| name.as_deref() == Some(known));
            if is_typed {
                Err(error.clone())
            } else {
                Ok(None)
            }
        }
    }
}
