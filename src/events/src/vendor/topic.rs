//! Under which heading the events of a file are listed.

/// `floating-point.json` in a folder of topics is `floating point`; a file that holds all of a kind goes by that kind.
pub(super) fn topic(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = file.strip_suffix(".json").unwrap_or(file);
    name.replace('-', " ").to_lowercase()
}
