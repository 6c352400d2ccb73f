//! Checks of the output of `cargo metadata`: layering, external dependencies, and files that no target reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{assert_none, files, root, shown};

/// Folders of programs to be profiled, compiled by the tests and tools that profile them.
const WORKLOADS: &[&str] = &[
    "tests/workloads",
    "tests/bench",
    "examples/first_profile",
    "src/symbol/tests/workloads",
];

/// The crate that is not a default member: it is a shared library (cdylib), which static targets (musl) cannot build.
const SHARED_LIBRARY: &str = "python";

/// The packages of the workspace, from cargo.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(root().join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    metadata["packages"]
        .as_array()
        .expect("metadata has packages")
        .clone()
}

/// The dependencies of a package: name, and whether only its tests and benchmarks use it.
fn dependencies(package: &Value) -> Vec<(String, bool)> {
    let list = package["dependencies"]
        .as_array()
        .expect("a package has dependencies");
    let pair = |one: &Value| {
        (
            one["name"].as_str().unwrap_or_default().to_owned(),
            one["kind"] == "dev",
        )
    };
    list.iter().map(pair).collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().expect("a package has a name")
}

/// Each crate and the workspace crates it may use directly.
struct Layering(BTreeMap<String, BTreeSet<String>>);

impl Layering {
    /// Reads the table in the section Layering of docs/architecture.md.
    fn read() -> Self {
        let text = fs::read_to_string(root().join("docs/architecture.md"))
            .expect("docs/architecture.md can be read");
        let (_, table) = text
            .split_once("## Layering")
            .expect("the table has a heading");
        let (table, _) = table.split_once("\n## ").unwrap_or((table, ""));
        let rows = table.lines().filter_map(|line| {
            let (crates, used) = line.strip_prefix("| ")?.split_once(" | ")?;
            Some((words(crates), words(used)))
        });
        let rows: Vec<(Vec<&str>, Vec<&str>)> = rows.collect();
        let crates: BTreeSet<&str> = rows
            .iter()
            .flat_map(|(crates, _)| crates)
            .copied()
            .collect();
        let mut layering = BTreeMap::new();
        for (users, used) in &rows {
            // Other words of the column are external crates or prose.
            let used: BTreeSet<String> = used
                .iter()
                .filter(|word| crates.contains(*word))
                .map(ToString::to_string)
                .collect();
            layering.extend(users.iter().map(|name| (name.to_string(), used.clone())));
        }
        Self(layering)
    }

    /// Whether the crate `folder` may use the crate `other`, directly or indirectly.
    fn may_use(&self, folder: &str, other: &str) -> bool {
        let mut used = self.0.get(folder).into_iter().flatten();
        used.any(|used| used == other || self.may_use(used, other))
    }
}

/// The words in a table cell.
fn words(cell: &str) -> Vec<&str> {
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    cell.split(is_between)
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn crate_dependencies_match_the_table() {
    let layering = Layering::read();
    let mut findings = Vec::new();
    for package in packages() {
        let Some(folder) = name(&package).strip_prefix("rperf-") else {
            continue;
        };
        let Some(allowed) = layering.0.get(folder) else {
            findings.push(format!("{folder} has no place in the layering"));
            continue;
        };
        let mut unused = allowed.clone();
        for (used, tests_only) in dependencies(&package) {
            let Some(used) = used.strip_prefix("rperf-") else {
                continue;
            };
            unused.remove(used);
            // Tests may build their input with any layer below, and with the testkit.
            let for_tests = || used == "testkit" || layering.may_use(folder, used);
            let permitted = allowed.contains(used) || (tests_only && for_tests());
            if !permitted {
                findings.push(format!("{folder} uses {used}"));
            }
        }
        findings.extend(
            unused
                .iter()
                .map(|used| format!("{folder} does not use {used}")),
        );
    }
    assert_none("docs/architecture.md, Layering", &findings);
}

#[test]
fn every_folder_is_a_crate_and_a_default_member() {
    let folders = fs::read_dir(root().join("src")).expect("src can be read");
    let folders = folders.map(|entry| entry.expect("an entry of src can be read").path());
    let folders: BTreeSet<String> = folders
        // `cli` belongs to the package of the binary.
        .filter(|path| path.is_dir() && !path.ends_with("cli"))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let crates: BTreeSet<String> = packages()
        .iter()
        .filter_map(|package| name(package).strip_prefix("rperf-").map(str::to_owned))
        .collect();
    assert_eq!(
        folders, crates,
        "the folders of src (left) and the members of the workspace (right)"
    );
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let (_, default) = manifest
        .split_once("default-members")
        .expect("default-members are listed");
    // Only the list is searched: the dependencies after it name the same folders.
    let (default, _) = default.split_once(']').expect("the list ends");
    let findings: Vec<String> = crates
        .iter()
        .filter(|name| !default.contains(&format!("\"src/{name}\"")))
        .filter(|name| *name != SHARED_LIBRARY)
        .cloned()
        .collect();
    assert_none("not among the default members", &findings);
}

#[test]
fn every_dependency_has_its_reason() {
    let text = fs::read_to_string(root().join("docs/architecture.md"))
        .expect("docs/architecture.md can be read");
    let table = text
        .split_once("## Dependencies")
        .map(|(_, table)| table)
        .unwrap_or_default();
    let explained: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .filter(|name| *name != "crate")
        .collect();
    let used: BTreeSet<String> = packages()
        .iter()
        .flat_map(dependencies)
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("rperf-"))
        .collect();
    let mut findings: Vec<String> = used
        .iter()
        .filter(|name| !explained.contains(name.as_str()))
        .map(|name| format!("{name} has no line"))
        .collect();
    let removed = explained
        .iter()
        .filter(|name| !used.contains(**name) && **name != "---");
    findings.extend(removed.map(|name| format!("{name} has a line and is not used")));
    assert_none("docs/architecture.md, Dependencies", &findings);
}

#[test]
fn every_source_file_is_compiled() {
    let mut reached = BTreeSet::new();
    for package in packages() {
        for target in package["targets"].as_array().into_iter().flatten() {
            let path = PathBuf::from(target["src_path"].as_str().expect("a target has a source"));
            follow(&path, MOD_RS, &mut reached);
        }
    }
    let sources = ["src", "tests", "examples"]
        .iter()
        .flat_map(|folder| files(&root().join(folder)));
    let forgotten = sources
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter(|path| {
            !WORKLOADS
                .iter()
                .any(|folder| path.starts_with(root().join(folder)))
        })
        // tests/fuzz is a workspace of its own, whose targets are not among these packages.
        .filter(|path| !path.components().any(|part| part.as_os_str() == "fuzz"))
        .filter(|path| !reached.contains(path));
    let findings: Vec<String> = forgotten.map(|path| shown(&path)).collect();
    assert_none(
        "no `mod` leads to these files, so they are never compiled",
        &findings,
    );
}

// Whether a file is a mod-rs source file in the words of the Rust reference: the root of a target, mod.rs, or a file named by
// `#[path]`.
const MOD_RS: bool = true;
const NON_MOD_RS: bool = false;

/// Adds `file` and, recursively, the files of its `mod name;` lines: they are in the folder of `file` with `is_mod_rs`,
/// otherwise in the subfolder with the name of `file`.
fn follow(file: &Path, is_mod_rs: bool, reached: &mut BTreeSet<PathBuf>) {
    if !reached.insert(file.to_path_buf()) {
        return;
    }
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let folder = file.parent().unwrap_or(root());
    let base = if is_mod_rs {
        folder.to_path_buf()
    } else {
        folder.join(file.file_stem().unwrap_or_default())
    };
    let mut explicit: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(path) = line
            .strip_prefix("#[path = \"")
            .and_then(|rest| rest.strip_suffix("\"]"))
        {
            explicit = Some(path);
            continue;
        }
        let Some(module) = module(line) else {
            continue;
        };
        let named = explicit.take().map(|path| folder.join(path));
        let sibling = base.join(format!("{module}.rs"));
        match named {
            Some(path) => follow(&path, MOD_RS, reached),
            None if sibling.is_file() => follow(&sibling, NON_MOD_RS, reached),
            None => follow(&base.join(module).join("mod.rs"), MOD_RS, reached),
        }
    }
}

/// The name in `mod name;`, with any visibility.
fn module(line: &str) -> Option<&str> {
    let rest = line.strip_suffix(';')?;
    let (before, name) = rest.rsplit_once("mod ")?;
    let is_declaration = before.is_empty() || before.starts_with("pub");
    (is_declaration && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}
