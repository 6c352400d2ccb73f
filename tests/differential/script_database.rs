//! Scripts that export to databases: perf calls them with rows of tables instead of samples.

use std::path::PathBuf;

use rperf_testkit::{Run, may_trace, skip};

use super::trace_scripts::{has_interpreters, scripts};
use super::{Tool, Tools, assert_alike};
use crate::commands::script::scripts::RECORDINGS;
use crate::tidy::root;

/// A script that prints each row of each table.
pub(super) const ROWS: &str = "
perf_db_export_mode = True
perf_db_export_calls = False
perf_db_export_callchains = True
def row(table):
    return lambda *values: print(table, values)
for name in ('evsel', 'machine', 'thread', 'comm', 'comm_thread', 'dso', 'symbol', 'branch_type', 'sample', 'call_path',
             'context_switch'):
    globals()[name + '_table'] = row(name)
synth_data = row('synth_data')
def trace_begin(): print('begin')
def trace_end(): print('end')
def trace_unhandled(event, context, fields): print(event)
def process_event(sample): print('not called')
def context_switch(*values): print('not called')
def throttle(*values): print('throttle', values)
";

/// The part of PySide2 that perf's script needs, implemented with Python's own sqlite3.
const QT: &str = "
import sqlite3
class QSqlDatabase:
    def addDatabase(kind): return QSqlDatabase()
    def setDatabaseName(self, name): self.name = name
    def open(self): self.db = sqlite3.connect(self.name, isolation_level=None)
    def close(self): self.db.close()
class QSqlQuery:
    def __init__(self, db): self.db, self.values = db.db, []
    def prepare(self, text): self.text = text
    def addBindValue(self, value): self.values.append(value)
    def exec_(self, text=None):
        self.cursor = self.db.execute(text or self.text, self.values)
        self.values = []
        return True
    def next(self):
        return self.cursor.fetchone() is not None
";

fn write(tools: &Tools, name: &str, text: &str) {
    let path = tools.path().join(name);
    let folder = path.parent().expect("the file is in a folder");
    std::fs::create_dir_all(folder).expect("a folder can be created");
    std::fs::write(path, text).expect("a file can be written");
}

/// Records named threads, switches, callchains and data addresses in `threads.data`.
fn record_threads(tools: &Tools) {
    let command = "perf bench futex hash -t 2 -r 1 -f 64; perf bench sched pipe -T -l 50";
    let words = [
        "record",
        "-q",
        "-g",
        "-d",
        "--switch-events",
        "-F",
        "499",
        "-e",
        "cpu-clock,sched:sched_process_exit",
        "-o",
        "threads.data",
        "sh",
        "-c",
        command,
    ];
    let recorded = tools.outcome(Tool::Perf, &words);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
}

/// A recording of a shell with these events, as a stream.
pub(crate) fn stream(tools: &Tools, events: &str) -> Vec<u8> {
    let program = tools.program(Tool::Perf).to_string_lossy();
    let command = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; cat /nosuch 2> /dev/null; true";
    let line = "\"$0\" record -q -e \"$1\" -o - sh -c \"$2\" > stream.data";
    let recorded = Run::new("sh").args(["-c", line, &program, events, command]);
    let recorded = recorded
        .within(tools.path())
        .finish()
        .expect("a shell starts");
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    std::fs::read(tools.path().join("stream.data")).expect("the stream was written")
}

/// Both tools, in a folder with `threads.data`; `None`, with a printed reason, if something is missing.
fn tools(test: &str) -> Option<Tools> {
    let tools = Tools::find_for(test)?;
    if !has_interpreters() || !may_trace(test) {
        skip(test, "there are no interpreters or no tracepoints");
        return None;
    }
    record_threads(&tools);
    Some(tools)
}

#[test]
fn scripts_export_the_same_rows() {
    let Some(tools) = tools("scripts_export_the_same_rows") else {
        return;
    };
    write(&tools, "rows.py", ROWS);
    let fixtures = RECORDINGS
        .iter()
        .map(|name| root().join("tests/fixtures").join(name));
    let recordings: Vec<PathBuf> = fixtures
        .chain([tools.path().join("threads.data")])
        .collect();
    let mut differences = Vec::new();
    let mut compare = |words: &[&str], stdin: &[u8]| {
        let [perf, rperf] = tools.outcomes(words, stdin);
        // Shows that perf ran the script: this row is exported for every recording. Samples of tracepoints have no rows, so not
        // every recording has rows of samples.
        assert!(perf.stdout.contains("branch_type (0, "), "{perf:?}");
        if (rperf.status, &rperf.stdout) != (perf.status, &perf.stdout) {
            let (of_perf, of_rperf) = (perf.stdout, rperf.stdout + &rperf.stderr);
            differences.push(format!("{words:?}:\n{of_perf}\n--- rperf\n{of_rperf}"));
        }
    };
    for recording in &recordings {
        let recording = recording.to_string_lossy();
        compare(&["script", "-f", "-i", &recording, "-s", "rows.py"], b"");
    }
    let stream = stream(&tools, "cpu-clock,sched:sched_process_exit");
    compare(&["script", "-i", "-", "-s", "rows.py"], &stream);
    assert_alike(&differences);
}

#[test]
fn the_same_database_is_written() {
    let test = "the_same_database_is_written";
    let Some(tools) = tools(test) else {
        return;
    };
    let Some(scripts) = scripts() else {
        return skip(test, "there are no scripts of perf");
    };
    write(&tools, "PySide2/__init__.py", "");
    write(&tools, "PySide2/QtSql.py", QT);
    write(
        &tools,
        "dump.py",
        "import sqlite3, sys\nprint(*sqlite3.connect(sys.argv[1]).iterdump(), sep='\\n')\n",
    );
    let script = scripts.join("python/export-to-sqlite.py");
    let [expected, own] = [Tool::Perf, Tool::Rperf].map(|tool| {
        let name = format!("{tool:?}.db");
        let words = [
            "script",
            "-i",
            "threads.data",
            "-s",
            &*script.to_string_lossy(),
        ];
        let words = [&words[..], &[&name, "all", "calls", "callchains"]].concat();
        // rperf has its own substitute for PySide2, and does not need the one of this test.
        let run = match tool {
            Tool::Perf => tools.run(tool, &words).env("PYTHONPATH", tools.path()),
            Tool::Rperf => tools.run(tool, &words),
        };
        let outcome = run.finish().expect("the tool starts");
        assert_eq!(outcome.status, 0, "{tool:?}: {}", outcome.stderr);
        let dump = Run::new("python3").args(["dump.py", &name]);
        let dump = dump.within(tools.path()).finish().expect("Python starts");
        assert_eq!(dump.status, 0, "{}", dump.stderr);
        dump.stdout
    });
    assert!(expected.contains("INSERT INTO \"samples\""), "{expected}");
    let differences = rperf_testkit::golden::difference(&expected, &own);
    assert_alike(&differences.into_iter().collect::<Vec<_>>());
}

/// A program that prints the columns and rows of all tables and views, sorted by type and name: unlike a dump, it shows neither
/// the order in which they were created nor the SQL that did it, which may differ between perf's script and the built-in one.
const TABLES: &str = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
for kind, name in sorted(database.execute('SELECT type, name FROM sqlite_master').fetchall()):
    print(kind, name)
    if kind == 'table':
        print([column[1:] for column in database.execute('PRAGMA table_info(%s)' % name)])
    if kind in ('table', 'view'):
        rows = database.execute('SELECT * FROM ' + name)
        print([column[0] for column in rows.description], *rows, sep='\\n')
";

#[test]
fn the_built_in_script_writes_the_same_tables() {
    let test = "the_built_in_script_writes_the_same_tables";
    let Some(tools) = tools(test) else {
        return;
    };
    let Some(scripts) = scripts() else {
        return skip(test, "there are no scripts of perf");
    };
    write(&tools, "PySide2/__init__.py", "");
    write(&tools, "PySide2/QtSql.py", QT);
    write(&tools, "tables.py", TABLES);
    let script = scripts.join("python/export-to-sqlite.py");
    let tables = |name: &str| {
        let run = Run::new("python3").args(["tables.py", name]);
        let printed = run.within(tools.path()).finish().expect("Python starts");
        assert_eq!(printed.status, 0, "{}", printed.stderr);
        printed.stdout
    };
    let mut differences = Vec::new();
    for (number, words) in [
        &[][..],
        &["all"],
        &["branches"],
        &["all", "calls", "callchains"],
    ]
    .into_iter()
    .enumerate()
    {
        let names = [Tool::Perf, Tool::Rperf].map(|tool| format!("{tool:?}-{number}.db"));
        let perfs_script = [
            "script",
            "-i",
            "threads.data",
            "-s",
            &*script.to_string_lossy(),
            &names[0],
        ];
        let run = tools.run(Tool::Perf, &[&perfs_script, words].concat());
        let perf = run.env("PYTHONPATH", tools.path()).finish();
        let perf = perf.expect("perf starts");
        assert_eq!(perf.status, 0, "{}", perf.stderr);
        let built_in = [
            "script",
            "-i",
            "threads.data",
            "report",
            "export-to-sqlite",
            &names[1],
        ];
        let rperf = tools.outcome(Tool::Rperf, &[&built_in, words].concat());
        assert_eq!(rperf.status, 0, "{}", rperf.stderr);
        assert!(rperf.stdout.ends_with(" samples\n"), "{}", rperf.stdout);
        let [expected, own] = names.each_ref().map(|name| tables(name));
        assert!(expected.contains("table samples\n"), "{expected}");
        let difference = rperf_testkit::golden::difference(&expected, &own);
        differences.extend(difference.map(|difference| format!("{words:?}: {difference}")));
    }
    assert_alike(&differences);
    // An existing database is not overwritten.
    let again = [
        "script",
        "-i",
        "threads.data",
        "report",
        "export-to-sqlite",
        "Rperf-0.db",
    ];
    let refused = tools.outcome(Tool::Rperf, &again);
    let message = "export-to-sqlite: Rperf-0.db exists\nhint: remove it";
    assert_eq!(refused.status, 255);
    assert!(refused.stderr.starts_with(message), "{}", refused.stderr);
}
