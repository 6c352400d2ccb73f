//! Topics of event tables.

/// Returns the topic of the table file at `path`, from the file name: `floating point` for `floating-point.json`.
pub(super) fn topic(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = file.strip_suffix(".json").unwrap_or(file);
    name.replace('-', " ").to_lowercase()
}
