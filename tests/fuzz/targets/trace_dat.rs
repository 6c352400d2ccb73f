//! A trace.dat of trace-cmd: any bytes become a perf.data that can be read, or are refused.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use rperf_import::trace_dat::TraceDat;
use rperf_perfdata::PerfData;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = TraceDat::parse(bytes) else {
        return;
    };
    let _ = trace.kernel_symbols();
    let mut output = Cursor::new(Vec::new());
    let command_line = ["rperf".to_owned()];
    let Ok(imported) = trace.write(&mut output, &command_line) else {
        return;
    };
    let written = output.into_inner();
    assert_eq!(imported.bytes, written.len() as u64);
    let recording = PerfData::parse(&written).expect("a file that was written");
    assert!(recording.records().all(|record| record.is_ok()));
});
