//! Rules about the text of files.

use std::fs;
use std::path::Path;

use super::{assert_none, code, files, root, shown};

/// The maximum number of lines of a source file.
const MAX_LINES: usize = 600;
/// The maximum number of lines of a function; those of tests, benchmarks and fuzz targets may be longer.
const MAX_FUNCTION_LINES: usize = 59;

/// Hosts that may be named: where formats are defined and tools are published.
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

/// The names and contents of the sources, documents, scripts and manifests of the tree, known by their extensions, and of all
/// files in `.ci`.
fn text_files() -> Vec<(String, String)> {
    let kinds = ["rs", "md", "toml", "sh", "py", "c", "cpp", "lock", "yml"];
    let is_text = |path: &Path| {
        let is_in_ci = path
            .parent()
            .is_some_and(|folder| folder == root().join(".ci"));
        is_in_ci
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
    let sources = text_files()
        .into_iter()
        .filter(|(name, _)| name.ends_with(".rs"));
    let long = sources
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES);
    let findings: Vec<String> = long
        .map(|(name, lines)| format!("{name} has {lines} lines"))
        .collect();
    assert_none("source files have at most 600 lines", &findings);
}

#[test]
fn no_function_is_too_long() {
    let tests = ["/tests/", "/benches/", "/fuzz/", "_tests.rs", "/tests.rs"];
    let mut findings = Vec::new();
    for (name, text) in text_files() {
        let is_source = name.starts_with("src/") && name.ends_with(".rs");
        if !is_source || tests.iter().any(|part| name.contains(part)) {
            continue;
        }
        // `code`: without the unit tests at the end of the file.
        let measured = functions(code(&text)).into_iter();
        let long = measured.filter(|(_, lines)| *lines > MAX_FUNCTION_LINES);
        findings.extend(long.map(|(head, lines)| format!("{name}: {head} has {lines} lines")));
    }
    assert_none("functions have at most 59 lines", &findings);
}

/// The functions of a text formatted by rustfmt: the first line of each, and the number of lines up to the closing
/// brace in the same column. Functions without a body, and those of one line, are skipped.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let rest = &lines[number..];
        let signature = rest.iter().find(|line| line.ends_with(['{', '}', ';']));
        if !is_function(head) || !signature.is_some_and(|end| end.ends_with('{')) {
            continue;
        }
        let brace = format!("{}}}", &line[..line.len() - head.len()]);
        let last = rest.iter().position(|line| *line == brace);
        found.extend(last.map(|last| (head, last + 1)));
    }
    found
}

/// Whether a function begins with this line.
fn is_function(line: &str) -> bool {
    let qualifiers = ["pub", "const ", "async ", "unsafe ", "extern "];
    line.split_once("fn ").is_some_and(|(before, _)| {
        before.is_empty()
            || before.ends_with(' ') && qualifiers.iter().any(|word| before.starts_with(word))
    })
}

#[test]
fn functions_are_measured_to_their_last_brace() {
    let text = [
        "trait T {\n    fn none(\n        &self,\n    );\n    fn one() {}\n}\n",
        "impl T for U {\n    pub(in a::b) unsafe fn four(\n    ) {\n        // fn no\n    }\n}\n",
        "fn three() {\n    let f: fn (u8) = g;\n}\n",
    ]
    .concat();
    let expected = [("pub(in a::b) unsafe fn four(", 4), ("fn three() {", 3)];
    assert_eq!(functions(&text), expected);
}

#[test]
fn only_the_command_line_prints() {
    let printing = [
        "println!(",
        "print!(",
        "dbg!(",
        "io::stdout",
        "io::stderr",
        "process::exit",
    ];
    let mut findings = Vec::new();
    for (name, text) in text_files() {
        let is_source = name.starts_with("src/") && name.ends_with(".rs");
        let may_print = ["src/cli/", "src/testkit/"]
            .iter()
            .any(|folder| name.starts_with(folder));
        let is_bench = name.contains("/benches/");
        if !is_source || may_print || is_bench || name.contains("/tests") {
            continue;
        }
        // `code` leaves out the unit tests inside a file: these may print why they skip.
        for (number, line) in code(&text).lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if !is_comment && printing.iter().any(|word| line.contains(word)) {
                findings.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none("libraries return values; src/cli prints them", &findings);
}

/// Strings that are restricted to some files: the strings, and how the names of the files begin.
const RESTRICTED: &[(&[&str], &[&str])] = &[
    // The escape character. Other files begin control sequences with a `Csi` (src/view/src/terminal): the terminal filter lets
    // these sequences pass, and escapes all other ones.
    (
        &["\\x1b", "\\u{1b}"],
        &["src/view/src/terminal", "src/cli/output.rs"],
    ),
    // Functions that draw text without escaping it.
    (
        &["render_widget(", ".set_string", ".set_line(", ".set_span("],
        &["src/tui/src/page.rs", "src/tui/src/popup.rs"],
    ),
];

#[test]
fn escape_characters_and_unescaped_drawing_are_in_few_files() {
    let mut findings = Vec::new();
    for (name, text) in text_files() {
        let is_source = name.starts_with("src/") && name.ends_with(".rs");
        if !is_source || name.contains("/tests") {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            let is_misplaced = |(parts, files): &(&[&str], &[&str])| {
                parts.iter().any(|part| line.contains(part))
                    && !files.iter().any(|file| name.starts_with(file))
            };
            if !line.trim_start().starts_with("//") && RESTRICTED.iter().any(is_misplaced) {
                findings.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(
        "control sequences and unescaped drawing are restricted to a few files",
        &findings,
    );
}

#[test]
fn no_private_paths_or_unknown_hosts() {
    // Concatenated so that this file does not match.
    let private = [
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/home", "/user"].concat(),
    ];
    let mut findings = Vec::new();
    for (name, text) in text_files() {
        for (number, line) in text.lines().enumerate() {
            let has_private_path = private.iter().any(|word| begins_a_path(line, word));
            if has_private_path || hosts(line).any(|host| !HOSTS.contains(&host)) {
                findings.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(
        "paths of a developer's machine, and hosts that are not in HOSTS",
        &findings,
    );
}

/// Whether a path that begins with `word` is in the line. A `word` within a longer path, such as the `root` of a process in
/// /proc, does not count: it follows a letter or digit, a placeholder (`}`, `>`), `_`, `.` or `*`.
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

/// The hosts of the URLs in a line.
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
