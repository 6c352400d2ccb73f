//! The counts of `stat record`, passed to the functions of a script at the end of each interval.

use rperf_perfdata::PerfData;
use rperf_replay::DecodeErrors;
use rperf_resolve::SampleCriteria;
use rperf_scripting::{ScriptCount, ScriptFunctions, ScriptLanguage, StatCalls};

use super::counts::{CountRecord, CountTable};
use super::interpreter::Interpreter;

/// Collects counts, and calls the script's functions.
pub(super) struct ScriptCounts {
    table: CountTable,
    functions: ScriptFunctions,
    /// The functions of the script to call, with the names of the events for which they were looked up: records can rename
    /// events. `None` until the first interval, and always for a Perl script.
    calls: Option<(Vec<String>, StatCalls)>,
}

impl ScriptCounts {
    pub(super) fn new(functions: ScriptFunctions) -> Self {
        Self {
            table: CountTable::default(),
            functions,
            calls: None,
        }
    }

    /// Sends the counts of a complete recording; stops when they cannot be sent.
    pub(super) fn send_all(
        &mut self,
        data: &PerfData<'_>,
        filter: &SampleCriteria,
        interpreter: &mut Interpreter,
    ) {
        // Stops at the first record that cannot be read. The replay reports the error.
        let mut records = data.records().map_while(Result::ok);
        records.all(|record| {
            let record = CountRecord {
                raw: &record.raw,
                position: record.position,
                endian: data.endian(),
                events: data.events(),
            };
            self.send(&record, filter, interpreter)
        });
    }

    /// The records that could not be decoded.
    pub(super) fn decode_errors(&self) -> DecodeErrors {
        self.table.decode_errors.clone()
    }

    /// Processes a record; at the end of an interval, sends its counts. Returns false if they could not be sent.
    pub(super) fn send(
        &mut self,
        record: &CountRecord<'_>,
        filter: &SampleCriteria,
        interpreter: &mut Interpreter,
    ) -> bool {
        let Some(interval) = self.table.process(record) else {
            return true;
        };
        let names: Vec<String> = self.table.names().map(str::to_owned).collect();
        let current = self.calls.take().filter(|(known, _)| *known == names);
        let calls = match current {
            Some((_, calls)) => calls,
            None => {
                if self.functions.language == ScriptLanguage::Perl {
                    // perf calls no function of Perl scripts for counts, either.
                    return true;
                }
                let calls = StatCalls::new(&self.functions, names.iter().map(String::as_str));
                // The later calls refer to functions by their index in this description.
                if !interpreter.send(&calls.description()) {
                    return false;
                }
                calls
            }
        };
        let time = u64::try_from(interval.at.as_nanos()).unwrap_or(u64::MAX);
        let readings = self.table.script_readings(interval, filter);
        let counts = readings.into_iter().map(|(event, reading)| {
            let count = reading.counts;
            ScriptCount {
                event,
                cpu: reading.cpu,
                thread: reading.thread,
                values: [count.value, count.enabled, count.running],
            }
        });
        let encoded_calls = calls.interval(time, counts);
        self.calls = Some((names, calls));
        encoded_calls.is_none_or(|encoded| interpreter.send(&encoded))
    }
}
