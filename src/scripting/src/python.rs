//! The program in Python that runs scripts, the modules that scripts import, and the script `export-to-sqlite`.

/// The program that imports the script and calls its functions.
pub const PYTHON_SHIM: &str = include_str!("../python/shim.py");

/// The script `export-to-sqlite`.
pub const EXPORT_TO_SQLITE: &str = include_str!("../python/export_to_sqlite.py");

/// The names of the modules that scripts import, and their sources.
#[must_use]
pub fn python_modules() -> [(&'static str, &'static str); 5] {
    [
        ("perf_trace_context", include_str!("../python/context.py")),
        ("Core", include_str!("../python/core.py")),
        ("Util", include_str!("../python/util.py")),
        ("EventClass", include_str!("../python/event_class.py")),
        ("QtSql", include_str!("../python/qt_sql.py")),
    ]
}
