//! Errors in the selection of fields.

use crate::{EventClass, LineField};

/// The reason why fields can't be selected or printed. Errors that perf 6.1 also reports have perf's wording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An unknown field.
    #[error("Invalid field requested.")]
    UnknownField {
        /// The name as given.
        field: String,
    },
    /// An unknown event class before the colon.
    #[error("Invalid event type in field string.")]
    UnknownClass {
        /// The prefix as given.
        prefix: String,
    },
    /// An empty list: `-F ''`.
    #[error("Cannot set fields to 'none' for all event types.")]
    Empty,
    /// Fields with a sign (`+` or `-`) mixed with fields without: `-F +time,comm`.
    #[error("Cannot mix +-field with overridden fields")]
    Mixed,
    /// A field that samples of the class never have.
    #[error("'{}' not valid for {class} events.", field.name())]
    NotOfClass {
        /// The field.
        field: LineField,
        /// The class.
        class: EventClass,
    },
    /// A class without fields and without events: `-F trace:` for a recording without tracepoints.
    #[error("{class} events do not exist. Remove corresponding -F option to proceed.")]
    NoSuchEvents {
        /// The class.
        class: EventClass,
    },
    /// A requested field that was not recorded.
    #[error(
        "Samples for '{event}' event do not have {attribute} attribute set. Cannot print '{}' field.",
        field.name()
    )]
    NotRecorded {
        /// The event's name.
        event: String,
        /// The name of the missing sample type, as printed by perf.
        attribute: &'static str,
        /// The field.
        field: LineField,
    },
    /// Symbols requested for samples without any address.
    #[error(
        "Display of symbols requested but neither sample IP nor sample address\navailable. \
         Hence, no addresses to convert to symbols."
    )]
    NoAddressForSymbols,
    /// DSOs requested for samples without any address.
    #[error("Display of DSO requested but no address to convert.")]
    NoAddressForDso,
    /// Source lines or their text requested without the field `ip`.
    #[error(
        "Display of source line number requested but sample IP is not\nselected. \
         Hence, no address to lookup the source line number."
    )]
    NoAddressForLines,
    /// `brstackinsn`, `brstackinsnlen` or `brstackdisasm` of a recording without branches of all types.
    #[error("Display of branch stack assembler requested, but non all-branch filter set")]
    NotAllBranches,
    /// `tod` for a recording without clock data.
    #[error(
        "Can't provide 'tod' time, missing clock data. Please record with -k/--clockid option."
    )]
    NoTimeOfDay,
    /// `symoff` without `sym`. The missing blank is also missing in perf.
    #[error("Display of offsets requested but symbol is notselected.")]
    OffsetWithoutSymbol,
}

impl Error {
    /// Whether it is a usage error (exit status 129). The other errors (exit status 255) are mismatches with the recording, and
    /// fields without another field that they need.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownField { .. }
                | Self::UnknownClass { .. }
                | Self::Empty
                | Self::Mixed
                | Self::NotOfClass { .. }
        )
    }
}
