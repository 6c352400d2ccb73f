//! Where a memory access found its data, in words.

use rperf_wire::DataSource;

/// The number in hexadecimal and what it says.
pub(super) fn text(source: u64) -> String {
    DataSource(source).to_string()
}
