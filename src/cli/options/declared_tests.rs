//! Checks that options are read by ids that are declared: in release builds, an undeclared id reads as "not given".

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use regex::Regex;

use crate::cli::commands::{COMMANDS, SUBCOMMANDS, benchmark_commands};

/// How ids are read: clap's methods, the functions of [`super`], and the closures that wrap them.
const READS: &str = r#"(?x)
    \b (?: flag | given_value | is_set | count | on | given | contains_id | get_raw | indices_of | get_flag | get_count
         | (?: try_ )? get_ (?: one | many ) )
    (?: ::<[^(]*> )?
    \( \s* (?: [a-z_.&]+ , \s* )? "([a-z][a-z0-9-]*)" \s* [,)]"#;

fn ids(command: &Command, into: &mut BTreeSet<String>) {
    into.extend(command.get_arguments().map(|arg| arg.get_id().to_string()));
    into.extend(command.get_groups().map(|group| group.get_id().to_string()));
    command.get_subcommands().for_each(|inner| ids(inner, into));
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the tree can be read") {
        let path = entry.expect("an entry of the tree can be read").path();
        match path.is_dir() {
            true => sources(&path, into),
            // The whole file name is compared: files such as `declared_tests.rs` are read.
            false if path.ends_with("tests.rs") => {}
            false => into.push(path),
        }
    }
}

/// The command that the source file `path` belongs to; `None` for code that commands share.
fn owner(path: &Path) -> Option<&'static str> {
    let below = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/commands"));
    let first = below.ok()?.iter().next()?.to_str()?;
    let name = first.trim_end_matches(".rs").replace('_', "-");
    COMMANDS
        .iter()
        .map(|entry| entry.name)
        .find(|known| *known == name)
}

#[test]
fn every_id_that_is_read_is_declared() {
    let mut declared = BTreeMap::new();
    for entry in COMMANDS.iter().chain(SUBCOMMANDS) {
        let command = entry.name.split(' ').next().unwrap_or_default();
        let command_ids: &mut BTreeSet<String> = declared.entry(command).or_default();
        ids(&(entry.build)(), command_ids);
    }
    let bench_ids = declared.entry("bench").or_default();
    benchmark_commands().for_each(|command| ids(&command, bench_ids));
    let anywhere: BTreeSet<&String> = declared.values().flatten().collect();
    let reads = Regex::new(READS).expect("a regular expression");
    let (mut files, mut places, mut undeclared) = (Vec::new(), 0, Vec::new());
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli"),
        &mut files,
    );
    for path in files {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for found in reads.captures_iter(code) {
            let id = found.get(1).map_or("", |id| id.as_str());
            let is_declared = match owner(&path) {
                Some(command) => declared.get(command).is_some_and(|ids| ids.contains(id)),
                None => anywhere.iter().any(|known| *known == id),
            };
            places += 1;
            if !is_declared {
                undeclared.push(format!("{}: {id}", path.display()));
            }
        }
    }
    // There are several hundred: fewer would mean that the pattern does not match most of them.
    assert!(
        places > 200,
        "only {places} places that read an option were found"
    );
    assert!(
        undeclared.is_empty(),
        "declared by no command, or not by this one:\n  {}",
        undeclared.join("\n  ")
    );
}

#[test]
fn the_pattern_sees_how_options_are_read() {
    let reads = Regex::new(READS).expect("a regular expression");
    let id = |code: &str| Some(reads.captures(code)?.get(1)?.as_str().to_owned());
    for code in [
        r#"flag(matches, "call-graph")"#,
        r#"matches.get_one::<u64>("call-graph")"#,
        r#"on("call-graph")"#,
        "matches.get_many::<String>(\n    \"call-graph\",\n)",
        r#"is_set(request.matches, "call-graph")"#,
    ] {
        assert_eq!(id(code).as_deref(), Some("call-graph"), "{code}");
    }
    assert_eq!(id(r#"note("call-graph")"#), None);
}
