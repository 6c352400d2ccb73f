//! The data source of a memory access.

use rperf_wire::DataSource;

/// The number in hexadecimal and its meaning.
pub(super) fn text(source: u64) -> String {
    DataSource(source).to_string()
}
