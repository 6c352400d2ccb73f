//! Who uses whom, from `cargo metadata`: the layering, the list of dependencies, and files that no target reaches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{assert_none, files, root, shown};

/// Each crate and those of ours it may use, as docs/architecture.md says.
const MAY_USE: &[(&str, &[&str])] = &[
    ("count", &["wire"]),
    ("debuginfod", &["symbol", "sys"]),
    ("disasm", &["hist", "insn", "replay", "resolve", "wire"]),
    ("events", &["wire"]),
    (
        "export",
        &["lines", "perfdata", "replay", "resolve", "wire"],
    ),
    ("flame", &[]),
    ("hist", &["replay", "resolve", "symbol", "wire"]),
    ("insn", &[]),
    (
        "lines",
        &[
            "count", "events", "insn", "perfdata", "replay", "resolve", "symbol", "wire",
        ],
    ),
    ("perfdata", &["wire"]),
    ("probe", &["events", "insn", "symbol"]),
    ("replay", &["perfdata", "wire"]),
    ("resolve", &["replay", "symbol", "unwind", "wire"]),
    ("ring", &["wire"]),
    (
        "session",
        &["count", "events", "perfdata", "ring", "sys", "wire"],
    ),
    ("symbol", &[]),
    ("sys", &["ring", "wire"]),
    ("testkit", &[]),
    ("tui", &["disasm", "flame", "hist", "view"]),
    ("unwind", &["symbol", "wire"]),
    (
        "view",
        &[
            "count", "disasm", "events", "hist", "lines", "perfdata", "wire",
        ],
    ),
    ("wire", &[]),
];

/// Folders of programs to be profiled, compiled by those who profile them.
const WORKLOADS: &[&str] = &[
    "tests/workloads",
    "tests/bench",
    "examples/first_profile",
    "src/symbol/tests/workloads",
];

/// The packages of the workspace, as cargo sees them.
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

/// The dependencies of a package: name, and whether only its tests use it.
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

/// Whether a crate uses the other one, or one does that it uses.
fn lies_below(folder: &str, other: &str) -> bool {
    let used = MAY_USE.iter().find(|(known, _)| *known == folder);
    let mut used = used.into_iter().flat_map(|(_, used)| *used);
    used.any(|used| *used == other || lies_below(used, other))
}

#[test]
fn crates_use_only_what_lies_below_them() {
    let mut findings = Vec::new();
    for package in packages() {
        let Some(folder) = name(&package).strip_prefix("rperf-") else {
            continue;
        };
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == folder) else {
            findings.push(format!("{folder} has no place in the layering"));
            continue;
        };
        for (used, tests_only) in dependencies(&package) {
            let Some(used) = used.strip_prefix("rperf-") else {
                continue;
            };
            // Tests may build their input with any layer below, and with the testkit.
            let for_tests = || used == "testkit" || lies_below(folder, used);
            let permitted = allowed.contains(&used) || (tests_only && for_tests());
            if !permitted {
                findings.push(format!("{folder} uses {used}"));
            }
        }
    }
    assert_none("a crate uses one above or beside it", &findings);
}

#[test]
fn every_folder_is_a_crate_of_the_workspace() {
    let folders = fs::read_dir(root().join("src")).expect("src can be read");
    let folders = folders.map(|entry| entry.expect("an entry of src can be read").path());
    let folders: BTreeSet<String> = folders
        .filter(|path| path.is_dir() && !path.ends_with("cli"))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let crates: BTreeSet<String> = packages()
        .iter()
        .filter_map(|package| name(package).strip_prefix("rperf-").map(str::to_owned))
        .collect();
    assert_eq!(
        folders, crates,
        "plain `cargo test` runs what the workspace lists"
    );
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let (_, default) = manifest
        .split_once("default-members")
        .expect("default-members are listed");
    let findings: Vec<String> = crates
        .iter()
        .filter(|name| !default.contains(&format!("\"src/{name}\"")))
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
    let gone = explained
        .iter()
        .filter(|name| !used.contains(**name) && **name != "---");
    findings.extend(gone.map(|name| format!("{name} has a line and is not used")));
    assert_none("docs/architecture.md, Dependencies", &findings);
}

#[test]
fn no_file_is_forgotten() {
    let mut reached = BTreeSet::new();
    for package in packages() {
        for target in package["targets"].as_array().into_iter().flatten() {
            let path = PathBuf::from(target["src_path"].as_str().expect("a target has a source"));
            follow(&path, true, &mut reached);
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
        .filter(|path| !path.components().any(|part| part.as_os_str() == "fuzz"))
        .filter(|path| !reached.contains(path));
    let findings: Vec<String> = forgotten.map(|path| shown(&path)).collect();
    assert_none(
        "no `mod` leads to these files, so they are never compiled",
        &findings,
    );
}

/// Adds `file` and what its `mod name;` lines lead to. `owns` is whether its modules lie in its own folder, as with
/// lib.rs, main.rs and mod.rs, rather than in a folder of its name.
fn follow(file: &Path, owns: bool, reached: &mut BTreeSet<PathBuf>) {
    if !reached.insert(file.to_path_buf()) {
        return;
    }
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    let folder = file.parent().unwrap_or(root());
    let base = if owns {
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
        let beside = base.join(format!("{module}.rs"));
        match named {
            Some(path) => follow(&path, true, reached),
            None if beside.is_file() => follow(&beside, false, reached),
            None => follow(&base.join(module).join("mod.rs"), true, reached),
        }
    }
}

/// The name in `mod name;`, whatever its visibility.
fn module(line: &str) -> Option<&str> {
    let rest = line.strip_suffix(';')?;
    let (before, name) = rest.rsplit_once("mod ")?;
    let visible = before.is_empty() || before.starts_with("pub");
    (visible && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(name)
}
