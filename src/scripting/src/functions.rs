//! The functions of a script and the values that they use, as reported by its shim: a program of rperf that runs in the
//! interpreter, loads the script and calls its functions.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::language::ScriptLanguage;

/// The functions of a script that rperf may call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ScriptFunctions {
    /// The language of the script.
    #[serde(skip)]
    pub language: ScriptLanguage,
    /// Handlers of tracepoints, and functions for other events, for non-sample records, for counts of `stat` and for rows of
    /// database tables.
    pub functions: Vec<ScriptFunction>,
    /// The functions of `perf_trace_context` that the script may call and that return values of the event.
    pub context: Vec<String>,
    /// What the script exports to a database; by default, nothing.
    #[serde(default)]
    pub database: DatabaseMode,
}

/// The variables of a script that exports to a database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct DatabaseMode {
    /// `perf_db_export_mode`: functions are called with rows of tables instead of samples.
    pub mode: bool,
    /// `perf_db_export_calls`: calls and returns of a hardware trace are exported.
    pub calls: bool,
    /// `perf_db_export_callchains`: callchains are exported.
    pub callchains: bool,
}

/// A function of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ScriptFunction {
    /// Its name.
    pub name: String,
    /// Number of its positional parameters; -1 if unknown.
    pub arguments: i64,
    /// The names of its positional parameters; empty if unknown.
    #[serde(default)]
    pub parameters: Vec<String>,
    /// Whether each parameter is read; `None` if unknown: then all count as read.
    pub read: Option<Vec<bool>>,
    /// The keys that the function reads from the dict in its last parameter; `None` for all. A key maps to the inner keys that
    /// are read from its value, if the value is a dict; to `None` for all of them.
    pub keys: Option<BTreeMap<String, Option<Vec<String>>>>,
}

impl ScriptFunctions {
    /// Parses the answer of the shim of this language.
    ///
    /// # Errors
    /// Invalid JSON, or another structure.
    pub fn parse(language: ScriptLanguage, text: &str) -> Result<Self, serde_json::Error> {
        let functions: Self = serde_json::from_str(text)?;
        Ok(Self {
            language,
            ..functions
        })
    }

    /// The function of this name; `None` if the script has none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ScriptFunction> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Whether the script may call this function of `perf_trace_context`.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        self.context.iter().any(|used| used == name)
    }
}

impl ScriptFunction {
    /// Whether the parameter at `index` is read.
    #[must_use]
    pub fn reads(&self, index: usize) -> bool {
        let read = self.read.as_ref();
        read.is_none_or(|read| read.get(index).copied().unwrap_or(true))
    }

    /// Whether this key of the dict in the last parameter is read.
    #[must_use]
    pub fn reads_key(&self, key: &str) -> bool {
        let keys = self.keys.as_ref();
        keys.is_none_or(|keys| keys.contains_key(key))
    }

    /// Whether `key` is read from the inner dict that the dict in the last parameter has under the key `outer`.
    #[must_use]
    pub fn reads_inner_key(&self, outer: &str, key: &str) -> bool {
        match self.keys.as_ref().map(|keys| keys.get(outer)) {
            // All keys of the dict, or of the inner dict, count as read.
            None | Some(Some(None)) => true,
            Some(Some(Some(inner))) => inner.iter().any(|read| read == key),
            // `outer` is not read.
            Some(None) => false,
        }
    }
}
