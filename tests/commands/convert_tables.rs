//! `rperf data convert --to-ndjson` and `--to-parquet`: the tables of a recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rperf_testkit::Scratch;
use serde_json::Value;

use super::convert::{converted, ran, recorded};
use super::folded_parser::{Folded, parse};
use super::rperf;

/// The rows of each table.
fn tables(text: &[u8]) -> BTreeMap<String, Vec<Value>> {
    let mut tables: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8_lossy(text).lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let table = row["table"].as_str().expect("a name").to_owned();
        tables.entry(table).or_default().push(row);
    }
    tables
}

/// The samples folded by joining the tables.
fn folded(tables: &BTreeMap<String, Vec<Value>>) -> Folded {
    let frames: BTreeMap<_, _> = tables["frames"]
        .iter()
        .map(|row| {
            (
                row["frame"].as_u64(),
                row["function"].as_str().expect("a name"),
            )
        })
        .collect();
    let mut stacks: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for row in &tables["stacks"] {
        let stack = stacks.entry(row["stack"].as_u64()).or_default();
        assert_eq!(
            row["depth"].as_u64(),
            Some(stack.len() as u64),
            "innermost first"
        );
        stack.push(frames[&row["frame"].as_u64()]);
    }
    let mut folded = Folded::new();
    for row in &tables["samples"] {
        let stack = stacks[&row["stack"].as_u64()].iter().rev();
        let names: Vec<&str> = row["comm"]
            .as_str()
            .into_iter()
            .chain(stack.copied())
            .collect();
        *folded.entry(names.join(";")).or_default() += 1;
    }
    folded
}

#[test]
fn joined_tables_have_the_stacks_that_are_folded() {
    for chains in [&["-g"][..], &["--call-graph", "dwarf"], &[]] {
        let scratch = Scratch::new();
        recorded(
            &scratch,
            &[chains, &["-F", "1999", "-e", "cpu-clock:u"]].concat(),
        );
        let expected = parse(&String::from_utf8_lossy(&converted(
            &scratch,
            "folded",
            &[],
        )));
        assert!(expected.values().sum::<u64>() > 20, "{expected:?}");
        let tables = tables(&converted(&scratch, "ndjson", &[]));
        assert_eq!(folded(&tables), expected, "{chains:?}");
        let recording = &tables["recordings"][0]["recording"];
        for row in tables.values().flatten() {
            assert_eq!(&row["recording"], recording, "{row}");
        }
    }
}

#[test]
fn tables_describe_threads_mappings_and_sums() {
    let scratch = Scratch::new();
    recorded(
        &scratch,
        &[
            "-F",
            "1999",
            "-e",
            "cpu-clock:u,page-faults:u",
            "-k",
            "mono",
        ],
    );
    let tables = tables(&converted(&scratch, "ndjson", &[]));
    for event in &tables["events"] {
        let samples = tables["samples"]
            .iter()
            .filter(|row| row["event"] == event["event"]);
        let periods: Vec<u64> = samples
            .map(|row| row["period"].as_u64().expect("a number"))
            .collect();
        assert_eq!(
            event["samples"].as_u64(),
            Some(periods.len() as u64),
            "{event}"
        );
        assert_eq!(
            event["period"].as_u64(),
            Some(periods.iter().sum()),
            "{event}"
        );
    }
    // `recorded` runs a shell (`sh -c`) that starts `ls` as its last command.
    let task = |comm: &str| {
        let mut tasks = tables["tasks"].iter();
        tasks
            .find(|row| row["comm"] == comm)
            .unwrap_or_else(|| panic!("no task {comm}"))
    };
    assert!(task("sh")["ended"].is_number());
    assert_eq!(task("ls")["parent_pid"], task("sh")["pid"]);
    assert!(task("ls")["started"].as_u64() < task("ls")["ended"].as_u64());
    let mut mappings = tables["mappings"].iter();
    assert!(mappings.any(|row| row["pid"] == task("ls")["pid"] && row["executable"] == true));
    let recording = &tables["recordings"][0];
    assert_eq!(recording["has_clock"], true);
    assert_eq!(recording["schema"], 1);
    let offset = |row: &Value| {
        row["wall_time"]
            .as_i64()
            .zip(row["time"].as_i64())
            .map(|(wall, time)| wall - time)
    };
    for row in &tables["samples"] {
        assert_eq!(offset(row), offset(&tables["samples"][0]), "{row}");
        assert!(
            row["wall_time"].as_i64() >= recording["wall_start"].as_i64(),
            "{row}"
        );
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => paths.extend(files(&path)),
            false => paths.push(path),
        }
    }
    paths.sort();
    paths
}

#[test]
fn each_table_is_a_file_and_without_force_all_or_none_are_written() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-F", "1999", "-e", "cpu-clock:u"]);
    let convert = ["data", "convert", "--to-parquet", "set"];
    ran(&scratch, &convert);
    let folder = scratch.path().join("set");
    let written = files(&folder);
    assert_eq!(written.len(), 8, "{written:?}");
    for path in &written {
        let below = path
            .strip_prefix(&folder)
            .expect("below the folder")
            .to_string_lossy()
            .into_owned();
        let parts: Vec<&str> = below.split('/').collect();
        assert!(
            matches!(parts[..], [_, host, date, _] if host.starts_with("host=") && date.starts_with("date=20")),
            "{below}"
        );
        let bytes = fs::read(path).expect("a file");
        assert!(
            bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"),
            "{below}"
        );
    }
    let again = rperf(&convert)
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert_eq!(again.status, 255, "{again:?}");
    assert!(
        again.stderr.contains("Output file exists: set/"),
        "{}",
        again.stderr
    );
    ran(&scratch, &[&convert[..], &["--force"]].concat());
    assert_eq!(files(&folder), written);
    // Without `--force` and with only one of the files missing: that file is written, but as the next file exists, the command
    // fails and removes what it wrote. `recordings` is the table that is written first.
    let recordings_file = written
        .iter()
        .find(|path| path.to_string_lossy().contains("recordings"))
        .expect("a table");
    fs::remove_file(recordings_file).expect("it can be removed");
    let partly = rperf(&convert)
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert_eq!(partly.status, 255, "{partly:?}");
    assert!(!recordings_file.exists(), "the new table is removed");
    // With `--force`, a new table that replaced an old one stays if a later table cannot be written.
    ran(&scratch, &[&convert[..], &["--force"]].concat());
    let samples_file = written
        .iter()
        .find(|path| path.to_string_lossy().contains("samples"))
        .expect("a table");
    fs::remove_file(samples_file).expect("it can be removed");
    fs::create_dir(samples_file).expect("a folder");
    let failed = rperf(&[&convert[..], &["--force"]].concat())
        .within(scratch.path())
        .finish()
        .expect("rperf starts");
    assert_eq!(failed.status, 255, "{failed:?}");
    assert!(recordings_file.exists(), "the replaced table stays");
}

#[test]
fn a_file_is_not_replaced_by_a_folder() {
    let scratch = Scratch::new();
    recorded(&scratch, &["-F", "1999", "-e", "cpu-clock:u"]);
    fs::write(scratch.path().join("file"), "").expect("it can be written");
    for force in [&[][..], &["--force"]] {
        let words = [&["data", "convert", "--to-parquet", "file"], force].concat();
        let refused = rperf(&words).within(scratch.path()).finish();
        let refused = refused.expect("rperf starts");
        // The first `file` is the name of the file.
        let message = "file is a file; --to-parquet writes a directory\nhint: give another path, or remove the file\n";
        assert_eq!((refused.status, &*refused.stderr), (255, message));
    }
}

#[test]
fn docs_dataset_describes_each_table_and_column() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dataset.md"))
        .expect("a page");
    let scratch = Scratch::new();
    recorded(&scratch, &["-g", "-F", "1999", "-e", "cpu-clock:u"]);
    for (table, rows) in tables(&converted(&scratch, "ndjson", &[])) {
        let start = format!("| {table} |");
        let line = page.lines().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("{table} is not described"));
        for column in rows
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|row| row.keys())
        {
            let column = format!("`{column}`");
            assert!(
                column == "`table`" || line.contains(&column),
                "{table} lacks {column}"
            );
        }
    }
}
