//! Settings of the kernel below `/proc/sys`, as text.

use std::io;
use std::path::Path;

use rperf_sys::read_pseudo_file_text;

use crate::cli::live::explain::reason;

/// Reads a setting, such as `kernel/kptr_restrict`.
fn read(name: &str) -> io::Result<String> {
    let text = read_pseudo_file_text(Path::new("/proc/sys").join(name))?;
    Ok(text.trim_end().to_owned())
}

/// Returns the value of a setting, or why it cannot be read.
pub(super) fn value(name: &str) -> String {
    read(name).unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => "not available".to_owned(),
        _ => reason(&error),
    })
}

/// Returns the last part of a setting's name and its value: `kptr_restrict is 1`.
pub(super) fn described(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    format!("{last} is {}", value(name))
}
