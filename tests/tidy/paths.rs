//! Files are opened, replaced and removed only by `safefs`, and those of the kernel by `sys`.

use std::fs;

use super::{assert_none, code, files, root, shown};

/// The crates that work on paths directly: `safefs`, `sys` and the test helpers.
const EXEMPT: [&str; 3] = ["src/safefs/", "src/sys/", "src/testkit/"];

/// Functions and types that open, create, move, copy or remove by path.
const FORBIDDEN: [&str; 19] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::rename(",
    "fs::remove_file(",
    "fs::remove_dir(",
    "fs::remove_dir_all(",
    "fs::create_dir(",
    "fs::create_dir_all(",
    "fs::copy(",
    "fs::hard_link(",
    "fs::symlink(",
    "fs::read_dir(",
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions",
    "DirBuilder",
];

/// The trimmed lines of a file before its unit tests, with their numbers from 1; without comment lines.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = code(text).lines();
    let numbered = lines.zip(1..).map(|(line, number)| (number, line.trim()));
    numbered.filter(|(_, line)| !line.starts_with("//"))
}

/// Whether a line contains this word, other than as the end of a longer word.
fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = line.match_indices(word);
    found.any(|(at, _)| {
        !line
            .get(..at)
            .is_some_and(|before| before.ends_with(is_part))
    })
}

/// Whether a line calls `is_dir` on a path, which follows links. Calls on metadata or a file type that was read before are
/// allowed.
fn asks_for_folder(line: &str) -> bool {
    // Each text before a call ends with the receiver of the call.
    let mut receivers: Vec<&str> = line.split(".is_dir()").map(str::trim_end).collect();
    // No receiver: the text after the last call, or the whole line without a call.
    receivers.pop();
    let is_path = |receiver: &&str| {
        // The names that the sources use for metadata and file types.
        let metadata = ["metadata()", "metadata", "kind", "known"];
        !metadata.iter().any(|end| receiver.ends_with(end))
    };
    receivers.iter().any(is_path)
}

#[test]
fn only_safefs_and_sys_open_replace_and_remove() {
    let mut findings = Vec::new();
    for path in files(&root().join("src")) {
        let name = shown(&path);
        let is_test =
            name.contains("/tests/") || name.contains("/benches/") || name.ends_with("tests.rs");
        if !name.ends_with(".rs") || is_test || EXEMPT.iter().any(|folder| name.starts_with(folder))
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source file can be read");
        for (number, line) in code_lines(&text) {
            let used = FORBIDDEN
                .iter()
                .find(|word| contains_word(line, word))
                .copied();
            let used = used.or_else(|| asks_for_folder(line).then_some(".is_dir()"));
            findings.extend(used.map(|used| format!("{name}:{number}: {used}")));
        }
    }
    assert_none(
        "rperf_safefs opens, replaces and removes files (docs/security.md)",
        &findings,
    );
}

#[test]
fn the_rule_finds_forbidden_calls() {
    let text =
        "// fs::read(\nlet x = fs::read(path);\n#[cfg(test)]\nmod tests {\nfs::write(x);\n}\n";
    let found: Vec<_> = code_lines(text).collect();
    assert_eq!(found, [(2, "let x = fs::read(path);")]);
    assert!(contains_word("std::fs::read(path)", "fs::read("));
    assert!(!contains_word("rperf_safefs::read(path)", "fs::read("));
    assert!(asks_for_folder("if path.is_dir() {"));
    assert!(!asks_for_folder("if entry.metadata().is_dir() {"));
    assert!(asks_for_folder("if metadata.is_dir() && path.is_dir() {"));
    assert!(!asks_for_folder("let is_folder = true;"));
}
