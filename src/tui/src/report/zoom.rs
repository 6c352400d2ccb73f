//! Zooms: filters of rows. The browser keeps a stack of them; ESC removes the last one.

use rperf_hist::{Histogram, HistogramRow};

/// A filter of rows by one key column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZoomFilter {
    pub(super) kind: ZoomKind,
    /// The index of the column in [`HistogramRow::cells`].
    column: usize,
    /// The value to match, as the title shows it. Not used to match rows of the kernel.
    value: String,
}

/// What a zoom selects rows by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoomKind {
    /// The thread, process or command: the first of these that has a column.
    Thread,
    Dso,
    /// The kernel's own code, without modules.
    Kernel,
    /// The processor socket.
    Socket,
    /// Functions whose name contains the value.
    Symbol,
}

impl ZoomKind {
    /// Returns the sort keys whose columns have the value to match, preferred ones first.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Thread => &["tid", "pid", "comm"],
            Self::Dso | Self::Kernel => &["dso", "dso_from", "dso_to"],
            Self::Socket => &["socket"],
            Self::Symbol => &["symbol", "symbol_from", "symbol_to"],
        }
    }

    /// Returns the index in [`HistogramRow::cells`] of the column with the value; `None` if the report has no such column.
    pub(super) fn column(self, histogram: &Histogram) -> Option<usize> {
        let column = |key: &&str| key_column(histogram, key);
        self.keys().iter().find_map(column)
    }

    /// Returns the value of a row in the column of this kind; `None` if the report has no such column.
    pub(super) fn value(self, histogram: &Histogram, row: &HistogramRow) -> Option<String> {
        let cell = row.cells.get(self.column(histogram)?)?;
        Some(cell.trim().to_owned())
    }

    /// Returns the name of the kind in the title.
    fn title(self) -> &'static str {
        match self {
            Self::Thread => "Thread",
            Self::Dso | Self::Kernel => "DSO",
            Self::Socket => "Processor Socket",
            Self::Symbol => "Symbol",
        }
    }
}

/// Whether an object is the kernel or a guest's kernel: `[kernel.kallsyms]` in a recording, `[kernel]` in `top`, or a path whose
/// file name is exactly `vmlinux`, `kcore` or `kallsyms`.
fn is_kernel(object: &str) -> bool {
    let prefixes = ["[kernel.", "[kernel]", "[guest.kernel"];
    let file = object.rsplit('/').next().unwrap_or(object);
    prefixes.iter().any(|prefix| object.starts_with(prefix))
        || ["vmlinux", "kcore", "kallsyms"].contains(&file)
}

/// Returns the index of a sort key's column in [`HistogramRow::cells`], which has only the columns of keys, not those of numbers.
fn key_column(histogram: &Histogram, name: &str) -> Option<usize> {
    let mut keys = histogram.columns.iter().filter_map(|field| field.key());
    keys.position(|key| key.name == name)
}

impl ZoomFilter {
    /// Creates a filter on a column's value; `None` without such a column.
    pub(super) fn new(kind: ZoomKind, histogram: &Histogram, value: String) -> Option<Self> {
        Some(Self {
            kind,
            column: kind.column(histogram)?,
            value,
        })
    }

    /// Whether a row passes the filter.
    pub(super) fn passes(&self, row: &HistogramRow) -> bool {
        let cell = row.cells.get(self.column).map_or("", |cell| cell.trim());
        match self.kind {
            ZoomKind::Kernel => is_kernel(cell),
            ZoomKind::Symbol => cell.contains(&self.value),
            _ => cell == self.value,
        }
    }

    /// Returns the text of the filter in the title.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.kind.title(), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_several_names() {
        for name in [
            "[kernel.kallsyms]",
            "[kernel]",
            "[guest.kernel.kallsyms.7]",
            "/boot/vmlinux",
            "/proc/kcore",
        ] {
            assert!(is_kernel(name), "{name}");
        }
        for name in [
            "[vdso]",
            "[ext4]",
            "libkernel.so",
            "/opt/vmlinux-tools/run",
            "",
        ] {
            assert!(!is_kernel(name), "{name}");
        }
    }
}
