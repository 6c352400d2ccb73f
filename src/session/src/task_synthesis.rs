//! Creates the records that describe running tasks, without a recording, so that the time for their creation can be measured.

use std::io;
use std::time::Duration;

use rperf_sys::Proc;

use crate::synthesize::{
    RecordBuffer, SynthesizedMappings, TaskRecordOptions, all_tasks, some_tasks,
};

/// Time limit for reading the mappings of one process: perf's default.
const MAPS_TIMEOUT: Duration = Duration::from_millis(500);
/// Size in bytes of a record's header, of which the last two bytes are the record's size (`struct perf_event_header`).
const HEADER_SIZE: usize = 8;

/// The tasks to describe, and the extent of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskSynthesis {
    /// The process; all processes if `None`.
    pub process: Option<u32>,
    /// Whether MMAP2 records of data are included; those of code always are.
    pub data: bool,
    /// Maximum number of threads that read procfs.
    pub threads: usize,
}

impl TaskSynthesis {
    /// Creates the records and returns their number.
    ///
    /// # Errors
    /// procfs cannot be read.
    pub fn run(&self, proc: &Proc) -> io::Result<u64> {
        let options = TaskRecordOptions {
            mappings: match self.data {
                true => SynthesizedMappings::Data,
                false => SynthesizedMappings::Code,
            },
            maps_timeout: MAPS_TIMEOUT,
            threads: self.threads,
            namespaces: false,
        };
        // Records have no fields of `sample_id_all` at their end.
        let no_trailer = 0;
        let mut records = RecordBuffer::new(no_trailer);
        match self.process {
            None => all_tasks(&mut records, proc, options)?,
            // All threads of the process.
            Some(pid) => {
                let tids = proc.threads(pid)?;
                let tids: Vec<i32> = tids.into_iter().map(u32::cast_signed).collect();
                some_tasks(&mut records, proc, &tids, options);
            }
        }
        Ok(count(&records.take()))
    }
}

/// Returns the number of complete records.
fn count(mut records: &[u8]) -> u64 {
    let mut number = 0;
    while let Some((header, _)) = records.split_at_checked(HEADER_SIZE) {
        let size = header
            .last_chunk()
            .map_or(0, |size| u16::from_ne_bytes(*size));
        // At least a header: a size of 0 would not advance.
        let Some(rest) = records.get(usize::from(size).max(HEADER_SIZE)..) else {
            break;
        };
        number += 1;
        records = rest;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_mappings_and_other_processes_add_records() {
        let proc = Proc::new("/proc");
        let run = |process, data| {
            let synthesis = TaskSynthesis {
                process,
                data,
                threads: 2,
            };
            synthesis.run(&proc).unwrap()
        };
        let own = Some(std::process::id());
        let code = run(own, false);
        // At least a COMM record and mappings of the program and the C library.
        assert!(code > 2 && run(own, true) > code);
        // The process that started the test has records, too.
        assert!(run(None, false) > code);
    }

    #[test]
    fn records_are_counted_by_their_sizes() {
        let record = |size: u16| {
            [
                &[0; 6][..],
                &size.to_ne_bytes(),
                &vec![0; usize::from(size) - 8],
            ]
            .concat()
        };
        assert_eq!(count(&[record(8), record(24)].concat()), 2);
        assert_eq!(count(&record(24)[..20]), 0);
    }
}
