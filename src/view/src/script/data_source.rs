//! The data source of a memory access.

use rperf_wire::DataSource;

/// Returns the number in hexadecimal and its meaning.
pub(super) fn text(source: u64) -> String {
    DataSource(source).to_string()
}
