//! README and pages of docs compared with the binary: the commands that they name exist, and so do the options in the README.

use std::collections::BTreeSet;
use std::fs;

use super::rperf;
use crate::tidy::root;

fn output(words: &[&str]) -> String {
    let outcome = rperf(words).finish().expect("the binary starts");
    outcome.stdout + &outcome.stderr
}

fn commands() -> BTreeSet<String> {
    let listed = output(&["--list-cmds"]);
    listed.split_whitespace().map(str::to_owned).collect()
}

/// The code in a page: text between backticks, and indented lines.
fn code(text: &str) -> Vec<&str> {
    let spans = text.split('`').skip(1).step_by(2);
    let indented = text.lines().filter_map(|line| line.strip_prefix("    "));
    spans.chain(indented).collect()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("a page")
}

/// The names and texts of the pages that are checked.
fn pages() -> Vec<(&'static str, String)> {
    let names = [
        "README.md",
        "docs/performance.md",
        "docs/security.md",
        "docs/changelog.md",
        "docs/dataset.md",
        "docs/fleet.md",
        "docs/python.md",
    ];
    names.map(|name| (name, page(name))).into()
}

#[test]
fn commands_that_pages_name_exist() {
    let commands = commands();
    let mut unknown = Vec::new();
    let mut checked = 0;
    for (name, text) in pages() {
        for code in code(&text) {
            let code = code.trim_start_matches("$ ");
            let Some(words) = code.strip_prefix("rperf ") else {
                continue;
            };
            checked += 1;
            let word = words.split_whitespace().next().unwrap_or_default();
            if !word.starts_with(['-', '[']) && !commands.contains(word) {
                unknown.push(format!("{name}: {code}"));
            }
        }
    }
    assert!(checked > 20, "{checked} commands in all pages");
    assert!(
        unknown.is_empty(),
        "no such command:\n{}",
        unknown.join("\n")
    );
}

#[test]
fn options_that_the_readme_names_exist() {
    let mut help: String = commands()
        .iter()
        .map(|command| output(&[command, "-h"]))
        .collect();
    help += &output(&["data", "convert", "-h"]);
    let known: BTreeSet<&str> = help
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .collect();
    let readme = page("README.md");
    let mut unknown: Vec<&str> = code(&readme)
        .into_iter()
        .filter(|code| !code.starts_with("cargo") && !code.starts_with("rustup"))
        .flat_map(|code| code.split_whitespace())
        .filter(|word| word.starts_with("--") && word.len() > 2)
        // Help lists an option or its negative, not both: `--no-x` is also known if help has `--x`.
        .filter(|word| !known.contains(word) && !known.contains(&*word.replace("--no-", "--")))
        .collect();
    unknown.dedup();
    assert!(unknown.is_empty(), "no such option: {unknown:?}");
}
