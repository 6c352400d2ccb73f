//! The counts of `stat record` as calls of `stat__EVENT(cpu, thread, time, value, enabled, running)` and
//! `stat__interval(time)`.

use crate::functions::ScriptFunctions;
use crate::marshal::MarshalWriter;

/// The function that is called at the end of an interval.
const INTERVAL: &str = "stat__interval";

/// A reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptCount {
    /// The index of its event among those of [`StatCalls::new`].
    pub event: usize,
    /// The CPU; `None` for all.
    pub cpu: Option<u32>,
    /// The thread; `None` for all.
    pub thread: Option<u32>,
    /// The count, and the times in which the counter was enabled and running, in nanoseconds.
    pub values: [u64; 3],
}

/// The calls of a script for counts.
#[derive(Debug)]
pub struct StatCalls {
    /// The function of each event, then [`INTERVAL`]; `None` for a function that the script does not have.
    functions: Vec<Option<String>>,
}

impl StatCalls {
    /// Finds the functions for events with these names. The script must be in Python: perf passes no counts to scripts
    /// in Perl.
    #[must_use]
    pub fn new<'n>(functions: &ScriptFunctions, events: impl IntoIterator<Item = &'n str>) -> Self {
        let names = events.into_iter().map(function_name);
        let names = names.chain([INTERVAL.to_owned()]);
        let is_defined = |name: &String| functions.get(name).is_some();
        Self {
            functions: names.map(|name| Some(name).filter(is_defined)).collect(),
        }
    }

    /// The description of all functions for the shim, rperf's program in the interpreter. A call refers to its function by the
    /// index in this description.
    #[must_use]
    pub fn description(&self) -> Vec<u8> {
        let mut writer = MarshalWriter::default();
        writer.tuple(self.functions.len());
        for function in &self.functions {
            writer.tuple(5);
            writer.text(match function {
                Some(_) => b"direct",
                None => b"none",
            });
            writer.text(function.as_deref().unwrap_or_default().as_bytes());
            // No event name, no arrays among the arguments, and no values for `perf_trace_context`.
            writer.none();
            writer.tuple(0);
            writer.boolean(false);
        }
        writer.into_bytes()
    }

    /// The encoded calls at the end of an interval; `time` is this end, in nanoseconds since counting began. `None` if no
    /// function is called.
    #[must_use]
    pub fn interval(
        &self,
        time: u64,
        counts: impl IntoIterator<Item = ScriptCount>,
    ) -> Option<Vec<u8>> {
        let mut writer = MarshalWriter::default();
        let list = writer.open_list();
        let mut calls = 0;
        let is_called = |function: usize| matches!(self.functions.get(function), Some(Some(_)));
        for count in counts {
            if !is_called(count.event) {
                continue;
            }
            calls += 1;
            writer.tuple(2);
            writer.unsigned(count.event as u64);
            writer.tuple(6);
            // As in perf, -1 is all CPUs or all threads.
            for id in [count.cpu, count.thread] {
                writer.signed(id.map_or(-1, i64::from));
            }
            writer.unsigned(time);
            for value in count.values {
                writer.unsigned(value);
            }
        }
        let interval_index = self.functions.len() - 1;
        if is_called(interval_index) {
            calls += 1;
            writer.tuple(2);
            writer.unsigned(interval_index as u64);
            writer.tuple(1);
            writer.unsigned(time);
        }
        writer.set_length(list, calls);
        (calls > 0).then(|| writer.into_bytes())
    }
}

/// The name of the function (handler) for an event: each colon becomes an underscore.
fn function_name(event: &str) -> String {
    format!("stat__{}", event.replace(':', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::ScriptLanguage;

    #[test]
    fn functions_are_named_after_events() {
        assert_eq!(function_name("cycles:k"), "stat__cycles_k");
        assert_eq!(function_name("page-faults"), "stat__page-faults");
    }

    #[test]
    fn events_without_a_function_cause_no_calls() {
        // What the shim reports about a script.
        let report = r#"{"functions":[{"name":"stat__cycles","arguments":6,"read":null,"keys":null}],"context":[]}"#;
        let functions = ScriptFunctions::parse(ScriptLanguage::Python, report).unwrap();
        let count = |event| ScriptCount {
            event,
            cpu: Some(1),
            thread: None,
            values: [1, 2, 3],
        };
        let calls = StatCalls::new(&functions, ["cycles:u", "cycles"]);
        assert_eq!(calls.interval(5, [count(0)]), None);
        assert!(calls.interval(5, [count(0), count(1)]).is_some());
    }
}
