//! The functions of a script for the tables of a database.

use rperf_wire::RecordKind;

use crate::functions::ScriptFunctions;

/// A table; [`FUNCTIONS`] has the name of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Event,
    Machine,
    Thread,
    Comm,
    CommThread,
    Object,
    Symbol,
    BranchType,
    Sample,
    CallPath,
    ContextSwitch,
    /// The raw data of synthesized events.
    Synthesized,
}

/// The functions of the tables, in the order of [`Table`].
pub(crate) const FUNCTIONS: [&str; 12] = [
    "evsel_table",
    "machine_table",
    "thread_table",
    "comm_table",
    "comm_thread_table",
    "dso_table",
    "symbol_table",
    "branch_type_table",
    "sample_table",
    "call_path_table",
    "context_switch_table",
    "synth_data",
];

/// Records that a database needs besides samples: those that add or rename tasks, and those of context switches, which are rows
/// of a table.
pub(crate) const DATABASE_RECORDS: [RecordKind; 4] = [
    RecordKind::COMM,
    RecordKind::FORK,
    RecordKind::SWITCH,
    RecordKind::SWITCH_CPU_WIDE,
];

/// The tables that a script exports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseCalls {
    /// Whether the script has the function of each table.
    functions: [bool; FUNCTIONS.len()],
}

impl DatabaseCalls {
    /// The tables of a script; `None` if it does not export to a database.
    pub(crate) fn new(functions: &ScriptFunctions) -> Option<Self> {
        // `mode` is `perf_db_export_mode`, which the script sets.
        functions.database.mode.then(|| Self {
            functions: FUNCTIONS.map(|name| functions.get(name).is_some()),
        })
    }

    /// Whether the script has a function for the table.
    pub(crate) fn has(&self, table: Table) -> bool {
        self.functions.get(table as usize) == Some(&true)
    }

    /// The names of the functions in the order of [`FUNCTIONS`]; `None` for a function that the script does not have. The
    /// interpreter calls functions by number: functions for events and records come first, then these, in this order.
    pub(crate) fn names(&self) -> impl Iterator<Item = Option<&'static str>> {
        let defined = self.functions.into_iter();
        FUNCTIONS
            .into_iter()
            .zip(defined)
            .map(|(name, is_defined)| is_defined.then_some(name))
    }
}
