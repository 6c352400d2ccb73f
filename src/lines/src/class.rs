//! Classes of events, each with its own set of fields.

use std::fmt;

use rperf_wire::EventType;

/// A class of events with its own default fields. Fields can be selected for a single class if it has a prefix (`-F sw:…`).
/// Dynamic PMUs form one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventClass {
    /// `PERF_TYPE_HARDWARE`.
    Hardware,
    /// `PERF_TYPE_SOFTWARE`.
    Software,
    /// `PERF_TYPE_TRACEPOINT`.
    Tracepoint,
    /// `PERF_TYPE_HW_CACHE`.
    HardwareCache,
    /// `PERF_TYPE_RAW`.
    Raw,
    /// `PERF_TYPE_BREAKPOINT`.
    Breakpoint,
    /// Events synthesized by decoding a hardware trace.
    Synthesized,
    /// Any other PMU.
    Other,
}

impl EventClass {
    /// All classes, in the order of the variants. The fields selected for the classes are checked in this order.
    pub const ALL: [Self; 8] = [
        Self::Hardware,
        Self::Software,
        Self::Tracepoint,
        Self::HardwareCache,
        Self::Raw,
        Self::Breakpoint,
        Self::Synthesized,
        Self::Other,
    ];

    /// The class of recorded events with this `attr.type`.
    #[must_use]
    pub fn of(kind: EventType) -> Self {
        match kind {
            EventType::HARDWARE => Self::Hardware,
            EventType::SOFTWARE => Self::Software,
            EventType::TRACEPOINT => Self::Tracepoint,
            EventType::HW_CACHE => Self::HardwareCache,
            EventType::RAW => Self::Raw,
            EventType::BREAKPOINT => Self::Breakpoint,
            _ => Self::Other,
        }
    }

    /// The class with this prefix in `-F CLASS:fields`; `None` for other words. Hardware cache events and other PMUs have no
    /// prefix.
    #[must_use]
    pub fn from_prefix(prefix: &str) -> Option<Self> {
        Some(match prefix {
            "hw" => Self::Hardware,
            "sw" => Self::Software,
            "trace" => Self::Tracepoint,
            "raw" => Self::Raw,
            "break" => Self::Breakpoint,
            "synth" => Self::Synthesized,
            _ => return None,
        })
    }

    /// Its index in [`EventClass::ALL`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for EventClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hardware => "hardware",
            Self::Software => "software",
            Self::Tracepoint => "tracepoint",
            Self::HardwareCache => "hardware-cache",
            Self::Raw => "raw",
            Self::Breakpoint => "breakpoint",
            Self::Synthesized => "synthesized",
            // As perf names it.
            Self::Other => "unknown",
        })
    }
}
