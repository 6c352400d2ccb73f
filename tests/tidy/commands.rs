//! Commands don't use each other. Outside of src/cli/commands, only [`TABLE_USERS`] use commands or their table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{assert_none, files, root, shown};

/// The module tree of the command line.
const CLI: &str = "src/cli";
/// Files that are not checked: the table of commands and its users (dispatch, help, manual, and tests of all options).
const TABLE_USERS: &[&str] = &[
    "src/cli/argv/tests.rs",
    "src/cli/commands/mod.rs",
    "src/cli/commands/subcommands.rs",
    "src/cli/examples.rs",
    "src/cli/help.rs",
    "src/cli/help/groups.rs",
    "src/cli/help/summary.rs",
    "src/cli/man.rs",
    "src/cli/man/sections.rs",
    "src/cli/mod.rs",
    "src/cli/options/declared_tests.rs",
    "src/cli/parsing.rs",
];

/// The path of a file's module, such as `["cli", "commands", "report"]` for `src/cli/commands/report.rs`.
fn module(name: &str) -> Vec<&str> {
    let path = name.strip_prefix("src/").unwrap_or(name);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.strip_suffix("/mod")
        .unwrap_or(path)
        .split('/')
        .collect()
}

/// The absolute paths that a line of a module names by `crate::`, `super::` or `self::`.
fn named_paths<'t>(line: &'t str, module: &[&'t str]) -> Vec<Vec<&'t str>> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = line
        .split(|c| !is_of_path(c))
        .filter(|word| word.contains("::"));
    let resolve = |word: &'t str| {
        let mut parts = word.split("::").filter(|part| !part.is_empty()).peekable();
        let mut path = match parts.peek() {
            Some(&"crate") => Vec::new(),
            Some(&"super" | &"self") => module.to_vec(),
            _ => return None,
        };
        for part in parts {
            match part {
                "crate" | "self" => {}
                "super" => drop(path.pop()),
                part => path.push(part),
            }
        }
        Some(path)
    };
    words.filter_map(resolve).collect()
}

/// The uses of other commands in the file `name`; if that file belongs to no command, also the uses of the table of commands.
/// Returns line numbers and names.
fn uses<'t>(name: &'t str, text: &'t str, commands: &BTreeSet<String>) -> Vec<(usize, &'t str)> {
    let own = module(name);
    let command = match own.as_slice() {
        ["cli", "commands", command, ..] => Some(*command),
        _ => None,
    };
    // The module that the current line is in.
    let mut current = own.clone();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("mod ") && line.ends_with('{') {
            // Unit tests: the only modules with a body.
            current.clone_from(&own);
            current.push("tests");
        }
        // The names in `use …::commands::{…};` on one line.
        let listed = line.split_once("commands::{").map_or("", |(_, list)| list);
        let listed = listed.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let is_other = |other: &&str| commands.contains(*other) && command != Some(*other);
        found.extend(listed.filter(is_other).map(|other| (number, other)));
        for path in named_paths(line, &current) {
            if let ["cli", "commands", other, ..] = path.as_slice()
                && commands.contains(*other)
                && command != Some(*other)
            {
                found.push((number, *other));
            } else if command.is_none() && path.starts_with(&["cli", "commands"]) {
                found.push((number, "commands"));
            }
        }
    }
    found
}

#[test]
fn commands_do_not_use_each_other() {
    let folder = root().join(CLI).join("commands");
    let entries = fs::read_dir(folder).expect("the commands can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let names = paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let commands: BTreeSet<String> = names.filter(|name| name != "mod").collect();
    let mut findings = Vec::new();
    for path in files(&root().join(CLI)) {
        let name = shown(&path);
        if path.extension().is_none_or(|kind| kind != "rs") || TABLE_USERS.contains(&name.as_str())
        {
            continue;
        }
        let text = fs::read_to_string(Path::new(&path)).expect("a source file can be read");
        for (number, other) in uses(&name, &text, &commands) {
            findings.push(format!("{name}:{number} uses {other}"));
        }
    }
    assert_none(
        "code that several commands share belongs into src/cli/shared",
        &findings,
    );
}

#[test]
fn uses_of_commands_are_found() {
    let commands = BTreeSet::from(["report", "top"].map(str::to_owned));
    let uses = |name, text| uses(name, text, &commands);
    let text = "use super::columns::Columns;\nuse super::super::report::Job;\nuse crate::cli::shared::x;\n";
    assert_eq!(
        uses("src/cli/commands/top/browse.rs", text),
        [(2, "report")]
    );
    assert_eq!(uses("src/cli/commands/report/browse.rs", text), []);
    let text = "use super::top::Row;\nuse crate::cli::commands::top;\nuse super::find;\nuse crate::cli::commands::{COMMANDS, top};\n";
    let found = [(1, "top"), (2, "top"), (4, "top")];
    assert_eq!(uses("src/cli/commands/report.rs", text), found);
    assert_eq!(uses("src/cli/commands/top.rs", text), []);
    let text = "use crate::cli::commands::COMMANDS;\nmod tests {\n    use super::super::commands::top;\n}\n";
    let found = [(1, "commands"), (3, "top")];
    assert_eq!(uses("src/cli/live.rs", text), found);
}
