//! The text output of `script`: any bytes become a perf.data that can be read, or are refused.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rperf_import::script_text::ScriptText;
use rperf_perfdata::PerfData;

fuzz_target!(|bytes: &[u8]| {
    // The command line in the perf.data.
    let command = ["rperf".to_owned()];
    let mut output = Cursor::new(Vec::new());
    let Ok(imported) = ScriptText::new(bytes).write(&mut output, &command) else {
        return;
    };
    let written = output.into_inner();
    assert_eq!(imported.bytes, written.len() as u64);
    let recording = PerfData::parse(&written).expect("a file that was written");
    assert!(recording.records().all(|record| record.is_ok()));
});
