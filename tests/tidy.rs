//! Checks the tree against the project's rules.

mod commands;
mod layering;
mod parameters;
mod paths;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The paths of all files below `directory`, without `.git` and cargo's build folders: `target`, and names that begin with
/// `target-`.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let entries = fs::read_dir(&directory).expect("a directory of the tree can be read");
        for entry in entries.map(|entry| entry.expect("an entry of the tree can be read")) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_folder = entry.file_type().expect("an entry has a type").is_dir();
            let is_build_folder = is_folder && (name == "target" || name.starts_with("target-"));
            if name == ".git" || is_build_folder {
                continue;
            }
            if is_folder {
                pending.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn source_files_and_folders_named_like_build_folders_are_found() {
    let tests = files(&root().join("tests"));
    assert!(tests.contains(&root().join("tests/fuzz/targets/header.rs")));
    let cli = files(&root().join("src/cli"));
    assert!(cli.contains(&root().join("src/cli/live/target.rs")));
}

/// The code before the unit tests of a file. A `mod tests;`, with the tests in another file, does not end it.
pub(crate) fn code(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    &text[..tests.unwrap_or(text.len())]
}

#[test]
fn code_ends_at_the_tests_in_a_file() {
    let declared = "#[cfg(test)]\nmod tests;\nfn one() {}\n";
    assert_eq!(code(declared), declared);
    let text = format!("{declared}#[cfg(test)]\nmod tests {{\n}}\n");
    assert_eq!(code(&text), declared);
}

/// A path as shown in messages: relative to the root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Fails with one line per finding.
#[track_caller]
pub(crate) fn assert_none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

#[test]
fn the_code_map_lists_every_folder() {
    let map = fs::read_to_string(root().join("src/README.md")).expect("src/README.md can be read");
    let listed: Vec<&str> = map
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("/`"))
        .map(|(name, _)| name)
        .collect();
    let entries = fs::read_dir(root().join("src")).expect("src can be read");
    let folders = entries
        .map(|entry| entry.expect("an entry of src can be read"))
        .filter(|entry| entry.path().is_dir());
    let mut folders: Vec<String> = folders
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(
        listed, folders,
        "src/README.md lists each folder of src once, in alphabetical order"
    );
}
