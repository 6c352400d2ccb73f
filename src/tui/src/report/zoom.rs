//! What rows are seen: a stack of filters, the last of which ESC takes away.

use rperf_hist::{Histogram, Row};

/// A filter by one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Zoom {
    pub(super) kind: Kind,
    /// The number of the column among those of keys.
    column: usize,
    /// What stands there.
    pub(super) value: String,
}

/// What is zoomed into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Thread,
    Dso,
    /// The kernel's own code, modules not among it.
    Kernel,
    Socket,
    /// Functions whose name contains the value.
    Symbol,
}

impl Kind {
    /// The keys whose column tells, the best first.
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Thread => &["tid", "pid", "comm"],
            Self::Dso | Self::Kernel => &["dso", "dso_from", "dso_to"],
            Self::Socket => &["socket"],
            Self::Symbol => &["symbol", "symbol_from", "symbol_to"],
        }
    }

    /// The column that tells.
    pub(super) fn column(self, histogram: &Histogram) -> Option<usize> {
        let column = |wanted: &&str| key_column(histogram, wanted);
        self.keys().iter().find_map(column)
    }

    /// What a row has there.
    pub(super) fn value(self, histogram: &Histogram, row: &Row) -> Option<String> {
        let cell = row.cells.get(self.column(histogram)?)?;
        Some(cell.trim().to_owned())
    }

    /// What the title calls it.
    fn title(self) -> &'static str {
        match self {
            Self::Thread => "Thread",
            Self::Dso | Self::Kernel => "DSO",
            Self::Socket => "Processor Socket",
            Self::Symbol => "Symbol",
        }
    }
}

/// The number of a key's column among those of keys.
pub(super) fn key_column(histogram: &Histogram, name: &str) -> Option<usize> {
    let keys = histogram.columns.iter().filter_map(|field| field.key());
    keys.into_iter().position(|key| key.name == name)
}

impl Zoom {
    /// A filter on the value of a column; None where there is no such column.
    pub(super) fn new(kind: Kind, histogram: &Histogram, value: String) -> Option<Self> {
        Some(Self {
            kind,
            column: kind.column(histogram)?,
            value,
        })
    }

    /// Whether a row is seen.
    pub(super) fn passes(&self, row: &Row) -> bool {
        let cell = row.cells.get(self.column).map_or("", |cell| cell.trim());
        match self.kind {
            Kind::Kernel => cell.starts_with("[kernel.") || cell.starts_with("[guest.kernel."),
            Kind::Symbol => cell.contains(&self.value),
            _ => cell == self.value,
        }
    }

    /// What stands in the title.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.kind.title(), self.value)
    }
}
