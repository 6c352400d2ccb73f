//! Rules about the text of files.

use std::fs;
use std::path::Path;

use super::{assert_none, files, root, shown};

/// Lines a source file may have.
const LONGEST: usize = 600;

/// Hosts that may be named: where formats are defined and tools come from.
const HOSTS: &[&str] = &[
    "crates.io",
    "debian.org",
    "docs.rs",
    "docs.kernel.org",
    "doc.rust-lang.org",
    "dwarfstd.org",
    "github.com",
    "git.kernel.org",
    "kernel.org",
    "man7.org",
    "refspecs.linuxfoundation.org",
    "rust-lang.org",
    "rustup.rs",
    "sh.rustup.rs",
    "sourceware.org",
    "www.kernel.org",
    "www.speedscope.app",
    "www.w3.org",
];

/// Text files of the tree with their text.
fn texts() -> Vec<(String, String)> {
    let kinds = ["rs", "md", "toml", "sh", "py", "c", "cpp", "lock", "yml"];
    let is_text = |path: &Path| {
        let script = path
            .parent()
            .is_some_and(|folder| folder == root().join(".ci"));
        script
            || path
                .extension()
                .is_some_and(|kind| kinds.iter().any(|known| kind == *known))
    };
    let paths = files(root()).into_iter().filter(|path| is_text(path));
    paths
        .filter_map(|path| Some((shown(&path), fs::read_to_string(&path).ok()?)))
        .collect()
}

#[test]
fn no_source_file_is_too_long() {
    let long = texts()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"));
    let long = long
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST);
    let findings: Vec<String> = long
        .map(|(name, lines)| format!("{name} has {lines} lines"))
        .collect();
    assert_none("files of one noun are shorter", &findings);
}

#[test]
fn only_the_command_line_prints() {
    let printing = [
        "println!(",
        "print!(",
        "dbg!(",
        "std::io::stdout",
        "std::io::stderr",
        "process::exit",
    ];
    let mut findings = Vec::new();
    for (name, text) in texts() {
        let library = name.starts_with("src/") && name.ends_with(".rs");
        let excepted = ["src/cli/", "src/testkit/"]
            .iter()
            .any(|folder| name.starts_with(folder));
        let bench = name.contains("/benches/");
        if !library || excepted || bench || name.contains("/tests") {
            continue;
        }
        // Tests inside a file may say why they skip.
        let code = text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let comment = line.trim_start().starts_with("//");
            if !comment && printing.iter().any(|word| line.contains(word)) {
                findings.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none("libraries return values; src/cli prints them", &findings);
}

#[test]
fn the_tree_speaks_only_of_itself() {
    // Put together here so that this file does not find itself.
    let private = [
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/home", "/user"].concat(),
    ];
    let mut findings = Vec::new();
    for (name, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let path = private.iter().any(|word| begins_a_path(line, word));
            if path || hosts(line).any(|host| !HOSTS.contains(&host)) {
                findings.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(
        "paths of one machine and hosts that a reader need not know",
        &findings,
    );
}

/// Whether a path that begins with `word` stands in the line: what other folders lead to, such as
/// the `root` of a process in /proc, is no path of a machine.
fn begins_a_path(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "}>_.*".contains(c))
    })
}

#[test]
fn paths_are_found_where_they_begin() {
    let word = ["/ro", "ot/"].concat();
    assert!(begins_a_path(&format!("open({word}x)"), &word));
    assert!(begins_a_path(&format!("/proc/7{word} {word}x"), &word));
    assert!(!begins_a_path(&format!("/proc/7{word}x"), &word));
    assert!(!begins_a_path(&format!("/proc/{{pid}}{word}x"), &word));
}

/// The hosts of the addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    line.split("://")
        .skip(1)
        .filter_map(move |rest| rest.split(end).next())
        .filter(|host| host.contains('.'))
}

#[test]
fn hosts_are_found() {
    let line = [
        "see <https:",
        "//docs.rs/clap> and http:",
        "//10.0.0.1:80/x, not file:",
        "///etc",
    ]
    .concat();
    assert_eq!(hosts(&line).collect::<Vec<_>>(), ["docs.rs", "10.0.0.1"]);
}
